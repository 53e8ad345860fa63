package frontier

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/race"
)

// model is a frontier by definition: all transactions by number, and per key the
// numbers of those that are left.
type model struct {
	opt   Options
	txns  []record.Transaction // by number-1
	at    []int64
	left  map[string][]uint64
	state map[string]State
}

func newModel(opt Options) *model {
	return &model{opt: opt, left: map[string][]uint64{}, state: map[string]State{}}
}

// final are the operations that a transaction's version of a key consists of.
func final(t *record.Transaction, key string) (out []record.Op) {
	for _, o := range t.Ops {
		if o.Key != key || o.Kind != record.Write && o.Kind != record.Append {
			continue
		}
		if o.Kind == record.Write {
			out = nil
		}
		out = append(out, o)
	}
	return out
}

func keysWritten(t *record.Transaction) (out []string) {
	for _, o := range t.Ops {
		if (o.Kind == record.Write || o.Kind == record.Append) && !slices.Contains(out, o.Key) {
			out = append(out, o.Key)
		}
	}
	return out
}

// saw tells whether t read, before it wrote the key, what old left there.
func saw(t, old *record.Transaction, key string) bool {
	for _, o := range t.Ops {
		if o.Key != key {
			continue
		}
		if o.Kind != record.Read {
			return false
		}
		was := final(old, key)
		last := was[len(was)-1]
		return last.Kind == record.Write && o.Value == last.Value || last.Kind == record.Append && slices.Contains(o.Value.Elements(), last.Value)
	}
	return false
}

func (m *model) before(a, b *record.Transaction) bool {
	return a.Status == record.Committed && b.Status == record.Committed && a.HasTimes && b.HasTimes && a.End+m.opt.MaxSkew < b.Start
}

func (m *model) forget(t record.Transaction, arrival int64) {
	t.Ops = slices.Clone(t.Ops)
	m.txns, m.at = append(m.txns, t), append(m.at, arrival)
	for _, key := range keysWritten(&t) {
		m.forgetKey(&t, key)
	}
}

func (m *model) forgetKey(t *record.Transaction, key string) {
	st := m.state[key]
	writes := 0
	for i, o := range t.Ops {
		switch {
		case o.Key != key:
		case o.Kind == record.Write:
			st |= Written
			if writes > 0 {
				st |= Lossy
			}
			writes++
		case o.Kind == record.Append:
			st |= Appended
			writes++
		}
		_ = i
	}
	defer func() { m.state[key] = st }()
	if t.Status == record.Aborted {
		st |= Lossy
		return
	}
	own := final(t, key)
	superseded := false
	var left []uint64
	for _, n := range m.left[key] {
		old := &m.txns[n-1]
		if was := final(old, key); was[len(was)-1] == own[len(own)-1] && own[len(own)-1].Kind == record.Append {
			st |= Repeated
		}
		superseded = superseded || m.before(t, old)
		if t.Status == record.Committed && (saw(t, old, key) || old.Status == record.Committed && (old.Session == t.Session || m.before(old, t))) {
			st |= Lossy
			continue
		}
		left = append(left, n)
	}
	if superseded {
		st |= Lossy
	} else {
		left = append(left, uint64(len(m.txns)))
	}
	for len(left) > m.opt.MaxPerKey {
		st |= Lossy
		left = left[1:]
	}
	m.left[key] = left
}

func (m *model) stubs(keys ...string) (out []Stub) {
	slices.Sort(keys)
	by := map[uint64]*Stub{}
	for _, key := range slices.Compact(keys) {
		for _, n := range m.left[key] {
			t := m.txns[n-1]
			if by[n] == nil {
				s := Stub{Number: n, Arrival: m.at[n-1], Txn: t}
				if s.Txn.Ops = nil; t.HasTimes {
					s.Arrival = t.End
				} else {
					s.Txn.Start, s.Txn.End = 0, 0
				}
				by[n] = &s
			}
			by[n].Txn.Ops = append(by[n].Txn.Ops, final(&t, key)...)
		}
	}
	for _, s := range by {
		out = append(out, *s)
	}
	slices.SortFunc(out, func(a, b Stub) int { return cmp.Compare(a.Number, b.Number) })
	return out
}

