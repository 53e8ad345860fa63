package stream

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/decode"
	"github.com/isowatch/isowatch/ingest/record"
	reader "github.com/isowatch/isowatch/ingest/source"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
)

// files runs the files of testdata/files: what is said to be found, missing and complete.
//
//	new levels=(si,…) [complete] [any] [duplicates] [segment=N] [overlap=N] [seeds=N] [lateness=N] [longest=N] [idle=N] [every=N]
//	take [in=PARTITION] [at=TIME] [db=NAME] [seq=N] [sample=LEVEL] [gap=(FROM,TO)] [rejected] [given-up=(DB,SESSION,TXN)] [caught-up]
//	missing SESSION
//	end
//
// Sessions of the history "other" begin with that name; * is a history that is not known.
//
// The records of an entry are written as internal/lab/oracle/script does; their seq are their
// places in their sessions, those included that are missing. After each entry the
// history is what is restored of its checkpoint.
type files struct {
	cfg     Config
	h       *History
	entries []*Entry
	next    map[string]int64
}

func TestFiles(t *testing.T) {
	datadriven.Walk(t, "testdata/files", func(t *testing.T, path string) {
		var f files
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var b strings.Builder
			switch d.Cmd {
			case "new":
				f.begin(t, d)
			case "missing": // a record of a session
				f.next[d.CmdArgs[0].Key]++
			case "take":
				f.take(t, d, &b)
			case "end":
				f.h.Flush()
				f.work(t, &b)
				results := f.h.Close()
				f.found(t, &b)
				for _, r := range results {
					fmt.Fprintf(&b, "%v %v", r.Level, r.Outcome)
					if r.Reason != verdict.NoReason {
						fmt.Fprintf(&b, ", %v of %d", r.Reason, r.Count)
					}
					b.WriteString("\n")
				}
				f.complete(&b)
			default:
				t.Fatalf("%s: no such command", d.Pos)
			}
			return b.String()
		})
	})
}

func (f *files) begin(t *testing.T, d *datadriven.TestData) {
	*f = files{next: map[string]int64{}, cfg: Config{DB: record.DefaultDB, Assumptions: record.Assumptions{Initial: record.InitialAbsent, Clock: record.ClockPrune, Coverage: record.CoveragePartial}, Segment: 4, Overlap: 1}}
	lateness, longest, every, idle := int64(1), int64(10), int64(10), int64(0)
	d.MaybeScanArgs(t, "segment", &f.cfg.Segment)
	d.MaybeScanArgs(t, "overlap", &f.cfg.Overlap)
	d.MaybeScanArgs(t, "seeds", &f.cfg.MaxSeeds)
	d.MaybeScanArgs(t, "heavy", &f.cfg.Heavy)
	d.MaybeScanArgs(t, "lateness", &lateness)
	d.MaybeScanArgs(t, "longest", &longest)
	d.MaybeScanArgs(t, "every", &every)
	d.MaybeScanArgs(t, "idle", &idle)
	f.cfg.Order.Lateness, f.cfg.Order.IdleAfter = time.Duration(lateness), time.Duration(idle)
	f.cfg.MaxTransaction, f.cfg.Every = time.Duration(longest), time.Duration(every)
	f.cfg.UniqueValues = !d.HasArg("duplicates")
	if d.HasArg("complete") {
		f.cfg.Coverage = record.CoverageComplete
	}
	if d.HasArg("any") { // initial values
		f.cfg.Initial = record.InitialAny
	}
	for _, a := range d.CmdArgs {
		if a.Key == "levels" {
			for _, name := range a.Vals {
				l, ok := verdict.ParseLevel(name)
				if !ok {
					t.Fatalf("%s: no level %s", d.Pos, name)
				}
				f.cfg.Levels = append(f.cfg.Levels, l)
			}
		}
	}
	f.h = New(f.cfg)
}

