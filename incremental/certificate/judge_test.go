package certificate_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/isowatch/isowatch/incremental/certificate"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
	"github.com/isowatch/isowatch/internal/lab/oracle/tiny"
	"github.com/isowatch/isowatch/internal/lab/race"
)

// judge is what docs/certificates.md says of orders of commits, word for word
// and without a thought for cost.
type judge struct {
	level verdict.Level
	txns  []record.Transaction
	order []int // of commits
	opt   record.Assumptions
	// versions are, by list, who made its versions one after the other; without
	// them it is the order of commits.
	versions map[string][]int
}

// sources are whom a read may be from: one of them, or, for a list, all. Of a
// list the last is the version's writer if there is one.
type sources struct {
	txn, op  int
	key      string
	possible []int // or initial
	parts    []int
	free     bool // compared with nothing
}

// putBack: somebody writes what was read.
func (j judge) putBack(s sources) bool {
	op := j.txns[s.txn].Ops[s.op]
	op.Kind = record.Write
	return slices.ContainsFunc(j.txns, func(x record.Transaction) bool { return slices.Contains(x.Ops, op) })
}

// initial stands for the initial state as a writer.
const initial = -1

func (j judge) at(n int) int { return slices.Index(j.order, n) }

// lastWrite is what a transaction leaves at a key.
func lastWrite(t record.Transaction, key string) (v record.Value, ok bool) {
	for _, op := range t.Ops {
		if op.Kind == record.Write && op.Key == key {
			v, ok = op.Value, true
		}
	}
	return v, ok
}

func changes(t record.Transaction, key string) bool {
	return slices.ContainsFunc(t.Ops, func(op record.Op) bool { return op.Kind != record.Read && op.Key == key })
}

// isList: somebody appends to the key.
func isList(txns []record.Transaction, key string) bool {
	return slices.ContainsFunc(txns, func(t record.Transaction) bool {
		return slices.ContainsFunc(t.Ops, func(op record.Op) bool { return op.Kind == record.Append && op.Key == key })
	})
}

func listOf(v record.Value) []string {
	var raw []json.RawMessage
	if v.Kind == record.KindList {
		if err := json.Unmarshal([]byte(v.Text), &raw); err != nil {
			panic(err)
		}
	}
	var out []string
	for _, e := range raw {
		out = append(out, string(e))
	}
	return out
}

// appends are the elements that a transaction appends, from operation 0 to before.
func elementsBy(t record.Transaction, key string, before int) (out []string) {
	for _, op := range t.Ops[:before] {
		if op.Kind == record.Append && op.Key == key {
			out = append(out, op.Value.String())
		}
	}
	return out
}

// reads finds the sources of all reads, or says that one has none.
func (j judge) reads() ([]sources, bool) {
	var out []sources
	first := map[string]record.Value{} // initial values that reads told
	for _, n := range j.order {
		t := j.txns[n]
		seen := map[string]string{}
		for i, op := range t.Ops {
			list := isList(j.txns, op.Key)
			if op.Kind != record.Read {
				continue
			}
			s := sources{txn: n, op: i, key: op.Key}
			says := op.Value.String()
			var ok bool
			switch own, wrote := lastWrite(record.Transaction{Ops: t.Ops[:i]}, op.Key); {
			case list && wrote:
				if leftBy(t.Ops[:i], op.Key) != plainly(op.Value) {
					return nil, false
				}
				continue
			case list && j.mixed(op.Key): // it may only be of somebody unseen
				if j.opt.Coverage != record.CoveragePartial || op.Value.Kind == record.KindList || oracle.Made(j.txns, op.Key, op.Value) ||
					len(elementsBy(record.Transaction{Ops: t.Ops}, op.Key, i)) > 0 {
					return nil, false
				}
				ok = j.value(&s, op, first)
			case list:
				var rest []string
				if rest, ok = j.list(&s, op); ok && (op.Value.Kind == record.KindList || op.Value.IsNull()) {
					b, err := json.Marshal(rest)
					if err != nil {
						panic(err)
					}
					says = string(b)
				}
			case wrote:
				if own != op.Value {
					return nil, false
				}
				continue
			default:
				ok = j.value(&s, op, first)
			}
			if before, again := seen[op.Key]; again && before != says && j.level != verdict.G1 && j.level != verdict.RC {
				return nil, false
			}
			seen[op.Key] = says
			if !ok {
				return nil, false
			}
			out = append(out, s)
		}
	}
	return out, true
}

