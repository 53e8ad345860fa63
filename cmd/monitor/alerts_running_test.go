package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/isowatch/isowatch/cmd/monitor/app"
	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// addressFile is where a store says where its monitor is.
const addressFile = "monitor.address"

// lostUpdate rests on no read of the initial value, which would wait until nobody can have written that.
const lostUpdate = `{"id":"W","session":"w","seq":1,"status":"committed","ops":[["w","x",5]]}
{"id":"A","session":"a","seq":1,"status":"committed","ops":[["r","x",5],["w","x",1]]}
{"id":"B","session":"b","seq":1,"status":"committed","ops":[["r","x",5],["w","x",2]]}
`

// watching starts a monitor of a lost update on a store, and ends it with the test.
func watching(t *testing.T, listen string, change ...func(c *config.Config)) (path, address string) {
	t.Helper()
	dir := t.TempDir()
	records := filepath.Join(dir, "h.jsonl")
	if err := os.WriteFile(records, []byte(lostUpdate), 0o600); err != nil {
		t.Fatal(err)
	}
	c := config.Default()
	c.Source.File = &config.File{Path: records, Follow: true}
	c.Levels, c.Coverage, c.Initial = []verdict.Level{verdict.SI}, record.CoverageComplete, record.InitialZero
	c.Window.Lateness, c.Window.MaxTransaction, c.Solver.Every = 10*time.Millisecond, 10*time.Millisecond, 10*time.Millisecond
	c.Store.Path, c.HTTP.Listen = filepath.Join(dir, "store"), listen
	for _, f := range change {
		f(c)
	}
	a, err := app.New(app.Options{Config: c, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	address = a.Addr()
	go func() { ended <- a.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(filepath.Join(c.Store.Path, addressFile)); !os.IsNotExist(err) {
			t.Errorf("a monitor that has ended says where it is: %v", err)
		}
	})
	return c.Store.Path, address
}

// Every command that uses alerts does so while a monitor has the store, wherever that
// monitor listens, with nothing but the store's name.
func TestAlertsOfRunningMonitor(t *testing.T) {
	t.Parallel()
	path, _ := watching(t, "127.0.0.1:0")
	do := func(args ...string) string {
		t.Helper()
		out, stderr, err := command(t, nil, append(append([]string{"alerts"}, args...), "--store", path)...)
		if err != nil {
			t.Fatalf("%q: %v\n%s", args, err, stderr)
		}
		return out.String() + stderr.String()
	}
	list := ""
	for list == "" || strings.Contains(list, "there are none") {
		list = do("list") // until it has been found; or the test's time is over
	}
	id, _, _ := strings.Cut(list, " ")
	if !strings.Contains(list, "lost-update") {
		t.Errorf("the list is %q", list)
	}
	if got := do("show", id); !strings.Contains(got, "The cycle") {
		t.Errorf("shown is %q", got)
	}
	if got := do("export"); !strings.Contains(got, `"evidence":[{"history"`) {
		t.Errorf("exported is %q", got)
	}
	evidence := filepath.Join(t.TempDir(), "ev")
	do("export", "--evidence", evidence)
	if _, _, err := command(t, nil, "check", "--level", "si", evidence); exitStatus(err, &buffer{}) != exitViolated {
		t.Errorf("the evidence: %v", err)
	}
	made := do("silence", "--name", "lost-update", "--for", "1h")
	silence, _, _ := strings.Cut(made, " ")
	if got := do("silence", "list"); !strings.Contains(got, silence[:12]) {
		t.Errorf("silenced with %q, listed are %q", made, got)
	}
	if got := do("silence", "expire", silence[:8]); !strings.Contains(got, "has ended") {
		t.Errorf("ended with %q", got)
	}
	if got := do("silence", "list"); strings.Contains(got, silence[:12]) {
		t.Errorf("%s has ended, and listed are %q", silence, got)
	}
}

// A store that is in use by what can't be asked, is no reason to ask what may be another
// monitor: one line says what to do.
func TestAlertsOfStoreInUse(t *testing.T) {
	t.Parallel()
	other, at := watching(t, "127.0.0.1:0")
	path, _ := watching(t, "")
	copyOf := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(path, addressFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for what, text := range map[string]string{
		"nothing":        "",
		"a crash's":      fmt.Sprintf("%d\nhttp://%s\n", os.Getpid()+1, at),
		"no address":     fmt.Sprintf("%d\n%s\n", os.Getpid(), other),
		"half of one":    fmt.Sprintf("%d\nhttp://%s", os.Getpid(), at),
		"another scheme": fmt.Sprintf("%d\nfile://%s\n", os.Getpid(), at),
	} {
		if copyOf(text); text == "" {
			if err := os.Remove(filepath.Join(path, addressFile)); err != nil {
				t.Fatal(err)
			}
		}
		all := [][]string{{"list"}, {"show", "ab"}, {"export"}, {"silence", "--name", "x", "--for", "1h"}, {"silence", "list"}, {"silence", "expire", "ab"}}
		if text != "" {
			all = all[:1] // what the folder says is read in one place for all of them
		}
		for _, args := range all {
			out, _, err := command(t, nil, append(append([]string{"alerts"}, args...), "--store", path)...)
			said := &buffer{}
			status := exitStatus(err, said)
			if line := said.String(); status != exitEnvironment || out.String() != "" || strings.Count(line, "\n") != 1 || !strings.Contains(line, "--url") || !strings.Contains(line, "cp -r") {
				t.Errorf("%s, %q: status %d, %q", what, args, status, line)
			}
		}
	}
}

// An alert about values of megabytes, of which the monitor keeps the beginning, the length and a hash, is small, and its
// evidence proves it.
func TestAlertOfLargeValues(t *testing.T) {
	dir := t.TempDir()
	value := func(c string) string { return strings.Repeat(c, 3<<20) }
	var in strings.Builder
	fmt.Fprintf(&in, `{"id":"I","session":"i","status":"committed","ops":[["w","x",%q]]}`+"\n", value("0"))
	for _, id := range []string{"A", "B"} {
		fmt.Fprintf(&in, `{"id":%q,"session":%q,"status":"committed","ops":[["r","x",%q],["w","x",%q]]}`+"\n", id, id, value("0"), value(id))
	}
	path, evidence := filepath.Join(dir, "store"), filepath.Join(dir, "ev")
	_, said, err := command(t, strings.NewReader(in.String()), "run", "--until-end", "--set", "source.stdin={}", "--set", "levels=[si]", "--set", "http.listen=", "--store", path, "--output", "json")
	if exitStatus(err, &buffer{}) != exitViolated {
		t.Fatalf("%v\n%s", err, said)
	}
	out, _, err := command(t, nil, "alerts", "export", "--store", path)
	if err != nil || len(out.String()) > 64<<10 || strings.Count(out.String(), "\n") != 1 {
		t.Errorf("%v, %d bytes", err, len(out.String()))
	}
	if _, _, err := command(t, nil, "alerts", "export", "--store", path, "--evidence", evidence); err != nil {
		t.Error(err)
	}
	if _, _, err := command(t, nil, "check", "--level", "si", evidence); exitStatus(err, &buffer{}) != exitViolated {
		t.Errorf("the evidence: %v", err)
	}
}

// Records that could not be used are read from the monitor that has the store as from the store, as
// far as it may show them.
func TestDeadLettersOfRunningMonitor(t *testing.T) {
	t.Parallel()
	for _, values := range []string{config.ValuesFull, config.ValuesHash} {
		t.Run(values, func(t *testing.T) {
			path, _ := watching(t, "127.0.0.1:0", func(c *config.Config) {
				c.Alerts.Values = values
				if err := os.WriteFile(c.Source.File.Path, []byte("secret nonsense\n"+lostUpdate+`{"session":1,"secret":2}`+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			})
			do := func(args ...string) string {
				t.Helper()
				out, stderr, err := command(t, nil, append(append([]string{"dead-letters"}, args...), "--store", path)...)
				if err != nil {
					t.Fatalf("%q: %v\n%s", args, err, stderr)
				}
				return out.String()
			}
			list := ""
			for strings.Count(list, "\n") < 2 {
				list = do("list") // until both are set aside; or the test's time is over
			}
			if !strings.Contains(list, "h.jsonl:1") || !strings.Contains(list, "bad-json") || !strings.Contains(list, "h.jsonl:5") || !strings.Contains(list, "wrong-type") {
				t.Errorf("the list is\n%s", list)
			}
			if got := do("list", "--reason", "wrong-type", "--limit", "1", "--output", "json"); strings.Count(got, "\n") != 1 || !strings.HasPrefix(got, `{"id":1,`) {
				t.Errorf("one reason, as JSON: %s", got)
			}
			shown := do("show", "0")
			if values == config.ValuesFull && !strings.Contains(shown, "\nsecret nonsense\n") {
				t.Errorf("shown is %q", shown)
			}
			if all := list + shown + do("show", "1", "--output", "json"); values != config.ValuesFull && strings.Contains(all, "secret") {
				t.Errorf("values are hidden, and what is said is\n%s", all)
			}
			_, _, err := command(t, nil, "dead-letters", "show", "7", "--store", path)
			if said := (&buffer{}); exitStatus(err, said) != exitUnusable || !strings.Contains(said.String(), "no dead letter 7") {
				t.Errorf("one that is not there: %s", said)
			}
		})
	}
}
