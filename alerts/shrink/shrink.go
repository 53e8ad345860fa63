package shrink

import (
	"slices"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// Judge checks a small history at one level: `monitor check`, as a function. It
// must not keep what it is given.
type Judge func(level verdict.Level, header record.Header, txns []record.Transaction) verdict.Outcome

// Options bound the work and protect what the alert is about.
type Options struct {
	// Keep tells which transactions must stay, by their place, so that the
	// evidence goes on to be of this anomaly and not of another one beside it.
	// Their operations may go. nil: none.
	Keep func(i int) bool
	// KeepOp tells which operations must stay. nil: none.
	KeepOp func(i, op int) bool
	// Calls bounds how often the judge is asked, Work how many transactions it
	// is handed in all; 0 means the default.
	Calls, Work int
}

// The defaults: a second or so of an engine that takes a millisecond for a few
// transactions and a second for a hundred thousand.
const (
	CallsDefault = 256
	WorkDefault  = 200_000
)

// Shrink returns the part of txns that it found necessary for violated to go on
// being true, in the same order, and the number of calls it made. It presumes
// that violated(txns) is true and changes nothing in txns.
func Shrink(txns []record.Transaction, violated func([]record.Transaction) bool, opt Options) ([]record.Transaction, int) {
	if opt.Calls == 0 {
		opt.Calls = CallsDefault
	}
	if opt.Work == 0 {
		opt.Work = WorkDefault
	}
	s := &shrinker{txns: txns, violated: violated, opt: opt}
	ops := 0
	for i := range txns {
		s.first = append(s.first, ops)
		ops += len(txns[i].Ops)
	}
	s.mask = mask{dropped: make([]bool, len(txns)), gone: make([]bool, ops)}
	s.index()
	s.pin()

	var whole, single []unit
	for i := range txns {
		keep := opt.Keep != nil && opt.Keep(i)
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
	s.reduce(whole)
	s.reduce(single)
	out, _ := s.apply(nil)
	return out, s.calls
}

// unit is what goes or stays: an operation, or with op -1 a transaction.
type unit struct{ txn, op int }

// shrinker is the state of one Shrink. Invariant: what is left after dropped
// and gone is violated, and every read left has all its possible writers left.
type shrinker struct {
	txns     []record.Transaction
	violated func([]record.Transaction) bool
	opt      Options
	calls    int
	work     int // transactions handed to violated

	mask
	first  []int    // by transaction, the place of its first operation in mask.gone
	pinned [][]bool // operations that must stay; they are never gone

	readers map[version][]unit // reads that returned a value
	lists   map[string]bool    // keys that are appended to
	keyed   map[string][]unit  // all reads of these keys
	rows    bool               // there are predicate reads: no write may go alone
}

// version is a value of a key.
type version struct {
	key   string
	value record.Value
}

func (s *shrinker) index() {
	s.readers = map[version][]unit{}
	s.lists = map[string]bool{}
	s.keyed = map[string][]unit{}
	for i := range s.txns {
		for j, op := range s.txns[i].Ops {
			u := unit{txn: i, op: j}
			switch op.Kind {
			case record.Read:
				v := version{op.Key, op.Value}
				s.readers[v] = append(s.readers[v], u)
				s.keyed[op.Key] = append(s.keyed[op.Key], u)
			case record.Append:
				s.lists[op.Key] = true
			case record.PredicateRead:
				s.rows = true
			}
		}
	}
}

// pin finds what must stay: the operations that are protected, the possible
// writers of protected reads, and everything that a predicate may have seen.
func (s *shrinker) pin() {
	s.pinned = make([][]bool, len(s.txns))
	versions, keys := map[version]bool{}, map[string]bool{}
	for i := range s.txns {
		s.pinned[i] = make([]bool, len(s.txns[i].Ops))
		for j, op := range s.txns[i].Ops {
			s.pinned[i][j] = s.opt.KeepOp != nil && s.opt.KeepOp(i, j)
			if s.pinned[i][j] && op.Kind == record.Read {
				versions[version{op.Key, op.Value}] = true
				keys[op.Key] = keys[op.Key] || s.lists[op.Key]
			}
		}
	}
	for i := range s.txns {
		for j, op := range s.txns[i].Ops {
			switch op.Kind {
			case record.Write, record.Append:
				s.pinned[i][j] = s.pinned[i][j] || s.rows || keys[op.Key] || versions[version{op.Key, op.Value}]
			case record.PredicateWrite:
				s.pinned[i][j] = true // what it wrote is not known by itself
			}
		}
	}
}

// reduce drops as many of the units as it can: all of them, halves, quarters, …
// single ones, and single ones again until none can go.
func (s *shrinker) reduce(units []unit) {
	for size := len(units); size > 0; {
		progress := false
		for from := 0; from < len(units); {
			if s.calls >= s.opt.Calls || s.work >= s.opt.Work {
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

// try drops a chunk for good if the rest is still violated.
func (s *shrinker) try(chunk []unit) bool {
	rest, without := s.apply(chunk)
	if rest == nil {
		return false
	}
	s.calls++
	s.work += len(rest)
	if !s.violated(rest) {
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
// with it. It returns nil if that changes nothing.
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
	var out []record.Transaction
	for i := range s.txns {
		if m.dropped[i] {
			continue
		}
		t := s.txns[i]
		t.Ops = nil
		for j, op := range s.txns[i].Ops {
			if !m.gone[s.first[i]+j] {
				t.Ops = append(t.Ops, op)
			}
		}
		if len(t.Ops) == 0 && len(s.txns[i].Ops) > 0 && (s.opt.Keep == nil || !s.opt.Keep(i)) {
			continue
		}
		out = append(out, t)
	}
	return out, m
}

// leaveOut takes an operation out of m, and every read that may have come from
// it. None of these is pinned, as the operation is not.
func (s *shrinker) leaveOut(m *mask, u unit) {
	m.gone[s.first[u.txn]+u.op] = true
	op := s.txns[u.txn].Ops[u.op]
	var readers []unit
	switch {
	case op.Kind == record.Read || op.Kind == record.PredicateRead:
	case s.lists[op.Key]:
		readers = s.keyed[op.Key]
	default:
		readers = s.readers[version{op.Key, op.Value}]
	}
	for _, r := range readers {
		m.gone[s.first[r.txn]+r.op] = true
	}
}
