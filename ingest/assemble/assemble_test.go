package assemble

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	gocmp "github.com/google/go-cmp/cmp"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/reject"
)

// script runs the files of testdata. An event is a line:
//
//	begin SESSION TXN [seq=N] [start=N] [db=S] [id=S]
//	op SESSION TXN NUMBER KIND KEY VALUE
//	commit|abort|unknown SESSION TXN COUNT [end=N]
//
// at the next offset, or with offset=N in front; now=N in front is the broker's time.
type script struct {
	opt  Options
	a    *Assembler
	next int64
	log  []logged
	out  strings.Builder
}

type logged struct {
	offset, now int64
	e           Event
}

func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var s script
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.out.Reset()
			s.run(t, d)
			return s.out.String()
		})
	})
}

func (s *script) run(t *testing.T, d *datadriven.TestData) {
	switch d.Cmd {
	case "new":
		s.opt = Options{}
		for name, to := range map[string]*int{"open": &s.opt.OpenMax, "ops": &s.opt.OpsMax, "recent": &s.opt.RecentMax} {
			d.MaybeScanArgs(t, name, to)
		}
		d.MaybeScanArgs(t, "max-transaction", &s.opt.MaxTransaction)
		d.MaybeScanArgs(t, "bytes", &s.opt.BytesMax)
		*s = script{opt: s.opt, a: New(s.opt)}
	case "add":
		for line := range strings.Lines(d.Input) {
			l := s.parse(t, strings.TrimSpace(line))
			s.next = max(s.next, l.offset+1)
			s.log = append(s.log, l)
			s.add(l)
		}
	case "tick":
		var now int64
		d.ScanArgs(t, "now", &now)
		s.a.Tick(s.next, now)
	case "close":
		s.a.Close()
	case "restart":
		s.restart(t, d)
	default:
		t.Fatalf("%s: no such command", d.Pos)
	}
	s.drain()
	if n, bytes := s.a.Open(); n > 0 {
		fmt.Fprintf(&s.out, "open: %d, oldest at %d\n", n, s.a.Oldest(s.next))
	} else if bytes != 0 {
		t.Fatalf("%s: nothing is open and takes %d bytes", d.Pos, bytes)
	}
}

// restart goes on from the state, and reads again what it has to, but for what is
// unreadable.
func (s *script) restart(t *testing.T, d *datadriven.TestData) {
	var unreadable int64 = -1
	d.MaybeScanArgs(t, "unreadable", &unreadable)
	oldest := s.a.Oldest(s.next)
	a, err := Restore(s.opt, s.a.State(s.next))
	if err != nil {
		t.Fatal(err)
	}
	s.a = a
	fmt.Fprintf(&s.out, "from %d\n", oldest)
	for _, l := range s.log {
		if l.offset >= oldest && l.offset != unreadable {
			if fate, err := a.Add(l.offset, l.now, &l.e); fate != Replayed || err != nil {
				t.Fatalf("%s: replaying %d: %v, %v", d.Pos, l.offset, fate, err)
			}
		}
	}
	a.Tick(s.next, a.clock)
}

func (s *script) add(l logged) {
	fate, err := s.a.Add(l.offset, l.now, &l.e)
	if err != nil {
		fmt.Fprintf(&s.out, "%d refused: %v\n", l.offset, err)
	} else {
		fmt.Fprintf(&s.out, "%d %v\n", l.offset, fate)
	}
	s.drain()
}

// drain prints what came out.
func (s *script) drain() {
	for t, _ := s.a.Next(); t != nil; t, _ = s.a.Next() {
		fmt.Fprintf(&s.out, "  record %s\n", recordText(t))
	}
	for _, l := range s.a.Losses() {
		fmt.Fprintf(&s.out, "  loss %v\n", l)
	}
}