// leftBy is what some operations left of a key that they wrote and then perhaps
// appended to.
func leftBy(ops []record.Op, key string) string {
	v := record.Null
	var list []string
	for _, op := range ops {
		switch {
		case op.Key != key:
		case op.Kind == record.Write:
			v, list = op.Value, listOf(op.Value)
		case op.Kind == record.Append:
			v, list = record.Null, append(list, op.Value.String())
		}
	}
	if v.Kind != record.KindList && !v.IsNull() {
		return v.String()
	}
	return fmt.Sprint(list)
}

func plainly(v record.Value) string {
	if v.Kind != record.KindList && !v.IsNull() {
		return v.String()
	}
	return fmt.Sprint(listOf(v))
}

// mixed: a transaction in the order writes what is a list.
func (j judge) mixed(key string) bool {
	return slices.ContainsFunc(j.order, func(n int) bool {
		return slices.ContainsFunc(j.txns[n].Ops, func(op record.Op) bool { return op.Kind == record.Write && op.Key == key })
	})
}

// appenders are those of a key, as they commit.
func (j judge) appenders(key string) (out []int) {
	for _, n := range j.order {
		if len(elementsBy(j.txns[n], key, len(j.txns[n].Ops))) > 0 {
			out = append(out, n)
		}
	}
	return out
}

// value finds the sources of a read of what is no list.
func (j judge) value(s *sources, op record.Op, first map[string]record.Value) bool {
	partial, v := j.opt.Coverage == record.CoveragePartial, op.Value
	others := oracle.Made(j.txns, op.Key, op.Value)
	if partial && (v.IsNull() || j.opt.Initial == record.InitialZero && v == record.Int(0) || !others) {
		s.free = true
		return true
	}
	for _, w := range j.order[:j.at(s.txn)] {
		if left, ok := lastWrite(j.txns[w], op.Key); ok && left == v {
			s.possible = append(s.possible, w)
		}
	}
	switch {
	case partial:
	case j.opt.Initial == record.InitialZero && v == record.Int(0), j.opt.Initial == record.InitialAbsent && v.IsNull():
		s.possible = append(s.possible, initial)
	case j.opt.Initial == record.InitialAny && !others:
		if known, ok := first[op.Key]; ok && known != v {
			return false
		}
		first[op.Key] = v
		s.possible = append(s.possible, initial)
	}
	return len(s.possible) > 0
}

// list finds the sources of a read of a list, and what it shows beside the
// reader's own elements.
func (j judge) list(s *sources, op record.Op) ([]string, bool) {
	partial := j.opt.Coverage == record.CoveragePartial
	read, own := listOf(op.Value), elementsBy(j.txns[s.txn], op.Key, s.op)
	if n := len(read) - len(own); n < 0 || !slices.Equal(read[n:], own) {
		return nil, false
	}
	rest := append([]string{}, read[:len(read)-len(own)]...)
	if op.Value.Kind != record.KindList && !op.Value.IsNull() {
		s.free = partial && !oracle.Made(j.txns, op.Key, op.Value)
		return rest, s.free
	}
	shown := slices.Clone(rest)
	last := true
	if partial {
		recorded := func(e string) bool {
			return slices.ContainsFunc(j.txns, func(t record.Transaction) bool { return slices.Contains(elementsBy(t, op.Key, len(t.Ops)), e) })
		}
		last = len(shown) > 0 && recorded(shown[len(shown)-1])
		shown = slices.DeleteFunc(shown, func(e string) bool { return !recorded(e) })
	}
	if s.free = partial && len(shown) == 0; s.free {
		return rest, true
	}
	s.possible = []int{initial}
	var held []string
	versions, ok := j.versions[op.Key]
	if !ok {
		versions = j.appenders(op.Key)
	}
	for _, w := range versions {
		if len(held) >= len(shown) {
			break
		}
		if j.at(w) >= j.at(s.txn) {
			return nil, false
		}
		held = append(held, elementsBy(j.txns[w], op.Key, len(j.txns[w].Ops))...)
		s.parts, s.possible = append(s.parts, w), []int{w}
	}
	if !last {
		s.possible = nil // it was read some time after
		return rest, len(held) >= len(shown) && slices.Equal(held[:len(shown)], shown)
	}
	return rest, slices.Equal(held, shown)
}

