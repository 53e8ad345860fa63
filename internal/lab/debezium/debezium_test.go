package debezium_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/source"
	"github.com/isowatch/isowatch/ingest/source/kafka"
	"github.com/isowatch/isowatch/internal/lab/databases"
	"github.com/isowatch/isowatch/internal/lab/debezium"
	"github.com/isowatch/isowatch/internal/lab/race"
	"github.com/isowatch/isowatch/internal/lab/realkafka"
	"github.com/isowatch/isowatch/internal/lab/rig"
	"github.com/isowatch/isowatch/internal/process"
	"github.com/isowatch/isowatch/internal/servers"
)

// The load: few rows, which get few values, most of them written blindly.
const (
	sessions = 16
	each     = 75
	rows     = 30
	values   = 3
)

// Clients write values that repeat, without looking, at a PostgreSQL that keeps them serializable, and record that
// without times. Beside Debezium's events, in the same topic, that is decided; alone it is left open.
func TestChangesDecide(t *testing.T) {
	race.SkipBeforeCI(t)
	ctx := t.Context()
	pg := databases.StartPostgres(t, "wal_level = logical")
	broker := realkafka.Start(t)
	for _, topic := range []string{"both", "records"} {
		broker.CreateTopic(t, topic, 3, nil)
	}
	url := table(t, pg)
	var records []record.Transaction
	for round := range 2 { // after the first it is killed, with what it has not sent yet, and sends again what it had not noted
		kill := stream(t, pg, broker.Addr(), "both")
		await(t, "Debezium's slot", func() bool {
			return number(t, url, "select count(*) from pg_replication_slots where active") == 1
		})
		begun := number(t, url, "select pg_current_wal_lsn() - '0/0'::pg_lsn")
		records = append(records, load(t, url, round)...)
		if round == 0 { // a Debezium that had noted nothing would begin with a copy of the table, and without what was before
			await(t, "its first note", func() bool { return number(t, url, noted) > begun })
			kill()
		}
	}
	last := number(t, url, "select pg_current_wal_lsn() - '0/0'::pg_lsn")
	await(t, "the end of the log", func() bool {
		return number(t, url, noted) >= last
	})
	for _, topic := range []string{"both", "records"} {
		send(t, broker.Addr(), topic, records)
	}
	monitor, err := rig.Build(ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	decides(t, monitor, func(which string) []string {
		return []string{"--brokers", broker.Addr(), "--topic", which}
	})
}

// The same without Debezium and Kafka: PostgreSQL's log is decoded by the monitor itself, into the file of the records.
func TestLogDecides(t *testing.T) {
	race.SkipBeforeCI(t)
	ctx := t.Context()
	pg := databases.StartPostgres(t, "wal_level = logical")
	url := table(t, pg)
	monitor, err := rig.Build(ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	wal := func(out io.Writer) *process.Process {
		cmd := exec.Command(monitor, "wal", "--source", url)
		cmd.Stdout = out
		p, err := process.Start(cmd)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Kill)
		return p
	}
	refused := wal(nil)
	if status, said := refused.Status(), refused.Said(); status != 2 || !strings.Contains(said, "create publication isowatch for table") {
		t.Errorf("without a publication: status %d, %s", status, said)
	}
	if err := pg.Do(ctx, "canary", "create publication isowatch for table kv"); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	appending := func(name string) *os.File {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	both, alone := appending("both"), appending("records")
	p := wal(both)
	await(t, "the log", func() bool { return strings.Contains(p.Said(), "from here on") })
	records := load(t, url, 0)
	committed := 0
	for i := range records {
		if line := append(codec.AppendJSON(nil, &records[i]), '\n'); errors.Join(write(both, line), write(alone, line)) != nil {
			t.Fatal("the records can't be written")
		}
		if records[i].Status == record.Committed {
			committed++
		}
	}
	await(t, "the end of the log", func() bool {
		text, err := os.ReadFile(both.Name())
		return err == nil && strings.Count(string(text), `{"logged":`) == committed
	})
	p.Signal(os.Interrupt)
	if status := p.Status(); status != 0 {
		t.Errorf("it ended with status %d: %s", status, p.Said())
	}
	await(t, "the end of the slot", func() bool { return number(t, url, "select count(*) from pg_replication_slots") == 0 })
	decides(t, monitor, func(which string) []string {
		return []string{"--set", "source.file.path=" + filepath.Join(dir, which)}
	})
}

func write(f *os.File, line []byte) error {
	_, err := f.Write(line)
	return err
}

// noted is how far Debezium has noted that it has sent the log.
const noted = "select max(confirmed_flush_lsn - '0/0'::pg_lsn) from pg_replication_slots"

// table makes the table, and says where its database is.
func table(t *testing.T, pg *servers.Postgres) (url string) {
	if err := pg.Do(t.Context(), "canary", "create table kv (k int primary key, v int not null)",
		fmt.Sprintf("insert into kv select k, 0 from generate_series(0, %d) k", rows-1)); err != nil {
		t.Fatal(err)
	}
	return "postgres://postgres@" + pg.Primary.Addr + "/canary?sslmode=disable"
}

// stream starts Debezium, which notes in a topic of its own how far it has sent.
func stream(t *testing.T, pg *servers.Postgres, brokers, topic string) (kill func()) {
	classPath, err := debezium.Install(t.Context())
	if err != nil && os.Getenv("CI") == "" {
		t.Skip("SKIPPED, Debezium can't be run here: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(pg.Primary.Addr)
	if err != nil {
		t.Fatal(err)
	}
	cmd := debezium.Command(context.WithoutCancel(t.Context()), classPath, brokers, topic, "name=shop",
		"connector.class=io.debezium.connector.postgresql.PostgresConnector", "plugin.name=pgoutput", "topic.prefix=shop",
		"database.hostname="+host, "database.port="+port, "database.user=postgres", "database.password=x",
		"database.dbname=canary", "table.include.list=public.kv", "publication.autocreate.mode=filtered",
		"snapshot.mode=initial", "provide.transaction.metadata=true", "tombstones.on.delete=false",
		"offset.storage=org.apache.kafka.connect.storage.KafkaOffsetBackingStore", "bootstrap.servers="+brokers,
		"offset.storage.topic=offsets", "offset.storage.partitions=1", "offset.storage.replication.factor=1",
		"offset.flush.interval.ms=100")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = sync.OnceFunc(func() { cmd.Process.Kill(); cmd.Wait() })
	t.Cleanup(func() {
		kill()
		if t.Failed() {
			t.Logf("Debezium: %s", said.String())
		}
	})
	return kill
}

// load has all sessions at work, and returns what they recorded.
func load(t *testing.T, url string, round int) []record.Transaction {
	var out []record.Transaction
	var mu sync.Mutex
	var working sync.WaitGroup
	for s := range sessions {
		working.Go(func() {
			c, err := pgx.Connect(t.Context(), url)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close(t.Context())
			rng := rand.New(rand.NewPCG(uint64(round), uint64(s)))
			for seq := range each {
				x, err := transaction(t.Context(), c, rng)
				if err != nil {
					t.Error(err)
					return
				}
				x.Session, x.Seq, x.HasSeq = fmt.Sprintf("s%d.%d", round, s), int64(seq+1), true
				x.ID = fmt.Sprintf("%s#%d", x.Session, x.Seq)
				mu.Lock()
				out = append(out, x)
				mu.Unlock()
			}
		})
	}
	working.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return out
}

// transaction reads a row and writes two others.
func transaction(ctx context.Context, c *pgx.Conn, rng *rand.Rand) (record.Transaction, error) {
	x := record.Transaction{DB: record.DefaultDB, Status: record.Aborted}
	tx, err := c.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.Serializable})
	if err != nil {
		return x, err
	}
	defer tx.Rollback(ctx)
	keys := rng.Perm(rows)[:3]
	err = func() error {
		var v int64
		if err := tx.QueryRow(ctx, "select pg_current_xact_id()::text").Scan(&x.XID); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, "select v from kv where k = $1", keys[0]).Scan(&v); err != nil {
			return err
		}
		x.Ops = append(x.Ops, record.Op{Kind: record.Read, Key: strconv.Itoa(keys[0]), Value: record.Int(v)})
		for _, k := range keys[1:] {
			v := 1 + rng.Int64N(values)
			if _, err := tx.Exec(ctx, "update kv set v = $1 where k = $2", v, k); err != nil {
				return err
			}
			x.Ops = append(x.Ops, record.Op{Kind: record.Write, Key: strconv.Itoa(k), Value: record.Int(v)})
		}
		return tx.Commit(ctx)
	}()
	var refused *pgconn.PgError
	switch {
	case err == nil:
		x.Status = record.Committed
	case !errors.As(err, &refused) || !strings.HasPrefix(refused.Code, "40"):
		return x, err
	}
	return x, nil
}

func number(t *testing.T, url, query string) (n int64) {
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	if err := c.QueryRow(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// await waits until something is so.
func await(t *testing.T, what string, so func() bool) {
	for deadline := time.Now().Add(time.Minute); !so(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s did not come within a minute", what)
		}
	}
}

func send(t *testing.T, broker, topic string, records []record.Transaction) {
	p, err := kafka.OpenProducer(t.Context(), kafka.ProducerOptions{Connection: kafka.Connection{Brokers: []string{broker}}, Topic: topic})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for i := range records {
		if err := p.Send(t.Context(), source.Message{Key: []byte(records[i].Session), Value: codec.AppendJSON(nil, &records[i])}); err != nil {
			t.Fatal(err)
		}
	}
}

// decides holds the log to deciding what records leave open: with it the history is satisfied, and next to nothing is a
// constraint; without, it is not violated, and what is open is searched, within steps that need not be enough.
func decides(t *testing.T, monitor string, input func(which string) []string) {
	t.Helper()
	with, both := verdict(t, monitor, input("both")...)
	without, records := verdict(t, monitor, input("records")...)
	if with != "satisfied" || without == "violated" || both*100 >= records {
		t.Errorf("with the log %s and %d constraints, without %s and %d", with, both, without, records)
	}
}

// verdict is what `monitor run` says of an input, and how many constraints it made.
func verdict(t *testing.T, monitor string, input ...string) (outcome string, constraints int) {
	cmd := exec.CommandContext(t.Context(), monitor, slices.Concat([]string{"run"}, input, []string{"--until-end", "--level", "ser",
		"--store", filepath.Join(t.TempDir(), "store"), "--listen", "", "--output", "json", "--set", "coverage=complete",
		"--set", "initial=zero", "--set", "unique_values=false", "--set", "solver.conflicts=1000"})...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var said struct {
		Results []struct {
			Verdict string
			Stats   struct{ Constraints int }
		}
	}
	if json.Unmarshal(stdout.Bytes(), &said) != nil || len(said.Results) != 1 {
		t.Fatalf("%s: %v: %s %s", input, err, stdout.String(), stderr.String())
	}
	t.Logf("%s: %s", input, stdout.String())
	return said.Results[0].Verdict, said.Results[0].Stats.Constraints
}
