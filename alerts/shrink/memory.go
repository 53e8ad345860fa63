package shrink

import "github.com/isowatch/isowatch/ingest/record"

// Memory is what one Shrink after another, of the same history, found to be no violation:
// each begins with what the last one returned, and asks the same. What is left out only
// takes constraints away (see the package documentation), so what is no violation stays none
// when more goes, and the judge need not be asked. The zero Memory knows nothing.
type Memory struct {
	// By place in what the last Shrink returned, the places of a transaction and of its
	// operations in the history that the first one got: transactions first, then operations.
	txns, ops []int
	size      int   // how many places there are
	proper    []set // what was left out where the rest is no violation
	cut       bool  // see Cut
}

// Cut tells whether the last Shrink ended before everything was tried, as the judge had had
// as much work as it may: then more may go than went.
func (m *Memory) Cut() bool { return m.cut }

// set is a set of places, a bit each.
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

// begin says which history is made smaller. One that is not what the last Shrink returned
// is another one, of which nothing is known.
func (m *Memory) begin(txns []record.Transaction) {
	m.cut = false
	ops := 0
	for i := range txns {
		ops += len(txns[i].Ops)
	}
	if m.size > 0 && len(m.txns) == len(txns) && len(m.ops) == ops {
		return
	}
	*m = Memory{txns: make([]int, len(txns)), ops: make([]int, ops), size: len(txns) + ops}
	for i := range m.txns {
		m.txns[i] = i
	}
	for i := range m.ops {
		m.ops[i] = len(txns) + i
	}
}

// without are the places of what a mask leaves out, with those that are gone for long.
func (m *Memory) without(s *shrinker, out *mask) set {
	left := make(set, (m.size+63)/64)
	for i := range s.txns {
		if s.stays(out, i) {
			left.add(m.txns[i])
		}
		for j := range s.txns[i].Ops {
			if !s.out(out, unit{i, j}) {
				left.add(m.ops[s.first[i]+j])
			}
		}
	}
	for i := range left {
		left[i] = ^left[i]
	}
	return left
}

// known tells whether what a set leaves is no violation, as less was left out of some that is
// none.
func (m *Memory) known(out set) bool {
	for i := len(m.proper) - 1; i >= 0; i-- { // the last ones had least left
		if m.proper[i].within(out) {
			return true
		}
	}
	return false
}

// end notes what was returned.
func (m *Memory) end(s *shrinker) {
	var txns, ops []int
	for i := range s.txns {
		if s.stays(&s.mask, i) {
			txns = append(txns, m.txns[i])
		}
		for j := range s.txns[i].Ops {
			if !s.out(&s.mask, unit{i, j}) {
				ops = append(ops, m.ops[s.first[i]+j])
			}
		}
	}
	m.txns, m.ops = txns, ops
}