// holds tells whether the axioms hold with these writers.
func (j judge) holds(reads []sources, writer []int) bool {
	n := len(j.txns)
	from := make([][]bool, n) // from[t][s]: s reads from t, or follows it in its session
	for t := range from {
		from[t] = make([]bool, n)
	}
	for s := range n {
		for t := range s {
			if j.at(s) >= 0 && j.at(t) >= 0 && j.opt.Sessions == record.SessionsKeep && j.txns[s].Session == j.txns[t].Session && j.txns[t].Status != record.Unknown {
				from[t][s] = true
				if j.at(t) > j.at(s) {
					return false
				}
			}
		}
	}
	readFrom := func(s, op, t int) bool { // by an operation before op
		for i, r := range reads {
			if r.txn == s && r.op < op && (slices.Contains(r.parts, t) || writer[i] == t) {
				return true
			}
		}
		return false
	}
	for t := range n {
		for s := range n {
			from[t][s] = from[t][s] || readFrom(s, len(j.txns[s].Ops), t)
		}
	}
	if j.level == verdict.CC {
		for k := range n {
			for t := range n {
				for s := range n {
					from[t][s] = from[t][s] || from[t][k] && from[k][s]
				}
			}
		}
	}
	for i, r := range reads {
		if r.free || len(r.possible) == 0 || j.level == verdict.G1 {
			continue
		}
		for _, u := range j.order {
			visible := from[u][r.txn]
			if j.level == verdict.RC {
				visible = readFrom(r.txn, r.op, u)
			}
			if visible && u != writer[i] && u != r.txn && changes(j.txns[u], r.key) && (writer[i] == initial || j.at(u) > j.at(writer[i])) {
				return false
			}
		}
	}
	return true
}

// accepts tells whether the order proves the level with these writers of the
// reads that have several possible.
func (j judge) accepts(choices []verdict.Source) bool {
	return j.someVersions(func(j judge) bool { return j.acceptsNamed(choices) })
}

func (j judge) acceptsNamed(choices []verdict.Source) bool {
	reads, ok := j.reads()
	if !ok {
		return false
	}
	writer := make([]int, len(reads))
	used := 0
	for i, r := range reads {
		writer[i] = initial
		if len(r.possible) > 0 {
			writer[i] = r.possible[0]
		}
		if named := slices.IndexFunc(choices, func(c verdict.Source) bool { return int(c.Txn) == r.txn && c.Op == r.op }); named >= 0 {
			used++
			if writer[i] = int(choices[named].Writer); choices[named].Writer == verdict.NoTxn {
				writer[i] = initial
			}
			if !slices.Contains(r.possible, writer[i]) || r.free || isList(j.txns, r.key) || writer[i] == initial && j.opt.Initial == record.InitialAny && !j.putBack(r) {
				return false
			}
		} else if len(r.possible) > 1 {
			return false
		}
	}
	return used == len(choices) && j.holds(reads, writer)
}

// sources are writers with which it does; false if there are none.
func (j judge) sources() (from []verdict.Source, ok bool) {
	ok = j.someVersions(func(j judge) bool {
		from = nil
		reads, ok := j.reads()
		if !ok {
			return false
		}
		writer, ok := j.some(reads, make([]int, 0, len(reads)))
		for i, r := range reads {
			if len(r.possible) > 1 {
				from = append(from, verdict.Source{Txn: verdict.TxnID(r.txn), Op: r.op, Writer: verdict.NoTxn})
				if ok && writer[i] != initial {
					from[len(from)-1].Writer = verdict.TxnID(writer[i])
				}
			}
		}
		return ok
	})
	return from, ok
}

// someVersions tells whether something holds with some order of the versions of
// each list: that of commits, or for g1 any if elements tell whose they are.
func (j judge) someVersions(holds func(judge) bool) bool {
	if j.level != verdict.G1 {
		return holds(j)
	}
	keys := map[string]bool{}
	for _, n := range j.order {
		for _, op := range j.txns[n].Ops {
			if op.Kind == record.Append {
				keys[op.Key] = true
			}
		}
	}
	j.versions = map[string][]int{}
	return j.permute(slices.Sorted(maps.Keys(keys)), holds)
}

