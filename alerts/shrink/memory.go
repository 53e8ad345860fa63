package shrink

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