func recordText(t *record.Transaction) string {
	s := fmt.Sprintf("%s %s", t.ID, t.Status)
	if t.DB != record.DefaultDB {
		s += " db=" + t.DB
	}
	if t.HasTimes {
		s += fmt.Sprintf(" %d..%d", t.Start, t.End)
	}
	for _, op := range t.Ops {
		s += fmt.Sprintf(" %v(%s,%v)", op.Kind, op.Key, op.Value)
	}
	return s
}

func (s *script) parse(t *testing.T, line string) logged {
	t.Helper()
	l := logged{offset: s.next}
	var words []string
	options := map[string]string{}
	for _, word := range strings.Fields(line) {
		if name, value, ok := strings.Cut(word, "="); ok {
			options[name] = value
		} else {
			words = append(words, word)
		}
	}
	number := func(text string) int64 {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		return n
	}
	e := &l.e
	e.Session, e.Txn = words[1], words[2]
	for name, value := range options {
		switch name {
		case "offset":
			l.offset = number(value)
		case "now":
			l.now = number(value)
		case "seq":
			e.Seq, e.HasSeq = number(value), true
		case "start", "end":
			e.Time, e.HasTime = number(value), true
		case "db":
			e.DB = value
		case "id":
			e.ID = value
		default:
			t.Fatalf("%s: what is %s", line, name)
		}
	}
	switch words[0] {
	case "begin":
		e.DB = cmp.Or(e.DB, record.DefaultDB)
	case "op":
		e.Kind, e.N = Step, uint32(number(words[3]))
		kind, ok := record.ParseOpKind(words[4])
		if !ok {
			t.Fatalf("%s: what is %s", line, words[4])
		}
		e.Op = record.Op{Kind: kind, Key: words[5], Value: record.Null}
		if words[6] != "null" {
			e.Op.Value = record.Int(number(words[6]))
		}
	default:
		e.Kind, e.N = End, uint32(number(words[3]))
		e.Status = map[string]record.Status{"commit": record.Committed, "abort": record.Aborted, "unknown": record.Unknown}[words[0]]
	}
	return l
}

// events tells a transaction as events.
func events(t *record.Transaction) []Event {
	out := []Event{{Kind: Begin, Session: t.Session, Txn: t.ID, DB: t.DB, ID: t.ID, Seq: t.Seq, HasSeq: t.HasSeq, Time: t.Start, HasTime: t.HasTimes}}
	for i, op := range t.Ops {
		out = append(out, Event{Kind: Step, Session: t.Session, Txn: t.ID, N: uint32(i), Op: op})
	}
	return append(out, Event{Kind: End, Session: t.Session, Txn: t.ID, N: uint32(len(t.Ops)), Status: t.Status, Time: t.End, HasTime: t.HasTimes})
}

// randomEvents are those of sessions side by side, in an order in which they may
// come, and the transactions they tell, by ID.
func randomEvents(rng *rand.Rand, sessions, each int) (all []Event, txns map[string]record.Transaction) {
	txns = map[string]record.Transaction{}
	queues := make([][]Event, sessions)
	for s := range queues {
		for i := range each {
			t := record.Transaction{DB: "d", Session: fmt.Sprint("s", s), ID: fmt.Sprintf("s%d.%d", s, i), Seq: int64(i), HasSeq: true,
				Status: record.Status(rng.IntN(3)), HasTimes: true, Start: int64(10 * i), End: int64(10*i + 9)}
			for range rng.IntN(6) {
				t.Ops = append(t.Ops, record.Op{Kind: record.OpKind(rng.IntN(3)), Key: fmt.Sprint("k", rng.IntN(3)), Value: record.Int(rng.Int64N(4))})
			}
			txns[t.ID] = t
			queues[s] = append(queues[s], events(&t)...)
		}
	}
	for len(queues) > 0 {
		q := rng.IntN(len(queues))
		all = append(all, queues[q][0])
		if queues[q] = queues[q][1:]; len(queues[q]) == 0 {
			queues = slices.Delete(queues, q, q+1)
		}
	}
	return all, txns
}

