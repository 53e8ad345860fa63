package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/window/store"
)

// filled makes a store at path in which there is something of everything.
func filled(t *testing.T, path string) *store.Badger {
	t.Helper()
	s, err := store.Open(store.Options{Path: path, Receivers: []string{"web"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	for i := range int64(50) {
		c := store.Commit{
			Offsets:     map[string]map[int]int64{"orders": {0: i, 10: i, 2: i}},
			Journal:     []store.Entry{{Number: uint64(i + 1), Time: i * 1e9, Data: bytes.Repeat([]byte{byte(i)}, 5000)}},
			DeadLetters: []store.DeadLetter{{Pos: record.Position{Source: "orders", Kafka: true, Offset: i}, Reason: "bad-json", Value: []byte("x")}},
			Alerts:      []store.Alert{{ID: fmt.Sprintf("a%d", i%3), Body: []byte(`{"state":"ongoing"}`)}},
			Notices:     []store.Notice{{ID: fmt.Sprintf("n%d", i%3), Body: []byte(`{}`)}},
			Checkpoints: map[string][]byte{"shop": bytes.Repeat([]byte{byte(i)}, 200_000)},
			Drop:        uint64(i / 2),
		}
		if err := s.Commit(context.Background(), c); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// inProcess runs a command in this process and returns its status and output.
func inProcess(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(&errs)
	return exitStatus(root.ExecuteContext(t.Context()), &errs), out.String(), errs.String()
}

// TestNoStore: what is to look into a store, or to make one smaller, makes none where none is.
func TestNoStore(t *testing.T) {
	empty, aside, file := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(aside, "lost+found"), 0o700); err != nil { // a mount point is as good as empty
		t.Fatal(err)
	}
	for path, says := range map[string]string{empty: "not an Isowatch store: there is none in that directory", aside: "not an Isowatch store: there is none", file: "not an Isowatch store", filepath.Join(empty, "none"): "no such file"} {
		for _, args := range [][]string{{"store", "inspect", path}, {"store", "compact", path}, {"store", "verify", path}, {"dead-letters", "list", "--store", path}, {"alerts", "list", "--store", path}} {
			got, stdout, stderr := inProcess(t, args...)
			if got != exitUnusable || !strings.Contains(stderr, says) || stdout != "" {
				t.Errorf("%v: status %d, want %d and %q\n%s%s", args, got, exitUnusable, says, stdout, stderr)
			}
			left := 0
			for _, dir := range []string{empty, aside} {
				names, err := os.ReadDir(dir)
				if err != nil {
					t.Fatal(err)
				}
				left += len(names)
			}
			if left != 1 {
				t.Fatalf("%v wrote something", args)
			}
		}
	}
}

func TestStoreCommands(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	s := filled(t, path)
	want := func(status int, says string, args ...string) string {
		t.Helper()
		got, stdout, stderr := inProcess(t, args...)
		if got != status || !strings.Contains(stdout+stderr, says) {
			t.Errorf("%v: status %d, want %d and %q\n%s%s", args, got, status, says, stdout, stderr)
		}
		return stdout
	}
	// In use: each says by whom.
	holder := fmt.Sprintf("in use by another process (process %d)", os.Getpid())
	want(exitEnvironment, holder+": copy the directory and verify the copy", "store", "verify", path)
	want(exitEnvironment, holder+": a store has one user at a time", "store", "inspect", path)
	want(exitEnvironment, holder, "store", "compact", path)

	// A copy is whole.
	copied := path + "-copy"
	if out, err := exec.Command("cp", "-r", path, copied).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v %s", err, out)
	}
	want(exitOK, "50 entries of the journal", "store", "verify", copied)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var r struct {
		OK bool `json:"ok"`
		store.Report
	}
	if err := json.Unmarshal([]byte(want(exitOK, "", "store", "verify", path, "--output", "json")), &r); err != nil || !r.OK || r.Entries != 50 || len(r.Damaged) != 0 {
		t.Errorf("%+v, %v", r, err)
	}

	var info store.Info
	if err := json.Unmarshal([]byte(want(exitOK, "", "store", "inspect", path, "--output", "json")), &info); err != nil {
		t.Fatal(err)
	}
	if info.Schema != store.Schema || info.Offsets["orders"][10] != 49 || info.Histories["shop"] != (store.History{Checkpoints: 50, Bytes: 200_000}) || info.Journal.Entries != 50 ||
		info.Journal.Needed != 24 || info.Alerts.ByState["ongoing"] != 3 || info.Undelivered["web"] != 3 || info.DeadLetters["bad-json"] != 50 || info.Bytes.Disk == 0 {
		t.Errorf("%+v %+v", info, info.Journal)
	}
	text := want(exitOK, "orders {0: 49, 2: 49, 10: 49}", "store", "inspect", path)
	for _, says := range []string{"layout 5", "shop: checkpoint 50, 195 KiB", "50 entries, 1 to 50 (1970-01-01T00:00:00Z to 1970-01-01T00:00:49Z), needed from 24", "3 ongoing", "3 web", "50 bad-json"} {
		if !strings.Contains(text, says) {
			t.Errorf("inspect does not say %q:\n%s", says, text)
		}
	}

	// Evidence goes with compact, the rest stays.
	want(exitOK, ", was ", "store", "compact", path, "--retain", "0s")
	want(exitUnusable, "--max-bytes", "store", "compact", path, "--max-bytes", "many")
	want(exitOK, "whole", "store", "verify", path)

	// A byte that flips is found, and its record named, by verify and by whoever
	// opens the store.
	logs, err := filepath.Glob(filepath.Join(path, "journal", "*.log"))
	if err != nil || len(logs) == 0 {
		t.Fatal(logs, err)
	}
	b, err := os.ReadFile(logs[0])
	if err != nil {
		t.Fatal(err)
	}
	b[8+32+5000+32+77] ^= 4 // of the second entry's data
	if err := os.WriteFile(logs[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
	says := fmt.Sprintf("journal: entry 2 in journal/%s at byte %d is damaged: its checksum is wrong", filepath.Base(logs[0]), 8+32+5000)
	want(exitUnusable, says, "store", "verify", path)
	if err := json.Unmarshal([]byte(want(exitUnusable, "", "store", "verify", path, "--output", "json")), &r); err != nil || r.OK || len(r.Damaged) != 1 || r.Damaged[0].Key != "entry 2" {
		t.Errorf("%+v, %v", r, err)
	}

	want(exitUnusable, "no such file", "store", "inspect", path+"-nowhere")
	want(exitUnusable, "no such file", "store", "compact", path+"-nowhere")
	want(exitUnusable, "no such file", "store", "verify", path+"-nowhere")
	want(exitUnusable, "not an Isowatch store", "store", "verify", filepath.Dir(path))
	want(exitUnusable, "wants text or json", "store", "inspect", path, "--output", "xml")
}
