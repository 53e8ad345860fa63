package store_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/isowatch/isowatch/internal/lab/leak"
	"github.com/isowatch/isowatch/internal/lab/race"
	"github.com/isowatch/isowatch/internal/lab/storetest"
	"github.com/isowatch/isowatch/window/store"
)

// crashDir, in the environment, makes the test binary the victim of TestKill.
const crashDir = "ISOWATCH_TEST_CRASH_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		fmt.Fprintln(os.Stderr, victim(dir))
		os.Exit(1)
	}
	leak.Main(m, left...)
}

// left are goroutines that Badger leaves where it can't open a database, which are some of those of
// one that is open.
var left = []goleak.Option{
	goleak.IgnoreAnyFunction("github.com/dgraph-io/badger/v4.(*DB).monitorCache"),
	goleak.IgnoreAnyFunction("github.com/dgraph-io/badger/v4.(*DB).updateSize"),
	goleak.IgnoreAnyFunction("github.com/dgraph-io/badger/v4/y.(*WaterMark).process"),
	goleak.IgnoreAnyFunction("github.com/dgraph-io/ristretto/v2.(*Cache[...]).processItems"),
	goleak.IgnoreAnyFunction("github.com/dgraph-io/ristretto/v2.(*defaultPolicy[...]).processItems"),
	goleak.IgnoreAnyFunction("github.com/dgraph-io/ristretto/v2/z.(*AllocatorPool).freeupAllocators"),
}

const perCommit = 20

// manyEvery is which commits have checkpoints of a crowd, too.
const manyEvery = 8

func crashOptions(dir string) store.Options {
	return store.Options{Path: dir, Receivers: []string{"web"}, SyncWrites: strings.HasSuffix(dir, "true"), MaxDeadLetters: 1 << 30, MaxBytes: 1 << 20}
}

// victim commits from the stored offset on, and tells each offset that was
// acknowledged, until it is killed.
func victim(dir string) error {
	ctx := context.Background()
	s, err := store.Open(crashOptions(dir))
	if err != nil {
		return err
	}
	offsets, err := s.Offsets(ctx, "topic")
	if err != nil {
		return err
	}
	for n := offsets[0]; ; n++ {
		c := store.Commit{Offsets: map[string]map[int]int64{"topic": {0: n + 1}}}
		for i := range int64(perCommit) {
			c.DeadLetters = append(c.DeadLetters, storetest.Letter(n*perCommit+i, strings.Repeat("v", 500)))
			a := storetest.NewAlert(fmt.Sprintf("%08d", n*perCommit+i))
			if i == 2 {
				a.News = 1
			}
			c.Alerts = append(c.Alerts, a)
			c.Notices = append(c.Notices, storetest.Notices(a.ID)...)
		}
		c.Journal = []store.Entry{storetest.NewEntry(uint64(n+1), 50_000)}
		c.Checkpoints = map[string][]byte{}
		c.Written = storetest.Written("h", storetest.NewEntry(uint64(n+1), 100_000).Data)
		if n%manyEvery == 0 {
			for _, name := range crowd("m") {
				c.Checkpoints[name] = fmt.Append(nil, n)
			}
		}
		c.Drop = uint64(max(n-5, 0))
		c.Life = bytes.Repeat(fmt.Append(nil, n+1), 20_000)
		c.Handled = []store.Handled{{ID: fmt.Sprintf("%08d", (n-1)*perCommit+2), News: 1}}
		if err := s.Spill(ctx, "h", []store.KV{{Key: "k", Value: fmt.Append(nil, n+1)}}); err != nil {
			return err
		}
		c.Alerts[1].Body = bytes.Repeat([]byte{'b'}, 70<<10) // goes to the value log
		if err := s.Commit(ctx, c); err != nil {
			return err
		}
		if err := s.Delivered(ctx, "web", c.Alerts[0].ID); err != nil {
			return err
		}
		fmt.Println(n + 1)
	}
}

