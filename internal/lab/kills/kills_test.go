//go:build unix

package kills_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/isowatch/isowatch/internal/lab/databases"
	"github.com/isowatch/isowatch/internal/lab/race"
	"github.com/isowatch/isowatch/internal/lab/realkafka"
	"github.com/isowatch/isowatch/internal/lab/rig"
	"github.com/isowatch/isowatch/internal/ports"
	"github.com/isowatch/isowatch/internal/process"
	"github.com/isowatch/isowatch/internal/servers"

	"github.com/jackc/pgx/v5"
)

// script is what the application does: it reads a balance, and writes one more.
const script = `\set aid random(1, 10)
begin;
select abalance from pgbench_accounts where aid = :aid \gset
\set more :abalance + 1
update pgbench_accounts set abalance = :more where aid = :aid;
end;
`

// enough is how many transactions there are before and after each kill.
const enough = 200

// bench is an application, pgbench, that goes through a proxy to a monitor, by a topic or straight.
type bench struct {
	*testing.T
	dir, monitor, page, listen, to string
	db                             *servers.Postgres
	source                         []string // of the monitor
	watching, proxy, app           *process.Process
}

// All is judged as complete: a record that is missing, or one of which too much is claimed, is an alarm.
func TestKilled(t *testing.T) {
	race.SkipBeforeCI(t)
	for _, to := range []string{"topic", "monitor"} {
		t.Run(to, func(t *testing.T) {
			if to == "monitor" && !race.Named() && race.Brief() {
				t.Skip("SKIPPED: CI goes by a topic; -run TestKilled goes straight to the monitor too")
			}
			b := newBench(t)
			type fault struct {
				of  string
				let func()
			}
			faults := []fault{
				{"application", func() { b.app.Kill() }},
				{"server", func() {
					b.db.Primary.Kill()
					if err := b.db.Primary.Start(t.Context()); err != nil {
						t.Fatal(err)
					}
				}},
				{"monitor", func() { b.watching.Kill(); b.watch() }},
				{"proxy", func() { b.proxy.Kill(); b.pass() }},
			}
			if to == "topic" {
				broker := realkafka.Start(t)
				broker.CreateTopic(t, "transactions", 2, nil)
				b.source = []string{"--brokers", broker.Addr(), "--topic", "transactions"}
				b.to = broker.Addr() + "/transactions"
				faults = append(faults, fault{"broker", func() { broker.Kill(); broker.Restart(t) }})
			} else {
				b.source, b.to = []string{"--set", "source.http={}"}, "http://"+b.page
			}
			b.watch()
			b.pass()
			for _, f := range faults {
				t.Logf("%s: %d transactions", f.of, b.count())
				b.apply("serializable")
				b.progress(enough)
				f.let()
				b.apply("serializable")
				b.progress(enough)
			}
			b.app.Kill()
			b.settle()
			if n := b.alerts(); n > 0 {
				t.Fatalf("%d alerts of a database that is serializable", n)
			}
			// Had that not been so, it would have been found.
			b.pass()
			b.apply(`read\ committed`)
			b.await("an alert", func() bool { return b.alerts() > 0 })
		})
	}
}

