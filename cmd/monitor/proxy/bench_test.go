package proxy_test

import (
	"bufio"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"

	"github.com/isowatch/isowatch/cmd/monitor/proxy"
	"github.com/isowatch/isowatch/internal/lab/databases"
	"github.com/isowatch/isowatch/recorder"
	"github.com/isowatch/isowatch/recorder/pgxtap"
	"github.com/isowatch/isowatch/recorder/postgres"
)

// benchClients is how many connections pgbench has.
const benchClients = 8

// loads are what pgbench does, with 400,000 accounts of which reads touch 10,000.
var loads = []struct{ name, mode, script string }{
	{"read-simple", "simple", reads},
	{"read-prepared", "prepared", reads},
	{"tpcb-simple", "simple", ""},
	{"tpcb-prepared", "prepared", ""},
	{"pipelined", "prepared", pipelined},
}

const (
	reads = "\\set aid random(1, 10000)\nselect abalance from pgbench_accounts where aid = :aid;\n"

	pipelined = "\\set a random(1, 5000)\n\\set b random(5001, 10000)\n\\set v random(1, 1000000)\n" +
		"\\startpipeline\nbegin;\nselect abalance from pgbench_accounts where aid = :a;\n" +
		"select abalance from pgbench_accounts where aid = :b;\nupdate pgbench_accounts set abalance = :v where aid = :a;\n" +
		"commit;\n\\endpipeline\n"
)

// BenchmarkProxy compares what stands between pgbench and PostgreSQL: nothing, a proxy that passes on what it has no tables for,
// one that records into a file, and pgbouncer with a connection for each session; in turns, as the machine may be slower at
// one time than at another. b.N is how many transactions each does.
//
//	go test ./cmd/monitor/proxy -run '^$' -bench 'Proxy/tpcb' -benchtime 80000x
//
// "us-cpu" is the CPU time, user's and system's, of what stands between, for a transaction; "p50-us" and "p99-us" are
// pgbench's latencies.
func BenchmarkProxy(b *testing.B) {
	p := databases.StartPostgres(b, "synchronous_commit = off", "shared_buffers = 256MB", "max_wal_size = 4GB")
	url := p.URL(p.Primary)
	if err := p.Do(b.Context(), "canary", "grant all on schema public to canary"); err != nil {
		b.Fatal(err)
	}
	run(b, p.Primary.Addr, "-i", "-q", "-s", "4")
	dir, err := os.MkdirTemp("", "isowatch-bench-")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { // PostgreSQL's account reads what is there
		b.Fatal(err)
	}
	pooler, err := databases.NewPgBouncer(b.Context(), dir, p, "session", benchClients+2)
	if err != nil {
		b.Skip("SKIPPED: ", err)
	}
	b.Cleanup(pooler.Close)
	poolers := process(b, dir)
	const turns = 8
	for _, l := range loads {
		b.Run(l.name, func(b *testing.B) {
			args := []string{"-n", "-M", l.mode, "-c", strconv.Itoa(benchClients), "-j", "2", "-t", strconv.Itoa(max(1, b.N/turns/benchClients))}
			if l.script != "" {
				file := filepath.Join(dir, l.name)
				if err := os.WriteFile(file, []byte(l.script), 0o644); err != nil {
					b.Fatal(err)
				}
				args = append(args, "-f", file)
			}
			file, err := os.Create(filepath.Join(dir, "records"))
			if err != nil {
				b.Fatal(err)
			}
			passing, recording := between(b, url, nil), between(b, url, file)
			of := map[string]*passage{"direct": {}, "passing": {}, "recording": {}, "pgbouncer": {}}
			for range turns {
				of["direct"].of(b, func() time.Duration { return 0 }, p.Primary.Addr, args)
				of["passing"].of(b, own, passing, args)
				of["recording"].of(b, own, recording, args)
				of["pgbouncer"].of(b, poolers, pooler.Addr, args)
			}
			for name, c := range of {
				slices.Sort(c.latencies)
				b.ReportMetric(float64(len(c.latencies))/c.took.Seconds(), name+"-txn/s")
				b.ReportMetric(float64(c.cpu.Microseconds())/float64(len(c.latencies)), name+"-us-cpu")
				b.ReportMetric(float64(c.latencies[len(c.latencies)/2]), name+"-p50-us")
				b.ReportMetric(float64(c.latencies[len(c.latencies)*99/100]), name+"-p99-us")
			}
			b.ReportMetric(0, "ns/op") // it says nothing
		})
	}
}

