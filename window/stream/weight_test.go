package stream

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/decode"
	"github.com/isowatch/isowatch/ingest/predicate"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/record/packed"
)

// However large transactions are, what is judged together takes so many bytes as so many
// small ones may, whether values repeat or not; and the overlap has its share.
func TestBytesOfASegmentAreBounded(t *testing.T) {
	const segment, overlap, txns = 1000, 100, 600
	text := strings.Repeat("v", 20_000)
	for _, tc := range []struct {
		unique bool
		most   int // that count together, and one more
	}{{true, segment + 2*overlap}, {false, 2*segment + 2*overlap}} {
		cfg := Config{DB: record.DefaultDB, Levels: []verdict.Level{verdict.SI}, Assumptions: record.Assumptions{Coverage: record.CoveragePartial}, Every: 10, MaxTransaction: 200,
			UniqueValues: tc.unique, Segment: segment, Overlap: overlap}
		cfg.Order.Lateness = time.Duration(1)
		h := New(cfg)
		most, least := 0, txns
		ended := uint64(0)
		for n := range int64(txns) {
			key := fmt.Sprint("k", n%7)
			x := record.Transaction{DB: record.DefaultDB, Session: "s", Seq: n, HasSeq: true, ID: fmt.Sprint("t", n), HasTimes: true, Start: 10 * n, End: 10*n + 5,
				Ops: []record.Op{{Kind: record.Write, Key: key, Value: record.String(fmt.Sprint(n, text))}, {Kind: record.Read, Key: key, Value: record.String(fmt.Sprint(n, text))}}}
			h.Take(&Entry{Number: uint64(n + 1), Time: x.End, Partitions: 1, Batch: batchOf(0, n, []record.Transaction{x})})
			for h.Run(1) {
				most = max(most, h.Segment())
			}
			if s := h.Stats().Segments; s > ended {
				ended, least = s, min(least, h.Segment())
			}
			if found := h.Found(); len(found) > 0 {
				t.Fatalf("found %+v", found)
			}
		}
		const weight = 40 // of one
		if bound := tc.most/weight + 1; ended < 10 || most > bound || most < bound/2 {
			t.Errorf("unique values %v: %d transactions of 40 kB were judged together, at most %d of 1 kB may be; %d segments", tc.unique, most, tc.most, ended)
		}
		if tc.unique && (least > 2*overlap/weight+1 || least < overlap/weight/2) {
			t.Errorf("%d transactions of 40 kB were judged again, where from %d to %d of 1 kB are", least, overlap, 2*overlap)
		}
	}
}

// What a predicate returned is read row by row where it is judged, and weighs as much.
func TestRowsThatWereReturnedWeigh(t *testing.T) {
	text := strings.Repeat("v", DefaultHeavy)
	op := func(kind record.OpKind) uint32 {
		return new(Config).weigh(&record.Transaction{Ops: []record.Op{{Kind: kind, Key: "t", Value: record.Value{Text: text}}}})
	}
	if read, asked := op(record.Read), op(record.PredicateRead); read != 2 || asked != askedTimes+1 {
		t.Errorf("a read of %d bytes weighs %d, a predicate's %d", len(text), read, asked)
	}
}

// What would take more than there is to hold it is not judged as a whole, however long transactions may last.
func TestPredicatesThatHoldTooMuchAreNotJudged(t *testing.T) {
	most := 0
	cfg := Config{DB: record.DefaultDB, Levels: []verdict.Level{verdict.SI}, Assumptions: record.Assumptions{Coverage: record.CoverageComplete, Initial: record.InitialAbsent},
		Every: 10, MaxTransaction: 200, UniqueValues: true, Segment: 1000, Overlap: 100, Heavy: -1, BytesMax: 4_000_000}
	cfg.Predicates = func(r *packed.Records, _ []verdict.Level, _ record.Assumptions, _ predicate.Unasked) ([]verdict.Result, func(int) Find, Found) {
		most = max(most, r.Len())
		return nil, nil, nil
	}
	cfg.Order.Lateness = time.Duration(1)
	h := New(cfg)
	rows := record.ObjectOf(map[string]record.Value{"t:1": record.ObjectOf(map[string]record.Value{"v": record.String(strings.Repeat("v", 40_000))})})
	for n := range int64(300) {
		x := record.Transaction{DB: record.DefaultDB, Session: "s", Seq: n, HasSeq: true, ID: fmt.Sprint("t", n), HasTimes: true, Start: 10 * n, End: 10*n + 5,
			Ops: []record.Op{{Kind: record.PredicateRead, Key: "t", Where: "true", Value: rows}}}
		h.Take(&Entry{Number: uint64(n + 1), Time: x.End, Partitions: 1, Batch: batchOf(0, n, []record.Transaction{x})})
		for h.Run(1) {
		}
	}
	h.Flush()
	for h.Run(1) {
	}
	h.Close()
	if most > 50 {
		t.Errorf("%d records of 40 kB were judged together, where 2 MB may be", most)
	}
}