func (m *model) keys() (out []string) {
	for k := range m.state {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// drawn makes transactions of all kinds, with values of all kinds.
type drawn struct {
	rng  *rand.Rand
	keys int
	now  int64
	seqs [5]int64
	last map[string]record.Value
}

func (d *drawn) value() record.Value {
	switch d.rng.IntN(8) {
	case 0:
		return record.Null
	case 1:
		return record.Value{Kind: record.KindObject, Text: fmt.Sprintf(`{"a":%d}`, d.rng.IntN(1000))}
	case 2:
		return record.String(string(bytes.Repeat([]byte("long \x00"), d.rng.IntN(700))))
	case 3:
		return record.Int(int64(d.rng.Uint64()))
	}
	return record.Int(int64(d.rng.IntN(100000)))
}

func (d *drawn) txn() record.Transaction {
	s := d.rng.IntN(len(d.seqs))
	d.seqs[s]++
	d.now += int64(d.rng.IntN(20))
	t := record.Transaction{DB: "orders", Session: fmt.Sprintf("s%d", s), Status: []record.Status{record.Committed, record.Committed, record.Committed, record.Aborted, record.Unknown}[d.rng.IntN(5)]}
	if t.HasSeq = d.rng.IntN(4) > 0; t.HasSeq {
		t.Seq = d.seqs[s]
	}
	if t.ID = fmt.Sprintf("%s#%d", t.Session, d.seqs[s]); d.rng.IntN(5) == 0 {
		t.ID = fmt.Sprintf("%s/%d", t.Session, d.now)
	}
	if t.HasTimes = d.rng.IntN(4) > 0; t.HasTimes {
		t.Start, t.End = d.now-int64(d.rng.IntN(60)), d.now
	}
	for range 1 + d.rng.IntN(6) {
		o := record.Op{Kind: record.OpKind(d.rng.IntN(3)), Key: fmt.Sprintf("key %d", d.rng.IntN(d.keys)), Value: d.value()}
		if last := d.last[o.Key]; o.Kind == record.Read && d.rng.IntN(2) == 0 {
			if o.Value = last; d.rng.IntN(2) == 0 {
				o.Value = record.Value{Kind: record.KindList, Text: "[1," + last.String() + "]"}
			}
		} else if o.Kind != record.Read {
			d.last[o.Key] = o.Value
		}
		t.Ops = append(t.Ops, o)
	}
	return t
}

func same(t *testing.T, say string, got, want []Stub) {
	t.Helper()
	if d := gocmp.Diff(want, got); d != "" {
		t.Fatalf("%s: want -, got +:\n%s", say, d)
	}
}

// A frontier is its model, whatever is written, kept in memory, on disk or in
// snapshots, and restored at any time.
func TestFrontierIsItsModel(t *testing.T) {
	for seed := range uint64(race.Draws(12, 40)) {
		rng := rand.New(rand.NewPCG(seed, 9))
		opt := Options{DB: "orders", MaxSkew: int64(rng.IntN(10)), MaxPerKey: 1 + rng.IntN(4)}
		switch seed % 4 {
		case 1:
			opt.MaxKeys = 1 + rng.IntN(20)
		case 3:
			opt.MaxBytes, opt.MinKeys = 1+int64(rng.IntN(2000)), rng.IntN(3)
		}
		w := world{t: t, seed: seed, rng: rng, opt: opt, m: newModel(opt), f: New(opt), disk: map[string][]byte{}}
		w.live(400)
	}
}

// world is a frontier with all that belongs to it: a store that takes back what
// was spilled since the last snapshot when it crashes.
type world struct {
	t    *testing.T
	seed uint64
	rng  *rand.Rand
	opt  Options
	m    *model
	f    *Frontier
	disk map[string][]byte // what Spill gave

	saved    []byte // the last snapshot, and the disk then
	savedOn  map[string][]byte
	txns     []record.Transaction // since
	restarts int
}

func (w *world) live(steps int) {
	d := drawn{rng: w.rng, keys: 1 + w.rng.IntN(60), last: map[string]record.Value{}}
	for range steps {
		x := d.txn()
		w.txns = append(w.txns, x)
		w.m.forget(x, int64(len(w.m.txns)+1))
		w.forget(&x, int64(len(w.m.txns)))
		switch w.rng.IntN(12) {
		case 0:
			w.save()
		case 1:
			w.crash()
		case 2:
			w.ask()
		case 3, 4:
			w.spill()
		}
	}
	w.ask()
	if w.opt.MaxKeys > 0 && (w.f.Stats().Spilled == 0 || w.f.Stats().Read == 0) && d.keys > 2*w.opt.MaxKeys {
		w.t.Errorf("seed %d: nothing was spilled, or nothing read: %+v", w.seed, w.f.Stats())
	}
	if w.restarts == 0 {
		w.t.Errorf("seed %d: no restart", w.seed)
	}
}

// spill ends an engine and lets keys go, or fails to.
func (w *world) spill() {
	w.f.Begin()
	var asked []string // by the next engine
	for _, key := range w.m.keys() {
		if w.rng.IntN(8) == 0 {
			asked = append(asked, key)
		}
	}
	if w.rng.IntN(2) == 0 {
		asked = append(asked, "never written")
	}
	w.need(asked)
	most := 1 + w.rng.IntN(30)
	for {
		kvs := w.f.Spill(most)
		if len(kvs) > most {
			w.t.Fatalf("seed %d: %d keys are spilled, at most %d were asked for", w.seed, len(kvs), most)
		}
		for i, kv := range kvs {
			w.disk[kv.Key] = kv.Value
			if i == 0 && w.rng.IntN(6) == 0 { // the disk is full
				return
			}
		}
		if len(kvs) == 0 {
			break
		}
		w.f.Gone(slices.Values(asked))
	}
	if more := w.f.Needs(nil, asked...); len(more) > 0 {
		w.t.Fatalf("seed %d: %v have left memory, but were asked for", w.seed, more)
	}
	if r, err := Restore(w.opt, snapshotOf(w.f)); err != nil || len(r.Needs(nil, asked...)) > 0 {
		w.t.Fatalf("seed %d: after a restart %v are needed, but were known before; error %v", w.seed, r.Needs(nil, asked...), err)
	}
	if s := w.f.Stats(); s.Keys > len(asked) && w.f.over(s.Keys, s.Bytes) {
		w.t.Fatalf("seed %d: too much stays in memory: %+v", w.seed, s)
	}
}

func (w *world) save() {
	w.saved, w.savedOn = snapshotOf(w.f), maps.Clone(w.disk)
	w.txns = w.txns[:0]
}

// crash restores the last snapshot and repeats what came after.
func (w *world) crash() {
	w.restarts++
	w.f, w.disk = New(w.opt), map[string][]byte{}
	if w.saved != nil {
		var err error
		if w.f, err = Restore(w.opt, w.saved); err != nil {
			w.t.Fatalf("seed %d: %v", w.seed, err)
		}
		w.disk = maps.Clone(w.savedOn)
		if again := snapshotOf(w.f); !bytes.Equal(again, w.saved) && w.f.table.free == noSlot {
			w.t.Fatalf("seed %d: what is restored gives another snapshot", w.seed)
		}
	}
	from := len(w.m.txns) - len(w.txns)
	for i := range w.txns {
		w.forget(&w.txns[i], int64(from+i+1))
	}
}

func (w *world) forget(x *record.Transaction, arrival int64) {
	w.need(keysWritten(x))
	w.f.Forget(x, arrival)
}

func (w *world) need(keys []string) {
	for _, key := range w.f.Needs(nil, keys...) {
		if w.f.State(key)&Lossy == 0 {
			w.t.Fatalf("seed %d: key %q is taken for known before it is answered", w.seed, key)
		}
		if err := w.f.Answer(key, w.disk[key]); err != nil {
			w.t.Fatalf("seed %d: %v", w.seed, err)
		}
	}
	if more := w.f.Needs(nil, keys...); len(more) > 0 {
		w.t.Fatalf("seed %d: %v are still needed", w.seed, more)
	}
}

// A write that is forgotten of a key that may be on disk leaves nothing to be
// concluded of it.
func TestForgottenUnasked(t *testing.T) {
	w := func(key string, n int64) *record.Transaction {
		return &record.Transaction{Session: "s", ID: fmt.Sprint(n), Ops: []record.Op{{Kind: record.Write, Key: key, Value: record.Int(n)}}}
	}
	f := New(Options{MaxKeys: 1})
	f.Forget(w("x", 1), 1)
	f.Forget(w("y", 2), 2)
	f.Spill(1)
	f.Gone(nil)
	f.Begin()
	f.Forget(w("x", 3), 3)
	f.Forget(w("y", 4), 4)
	if a, b := f.State("x"), f.State("y"); (a|b)&Lossy == 0 || a&Appended != 0 == (b&Appended != 0) {
		t.Errorf("states %v and %v: one was on disk and was not asked for", a, b)
	}
}

// ask compares what is said of some keys, and of all.
func (w *world) ask() {
	if got := w.f.Stats(); got.Forgotten != uint64(len(w.m.txns)) {
		w.t.Fatalf("seed %d: %d transactions forgotten, %d counted", w.seed, len(w.m.txns), got.Forgotten)
	}
	var some []string
	for _, key := range append(w.m.keys(), "never written") {
		if w.rng.IntN(2) == 0 {
			some = append(some, key)
		}
	}
	w.need(some)
	for _, key := range some {
		if got, want := w.f.State(key), w.m.state[key]; got != want {
			w.t.Fatalf("seed %d: state of %q: %v, want %v", w.seed, key, got, want)
		}
	}
	same(w.t, fmt.Sprintf("seed %d: stubs of %v", w.seed, some), w.f.Stubs(append(some, some...)...), w.m.stubs(some...))
	w.askByRefs(some)
	if all, ok := w.f.All(1000); ok {
		same(w.t, fmt.Sprintf("seed %d: all stubs", w.seed), all, w.m.stubs(w.m.keys()...))
	} else if w.opt.MaxKeys == 0 && w.opt.MaxBytes == 0 {
		w.t.Fatalf("seed %d: not all keys are in memory", w.seed)
	}
	versions := 0
	var bytes int64
	for slot := range w.f.table.slots {
		if e := w.f.table.at(slot); e.flags&flagLive != 0 {
			versions += int(w.f.table.body(e)[1])
			bytes += int64(len(w.f.table.body(e)))
		}
	}
	if s := w.f.Stats(); s.Total != len(w.m.keys()) {
		w.t.Fatalf("seed %d: %d keys are said to be known, not %d", w.seed, s.Total, len(w.m.keys()))
	} else if s.Versions != versions || s.Bytes != bytes {
		w.t.Fatalf("seed %d: %+v, but there are %d versions and %d bytes", w.seed, s, versions, bytes)
	}
}

// askByRefs asks the same by Find and Past: what Past gives is what Stub gives, but
// for the ID.
func (w *world) askByRefs(keys []string) {
	refs := w.f.Find(nil, keys...)
	var past []Past
	var got []Stub
	w.f.Past(keys, refs, func(p Past, s *Stub) {
		past = append(past, Past{p.Number, slices.Clone(p.Keys)})
		got = append(got, *s)
		got[len(got)-1].Txn.Ops = slices.Clone(s.Txn.Ops)
	})
	for i, p := range past {
		stub := w.f.Stub(p)
		got[i].Txn.ID = stub.Txn.ID
		same(w.t, fmt.Sprintf("seed %d: stub %d", w.seed, p.Number), []Stub{got[i]}, []Stub{stub})
	}
	same(w.t, fmt.Sprintf("seed %d: the past of %v", w.seed, keys), got, w.m.stubs(slices.Clone(keys)...))
	for i, key := range keys {
		if refs[i] == NoRef {
			if len(w.m.left[key]) > 0 {
				w.t.Fatalf("seed %d: %q is not found", w.seed, key)
			}
			continue
		}
		var last []record.Op
		for _, n := range w.m.left[key] {
			ops := final(&w.m.txns[n-1], key)
			last = append(last, ops[len(ops)-1])
		}
		for _, op := range last {
			if op.Kind = record.Write; w.f.Holds(refs[i], op.Value) != slices.ContainsFunc(last, func(x record.Op) bool { return x.Kind == op.Kind && x.Value == op.Value }) {
				w.t.Fatalf("seed %d: %q: that %v was written to it is not as Holds says", w.seed, key, op.Value)
			}
		}
		if w.f.Holds(refs[i], record.Int(-77)) {
			w.t.Fatalf("seed %d: %q holds what nobody wrote", w.seed, key)
		}
	}
}

// Of a key more than fits in a store's value is not kept: the oldest goes, or all.
func TestLargeVersions(t *testing.T) {
	f := New(Options{MaxKeys: 1})
	for i, size := range []int{20, 30, 10, 70, 5} {
		x := record.Transaction{Session: fmt.Sprint("s", i), ID: fmt.Sprint(i), Status: record.Unknown, Ops: []record.Op{
			{Kind: record.Write, Key: "x", Value: record.String(strings.Repeat("v", size<<10))}}}
		f.Forget(&x, int64(i))
		if i == 3 {
			x.Ops[0].Key = "y"
			f.Forget(&x, int64(i))
		}
	}
	sizes := func(key string) (out []int) {
		for _, s := range f.Stubs(key) {
			out = append(out, len(s.Txn.Ops[0].Value.Text)>>10)
		}
		return out
	}
	if got := sizes("x"); !slices.Equal(got, []int{5}) || f.State("x")&Lossy == 0 {
		t.Errorf("of x versions of %v KiB are left, state %v", got, f.State("x"))
	}
	if got := sizes("y"); len(got) > 0 || f.State("y")&Lossy == 0 {
		t.Errorf("of y versions of %v KiB are left, state %v", got, f.State("y"))
	}
	if s := f.Stats(); s.Dropped != 5 {
		t.Errorf("%d versions dropped", s.Dropped)
	}
}

// Stubs are those of some keys; where Needs names one of them it has to be answered first.
func (f *Frontier) Stubs(keys ...string) []Stub {
	var places []place
	for _, key := range keys {
		if slot, ok := f.table.find(key); ok {
			f.use(slot)
			places = appendPlaces(places, slot, f.table.body(f.table.at(slot)))
		}
	}
	return f.stubsOf(places)
}
