package shrink

import (
	"cmp"
	"slices"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// Judge checks a small history at one level: `monitor check`, as a function. It
// must not keep what it is given.
type Judge func(level verdict.Level, header record.Header, txns []record.Transaction) verdict.Outcome

// Options bound the work and protect what the alert is about.
type Options struct {
	// Keep tells which transactions must stay, so that the evidence goes on to be of
	// this anomaly and not of another one beside it. nil: none.
	Keep func(t *record.Transaction) bool
	// KeepOps: their operations must stay, too.
	KeepOps bool
	// Enough tells which operations are likely to be enough, by themselves or with those
	// that must stay: that is tried first, and where it is so little else is left out in
	// bulk. nil: nobody knows.
	Enough func(i, op int) bool
	// Unseen: the judge takes what nobody wrote for the work of a transaction
	// that was not recorded (partial coverage). An element of a list may then
	// lose its appender while the lists that hold it stay.
	Unseen bool
	// Undeclared: what nobody made may be what its key held at first, or an unseen transaction's. A read of what its
	// transaction puts back, and nobody made, only goes with all reads of the value.
	Undeclared bool
	// Spent tells that the judge is not to be asked any more: then not everything was tried. nil: never.
	Spent func() bool
}

// Shrink returns the part of txns that it found necessary for violated to go on
// being true, in the same order. It presumes that violated(txns) is true and
// changes nothing in txns.
func Shrink(txns []record.Transaction, violated func([]record.Transaction) bool, opt Options) []record.Transaction {
	s := &shrinker{txns: txns, violated: violated, opt: opt}
	ops := 0
	for i := range txns {
		s.first = append(s.first, ops)
		ops += len(txns[i].Ops)
	}
	s.mask = mask{dropped: make([]bool, len(txns)), gone: make([]bool, ops)}
	s.cells = index(txns)
	s.pin()

	var whole, single []unit
	for i := range txns {
		keep := s.keeps(i)
		for j := range txns[i].Ops {
			if s.pinned[i][j] {
				keep = true
			} else {
				single = append(single, unit{txn: i, op: j})
			}
		}
		if !keep {
			whole = append(whole, unit{txn: i, op: -1})
		}
	}
	if s.guess() {
		slices.SortStableFunc(single, func(a, b unit) int { return cmp.Compare(s.rank(a), s.rank(b)) })
		s.pick(single)
		s.pick(whole)
	} else {
		s.reduce(whole)
		s.reduce(single)
	}
	out, _ := s.apply(nil)
	return out
}

// unit is what goes or stays: an operation, or with op -1 a transaction.
type unit struct{ txn, op int }

// shrinker is the state of one Shrink. Invariant: what is left after dropped
// and gone is violated, is implied by txns, and has every pinned operation.
type shrinker struct {
	txns     []record.Transaction
	violated func([]record.Transaction) bool
	opt      Options
	proper   []set // what was left out where the rest is no violation

	mask
	first  []int    // by transaction, the place of its first operation in mask.gone
	pinned [][]bool // operations that must stay; they are never gone
	cells
}

// pin finds what must stay: the operations that are protected, all that with
// them must stay, and everything that a predicate may have seen. It need not
// find all of it, as apply refuses to leave out a protected operation; what it
// finds is not tried in vain.
func (s *shrinker) pin() {
	s.pinned = make([][]bool, len(s.txns))
	for i := range s.txns {
		s.pinned[i] = make([]bool, len(s.txns[i].Ops))
		for j, op := range s.txns[i].Ops {
			// What a predicate wrote is not known by itself.
			s.pinned[i][j] = s.opt.KeepOps && s.keeps(i) || op.Kind == record.PredicateWrite || s.rows && op.Kind.Writes()
		}
	}
	var writes []unit
	for i := range s.txns {
		for j := range s.txns[i].Ops {
			if u := (unit{i, j}); s.writesAt(u) {
				s.pinned[i][j] = s.pinned[i][j] || slices.ContainsFunc(s.dependents(u), s.isPinned)
				writes = append(writes, u)
			}
		}
	}
	for _, u := range writes {
		if slices.ContainsFunc(s.group(u), s.isPinned) {
			s.pinned[u.txn][u.op] = true
		}
	}
}

func (s *shrinker) isPinned(u unit) bool { return s.pinned[u.txn][u.op] }

func (s *shrinker) writesAt(u unit) bool {
	return s.txns[u.txn].Ops[u.op].Kind.Writes()
}

// reduce drops as many of the units as it can: all of them, halves, quarters, …
// single ones, and single ones again until none can go.
func (s *shrinker) reduce(units []unit) {
	for size := len(units); size > 0; {
		progress := false
		for from := 0; from < len(units); {
			if s.spent() {
				return
			}
			chunk := units[from:min(from+size, len(units))]
			if s.try(chunk) {
				units = slices.Delete(slices.Clone(units), from, from+len(chunk))
				progress = true
				continue
			}
			from += len(chunk)
		}
		switch {
		case size > 1:
			size = min(size/2, max(1, (len(units)+1)/2))
		case !progress:
			return
		}
	}
}

// guess drops all but what Options.Enough says, and tells whether it was right.
func (s *shrinker) guess() bool {
	if s.opt.Enough == nil {
		return false
	}
	var rest []unit
	for i := range s.txns {
		none := !s.keeps(i)
		for j := range s.txns[i].Ops {
			if s.pinned[i][j] || s.opt.Enough(i, j) {
				none = false
			} else {
				rest = append(rest, unit{i, j})
			}
		}
		if none {
			rest = append(rest, unit{i, -1})
		}
	}
	return len(rest) == 0 || s.try(rest)
}

// rank is the order in which single operations are tried where few can go. Reads are first:
// who can't do without one can't do without who wrote it, nor without who read it.
func (s *shrinker) rank(u unit) int {
	if s.writesAt(u) {
		return 1
	}
	return 0
}

// pick drops as many of the units as it can where most have to stay.
func (s *shrinker) pick(units []unit) {
	Pick(units, func(some []unit) bool { return !s.spent() && s.try(some) })
}

// Pick tries units, in order, of which it is expected that few will do: single ones, and more at a time while they do.
// One that does not must go on not to, whatever else is done.
func Pick[U any](units []U, try func([]U) bool) {
	for n := 1; len(units) > 0; {
		n = min(n, len(units))
		switch {
		case try(units[:n]):
			units, n = units[n:], 2*n
		case n == 1:
			units = units[1:]
		default:
			n = 1
		}
	}
}

func (s *shrinker) keeps(i int) bool { return s.opt.Keep != nil && s.opt.Keep(&s.txns[i]) }

func (s *shrinker) spent() bool { return s.opt.Spent != nil && s.opt.Spent() }

// try drops a chunk for good if the rest is still violated.
func (s *shrinker) try(chunk []unit) bool {
	rest, without := s.apply(chunk)
	if rest == nil {
		return false
	}
	out := s.set(&without)
	if s.known(out) {
		return false
	}
	if !s.violated(rest) {
		s.proper = append(s.proper, out)
		return false
	}
	s.mask = without
	return true
}

// mask says what is left out.
type mask struct {
	dropped []bool // by transaction
	gone    []bool // by operation, see shrinker.first
}

// out tells whether a unit is left out already.
func (s *shrinker) out(m *mask, u unit) bool {
	return m.dropped[u.txn] || u.op >= 0 && m.gone[s.first[u.txn]+u.op]
}

// apply leaves out what is out already and the chunk, with all that must go
// with it. It returns nil if that changes nothing, or takes what is pinned.
func (s *shrinker) apply(chunk []unit) ([]record.Transaction, mask) {
	if chunk != nil && !slices.ContainsFunc(chunk, func(u unit) bool { return !s.out(&s.mask, u) }) {
		return nil, s.mask
	}
	m := mask{dropped: slices.Clone(s.dropped), gone: slices.Clone(s.gone)}
	for _, u := range chunk {
		switch {
		case s.out(&m, u):
		case u.op >= 0:
			s.leaveOut(&m, u)
		default:
			m.dropped[u.txn] = true
			for j := range s.txns[u.txn].Ops {
				s.leaveOut(&m, unit{u.txn, j})
			}
		}
	}
	s.emptied(&m)
	out := make([]record.Transaction, 0, len(s.txns))
	for i := range s.txns {
		gone := m.gone[s.first[i] : s.first[i]+len(s.txns[i].Ops)]
		for j := range gone {
			if s.pinned[i][j] && (m.dropped[i] || gone[j]) {
				return nil, s.mask
			}
		}
		if !s.stays(&m, i) {
			continue
		}
		t := s.txns[i]
		if slices.Contains(gone, true) {
			t.Ops = make([]record.Op, 0, len(gone))
			for j, op := range s.txns[i].Ops {
				if !gone[j] {
					t.Ops = append(t.Ops, op)
				}
			}
		}
		out = append(out, t)
	}
	return out, m
}

// stays tells whether a transaction is left: it is not if all its operations are gone, unless
// it is to be kept.
func (s *shrinker) stays(m *mask, i int) bool {
	if m.dropped[i] {
		return false
	}
	return len(s.txns[i].Ops) == 0 || s.keeps(i) ||
		slices.Contains(m.gone[s.first[i]:s.first[i]+len(s.txns[i].Ops)], false)
}

// leaveOut takes an operation out of m, with all that must go with it.
func (s *shrinker) leaveOut(m *mask, u unit) {
	if m.gone[s.first[u.txn]+u.op] {
		return
	}
	s.drop(m, u)
	writes := s.writesAt(u)
	if op := s.txns[u.txn].Ops[u.op]; !writes &&
		!(s.opt.Undeclared && !s.made[op.Cell()] && PutsBack(&s.txns[u.txn], u.op)) {
		return
	}
	for _, r := range s.dependents(u) {
		s.drop(m, r)
	}
	if !writes {
		return
	}
	for _, o := range s.group(u) {
		s.drop(m, o)
		for _, r := range s.dependents(o) {
			s.drop(m, r)
		}
	}
}

func (s *shrinker) drop(m *mask, u unit) { m.gone[s.first[u.txn]+u.op] = true }

// emptied takes the reads of a list out of m when nothing is left that appends
// to it: without, nobody knows that the key holds a list.
func (s *shrinker) emptied(m *mask) {
	for key, l := range s.lists {
		if !l.pure || slices.ContainsFunc(l.appends, func(u unit) bool { return !s.out(m, u) }) {
			continue
		}
		for _, r := range s.keyed[key] {
			s.drop(m, r)
		}
	}
}

// What is left out only takes constraints away (see the package documentation), so what is no violation
// stays none when more goes, and the judge need not be asked.

// set is a set of places, a bit each: transactions first, then operations.
type set []uint64

func (s set) add(i int) { s[i/64] |= 1 << (i % 64) }

// within tells whether all of s is in o, which is as long.
func (s set) within(o set) bool {
	for i, w := range s {
		if w&^o[i] != 0 {
			return false
		}
	}
	return true
}

// set is what a mask leaves out.
func (s *shrinker) set(m *mask) set {
	out := make(set, (len(m.dropped)+len(m.gone)+63)/64)
	for i := range s.txns {
		gone := !s.stays(m, i)
		if gone {
			out.add(i)
		}
		for j := range s.txns[i].Ops {
			if at := s.first[i] + j; gone || m.gone[at] {
				out.add(len(s.txns) + at)
			}
		}
	}
	return out
}

// known tells whether what a set leaves is no violation, as less was left out of some that is none.
func (s *shrinker) known(out set) bool {
	for i := len(s.proper) - 1; i >= 0; i-- { // the last ones had least left
		if s.proper[i].within(out) {
			return true
		}
	}
	return false
}
