package app

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// A topic of which Kafka has deleted the first records is not read from its beginning, however
// early the reading begins: who wrote what is read may have been among them.
func TestDeletedHeadIsHeldAgainstNobody(t *testing.T) {
	t.Parallel()
	op := func(kind record.OpKind, key, value int) record.Op {
		return record.Op{Kind: kind, Key: fmt.Sprint("k", key), Value: record.Int(int64(value))}
	}
	txn := func(db, session string, at int64, ops ...record.Op) record.Transaction {
		return record.Transaction{DB: db, Session: session, ID: fmt.Sprintf("%s/%d", session, at), HasTimes: true, Start: at, End: at + 10, Ops: ops}
	}
	for _, deleted := range []bool{false, true} {
		t.Run(fmt.Sprint("deleted ", deleted), func(t *testing.T) {
			broker, err := kfake.NewCluster(kfake.NumBrokers(1))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(broker.Close)
			p := producer(t, broker.ListenAddrs())
			for i := range 30 {
				send(t, p, txn("first", fmt.Sprint("writer", i), int64(1000*i), op(record.Write, i, i+1)), txn("second", fmt.Sprint("writer", i), int64(1000*i), op(record.Write, i, i+1)))
			}
			if deleted {
				for partition := range int32(3) {
					info := broker.PartitionInfo(testTopic, partition)
					if err := broker.DeleteRecords(testTopic, partition, info.HighWatermark); err != nil && !errors.Is(err, kerr.OffsetOutOfRange) {
						t.Fatal(err)
					}
				}
			}
			cfg, st := testConfig(broker.ListenAddrs()), newMemStore("r")
			cfg.Initial = record.InitialAbsent
			for n, db := range []string{"first", "second"} { // which begins after a restart
				for i := range 30 {
					send(t, p, txn(db, fmt.Sprint("reader", i), int64(1e6+1000*i), op(record.Read, i, i+1)))
				}
				r := start(t, cfg, st, true)
				if err := r.wait(t); err != nil {
					t.Fatal(err)
				}
				if got := verdicts(t, r.App, db); got != "si satisfied, ser satisfied" {
					t.Errorf("%s: got %s", db, got)
				}
				if told := strings.Contains(r.log.String(), "not read from its beginning"); told != (deleted && n == 0) {
					t.Errorf("%s: it is said that the input is not read from its beginning: %v", db, told)
				}
			}
		})
	}
}

// A history that begins later than the input, in another run, has missed nothing of what was read before
// from the beginning on, as nothing of that was its: a read of what was aborted is told. Where something was
// lost, it may have been of another attempt.
func TestHistoryThatBeginsLaterHasMissedNothing(t *testing.T) {
	t.Parallel()
	for _, x := range []struct{ name, before, verdict string }{
		{"all was read", "", "violated"},
		{"a record could not be used", "{\n", "satisfied"},
	} {
		t.Run(x.name, func(t *testing.T) {
			in, st := newInput(t, "in.jsonl"), newMemStore("r")
			if err := os.WriteFile(in.path, []byte(x.before), 0o600); err != nil {
				t.Fatal(err)
			}
			c := in.follow("unused")
			c.Levels, c.Coverage = []verdict.Level{verdict.SER}, record.CoveragePartial
			did := func(db, session string, status record.Status, kind record.OpKind, at time.Duration) record.Transaction {
				return record.Transaction{DB: db, Session: session, ID: session + "#1", Seq: 1, HasSeq: true, Status: status, HasTimes: true, Start: int64(at), End: int64(at + time.Second),
					Ops: []record.Op{{Kind: kind, Key: "x", Value: record.Int(1)}}}
			}
			run := func() *App {
				r := start(t, c, st, true, fine)
				if err := r.wait(t); err != nil {
					t.Fatal(err)
				}
				return r.App
			}
			in.add(t, did("first", "a", record.Committed, record.Write, time.Second))
			run()
			in.add(t, did("second", "a", record.Aborted, record.Write, 3*time.Second), did("second", "b", record.Committed, record.Read, 5*time.Second))
			if got := verdicts(t, run(), "second"); !strings.HasSuffix(got, x.verdict) {
				t.Errorf("got %s, want %s", got, x.verdict)
			}
		})
	}
}

// A history that is judged anew from the records that are kept, as the configuration has changed, does not
// have those before them: one may be of the attempt that committed what was seen to be aborted.
func TestHistoryJudgedAnewAccusesNobody(t *testing.T) {
	t.Parallel()
	in, st := newInput(t, "in.jsonl"), newMemStore("r")
	c := in.follow("unused")
	c.Levels, c.Coverage = []verdict.Level{verdict.SER}, record.CoveragePartial
	c.Window.Segment, c.Window.Overlap = 20, 2
	did := func(session string, seq int, status record.Status, kind record.OpKind, key string, at time.Duration) record.Transaction {
		return record.Transaction{DB: "h", Session: session, ID: fmt.Sprintf("%s#%d", session, seq), Seq: int64(seq), HasSeq: true, Status: status, HasTimes: true,
			Start: int64(at), End: int64(at + time.Microsecond), Ops: []record.Op{{Kind: kind, Key: key, Value: record.Int(int64(seq))}}}
	}
	run := func() *running {
		r := start(t, c, st, true, fine, func(a *App) { a.tuning.records = 1 })
		if err := r.wait(t); err != nil {
			t.Fatal(err)
		}
		return r
	}
	in.add(t, did("a", 1, record.Committed, record.Write, "x", time.Second))
	var more []record.Transaction
	for i := range 1300 { // the latest 1,024 entries are kept in any case
		more = append(more, did("b", i+1, record.Committed, record.Write, "y", time.Second+time.Duration(i+1)*100*time.Microsecond))
	}
	in.add(t, more...)
	run()
	c.Levels = []verdict.Level{verdict.SI}
	in.add(t, did("c", 1, record.Aborted, record.Write, "x", 1500*time.Millisecond), did("d", 1, record.Committed, record.Read, "x", 1700*time.Millisecond))
	r := run()
	if got := verdicts(t, r.App, "h"); strings.Contains(got, "violated") || !strings.Contains(r.log.String(), "judged anew") {
		t.Errorf("got %s", got)
	}
}
