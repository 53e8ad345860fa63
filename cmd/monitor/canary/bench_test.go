package canary

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"

	"github.com/isowatch/isowatch/cmd/monitor/canary/target"
	"github.com/isowatch/isowatch/cmd/monitor/embedded"
	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/closure"
	"github.com/isowatch/isowatch/internal/lab/databases"
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
// "prepared" and "simple" send each statement by itself, as the protocols are called. "pipelined" sends together
// what a canary does: BEGIN with the first, COMMIT with the last, and only a write waits for the reads before it.
// Both write two keys in the order of the keys, so that no two transactions wait for each other: a deadlock takes
// deadlock_timeout, and few rows keep all others waiting behind it.
//
// "us-cpu" is the client's CPU time for a transaction: watched less unwatched is the monitor's, and the recorder's is in both.
func BenchmarkCanary(b *testing.B) {
	for _, timeout := range []string{"10ms", "1s"} {
		b.Run("deadlock_timeout="+timeout, func(b *testing.B) { benchAll(b, timeout) })
	}
}

func benchAll(b *testing.B, timeout string) {
	dir, err := os.MkdirTemp("", "isowatch-bench-")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(dir) })
	p, err := servers.NewPostgres(b.Context(), dir, servers.PostgresOptions{Settings: []string{"synchronous_commit = off", "deadlock_timeout = " + timeout}})
	if err != nil {
		b.Skip("SKIPPED: ", err)
	}
	b.Cleanup(p.Close)
	const turns = 3
	of := map[string]cost{}
	n := max(benchSessions, b.N/turns)
	var met int64
	for range turns {
		for name, run := range map[string]func() cost{
			"prepared":  func() cost { return pgbench(b, p, dir, "prepared", false, n) },
			"pipelined": func() cost { return pgbench(b, p, dir, "prepared", true, n) },
			"simple":    func() cost { return pgbench(b, p, dir, "simple", false, n) },
			"unwatched": func() cost { return benchCanary(b, p, discard{}, n) },
			"watched":   func() cost { return benchCanary(b, p, nil, n) },
		} {
			c := run()
			now := deadlocks(b, p)
			c.deadlocks, met = now-met, now
			of[name] = of[name].plus(c)
		}
	}
	for name, c := range of {
		b.ReportMetric(float64(turns*n)/c.took.Seconds(), name+"-txn/s")
		b.ReportMetric(float64(c.cpu.Microseconds())/float64(turns*n), name+"-us-cpu")
		b.ReportMetric(float64(10_000*c.deadlocks)/float64(turns*n), name+"-deadlocks/10000")
	}
}

// deadlocks is how many the server has met.
func deadlocks(b *testing.B, p *servers.Postgres) (n int64) {
	b.Helper()
	c, err := pgx.Connect(b.Context(), strings.Replace(p.URL(p.Primary), "canary@", "postgres@", 1))
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close(b.Context())
	if err := c.QueryRow(b.Context(), "select deadlocks from pg_stat_database where datname = 'canary'").Scan(&n); err != nil {
		b.Fatal(err)
	}
	return n
}

// cost is what some transactions took, and of the client's CPU time, and how many deadlocks they met.
type cost struct {
	took, cpu time.Duration
	deadlocks int64
}

func (c cost) plus(o cost) cost {
	return cost{c.took + o.took, c.cpu + o.cpu, c.deadlocks + o.deadlocks}
}

type discard struct{}

func (discard) Put(context.Context, [][]byte) error { return nil }
func (discard) Close() error                        { return nil }

func benchConfig(b *testing.B, p *servers.Postgres) *config.Config {
	b.Helper()
	loaded, err := config.Load(config.Sources{Overrides: []config.Override{
		{Path: "canary.targets", Value: `["` + p.URL(p.Primary) + `"]`}, {Path: "canary.isolation", Value: "repeatable-read"}, {Path: "canary.workloads", Value: "[mini]"},
		{Path: "canary.rate", Value: "0"}, {Path: "canary.pause", Value: "0s"}, {Path: "canary.keys", Value: strconv.Itoa(benchKeys)}, {Path: "canary.group", Value: "10000"},
		{Path: "canary.sessions", Value: strconv.Itoa(benchSessions)}, {Path: "levels", Value: "si"}, {Path: "http.listen", Value: ""}}})
	if err != nil {
		b.Fatal(err)
	}
	return loaded.Config
}

