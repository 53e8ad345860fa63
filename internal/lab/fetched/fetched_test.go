//go:build unix

package fetched

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// script is a fetch that does what a script says, in work and with the folder $STATE, which outlives it.
func script(state, text string) func(context.Context, string) error {
	return func(ctx context.Context, work string) error {
		cmd := exec.CommandContext(ctx, "sh", "-c", text)
		cmd.Dir, cmd.Env = work, append(os.Environ(), "STATE="+state)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}
}

// patience sets how long is waited between tries.
func patience(t *testing.T, d time.Duration) {
	before := pause
	pause = d
	t.Cleanup(func() { pause = before })
}

// runs is how often a script was run, as it counts it.
func runs(t *testing.T, state string) int {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(state, "runs"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(b), "\n")
}

// A network that fails twice does not keep anything from being fetched; one that is not there does, and what is said of
// it is told.
func TestFetchIsTriedAgain(t *testing.T) {
	patience(t, time.Millisecond)
	const text = `echo >>"$STATE/runs"
[ "$(wc -l <"$STATE/runs")" -ge %LEAST% ] || { echo "no route to host"; exit 1; }
mkdir libs && touch libs/kafka.jar`
	for _, c := range []struct {
		least string
		runs  int
		err   string
	}{{"1", 1, ""}, {"3", 3, ""}, {"4", 3, "no route to host"}} {
		t.Run(c.least, func(t *testing.T) {
			state := t.TempDir()
			libs, err := Once(t.Context(), t.TempDir(), "libs", script(state, strings.ReplaceAll(text, "%LEAST%", c.least)))
			if n := runs(t, state); n != c.runs {
				t.Errorf("it was tried %d times, want %d", n, c.runs)
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
	state := t.TempDir()
	patience(t, time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := Once(ctx, t.TempDir(), "libs", script(state, `echo >>"$STATE/runs"; exit 1`))
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
		t.Error("it is there")
	}
}

// Of several that want the same at once one fetches it, and the others have it from that.
func TestFetchIsAlone(t *testing.T) {
	state, dir := t.TempDir(), t.TempDir()
	fetch := script(state, `echo >>"$STATE/runs"
mkdir "$STATE/busy" || { echo "two at once"; exit 1; }
sleep 0.1
mkdir libs && touch libs/kafka.jar
rmdir "$STATE/busy"`)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if _, err := Once(t.Context(), dir, "libs", fetch); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := runs(t, state); n != 1 {
		t.Errorf("it was fetched %d times", n)
	}
}