// Keys that are known take of the room of segments, the same after a restart and wherever they are, and
// what there is to be found is found: also by who reads what was written long ago.
func TestKnownKeysTakeRoomOfSegments(t *testing.T) {
	const txns, each, restarted, begun = 8000, 20, 5000, 7500
	cfg := Config{DB: record.DefaultDB, Levels: []verdict.Level{verdict.SI}, Assumptions: record.Assumptions{Coverage: record.CoveragePartial}, Every: 100, MaxTransaction: 200, UniqueValues: true, Heavy: 64}
	cfg.Order.Lateness = time.Duration(1)
	txn := func(n int64, session string, ops ...record.Op) record.Transaction {
		return record.Transaction{DB: record.DefaultDB, Session: session, Seq: n, HasSeq: true, ID: fmt.Sprint(session, "#", n), HasTimes: true, Start: 10 * n, End: 10*n + 5, Ops: ops}
	}
	h := New(cfg)
	var lengths []int // of segments, with what they have in common with the one before
	var entries []*Entry
	found := 0
	for n := range int64(txns) {
		var ops []record.Op
		for k := range int64(each) {
			ops = append(ops, record.Op{Kind: record.Write, Key: fmt.Sprint("k", n*each+k), Value: record.Int(n + 1)})
		}
		xs := []record.Transaction{txn(n, "s", ops...)}
		if n == begun { // two updates of a key that was written at first
			for _, session := range []string{"a", "b"} {
				xs = append(xs, txn(n, session, record.Op{Kind: record.Read, Key: "k0", Value: record.Int(1)},
					record.Op{Kind: record.Write, Key: "k0", Value: record.String(session)}))
			}
		}
		e := &Entry{Number: uint64(n + 1), Time: 10*n + 5, Partitions: 1, Batch: batchOf(0, 3*n, xs)}
		entries = append(entries, e)
		h.Take(e)
		for last, more := h.Segment(), true; more; last = h.Segment() {
			before := h.Stats().Segments
			if more = h.Run(1); h.Stats().Segments > before {
				lengths = append(lengths, last)
			}
			found += len(h.Found())
		}
		if n == restarted {
			room := h.segs.room(cfg.WithDefaults().Segment)
			r, err := Restore(cfg, checkpointOf(h), func(entry uint64) (*decode.Batch, error) { return entries[entry-1].Batch, nil })
			if err != nil {
				t.Fatal(err)
			}
			if h = r; h.segs.room(cfg.WithDefaults().Segment) != room {
				t.Errorf("after a restart there is room for %d records; before it for %d", h.segs.room(cfg.WithDefaults().Segment), room)
			}
		}
	}
	const weight = each * (64 + 6) / 64 // of a record
	if len(lengths) < 5 || lengths[0] < DefaultSegment/weight*9/10 {
		t.Fatalf("segments of %v records", lengths)
	}
	for _, n := range lengths[2:] { // the second begins with what the first had room for; 57,000 keys are known, of 64 bytes each
		if most := (DefaultSegment + 2*DefaultOverlap) / 4 / weight; n > most+most/10 || n < most/2 {
			t.Errorf("segments of %v records, where there is room for %d", lengths, most)
			break
		}
	}
	if found != 1 {
		t.Errorf("%d violations were found of one", found)
	}
}