// TestKill kills a process that commits as fast as it can, several times over,
// and looks at what is left each time: all that was acknowledged is there, and
// nothing is torn: offsets, dead letters, alerts and outbox are those of the same
// number of commits.
func TestKill(t *testing.T) {
	ctx := context.Background()
	for _, sync := range []bool{false, true} {
		t.Run(fmt.Sprintf("sync=%v", sync), func(t *testing.T) {
			dir := fmt.Sprintf("%s/%v", t.TempDir(), sync)
			r := rand.New(rand.NewPCG(1, 2))
			rounds := 5
			if race.Brief() {
				rounds = 2 // the detector does not look into the one that is killed
			}
			for round := range rounds {
				acked := killed(t, dir, 1+r.IntN(60))
				if r, err := store.Verify(dir); err != nil || len(r.Damaged) > 0 || len(r.Notes) > 0 {
					t.Fatalf("round %d: %v %v %v", round, r.Damaged, r.Notes, err)
				}
				s, err := store.Open(crashOptions(dir))
				if err != nil {
					t.Fatal(err)
				}
				d, err := storetest.Read(s, []string{"topic"}, []string{"web"})
				if err != nil {
					t.Fatal(err)
				}
				n := d.Offsets["topic"][0]
				st, err := storetest.ReadStream(s, []string{"h"}, []string{"k"})
				if err != nil {
					t.Fatal(err)
				}
				last := st.Journal[len(st.Journal)-1]
				if want := storetest.NewEntry(uint64(n), 50_000); last.Number != want.Number || !bytes.Equal(last.Data, want.Data) {
					t.Fatalf("round %d: %d commits, and the last entry of the journal is %d", round, n, last.Number)
				}
				if h := st.Histories["h"]; h.Spilled["k"] != fmt.Sprint(n) || !bytes.Equal(h.Checkpoint, storetest.NewEntry(uint64(n), 100_000).Data) {
					t.Fatalf("round %d: %d commits, and the checkpoint fits another, of %v", round, n, h.Spilled)
				}
				for _, name := range crowd("m") {
					b, _, err := s.Checkpoint(ctx, name)
					if want := fmt.Sprint((n - 1) / manyEvery * manyEvery); err != nil || string(b) != want {
						t.Fatalf("round %d: %d commits, and the checkpoint of %.4s is of commit %s, not %s: %v", round, n, name, b, want, err)
					}
				}
				if n < acked {
					t.Fatalf("round %d: %d commits were acknowledged, %d are there", round, acked, n)
				}
				if int64(len(d.Letters)) != n*perCommit || int64(len(d.Alerts)) != n*perCommit {
					t.Fatalf("round %d: %d commits of %d each, but %d dead letters and %d alerts", round, n, perCommit, len(d.Letters), len(d.Alerts))
				}
				for i, l := range d.Letters {
					if l.Pos.Offset != int64(i) || l.ID != uint64(i) || len(l.Value) != 500 {
						t.Fatalf("round %d: dead letter %d is %+v", round, i, l)
					}
				}
				for i, a := range d.Alerts {
					if i%perCommit == 1 && (len(a.Body) != 70<<10 || bytes.Trim(a.Body, "b") != nil) {
						t.Fatalf("round %d: alert %d has a body of %d bytes", round, i, len(a.Body))
					}
				}
				if want := strings.Repeat(fmt.Sprint(n), 20_000); d.Life != want || len(d.Pending) != 1 || d.Pending[fmt.Sprintf("%08d", (n-1)*perCommit+2)] != 1 {
					t.Fatalf("round %d: %d commits, and the state of alerts is of %.20s; pending are %v", round, n, d.Life, d.Pending)
				}
				// The delivery of the last commit may be missing.
				if open := n*perCommit - int64(len(d.Outbox["web"])); open < acked || open > n {
					t.Fatalf("round %d: %d delivered, %d acknowledged of %d", round, open, acked, n)
				}
				if err := s.Delivered(ctx, "web", fmt.Sprintf("%08d", (n-1)*perCommit)); err != nil {
					t.Fatal(err)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// killed runs a victim until it has acknowledged so many commits more, kills it,
// and returns the last offset that it acknowledged.
func killed(t *testing.T, dir string, commits int) (acked int64) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), crashDir+"="+dir)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for n := 0; lines.Scan(); n++ {
		if _, err := fmt.Sscan(lines.Text(), &acked); err != nil {
			t.Errorf("victim says %q", lines.Text())
		}
		if n == commits {
			if err := cmd.Process.Kill(); err != nil {
				t.Error(err)
			}
		}
	}
	if err := cmd.Wait(); err == nil || acked == 0 {
		t.Fatalf("the victim was not killed: %v %s", err, stderr.String())
	}
	return acked
}
