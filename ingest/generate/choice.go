package generate

import (
	"math/rand/v2"

	"github.com/isowatch/isowatch/incremental/verdict"
)

// version is one committed value of a register.
type version struct {
	value   int64 // 0 is the initial value
	step    int64 // at which it was committed, which names its transaction; 0 is the initial state
	session int32
}

// versionsMax is how many versions of a register are kept: the newest ones.
const versionsMax = 8

// replicasMax is how many replicas there are at most; sessions share them.
const replicasMax = 8

// choice is a store that keeps several versions of a register and says which of them a
// read returns, at the levels where that is more than the time of a snapshot. The
// order of commits is the order of steps. With t1 whose version a read returns, t2
// any other transaction that wrote the key, and "visible" as
// the level defines it (see internal/lab/oracle/axioms.go), it holds that
//
//		t2 visible to the read  ⇒  t2 before t1 in the order of commits
//
//	  - g1: nothing is visible; any version will do.
//	  - rc: what the transaction read from so far is visible, so the read returns none that
//	    is older than one of theirs.
//	  - ra: as rc, and the session's writes are visible too. And t1 becomes visible to the earlier
//	    reads, so it has written none of their keys after what they
//	    returned. It can happen that no version is left. Then the transaction begins again, and
//	    reads the newest versions, which always go together.
//	  - cc: a session talks to a replica, which has some of the transactions: with each
//	    all that a path of session order and read-from leads to it from. It returns the newest that
//	    it has. A replica has its own transactions at once, and those of others
//	    when it takes over all that another replica has. If the version that it should return
//	    is not kept any more, it takes over everything, and the transaction begins again.
//
// Time is linear in the number of versions kept, times the number of reads before for
// ra; space is 24 bytes a version.
type choice struct {
	table[[]version]
	level verdict.Level

	// replicas[r][o] is the step up to which replica r has what replica o committed.
	replicas [][]int64

	// Of the transaction that reads:
	session int
	newest  bool // it returns the newest versions
	any     bool // it returns any, where the level lets it
	seen    []seen
}

// seen is a version that the transaction read.
type seen struct {
	key  ref
	step int64
}

// newChoice makes the store; registers is how many of the keys are tabled.
func newChoice(level verdict.Level, sessions, registers int) choice {
	c := choice{level: level, table: table[[]version]{tabled: make([][]version, registers)}}
	if level == verdict.CC {
		n := min(sessions, replicasMax)
		c.replicas = make([][]int64, n)
		for r := range c.replicas {
			c.replicas[r] = make([]int64, n)
		}
	}
	return c
}

// write adds a version. A transaction's last write of a key is the one that counts.
func (c *choice) write(k ref, v version) {
	vs := c.get(k)
	switch n := len(vs); {
	case n == 0:
		vs = append(make([]version, 0, 2), version{session: -1}, v)
	case vs[n-1].step == v.step:
		vs[n-1].value = v.value
		return
	case n == versionsMax:
		copy(vs, vs[1:])
		vs[n-1] = v
		return
	default:
		vs = append(vs, v)
	}
	c.set(k, vs)
}

// begin begins the reads of a transaction. A stale one returns any versions, or is
// at a replica that has heard nothing new.
func (c *choice) begin(session int, stale bool, rng *rand.Rand, now int64) {
	c.session, c.newest, c.any, c.seen = session, false, stale, c.seen[:0]
	if c.level != verdict.CC {
		return
	}
	r := c.replica(session)
	c.replicas[r][r] = now
	if stale {
		return
	}
	o := rng.IntN(len(c.replicas))
	c.replicas[o][o] = now
	for i, step := range c.replicas[o] {
		c.replicas[r][i] = max(c.replicas[r][i], step)
	}
}

// beginNewest begins them again, and returns the newest versions.
func (c *choice) beginNewest(session int, now int64) {
	c.session, c.newest, c.any, c.seen = session, true, false, c.seen[:0]
	if c.level == verdict.CC {
		c.catchUp(session, now)
	}
}

// catchUp lets a session's replica have all that was committed.
func (c *choice) catchUp(session int, now int64) {
	r := c.replica(session)
	for i := range c.replicas[r] {
		c.replicas[r][i] = now
	}
}

func (c *choice) replica(session int) int { return session % len(c.replicas) }

// read returns the value of a version, false if none of those kept will do.
func (c *choice) read(k ref, rng *rand.Rand) (int64, bool) {
	vs := c.get(k)
	if len(vs) == 0 {
		c.seen = append(c.seen, seen{k, 0})
		return 0, true
	}
	i := len(vs) - 1
	switch {
	case c.newest:
	case c.level == verdict.CC:
		i = c.had(vs)
	case c.any:
		i = c.anyOf(vs, rng)
	}
	if i < 0 {
		return 0, false
	}
	if !c.newest && c.level == verdict.RA && !c.goesWithEarlier(vs[i].step) {
		return 0, false
	}
	c.seen = append(c.seen, seen{k, vs[i].step})
	return vs[i].value, true
}

// had is the newest version that the session's replica has, -1 if it is not kept.
func (c *choice) had(vs []version) int {
	has := c.replicas[c.replica(c.session)]
	for i := len(vs) - 1; i >= 0; i-- {
		v := vs[i]
		if v.step == 0 || v.step <= has[c.replica(int(v.session))] {
			return i
		}
	}
	return -1
}

// anyOf draws one of the versions that are not older than what is visible; -1 if none
// of them goes with the earlier reads.
func (c *choice) anyOf(vs []version, rng *rand.Rand) int {
	from := len(vs) - 1
	for from > 0 && !c.visible(vs[from]) {
		from--
	}
	i := from + rng.IntN(len(vs)-from)
	if c.level == verdict.RA {
		for i < len(vs) && !c.goesWithEarlier(vs[i].step) {
			i++
		}
		if i == len(vs) {
			return -1
		}
	}
	return i
}

// visible tells whether the writer of a version is visible to a read of its key.
func (c *choice) visible(v version) bool {
	if c.level == verdict.G1 {
		return false
	}
	for _, s := range c.seen {
		if s.step == v.step {
			return true
		}
	}
	return c.level == verdict.RA && int(v.session) == c.session
}

// goesWithEarlier tells whether the transaction that committed at a step has written none
// of the keys read before, after the version that was read.
func (c *choice) goesWithEarlier(step int64) bool {
	if step == 0 {
		return true
	}
	for _, s := range c.seen {
		if s.step >= step {
			continue
		}
		vs := c.get(s.key)
		for i := len(vs) - 1; i >= 0 && vs[i].step >= step; i-- {
			if vs[i].step == step {
				return false
			}
		}
	}
	return true
}