// disturb loses, doubles and moves events.
func disturb(rng *rand.Rand, all []Event) (out []Event) {
	for _, e := range all {
		switch rng.IntN(12) {
		case 0:
			continue
		case 1:
			out = append(out, e)
		case 2:
			out = slices.Insert(out, max(0, len(out)-rng.IntN(4)), e)
			continue
		}
		out = append(out, e)
		if len(out) > 8 && rng.IntN(12) == 0 {
			out = append(out, out[len(out)-1-rng.IntN(8)])
		}
	}
	return out
}

// results is all that comes out of events, in the order in which it does. Restarts
// happen with a chance of 1 in often, never if that is 0.
func results(t *testing.T, rng *rand.Rand, opt Options, all []Event, often int) (out []string, txns []record.Transaction, losses []Loss) {
	a := New(opt)
	drain := func() {
		for txn, _ := a.Next(); txn != nil; txn, _ = a.Next() {
			out = append(out, recordText(txn))
			txns = append(txns, *txn)
		}
		for _, l := range a.Losses() {
			out = append(out, l.String())
			losses = append(losses, l)
		}
	}
	for i := range all {
		_, err := a.Add(int64(i), 0, &all[i])
		if err != nil && reject.From(err) == nil {
			t.Fatalf("%v is no reject.Error", err)
		}
		drain()
		if n, bytes := a.Open(); n > max(opt.OpenMax, 1) && opt.OpenMax > 0 || opt.BytesMax > 0 && bytes > opt.BytesMax {
			t.Fatalf("%d open, %d bytes, beyond %+v", n, bytes, opt)
		}
		if often > 0 && rng.IntN(often) == 0 {
			next := int64(i + 1)
			from, b := a.Oldest(next), a.State(next)
			var err error
			if a, err = Restore(opt, b); err != nil {
				t.Fatal(err)
			}
			for j := from; j < next; j++ {
				if rng.IntN(50) == 0 && !slices.Equal(a.State(j), b) { // killed again meanwhile
					t.Fatalf("the state changed from %x to %x during the replay", b, a.State(j))
				}
				if fate, err := a.Add(j, 0, &all[j]); fate != Replayed || err != nil {
					t.Fatalf("%v, %v", fate, err)
				}
			}
			if again := a.State(next); !slices.Equal(again, b) {
				t.Fatalf("state %x became %x", b, again)
			}
		}
	}
	a.Close()
	drain()
	return out, txns, losses
}

// What comes undisturbed comes out as it was. What is disturbed comes out as a part of what it was,
// never more, and is a loss unless it is whole.
func TestNothingIsInvented(t *testing.T) {
	whole, parts := 0, 0
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 5))
		all, want := randomEvents(rng, 1+rng.IntN(4), 1+rng.IntN(6))
		_, got, losses := results(t, rng, Options{}, all, 0)
		if len(losses) > 0 || len(got) != len(want) {
			t.Fatalf("seed %d: %d records of %d, losses %v", seed, len(got), len(want), losses)
		}
		for _, txn := range got {
			if !gocmp.Equal(txn, want[txn.ID]) {
				t.Fatalf("seed %d: %s", seed, gocmp.Diff(want[txn.ID], txn))
			}
		}
		opt := Options{MaxTransaction: int64(5 + rng.IntN(100)), OpenMax: 1 + rng.IntN(4), OpsMax: 3 + rng.IntN(4), BytesMax: int64(2000 + rng.IntN(4000))}
		_, got, losses = results(t, rng, opt, disturb(rng, all), 0)
		lost := map[string]bool{}
		for _, l := range losses {
			lost[l.ID] = true
		}
		for _, txn := range got {
			was := want[txn.ID]
			if gocmp.Equal(txn, was) {
				whole++
				continue
			}
			parts++
			if !lost[txn.ID] || !isPart(&txn, &was) {
				t.Fatalf("seed %d: lost: %v\n%s\nis no part of\n%s", seed, lost[txn.ID], recordText(&txn), recordText(&was))
			}
		}
	}
	if whole < 500 || parts < 500 {
		t.Errorf("%d whole records and %d parts show little", whole, parts)
	}
}