// passage is what transactions took, all their latencies, in microseconds, and the CPU time of what stands between.
type passage struct {
	took, cpu time.Duration
	latencies []int
}

// of lets pgbench run.
func (c *passage) of(b *testing.B, cpu func() time.Duration, addr string, args []string) {
	log := filepath.Join(b.TempDir(), "log")
	began, used := time.Now(), cpu()
	run(b, addr, append(slices.Clone(args), "-l", "--log-prefix="+log)...)
	c.took += time.Since(began)
	c.cpu += cpu() - used
	files, err := filepath.Glob(log + "*")
	if err != nil || len(files) == 0 {
		b.Fatal("pgbench has no log: ", err)
	}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			b.Fatal(err)
		}
		for lines := bufio.NewScanner(f); lines.Scan(); {
			n, err := strconv.Atoi(strings.Fields(lines.Text())[2])
			if err != nil {
				b.Fatal(err)
			}
			c.latencies = append(c.latencies, n)
		}
		f.Close()
	}
}

// run runs pgbench as role canary.
func run(b *testing.B, addr string, args ...string) {
	b.Helper()
	program := databases.Program(b, "pgbench")
	host, port, _ := net.SplitHostPort(addr)
	args = append([]string{"-h", host, "-p", port, "-U", "canary"}, append(args, "canary")...)
	if out, err := exec.CommandContext(b.Context(), program, args...).CombinedOutput(); err != nil {
		b.Fatalf("pgbench %v: %v\n%s", args, err, out)
	}
}

// between lets a proxy stand before a database that records into a file; nil: it records nothing, as its tables are another's.
func between(b *testing.B, url string, file *os.File) (addr string) {
	b.Helper()
	upstream, err := pgx.ParseConfig(url)
	if err != nil {
		b.Fatal(err)
	}
	tables, to := upstream.Copy(), recorder.Sink(nowhere{})
	if tables.Database = "postgres"; file != nil {
		tables.Database, to = upstream.Database, recorder.Lines(file)
	}
	rec := recorder.New(to, recorder.Options{})
	capture, err := postgres.New(b.Context(), rec, postgres.Options{Complete: true, Load: pgxtap.Load(tables), Failed: func(err error) { b.Error(err) }})
	if err != nil {
		b.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- proxy.New(proxy.Options{Upstream: &upstream.Config, Capture: capture, Log: zerolog.Nop()}).Serve(ctx, l)
	}()
	b.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			b.Error(err)
		}
		if err := rec.Close(context.Background()); err != nil || rec.Dropped() > 0 || capture.Blind() {
			b.Errorf("%v, %d records dropped, %v", err, rec.Dropped(), capture.Unclear())
		}
		if file != nil && rec.Recorded() == 0 {
			b.Error("nothing was recorded")
		}
	})
	return l.Addr().String()
}

// nowhere is a sink that takes everything.
type nowhere struct{}

func (nowhere) Put(context.Context, [][]byte) error { return nil }
func (nowhere) Close() error                        { return nil }

// own is the CPU time of this process.
func own() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// process is the CPU time of the process that has dir in its command line.
func process(b *testing.B, dir string) func() time.Duration {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(text), dir) {
			continue
		}
		return func() time.Duration {
			stat, err := os.ReadFile(filepath.Join(filepath.Dir(file), "stat"))
			if err != nil {
				b.Fatal(err)
			}
			fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
			user, _ := strconv.Atoi(fields[11])
			system, _ := strconv.Atoi(fields[12])
			return time.Duration(user+system) * (time.Second / 100)
		}
	}
	b.Fatal("pgbouncer is not there")
	return nil
}