func (f *files) take(t *testing.T, d *datadriven.TestData, b *strings.Builder) {
	s, err := script.Parse(d.Input)
	if err != nil {
		t.Fatalf("%s: %v", d.Pos, err)
	}
	e := &Entry{Number: uint64(len(f.entries)) + 1, Partitions: 1}
	partition := 0
	d.MaybeScanArgs(t, "in", &partition)
	db := record.DefaultDB
	d.MaybeScanArgs(t, "db", &db)
	for i := range s.Txns {
		x := &s.Txns[i]
		x.DB, x.Seq = db, f.next[x.Session]
		if strings.HasPrefix(x.Session, "other") {
			x.DB = "other"
		}
		if d.HasArg("seq") {
			d.ScanArgs(t, "seq", &x.Seq)
		} else {
			f.next[x.Session]++
		}
		e.Time = max(e.Time, x.End)
	}
	d.MaybeScanArgs(t, "at", &e.Time)
	if n := len(f.entries); n > 0 {
		e.Time, e.Partitions = max(e.Time, f.entries[n-1].Time), f.entries[n-1].Partitions
	}
	e.Partitions = max(e.Partitions, partition+1)
	level := 0
	d.MaybeScanArgs(t, "sample", &level)
	e.Sample = uint8(level)
	e.Batch = batchOf(partition, int64(len(f.entries))*100, s.Txns)
	e.Batch.CaughtUp, e.Batch.Midst = d.HasArg("caught-up"), d.HasArg("midst")
	if d.HasArg("rejected") {
		e.Batch.Lost++
	}
	if d.HasArg("gap") {
		var g reader.Gap
		d.ScanArgs(t, "gap", &g.From, &g.To)
		e.Batch.Gaps = append(e.Batch.Gaps, g)
	}
	if d.HasArg("given-up") {
		var l decode.Loss
		d.ScanArgs(t, "given-up", &l.DB, &l.Session, &l.Txn)
		if l.DB == "*" {
			l.DB = ""
		}
		e.Batch.Losses = append(e.Batch.Losses, l)
	}
	f.entries = append(f.entries, e)
	f.h.Take(e)
	f.work(t, b)
	fmt.Fprintf(b, "%d released, %d wait, all before %d came\n", f.h.Stats().Transactions, f.h.Waiting(), f.h.Mark())
	state := checkpointOf(f.h)
	h, err := Restore(f.cfg, state, func(n uint64) (*decode.Batch, error) { return f.entries[n-1].Batch, nil })
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(state, checkpointOf(h)) {
		t.Errorf("%s: what is restored has another checkpoint", d.Pos)
	}
	f.h = h
}

// work works off what is due and tells what came about.
func (f *files) work(t *testing.T, b *strings.Builder) {
	for more := true; more; {
		more = f.h.Run(1)
		f.found(t, b)
	}
	for _, l := range f.h.Losses() {
		fmt.Fprintf(b, "lost: %v", l.Why)
		if l.Session != "" {
			fmt.Fprintf(b, " of %s", l.Session)
		}
		if l.From != 0 || l.To != 0 {
			fmt.Fprintf(b, ", from %d to %d", l.From, l.To)
		}
		if l.ID != "" {
			fmt.Fprintf(b, ", %s", l.ID)
		}
		b.WriteString("\n")
	}
}

func (f *files) found(t *testing.T, b *strings.Builder) {
	for _, v := range f.h.Found() {
		fmt.Fprintf(b, "%v %v, %v coverage", v.Level, v.Kind, v.Under.Coverage)
		if v.Torn {
			b.WriteString(", torn")
		}
		b.WriteString(":")
		for _, id := range v.Evidence {
			x, ok := v.Find(id)
			if !ok {
				t.Errorf("no transaction %d", id)
			}
			fmt.Fprintf(b, " %s", x.ID)
		}
		b.WriteString("\n")
	}
}

// complete tells what is counted, and of each stretch how complete it is for the levels.
func (f *files) complete(b *strings.Builder) {
	s := f.h.Stats()
	fmt.Fprintf(b, "%d segments; %d forgotten, %d dropped, %d unawaited, %d undecided; complete coverage: %v\n", s.Segments, s.Forgotten, s.Dropped, s.Unawaited, s.Undecided, f.h.Complete())
	stretches, _ := f.h.Standing()
	for _, x := range stretches {
		fmt.Fprintf(b, "%d to %d, times %d to %d:", x.From, x.To, x.Begin, x.End)
		for _, l := range f.cfg.Levels {
			fmt.Fprintf(b, " %v %v,", l, x.At(l))
		}
		fmt.Fprintf(b, " %v\n", x.Partial.Names())
	}
}
