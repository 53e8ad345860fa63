package canary

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/isowatch/isowatch/cmd/monitor/embedded"
	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/internal/servers"
	"github.com/isowatch/isowatch/recorder"
)

// What the benchmark's transactions work on, and how many clients there are.
const (
	benchKeys     = 20
	benchSessions = 8
)

// BenchmarkCanary compares how many transactions a second PostgreSQL does for pgbench, for the canary's sessions alone, and
// for the whole canary: the same statements, connections and server, in turns, as the machine may be slower at one time than
// at another. b.N transactions of 60,000 or more tell something:
//
//	go test ./cmd/monitor/canary -run '^$' -bench Canary -benchtime 60000x
//
// Two transactions that wait for each other are told so after deadlock_timeout, and few rows keep all others waiting behind
// them: with the second that PostgreSQL has by default it would be deadlocks that are counted, of which there are a few in 10,000.
//
// "us-cpu" is the client's CPU time for a transaction: watched less unwatched is the monitor's, and the recorder's is in both.
func BenchmarkCanary(b *testing.B) {
	dir, err := os.MkdirTemp("", "isowatch-bench-")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(dir) })
	p, err := servers.NewPostgres(b.Context(), dir, servers.PostgresOptions{Settings: []string{"synchronous_commit = off", "deadlock_timeout = 10ms"}})
	if err != nil {
		b.Skip("SKIPPED: ", err)
	}
	b.Cleanup(p.Close)
	const turns = 3
	of := map[string]cost{}
	n := max(benchSessions, b.N/turns)
	for range turns {
		of["prepared"] = of["prepared"].plus(pgbench(b, p, dir, "prepared", n))
		of["simple"] = of["simple"].plus(pgbench(b, p, dir, "simple", n))
		of["unwatched"] = of["unwatched"].plus(benchCanary(b, p, discard{}, n))
		of["watched"] = of["watched"].plus(benchCanary(b, p, nil, n))
	}
	for name, c := range of {
		b.ReportMetric(float64(turns*n)/c.took.Seconds(), name+"-txn/s")
		b.ReportMetric(float64(c.cpu.Microseconds())/float64(turns*n), name+"-us-cpu")
	}
}

// cost is what some transactions took, and of the client's CPU time.
type cost struct{ took, cpu time.Duration }

func (c cost) plus(o cost) cost { return cost{c.took + o.took, c.cpu + o.cpu} }

type discard struct{}

func (discard) Put(context.Context, []recorder.Record) error { return nil }
func (discard) Close() error                                 { return nil }

func benchCanary(b *testing.B, p *servers.Postgres, to recorder.Sink, n int) cost {
	loaded, err := config.Load(config.Sources{Overrides: []config.Override{
		{Path: "canary.targets", Value: `["` + p.URL(p.Primary) + `"]`}, {Path: "canary.isolation", Value: "repeatable-read"}, {Path: "canary.workloads", Value: "[mini]"},
		{Path: "canary.rate", Value: "0"}, {Path: "canary.pause", Value: "0s"}, {Path: "canary.keys", Value: strconv.Itoa(benchKeys)}, {Path: "canary.group", Value: "10000"},
		{Path: "canary.sessions", Value: strconv.Itoa(benchSessions)}, {Path: "levels", Value: "si"}, {Path: "http.listen", Value: ""}}})
	if err != nil {
		b.Fatal(err)
	}
	began, used := time.Now(), cpu()
	o, err := Run(context.Background(), Options{Config: loaded.Config, Transactions: int64(n), Seed: 1,
		Output: embedded.Output{Publish: to, Log: zerolog.Nop(), Out: io.Discard, Quiet: true}})
	if err != nil {
		b.Fatal(err)
	}
	if to == nil && (len(o.Reports) != 1 || o.Alerts > 0) {
		b.Errorf("%+v", o)
	}
	return cost{time.Since(began), cpu() - used}
}

// cpu is what this process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

var throughput = regexp.MustCompile(`number of transactions actually processed: (\d+)(?s:.*)number of failed transactions: (\d+)(?s:.*)tps = ([0-9.]+) \(without`)

// pgbench runs n transactions of the same shapes.
func pgbench(b *testing.B, p *servers.Postgres, dir, protocol string, n int) cost {
	bin, err := filepath.Glob("/usr/lib/postgresql/*/bin/pgbench")
	if err != nil || len(bin) == 0 {
		b.Skip("SKIPPED: pgbench is not installed")
	}
	if err := p.Do(context.Background(), "canary", `drop table if exists pgbench`, `create table pgbench (key text collate "C" primary key, value bigint not null)`,
		fmt.Sprintf(`insert into pgbench select 'k0.' || i, i from generate_series(0, %d) i`, benchKeys-1), `grant all on pgbench to canary`); err != nil {
		b.Fatal(err)
	}
	read, write := "select value from pgbench where key = 'k0.' || :%s;\n", "update pgbench set value = :v where key = 'k0.' || :%s;\n"
	shapes := []string{"R", "RW", "Rr", "RrW", "RWr", "RrWw", "RWrw"}
	args := []string{"-n", "-c", strconv.Itoa(benchSessions), "-j", "2", "-M", protocol, "-t", strconv.Itoa(n / benchSessions), "-h", "127.0.0.1", "-p", p.Primary.Addr[strings.LastIndex(p.Primary.Addr, ":")+1:], "-U", "canary"}
	script := func(name string, weight int, body string) {
		path := filepath.Join(dir, name)
		text := fmt.Sprintf("\\set x random(0, %d)\n\\set y (:x + random(1, %d)) %% %d\n\\set v random(1, 1000000000)\nbegin isolation level repeatable read;\n%scommit;\n", benchKeys-1, benchKeys-1, benchKeys, body)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			b.Fatal(err)
		}
		args = append(args, "-f", fmt.Sprintf("%s@%d", path, weight))
	}
	for _, s := range shapes {
		var body strings.Builder
		for _, op := range s {
			switch op {
			case 'R':
				fmt.Fprintf(&body, read, "x")
			case 'r':
				fmt.Fprintf(&body, read, "y")
			case 'W':
				fmt.Fprintf(&body, write, "x")
			case 'w':
				fmt.Fprintf(&body, write, "y")
			}
		}
		script(s, 3, body.String())
	}
	var all strings.Builder
	for i := range benchKeys {
		fmt.Fprintf(&all, "select value from pgbench where key = 'k0.%d';\n", i)
	}
	script("all", 7, all.String())
	cmd := exec.Command(bin[len(bin)-1], append(args, "canary")...)
	out, err := cmd.CombinedOutput()
	m := throughput.FindSubmatch(out)
	if err != nil || m == nil {
		b.Fatalf("pgbench: %v: %s", err, out)
	}
	done, _ := strconv.ParseFloat(string(m[1]), 64)
	failed, _ := strconv.ParseFloat(string(m[2]), 64)
	tps, _ := strconv.ParseFloat(string(m[3]), 64)
	tps *= (done + failed) / done // those that were refused too, as in the others
	return cost{time.Duration(float64(n) / tps * float64(time.Second)), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
}
