package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/isowatch/isowatch/cmd/monitor/app"
	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/databases"
)

// What the application did is judged by a monitor that reads its file: at READ COMMITTED additions are lost.
func TestMonitorRun(t *testing.T) {
	p := databases.StartPostgres(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "records")
	super := strings.Replace(p.URL(p.Primary), "canary@", "postgres@", 1)
	before := os.Args
	os.Args = []string{"go", super, file, "4", "100"}
	main()
	os.Args = before

	c := config.Default()
	c.Source.File = &config.File{Path: file}
	c.Coverage, c.Initial, c.UniqueValues = record.CoverageComplete, record.InitialAbsent, false
	c.Store.Path, c.HTTP.Listen, c.Alerts.Stdout = filepath.Join(dir, "store"), "", true
	var told bytes.Buffer
	monitor, err := app.New(app.Options{Config: c, Log: zerolog.Nop(), Stdout: &told, UntilEnd: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := monitor.Run(t.Context()); err != nil {
		t.Error(err)
	}
	if !bytes.Contains(told.Bytes(), []byte(`"lost-update"`)) {
		t.Errorf("no lost update is told: %s", &told)
	}
}

// docs/capture.md shows as a difference what makes an application record: ten lines of this one, which is one without them.
func TestTenLines(t *testing.T) {
	page, err := os.ReadFile("../../docs/capture.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile("(?s)```diff\n(.*?)```").FindSubmatch(page)
	if shown == nil {
		t.Fatal("docs/capture.md shows no difference")
	}
	added, without := 0, string(source)
	for part := range strings.SplitSeq(string(shown[1]), "@@\n") {
		var before, after strings.Builder
		for line := range strings.Lines(part) {
			text := strings.TrimPrefix(line, " ") // editors take it away from empty lines
			if line[0] == '+' {
				added++
				text = line[1:]
			} else {
				before.WriteString(text)
			}
			after.WriteString(text)
		}
		if strings.Count(without, after.String()) != 1 {
			t.Errorf("this is not in main.go:\n%s", &after)
		}
		without = strings.Replace(without, after.String(), before.String(), 1)
	}
	if added != 10 {
		t.Errorf("%d lines are added", added)
	}
	dir := t.TempDir()
	main, err := filepath.Abs("main.go")
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{main: filepath.Join(dir, "main.go")}})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"main.go": []byte(without), "overlay": overlay} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.CommandContext(t.Context(), "go", "vet", "-overlay", filepath.Join(dir, "overlay"), ".").CombinedOutput(); err != nil {
		t.Errorf("without them it is no program: %v\n%s", err, out)
	}
}