func (j judge) permute(keys []string, holds func(judge) bool) bool {
	if len(keys) == 0 {
		return holds(j)
	}
	writers := j.appenders(keys[0])
	seen := map[string]bool{}
	for _, n := range writers {
		for _, e := range elementsBy(j.txns[n], keys[0], len(j.txns[n].Ops)) {
			if seen[e] {
				delete(j.versions, keys[0])
				return j.permute(keys[1:], holds)
			}
			seen[e] = true
		}
	}
	var try func(n int) bool
	try = func(n int) bool {
		if n == len(writers) {
			j.versions[keys[0]] = slices.Clone(writers)
			return j.permute(keys[1:], holds)
		}
		for i := n; i < len(writers); i++ {
			writers[n], writers[i] = writers[i], writers[n]
			if try(n + 1) {
				return true
			}
			writers[n], writers[i] = writers[i], writers[n]
		}
		return false
	}
	return try(0)
}

func (j judge) some(reads []sources, writer []int) ([]int, bool) {
	if len(writer) == len(reads) {
		return writer, j.holds(reads, writer)
	}
	possible := reads[len(writer)].possible
	if len(possible) == 0 {
		possible = []int{initial}
	}
	for _, w := range possible {
		if all, ok := j.some(reads, append(writer, w)); ok {
			return all, true
		}
	}
	return nil, false
}

// orders are some orders of commits: of all committed transactions, with some of
// those of unknown outcome, most of them in the order of sessions.
func commitOrders(rng *rand.Rand, txns []record.Transaction, count int) (out [][]int) {
	for range count {
		var order []int
		for n := range txns {
			if s := txns[n].Status; s == record.Committed || s == record.Unknown && rng.IntN(2) == 0 {
				order = append(order, n)
			}
		}
		rng.Shuffle(len(order), func(a, b int) { order[a], order[b] = order[b], order[a] })
		if rng.IntN(6) > 0 { // each session's places are given out in its order
			places := map[string][]int{}
			for at, n := range order {
				places[txns[n].Session] = append(places[txns[n].Session], at)
			}
			for _, n := range slices.Sorted(slices.Values(order)) {
				s := txns[n].Session
				order[places[s][0]], places[s] = n, places[s][1:]
			}
		}
		out = append(out, order)
	}
	return out
}

func commitsOf(order []verdict.Event) (out []int) {
	for _, e := range order {
		if e.Commit {
			out = append(out, int(e.Txn))
		}
	}
	return out
}

func commitEvents(order []int) []verdict.Event {
	var out []verdict.Event
	for _, n := range order {
		out = append(out, verdict.Event{Txn: verdict.TxnID(n), Commit: true})
	}
	return out
}

var all = tiny.Config{Txns: 5, Keys: 2, Duplicates: true, Aborted: true, Unknown: true, Partial: true, Appends: true, PartialLists: true, Mixed: true, Mutations: 1}

// An order of commits is accepted exactly if it proves the level by the letter,
// with some writers or with those that are named; right ones and wrong ones.
func TestOrdersOfCommitsByTheLetter(t *testing.T) {
	type count struct{ accepted, refused, chosen, lists int }
	counts := map[verdict.Level]*count{}
	for _, l := range weak {
		counts[l] = &count{}
	}
	for seed := range uint64(race.Few(1200, 4000)) {
		cfg := all
		cfg.Mixed = seed%8 == 0
		if cfg.Appends = seed%2 == 0; cfg.Appends {
			cfg.Mutations = 4 // lists that are read agree more often than not
		}
		s, o := random(seed, cfg)
		rng := rand.New(rand.NewPCG(seed, 17))
		for _, order := range commitOrders(rng, s.Txns, 8) {
			for _, l := range weak {
				j, n := judge{level: l, txns: s.Txns, order: order, opt: o}, counts[l]
				from, want := j.sources()
				err := replay(l, s.Txns, commitEvents(order), o, from...)
				if (err == nil) != want {
					t.Fatalf("seed %d, %v, order %v: %v, and by the letter it is %v\n%s", seed, l, order, err, want, script.Format(s))
				}
				from = spoil(rng, from, s.Txns)
				n.chosen += min(1, len(from))
				err = replay(l, s.Txns, commitEvents(order), o, from...)
				if want := j.accepts(from); (err == nil) != want {
					t.Fatalf("seed %d, %v, order %v, %v: %v, and by the letter it is %v\n%s", seed, l, order, from, err, want, script.Format(s))
				}
				if !want {
					n.refused++
				} else if n.accepted++; appends(s) {
					n.lists++
				}
			}
		}
	}
	for l, n := range counts {
		if n.accepted < 1000 || n.refused < 1000 || n.chosen < 500 || n.lists < 300 {
			t.Errorf("%v: %+v", l, *n)
		}
	}
}

