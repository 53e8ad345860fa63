package app

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/isowatch/isowatch/ingest/record"
)

// A topic of which Kafka has deleted the first records is not read from its beginning, however
// early the reading begins: who wrote what is read may have been among them.
func TestDeletedHeadIsHeldAgainstNobody(t *testing.T) {
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
