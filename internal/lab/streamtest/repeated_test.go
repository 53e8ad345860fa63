package streamtest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/window/stream"
)

// loses is a serial history in which each transaction has a key of its own, but for one lost
// update.
func loses(at int) []sent {
	var log []sent
	seq := map[string]int64{}
	did := func(session string, start, end int64, ops ...record.Op) {
		log = append(log, sent{record.Transaction{DB: record.DefaultDB, Session: session, Seq: seq[session], HasSeq: true, HasTimes: true, Start: start, End: end,
			ID: fmt.Sprint(session, "#", seq[session]), Ops: ops}, end + 1})
		seq[session]++
	}
	for i := range 130 {
		key, now := fmt.Sprint("k", i), int64(1000+10*i)
		read := record.Op{Kind: record.Read, Key: key, Value: record.Int(1)}
		write := func(v int64) record.Op { return record.Op{Kind: record.Write, Key: key, Value: record.Int(v)} }
		did("a", now, now+1, write(1))
		did("b", now+3, now+4, read, write(2))
		if i == at {
			did("c", now+3, now+5, read, write(3))
		}
	}
	return log
}

// The overlap is as long as reads wait, whatever Overlap is, and a segment as long as that
// takes, up to Longest: nothing is missed, wherever the cuts fall, and no read goes on alone. A
// shorter Longest is kept to, and counted.
func TestOverlapLastsAsLongAsReadsWait(t *testing.T) {
	const longest = 300 // in which some 60 records come
	for _, most := range []int{0, 200} {
		told, short, segments := 0, uint64(0), uint64(0)
		for at := 40; at < 80; at++ {
			tp := &topic{logs: [][]sent{loses(at)}, levels: []verdict.Level{verdict.SSER}, longest: longest,
				assume: record.Assumptions{Coverage: record.CoverageComplete, Initial: record.InitialAbsent}}
			cfg := tp.config()
			cfg.Segment, cfg.Overlap, cfg.Longest, cfg.MaxTransaction = 20, 4, most, longest
			o, err := (&run{topic: tp, cfg: cfg, batch: 1}).play()
			if err != nil {
				t.Fatal(err)
			}
			if len(o.found) > 0 {
				told++
			}
			short += o.stats.Short
			segments += o.stats.Segments
			if most > 0 && o.stats.Unawaited > 0 {
				t.Errorf("%d reads go on alone", o.stats.Unawaited)
			}
		}
		if segments < 40 {
			t.Errorf("at most %d records: only %d segments ended", most, segments)
		}
		if most == 0 && (short == 0 || told == 40) || most > 0 && (short > 0 || told < 40) {
			t.Errorf("at most %d records: %d of 40 told, %d of %d segments were too short", most, told, short, segments)
		}
	}
}

// Where values repeat a read is its writer's only when no other can come any more. Wherever the
// cuts fall meanwhile, a lost update is told if the overlap lasts as long as that, and else no
// stretch is called complete in which it was missed.
func TestLostUpdatesWhereValuesRepeat(t *testing.T) {
	const overlap, lasts = 20, 100 // records, and their time
	for _, longest := range []int64{5, lasts / 2, 3 * lasts / 2, 3 * lasts} {
		told := 0
		for at := 40; at < 80; at++ {
			tp := &topic{logs: [][]sent{loses(at)}, levels: []verdict.Level{verdict.SSER}, longest: longest,
				assume: record.Assumptions{Coverage: record.CoverageComplete, Initial: record.InitialAbsent}}
			cfg := tp.config()
			cfg.Segment, cfg.Overlap, cfg.MaxTransaction = 3*overlap, overlap, time.Duration(longest)
			o, err := (&run{topic: tp, cfg: cfg, batch: 1}).play()
			if err != nil {
				t.Fatal(err)
			}
			if len(o.found) > 0 {
				told++
				continue
			}
			if longest < lasts {
				t.Errorf("max_transaction %d: the lost update at %d is not told", longest, at)
			}
			for _, s := range o.stretches {
				if n := uint64(2*at + 1); s.From <= n && n < s.To && s.At(verdict.SSER) != stream.Partial {
					t.Errorf("max_transaction %d: the lost update at %d is not told, and its stretch is called complete: %+v", longest, at, s)
				}
			}
		}
		t.Logf("max_transaction %d: %d told", longest, told)
	}
}

// With unique values, and writers that nobody recorded, a cycle of reads is told; but not from the record on that shows
// that values repeat, whichever: what was found and not told by then, and what is concluded from reads that were tied to
// their writers before, is judged again without that.
func TestValuesThatTurnOutToRepeat(t *testing.T) {
	op := func(kind record.OpKind, key string, v int64) record.Op {
		return record.Op{Kind: kind, Key: key, Value: record.Int(v)}
	}
	cycle := [][2]any{{"a", op(record.Read, "x", 1)}, {"a", op(record.Write, "y", 1)}, {"b", op(record.Read, "y", 1)}, {"b", op(record.Write, "x", 1)}}
	first, second, other := [2]any{"c", op(record.Write, "z", 1)}, [2]any{"d", op(record.Write, "z", 1)}, [2]any{"d", op(record.Write, "z", 2)}
	null := [][2]any{{"c", record.Op{Kind: record.Write, Key: "z"}}, {"d", record.Op{Kind: record.Write, Key: "z"}}}
	for _, tc := range []struct {
		title   string
		records [][2]any
		told    bool
	}{
		{"at first", slices.Concat([][2]any{first, second}, cycle), false},
		{"in the midst", slices.Concat(cycle[:3], [][2]any{first, second}, cycle[3:]), false},
		{"at last", slices.Concat(cycle, [][2]any{first, second}), false},
		{"not at all", slices.Concat(cycle, [][2]any{first, other}), true},
		{"but null", slices.Concat(null, cycle), true},
	} {
		var log []sent
		seq := map[string]int64{}
		for i, r := range tc.records {
			at, session := int64(1000+10*i), r[0].(string)
			log = append(log, sent{record.Transaction{DB: record.DefaultDB, Session: session, Seq: seq[session], HasSeq: true, HasTimes: true, Start: at, End: at + 1,
				ID: fmt.Sprint(session, seq[session]), Ops: []record.Op{r[1].(record.Op)}}, at + 2})
			seq[session]++
		}
		for _, kill := range []int{0, 50} {
			tp := &topic{logs: [][]sent{log}, levels: []verdict.Level{verdict.RC, verdict.SI, verdict.SER}, unique: true, longest: 100, assume: record.Assumptions{Coverage: record.CoveragePartial}}
			cfg := tp.config()
			cfg.Every = time.Second // one tick, at the end
			o, err := (&run{topic: tp, cfg: cfg, batch: 1, kill: kill}).play()
			if err != nil {
				t.Fatal(err)
			}
			if told := len(o.found) > 0; told != tc.told {
				t.Errorf("values repeat %s, kill %d: told %v, want %v", tc.title, kill, o.ids(), tc.told)
			}
			for _, f := range o.found {
				if f.err != nil {
					t.Errorf("values repeat %s: %v", tc.title, f.err)
				}
			}
			for _, r := range o.results {
				if want := map[bool]verdict.Outcome{true: verdict.Violated, false: verdict.Unknown}[tc.told]; r.Outcome != want {
					t.Errorf("values repeat %s, kill %d: %v is %v, want %v", tc.title, kill, r.Level, r.Outcome, want)
				}
			}
		}
	}
}
