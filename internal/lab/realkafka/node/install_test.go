//go:build unix

package node

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// maven puts a program mvn first in PATH, which does what the script says, and has Kafka
// installed in a new folder. The script's work folder is $PWD, $STATE one that outlives it.
func maven(t *testing.T, script string) (state string) {
	t.Helper()
	bin, state := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "mvn"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv("STATE", state)
	t.Setenv("ISOWATCH_KAFKA_DIR", filepath.Join(t.TempDir(), "kafka"))
	before := fetchPause
	fetchPause = time.Millisecond
	t.Cleanup(func() { fetchPause = before })
	return state
}

// runs is how often Maven was run, as a script counts it.
func runs(t *testing.T, state string) int {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(state, "runs"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(b), "\n")
}

// A network that fails twice does not keep Kafka from being installed; one that is not there
// does, and what Maven says of it is told.
func TestFetchIsTriedAgain(t *testing.T) {
	const script = `echo >>"$STATE/runs"
[ "$(wc -l <"$STATE/runs")" -ge %LEAST% ] || { echo "no route to host"; exit 1; }
mkdir libs && touch libs/kafka.jar`
	for _, c := range []struct {
		least string
		runs  int
		err   string
	}{{"1", 1, ""}, {"3", 3, ""}, {"4", 3, "no route to host"}} {
		t.Run(c.least, func(t *testing.T) {
			state := maven(t, strings.ReplaceAll(script, "%LEAST%", c.least))
			libs, err := install(t.Context())
			if n := runs(t, state); n != c.runs {
				t.Errorf("Maven was run %d times, want %d", n, c.runs)
			}
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("got %v, want %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(filepath.Join(libs, "kafka.jar")); err != nil {
				t.Error(err)
			}
		})
	}
}

// Whoever is told to stop does not try again.
func TestFetchIsStopped(t *testing.T) {
	state := maven(t, `echo >>"$STATE/runs"; exit 1`)
	fetchPause = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := install(ctx)
		ended <- err
	}()
	for tried := false; !tried; {
		select {
		case err := <-ended:
			t.Fatalf("it ended, and nobody had told it to: %v", err)
		case <-time.After(time.Millisecond):
		}
		_, err := os.Stat(filepath.Join(state, "runs"))
		tried = err == nil
	}
	cancel()
	if err := <-ended; err == nil {
		t.Error("it is installed")
	}
}

// Of several that want Kafka at once one fetches it, and the others have it from that: Maven
// must not be run twice at once.
func TestFetchIsAlone(t *testing.T) {
	state := maven(t, `echo >>"$STATE/runs"
mkdir "$STATE/busy" || { echo "two at once"; exit 1; }
sleep 0.1
mkdir libs && touch libs/kafka.jar
rmdir "$STATE/busy"`)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if _, err := install(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := runs(t, state); n != 1 {
		t.Errorf("Maven was run %d times", n)
	}
}