// isPart tells whether t is certain, given what was: its operations are some of those in
// their order, it reads nothing that it had written itself, writes no key twice, and of what it
// appended to a key nothing is left out before what is there.
func isPart(t, was *record.Transaction) bool {
	if t.Session != was.Session || t.Seq != was.Seq || t.DB != was.DB || t.Status != was.Status && t.Status != record.Unknown {
		return false
	}
	if t.HasTimes && (t.Start != was.Start || t.Status != record.Unknown && t.End != was.End) {
		return false
	}
	next, writes, wrote, torn := 0, map[string]int{}, map[string]bool{}, map[string]bool{}
	for _, op := range t.Ops {
		for ; next < len(was.Ops) && was.Ops[next] != op; next++ {
			wrote[was.Ops[next].Key] = wrote[was.Ops[next].Key] || was.Ops[next].Kind != record.Read
			torn[was.Ops[next].Key] = torn[was.Ops[next].Key] || was.Ops[next].Kind == record.Append
		}
		if next == len(was.Ops) || op.Kind == record.Read && wrote[op.Key] || op.Kind == record.Append && torn[op.Key] {
			return false
		}
		wrote[op.Key] = wrote[op.Key] || op.Kind != record.Read
		next++
		if op.Kind == record.Write {
			if writes[op.Key]++; writes[op.Key] > 1 {
				return false
			}
		}
	}
	return true
}

// Restarts at any place, also during the replay of another, change nothing of what comes out.
func TestRestartsDoNotShow(t *testing.T) {
	replayed := 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 6))
		all, _ := randomEvents(rng, 1+rng.IntN(5), 1+rng.IntN(6))
		opt := Options{MaxTransaction: int64(15 + rng.IntN(100)), OpenMax: 2 + rng.IntN(4), OpsMax: 3 + rng.IntN(4), BytesMax: int64(2000 + rng.IntN(4000))}
		want, _, _ := results(t, rng, opt, all, 0)
		got, _, _ := results(t, rng, opt, all, 1+rng.IntN(8))
		if !gocmp.Equal(got, want) {
			t.Fatalf("seed %d: %s", seed, gocmp.Diff(want, got))
		}
		replayed++
	}
	if replayed == 0 {
		t.Error("nothing was compared")
	}
}

// FuzzRestore: no bytes are a state that breaks anything, and what is one stays the same.
func FuzzRestore(f *testing.F) {
	a := New(Options{})
	for i, s := range []string{"a", "b"} {
		_, _ = a.Add(int64(10+i), 7, &Event{Session: s, Txn: "t"})
	}
	f.Add(a.State(12))
	f.Add(New(Options{}).State(0))
	f.Fuzz(func(t *testing.T, in []byte) {
		a, err := Restore(Options{}, in)
		if err != nil {
			return
		}
		seen := a.restored.seen
		if a.Oldest(seen-1) > seen {
			t.Fatalf("%x: oldest %d after %d", in, a.Oldest(seen-1), seen)
		}
		open := len(a.restored.opened)
		a.Tick(seen, a.clock)
		if got := len(a.Losses()); got != open {
			t.Fatalf("%x: %d losses of %d open ones", in, got, open)
		}
	})
}

// BenchmarkAdd is an event of transactions of eight operations, of 24 sessions side by
// side.
func BenchmarkAdd(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	all, _ := randomEvents(rng, 24, 50)
	a := New(Options{})
	b.ReportAllocs()
	records, offset := 0, int64(0)
	for b.Loop() {
		if _, err := a.Add(offset, 1, &all[offset%int64(len(all))]); err != nil {
			b.Fatal(err)
		}
		offset++
		for t, _ := a.Next(); t != nil; t, _ = a.Next() {
			records++
		}
		if offset%int64(len(all)) == 0 { // the same names begin anew
			a = New(Options{})
		}
	}
	b.ReportMetric(float64(records)/float64(offset), "records/op")
}

func (f Fate) String() string {
	return [...]string{"taken", "ended", "doubled", "late", "replayed"}[f]
}