// spoil changes some named writers, or names one too many or too few.
func spoil(rng *rand.Rand, choices []verdict.Source, txns []record.Transaction) []verdict.Source {
	choices = slices.Clone(choices)
	someone := func() verdict.TxnID {
		if rng.IntN(4) == 0 {
			return verdict.NoTxn
		}
		return verdict.TxnID(rng.IntN(len(txns)))
	}
	switch at := rng.IntN(max(1, len(choices))); rng.IntN(4) {
	case 0:
		if len(choices) > 0 {
			choices[at].Writer = someone()
		}
	case 1:
		if len(choices) > 0 {
			choices = slices.Delete(choices, at, at+1)
		}
	case 2:
		n := rng.IntN(len(txns))
		if ops := len(txns[n].Ops); ops > 0 {
			more := verdict.Source{Txn: verdict.TxnID(n), Op: rng.IntN(ops), Writer: someone()}
			if !slices.ContainsFunc(choices, func(c verdict.Source) bool { return c.Txn == more.Txn && c.Op == more.Op }) {
				choices = append(choices, more)
			}
		}
	}
	return choices
}

// An order that proves pc, or more, proves every level that is weaker, as its commits do by the letter; and one
// that proves cc proves ra, rc and g1, with the same writers.
func TestOrdersProveWhatIsWeaker(t *testing.T) {
	from, lists := map[verdict.Level]int{}, 0
	for seed := range uint64(3000) {
		cfg := all
		cfg.Mixed, cfg.Txns, cfg.Keys = false, 6, 3
		s, o := random(seed, cfg)
		for _, l := range []verdict.Level{verdict.PC, verdict.SI, verdict.SER} {
			order, ok := oracle.Explain(l, s.Txns, o)
			if !ok {
				continue
			}
			if from[l]++; appends(s) {
				lists++
			}
			for _, w := range weak {
				if err := certificate.Replay(verdict.Result{Level: w, ProvedBy: l, Order: order}, s.Txns, o); err != nil {
					t.Fatalf("seed %d: %v is proved by %v, and that does not prove %v: %v\n%s", seed, l, order, w, err, script.Format(s))
				}
				if _, ok := (judge{level: w, txns: s.Txns, order: commitsOf(order), opt: o}).sources(); !ok {
					t.Fatalf("seed %d: %v is proved by %v, and by the letter %v is not by its commits\n%s", seed, l, order, w, script.Format(s))
				}
			}
		}
		for _, order := range commitOrders(rand.New(rand.NewPCG(seed, 23)), s.Txns, 4) {
			for i, l := range []verdict.Level{verdict.CC, verdict.RA, verdict.RC} {
				named, ok := judge{level: l, txns: s.Txns, order: order, opt: o}.sources()
				if !ok || replay(l, s.Txns, commitEvents(order), o, named...) != nil {
					continue
				}
				from[l]++
				if err := replay(weak[2-i], s.Txns, commitEvents(order), o, named...); err != nil {
					t.Fatalf("seed %d, %v: proves %v and not %v: %v\n%s", seed, order, l, weak[2-i], err, script.Format(s))
				}
			}
		}
	}
	for _, l := range []verdict.Level{verdict.PC, verdict.SI, verdict.SER, verdict.CC, verdict.RA, verdict.RC} {
		if from[l] < 1000 {
			t.Errorf("%v: only %d orders", l, from[l])
		}
	}
	if lists < 1000 {
		t.Errorf("only %d histories have lists", lists)
	}
}
