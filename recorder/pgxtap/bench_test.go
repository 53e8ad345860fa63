package pgxtap_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/isowatch/isowatch/internal/lab/databases"
	"github.com/isowatch/isowatch/recorder"
	"github.com/isowatch/isowatch/recorder/pgxtap"
	"github.com/isowatch/isowatch/recorder/postgres"
)

// BenchmarkTap compares an application's transactions, each of which reads one of 10,000 rows and writes it, over eight
// connections, without and with a tap that records into a file; in turns, as the machine may be slower at one time than at
// another. b.N is how many transactions each does; "us-cpu" is the application's CPU time for one.
//
//	go test ./recorder/pgxtap -run '^$' -bench Tap -benchtime 40000x
func BenchmarkTap(b *testing.B) {
	const connections, turns = 8, 50
	p := databases.StartPostgres(b, "synchronous_commit = off")
	if err := p.Do(b.Context(), "canary", "create table a (id int primary key, n int)", "insert into a select i, 0 from generate_series(0, 9999) i",
		"grant all on a to canary"); err != nil {
		b.Fatal(err)
	}
	file, err := os.Create(filepath.Join(b.TempDir(), "records"))
	if err != nil {
		b.Fatal(err)
	}
	rec := recorder.New(recorder.Lines(file), recorder.Options{})
	tap, err := pgxtap.Open(b.Context(), rec, p.URL(p.Primary), postgres.Options{Complete: true})
	if err != nil {
		b.Fatal(err)
	}
	plain, tapped := make([]*pgx.Conn, connections), make([]*pgx.Conn, connections)
	for i := range connections {
		for _, to := range []*[]*pgx.Conn{&plain, &tapped} {
			config, err := pgx.ParseConfig(p.URL(p.Primary))
			if err != nil {
				b.Fatal(err)
			}
			if to == &tapped {
				config.AfterNetConnect = tap.Connection
			}
			if (*to)[i], err = pgx.ConnectConfig(b.Context(), config); err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { (*to)[i].Close(context.Background()) })
		}
	}
	each := max(1, b.N/turns/connections)
	work := func(conns []*pgx.Conn) (took, used time.Duration) {
		began, before := time.Now(), cpu()
		var all sync.WaitGroup
		for i, c := range conns {
			all.Go(func() {
				for k := range each {
					id, n := (k*connections+i)%10_000, 0
					err := pgx.BeginFunc(b.Context(), c, func(tx pgx.Tx) error {
						if err := tx.QueryRow(b.Context(), "select n from a where id = $1", id).Scan(&n); err != nil {
							return err
						}
						_, err := tx.Exec(b.Context(), "update a set n = $1 where id = $2", n+1, id)
						return err
					})
					if err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
		return time.Since(began), cpu() - before
	}
	type cost struct{ took, used time.Duration }
	of := map[string]*cost{"plain": {}, "tapped": {}}
	for range turns {
		for name, conns := range map[string][]*pgx.Conn{"plain": plain, "tapped": tapped} {
			took, used := work(conns)
			of[name].took += took
			of[name].used += used
		}
	}
	if err := rec.Close(b.Context()); err != nil || rec.Dropped() > 0 || len(tap.Capture.Unclear()) > 0 {
		b.Errorf("%v, %d dropped, %v", err, rec.Dropped(), tap.Capture.Unclear())
	}
	n := float64(turns * connections * each)
	for name, c := range of {
		b.ReportMetric(n/c.took.Seconds(), name+"-txn/s")
		b.ReportMetric(float64(c.used.Microseconds())/n, name+"-us-cpu")
	}
	b.ReportMetric(0, "ns/op") // it says nothing
}

// cpu is the CPU time of this process.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