func newBench(t *testing.T) *bench {
	b := &bench{T: t, dir: t.TempDir(), db: databases.StartPostgres(t)}
	var err error
	if b.monitor, err = rig.Build(t.Context(), b.dir); err != nil {
		t.Fatal(err)
	}
	for _, at := range []*string{&b.page, &b.listen} {
		if *at, err = ports.Address(); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(b.file("script.sql"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	init := b.pgbench(b.db.Primary.Addr, "serializable", "-i", "-q")
	if out, err := init.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return b
}

func (b *bench) file(name string) string { return filepath.Join(b.dir, name) }

func (b *bench) url() string {
	return "postgres://postgres@" + b.db.Primary.Addr + "/canary?sslmode=disable"
}

// start starts a program, which the test's end kills.
func (b *bench) start(cmd *exec.Cmd) *process.Process {
	b.Helper()
	p, err := process.Start(cmd)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		p.Kill()
		if b.Failed() {
			b.Logf("%s: %s", filepath.Base(cmd.Args[0])+" "+cmd.Args[1], p.Said())
		}
	})
	return p
}

// watch starts the monitor, on its store, and waits until it answers.
func (b *bench) watch() {
	args := append([]string{"run", "--level", "ser", "--store", b.file("store"), "--listen", b.page, "--set", "coverage=complete",
		"--set", "initial=absent", "--set", "unique_values=false", "--set", "window.max_transaction=2s"}, b.source...)
	b.watching = b.start(exec.Command(b.monitor, args...))
	b.await("the monitor", func() bool { return b.get("/readyz", nil) == nil })
}

// pass starts the proxy.
func (b *bench) pass() {
	b.proxy = b.start(exec.Command(b.monitor, "proxy", "--upstream", b.url(), "--listen", b.listen, "--publish", b.to, "--coverage",
		"complete", "--set", "http.listen="))
	b.await("the proxy", func() bool {
		c, err := net.Dial("tcp", b.listen)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

// pgbench is a command that runs it.
func (b *bench) pgbench(addr, isolation string, args ...string) *exec.Cmd {
	b.Helper()
	host, port, _ := net.SplitHostPort(addr)
	cmd := exec.Command(databases.Program(b, "pgbench"), append(append([]string{"-h", host, "-p", port, "-U", "postgres"}, args...), "canary")...)
	cmd.Env = append(os.Environ(), "PGOPTIONS=-c default_transaction_isolation="+isolation)
	return cmd
}

// apply starts the application anew.
func (b *bench) apply(isolation string) {
	if b.app != nil {
		b.app.Kill()
	}
	b.app = b.start(b.pgbench(b.listen, isolation, "-n", "-c", "6", "-T", "600", "--max-tries", "1000", "-R", "300", "-f", b.file("script.sql")))
}

// count is how many of its transactions the database has.
func (b *bench) count() (n int) {
	b.Helper()
	c, err := pgx.Connect(b.Context(), b.url())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close(context.Background())
	if err := c.QueryRow(b.Context(), "select sum(abalance) from pgbench_accounts").Scan(&n); err != nil {
		b.Fatal(err)
	}
	return n
}

// progress waits until there are so many more.
func (b *bench) progress(more int) {
	b.Helper()
	want := b.count() + more
	b.await(fmt.Sprintf("%d transactions", want), func() bool { return b.count() >= want })
}

func (b *bench) await(what string, so func() bool) {
	b.Helper()
	for end := time.Now().Add(2 * time.Minute); !so(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			b.Fatalf("%s did not come", what)
		}
	}
}

// settle waits until the monitor has judged all that it has read, which is over: the end of the proxy sends the rest.
func (b *bench) settle() {
	b.Helper()
	b.proxy.Signal(syscall.SIGTERM)
	<-b.proxy.Exited()
	last, since := -1, time.Now()
	b.await("the last verdict", func() bool {
		var s struct {
			Histories []struct{ Transactions int }
		}
		if err := b.get("/api/v1/status", &s); err != nil || len(s.Histories) == 0 {
			return false
		}
		if n := s.Histories[0].Transactions; n != last {
			last, since = n, time.Now()
		}
		return time.Since(since) > 5*time.Second
	})
	b.Logf("%d transactions judged", last)
}

// alerts is how many the monitor has.
func (b *bench) alerts() int {
	var l struct{ Alerts []json.RawMessage }
	if err := b.get("/api/v1/alerts", &l); err != nil {
		b.Fatal(err)
	}
	return len(l.Alerts)
}

// get asks the monitor.
func (b *bench) get(path string, into any) error {
	resp, err := http.Get("http://" + b.page + path)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s %w", path, resp.Status, strings.TrimSpace(string(text)), err)
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(bytes.NewReader(text)).Decode(into)
}
