package present_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"


	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/internal/made"
	"github.com/isowatch/isowatch/alerts/present"
)

func page(t *testing.T, as []alerts.Alert, opt present.PageOptions) string {
	t.Helper()
	var b strings.Builder
	if err := present.HTML(&b, as, opt); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func case_(t *testing.T, title string) alerts.Alert {
	t.Helper()
	for _, c := range made.Cases(t) {
		if c.Title == title {
			return c.Alert
		}
	}
	t.Fatalf("there is no case %s", title)
	return alerts.Alert{}
}

var satisfied = present.PageHistory{File: "h.jsonl", Facts: "10 transactions", Levels: []present.PageLevel{
	{Level: "si", Verdict: "satisfied"}, {Level: "ser", Verdict: "satisfied", Notes: []string{"real-time only"}}}, Holding: []string{"ser"}}

func TestPageGolden(t *testing.T) {
	goldenPage(t, "page-lost-update", page(t, []alerts.Alert{case_(t, "with-times")}, present.PageOptions{Title: "lost-update in h.jsonl", Sources: []string{"h.jsonl"}}))
	goldenPage(t, "page-tree", page(t, []alerts.Alert{case_(t, "tree"), case_(t, "thin-air-read")}, present.PageOptions{Title: "2 anomalies"}))
	goldenPage(t, "page-satisfied", page(t, nil, present.PageOptions{Title: "h.jsonl", Histories: []present.PageHistory{satisfied}}))
}

func goldenPage(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".html")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != got {
		t.Errorf("%s is different (go test -update writes it anew; open it in a browser)", file)
	}
}

var dataLink = regexp.MustCompile(`href="data:application/x-ndjson;base64,([^"]*)"`)
