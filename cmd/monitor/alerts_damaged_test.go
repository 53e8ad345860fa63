package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/window/store"
)

// TestAlertsOfDamagedState: where the state of groups and silences is damaged, alerts are
// listed as they were found, with a note that says so; and of one without evidence no file
// is written, which is said too.
func TestAlertsOfDamagedState(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	st, err := store.Open(store.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	a := alerts.Alert{Version: alerts.Version, ID: strings.Repeat("0a", 16), DB: "shop", Level: "si", Name: "lost-update", Severity: "critical", State: alerts.Fresh, Count: 1}
	if err := st.Commit(t.Context(), store.Commit{Alerts: []store.Alert{{ID: a.ID, Body: a.JSON(), News: 1}}, Life: []byte("\x01damaged")}); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	status, stdout, _ := inProcess(t, "alerts", "list", "--store", path)
	if status != exitOK || !strings.Contains(stdout, "lost-update") {
		t.Errorf("list: status %d\n%s", status, stdout)
	}
	files := filepath.Join(t.TempDir(), "evidence")
	status, stdout, stderr := inProcess(t, "alerts", "export", "--store", path, "--evidence", files)
	left, err := os.ReadDir(files)
	if status != exitOK || err != nil || len(left) != 0 || !strings.Contains(stderr, "no evidence is kept of alert "+a.ID+": it would be too large, as its explanation says") || !strings.Contains(stderr, "0 files") {
		t.Errorf("export: status %d, files %v, %v\n%s%s", status, left, err, stdout, stderr)
	}
}