func benchCanary(b *testing.B, p *servers.Postgres, to recorder.Sink, n int) cost {
	c := benchConfig(b, p)
	began, used := time.Now(), cpu()
	o, err := Run(context.Background(), Options{Config: c, Transactions: int64(n), Seed: 1,
		Output: embedded.Output{Publish: to, Log: zerolog.Nop(), Out: io.Discard, Quiet: true}})
	if err != nil {
		b.Fatal(err)
	}
	if to == nil && (len(o.Reports) != 1 || o.Found) {
		b.Errorf("%+v", o)
	}
	return cost{took: time.Since(began), cpu: cpu() - used}
}

// kept is a sink that keeps all.
type kept struct{ transactions []record.Transaction }

func (k *kept) Put(_ context.Context, records [][]byte) error {
	for _, r := range records {
		var t record.Transaction
		if err := codec.Decode(slices.Clone(r), &t); err == nil { // else it is an event
			k.transactions = append(k.transactions, t)
		}
	}
	return nil
}

func (*kept) Close() error { return nil }

// BenchmarkRecorderAndMonitor is what recorder and monitor take of the CPU for a transaction of a canary: b.N that it
// did at PostgreSQL are recorded and judged anew, in the order and at the times in which they began and ended, with
// neither a database nor its driver:
//
//	go test ./cmd/monitor/canary -run '^$' -bench RecorderAndMonitor -benchtime 60000x
func BenchmarkRecorderAndMonitor(b *testing.B) {
	dir, err := os.MkdirTemp("", "isowatch-bench-")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(dir) })
	p, err := servers.NewPostgres(b.Context(), dir, servers.PostgresOptions{Settings: []string{"synchronous_commit = off"}})
	if err != nil {
		b.Skip("SKIPPED: ", err)
	}
	b.Cleanup(p.Close)
	var all kept
	benchCanary(b, p, &all, b.N)
	type moment struct {
		at  int64
		of  int
		end bool
	}
	var moments []moment
	for i, t := range all.transactions {
		moments = append(moments, moment{t.Start, i, false}, moment{t.End, i, true})
	}
	slices.SortFunc(moments, func(a, b moment) int { return cmp.Compare(a.at, b.at) })
	var now atomic.Int64
	w := &watch{Options: Options{Config: benchConfig(b, p)}}
	w.configure()
	m, err := embedded.New(embedded.Options{Config: w.Config, DB: DB, Wait: true, UntilEnd: true,
		Clock: func() time.Time { return time.Unix(0, now.Load()) }, Output: embedded.Output{Log: zerolog.Nop(), Out: io.Discard, Quiet: true}}, func() {})
	if err != nil {
		b.Fatal(err)
	}
	runtime.GC()
	b.ResetTimer()
	used := cpu()
	m.Run(b.Context())
	l := &Load{rec: m.Recorder, counts: counts{metrics: m.App, sessions: benchSessions}}
	clients, working := map[string]*client{}, make([]*recorder.Transaction, len(all.transactions))
	for _, moment := range moments {
		now.Store(moment.at)
		t := &all.transactions[moment.of]
		c := clients[t.Session]
		if c == nil {
			c = &client{Load: l, node: target.Node{Name: t.Node}, rec: m.Session(t.Session)}
			clients[t.Session] = c
		}
		if !moment.end {
			l.counts.asks(0, c.node, true)
			working[moment.of], c.entry = c.rec.Begin(), &closure.Entry{Last: c.entry}
			working[moment.of].At(t.Node)
			for _, op := range t.Ops {
				if op.Kind == record.Write {
					l.closure.Writes(c.entry, op.Value.String())
				}
			}
			continue
		}
		for _, op := range t.Ops {
			if op.Kind == record.Read {
				working[moment.of].Read(op.Key, op.Value)
				c.reads(op.Value)
			} else {
				working[moment.of].Write(op.Key, op.Value)
			}
		}
		c.commits()
		l.closure.End(c.entry, nil, working[moment.of].Hold(t.Status))
		l.counts.add(0, c.node, ended{outcome: t.Status, does: true, took: time.Duration(t.End - t.Start)})
	}
	if err := m.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64((cpu()-used).Microseconds())/float64(len(all.transactions)), "us-cpu/txn")
	if r := m.Outcome("").Reports; len(r) != 1 || r[0].Transactions != len(all.transactions) || r[0].Results[0].Verdict != "satisfied" {
		b.Errorf("%d were done, and of these: %+v", len(all.transactions), r)
	}
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
func pgbench(b *testing.B, p *servers.Postgres, dir, protocol string, together bool, n int) cost {
	program := databases.Program(b, "pgbench")
	if err := p.Do(context.Background(), "canary", `drop table if exists pgbench`, `create table pgbench (key text collate "C" primary key, value bigint not null)`,
		fmt.Sprintf(`insert into pgbench select 'k0.' || i, i from generate_series(0, %d) i`, benchKeys-1), `grant all on pgbench to canary`); err != nil {
		b.Fatal(err)
	}
	const limits = "select true, set_config('statement_timeout', '10000', true), set_config('lock_timeout', '5000', true), " +
		"set_config('idle_in_transaction_session_timeout', '10000', true);\n"
	args := []string{"-n", "-c", strconv.Itoa(benchSessions), "-j", "2", "-M", protocol, "-t", strconv.Itoa(n / benchSessions), "-h", "127.0.0.1", "-p", p.Primary.Addr[strings.LastIndex(p.Primary.Addr, ":")+1:], "-U", "canary"}
	script := func(name string, weight int, statements ...string) {
		text := fmt.Sprintf("\\set x random(0, %d)\n\\set y (:x + random(1, %d)) %% %d\n\\set v random(1, 1000000000)\n", benchKeys-1, benchKeys-1, benchKeys)
		if strings.Contains(name, "W") && strings.Contains(name, "w") { // in the order of keys, as the canary does
			text += "\\set z least(:x, :y)\n\\set y greatest(:x, :y)\n\\set x :z\n"
		}
		statements = slices.Concat([]string{"begin isolation level repeatable read;\n", limits}, statements, []string{"commit;\n"})
		for i := 0; i < len(statements); {
			next, read := i+1, false
			for ; together && next < len(statements); next++ { // as a canary: see together
				read = read || strings.HasPrefix(statements[next-1], "select")
				if read && strings.HasPrefix(statements[next], "update") {
					break
				}
			}
			group := strings.Join(statements[i:next], "")
			if next > i+1 {
				group = "\\startpipeline\n" + group + "\\endpipeline\n"
			}
			text += group
			i = next
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			b.Fatal(err)
		}
		args = append(args, "-f", fmt.Sprintf("%s@%d", path, weight))
	}
	read, write := "select value from pgbench where key = 'k0.' || :%s;\n", "update pgbench set value = :v where key = 'k0.' || :%s;\n"
	operations := map[rune]string{'R': fmt.Sprintf(read, "x"), 'r': fmt.Sprintf(read, "y"), 'W': fmt.Sprintf(write, "x"), 'w': fmt.Sprintf(write, "y")}
	for _, shape := range []string{"R", "RW", "Rr", "RrW", "RWr", "RrWw", "RWrw"} {
		var statements []string
		for _, o := range shape {
			statements = append(statements, operations[o])
		}
		script(shape, 3, statements...)
	}
	var all []string
	for i := range benchKeys {
		all = append(all, fmt.Sprintf("select value from pgbench where key = 'k0.%d';\n", i))
	}
	script("all", 7, all...)
	cmd := exec.Command(program, append(args, "canary")...)
	out, err := cmd.CombinedOutput()
	m := throughput.FindSubmatch(out)
	if err != nil || m == nil {
		b.Fatalf("pgbench: %v: %s", err, out)
	}
	done, _ := strconv.ParseFloat(string(m[1]), 64)
	failed, _ := strconv.ParseFloat(string(m[2]), 64)
	tps, _ := strconv.ParseFloat(string(m[3]), 64)
	tps *= (done + failed) / done // those that were refused too, as in the others
	return cost{took: time.Duration(float64(n) / tps * float64(time.Second)), cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
}
