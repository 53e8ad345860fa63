package certificate

import (
	"fmt"
	"math/bits"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// Where values were written more than once, an order of commits does not say
// which transaction a read is from, and a certificate has to. Where its maker
// did not say it either, a writer is looked for here, by trying. Nothing of this
// is trusted: what is found is written down and held against the axioms with the
// rest.
//
// rc and ra are a matter of each transaction by itself, once the order is given.
// At cc a choice adds to the past of all that follows; those who are in the past
// anyway are tried first, then the latest.

// ambiguity is a read with several possible writers, which stand in a chain of
// the writes of one value.
type ambiguity struct {
	txn, read int32 // read is an index of reads
	last      int32 // the last of them, as an index of writes
	initial   bool  // and the initial state may be one

	// While it is tried:
	next  int32 // the next to try, as an index of writes
	floor int32 // who is visible without it: nobody that commits before will do
	phase phase
	// blame has the ambiguities before, by their places, but for which a writer
	// that was ruled out might have done.
	blame []uint64
}

// phase is which of the possible writers are tried.
type phase uint8

const (
	inPast    phase = iota // those in the past, for cc
	elsewhere              // the others
	atFirst                // the initial state
	tried
)

// Choose finds the writers of the reads that an order of commits leaves open, so
// that ReplayChosen accepts it if it does with any. It may give up on large
// histories in which a great many are open: the time is at worst exponential in
// their number, and bounded. An error is an *Error.
func Choose(level verdict.Level, txns []record.Transaction, order []verdict.Event, opt Options) ([]Choice, error) {
	if KindOf(level) != Commits {
		return nil, nil
	}
	r := newReplay(level, txns, order, opt)
	if err := r.frame(level); err != nil {
		return nil, err
	}
	c := newCommitOrder(r, level)
	c.search = true
	if err := c.resolve(); err != nil {
		return nil, err
	}
	if len(c.open) == 0 {
		return nil, nil
	}
	s := &search{commitOrder: c, level: level, steps: stepsMax + stepsEach*len(order)}
	if err := s.run(); err != nil {
		return nil, err
	}
	out := make([]Choice, len(c.open))
	for i, a := range c.open {
		rd := c.reads[a.read]
		out[i] = Choice{Txn: verdict.TxnID(a.txn), Op: int(rd.op), Writer: verdict.NoTxn}
		if rd.writer != none {
			out[i].Writer = verdict.TxnID(rd.writer)
		}
	}
	return out, nil
}

const (
	stepsMax  = 1 << 20 // writers and transactions that are looked at
	stepsEach = 64      // and for each transaction
	clocksMax = 1 << 26 // entries of clocks at cc
)

// search looks for writers, one ambiguity after the other in the order of
// commits, and goes back to the last when one has none.
type search struct {
	*commitOrder
	level verdict.Level
	steps int // left

	places map[int32]int   // by read, its place in open
	floors map[int32]int32 // for ra: by read, who of its session wrote the key last
	causal *pasts          // for cc
	fault  *Error          // the first, in the words of the axiom that was broken
}

// pasts say, for each transaction, how many of each chain happened before it.
type pasts struct {
	*chains
	clocks []int32         // by transaction, one a chain
	writes [][]chainWrites // by key
	done   int32           // the events before this are known
}

func (s *search) run() *Error {
	s.places = make(map[int32]int, len(s.open))
	for i, a := range s.open {
		s.places[a.read] = i
	}
	switch s.level {
	case verdict.RA:
		s.floors = map[int32]int32{}
		_ = s.sessionReads(func(_ int32, at int, t2 int32) *Error {
			if s.reads[at].writer == undecided {
				s.floors[int32(at)] = t2
			}
			return nil
		})
	case verdict.CC:
		if err := s.prepareCausal(); err != nil {
			return err
		}
	}
	if err := s.enter(0); err != nil {
		return err // before any choice
	}
	for k := 0; k < len(s.open); {
		if s.assign(k) {
			if k++; k < len(s.open) {
				_ = s.enter(k) // no error: assign went as far
			}
			continue
		}
		s.reads[s.open[k].read].writer = undecided
		switch {
		case s.steps <= 0:
			return s.gaveUp(k, "so many values were written several times that it was given up to find out whom each read of them read from")
		case !s.back(&k):
			return s.fault // there is one: of each writer that was tried, or ruled out
		}
	}
	return nil
}

// back goes back from an ambiguity of which no writer will do to the last that is
// to blame for one of them (Prosser, "Hybrid Algorithms for the Constraint
// Satisfaction Problem", 1993); false if there is none.
func (s *search) back(k *int) bool {
	blame := s.open[*k].blame
	last := len(blame) - 1
	for last >= 0 && blame[last] == 0 {
		last--
	}
	if last < 0 {
		return false
	}
	to := last*64 + bits.Len64(blame[last]) - 1
	for ; *k > to; *k-- {
		s.reads[s.open[*k].read].writer = undecided
	}
	for i, set := range blame[:last+1] {
		if i == last {
			set &^= 1 << (to % 64)
		}
		s.open[to].blameAll(i, set)
	}
	return true
}

func (a *ambiguity) blameAll(i int, set uint64) {
	for len(a.blame) <= i {
		a.blame = append(a.blame, 0)
	}
	a.blame[i] |= set
}

// accuse blames those that have part in the axiom that is broken while k is the
// last that is decided: who chose the read's writer, and those through whom the
// other writer is visible.
func (s *search) accuse(k int) {
	b := s.broken
	if s.causal != nil {
		s.accuseReads(k, b.reader, func(rd resolved) bool { return rd == b.read })
		s.accusePath(k, b.reader, b.visible)
		return
	}
	s.accuseReads(k, b.reader, func(rd resolved) bool { return rd == b.read || rd.writer == b.visible })
}

// accuseReads blames those of a transaction's reads that are guilty.
func (s *search) accuseReads(k int, n int32, guilty func(resolved) bool) {
	for at := s.readsAt[n].from; at < s.readsAt[n].to; at++ {
		if i, ok := s.places[int32(at)]; ok && i < k && guilty(s.reads[at]) {
			s.open[k].blameAll(i/64, 1<<(i%64))
		}
	}
}

// step is how a search along a path came to a transaction: from another, by the
// ambiguity at a place, or by what is known (none).
type step struct{ from, by int32 }

// accusePath blames those that make a path from t2 to n, on one that has as few as
// there can be.
func (s *search) accusePath(k int, n, t2 int32) {
	came := map[int32]step{n: {n, none}}
	for level := []int32{n}; len(level) > 0; { // of as many
		var next []step // and to whom
		var to []int32
		for len(level) > 0 {
			m := level[len(level)-1]
			level = level[:len(level)-1]
			s.steps--
			for _, p := range s.causal.before[m] {
				if _, ok := came[p]; !ok && (p == t2 || s.causal.has(p, t2)) {
					came[p] = step{m, none}
					level = append(level, p)
				}
			}
			for at := s.readsAt[m].from; at < s.readsAt[m].to; at++ {
				if i, ok := s.places[int32(at)]; ok && s.reads[at].writer >= 0 {
					next, to = append(next, step{m, int32(i)}), append(to, s.reads[at].writer)
				}
			}
		}
		if _, ok := came[t2]; ok {
			break
		}
		for i, p := range to {
			if _, ok := came[p]; !ok && (p == t2 || s.causal.has(p, t2)) {
				came[p] = next[i]
				level = append(level, p)
			}
		}
	}
	if _, ok := came[t2]; !ok {
		panic(fmt.Sprintf("certificate: transaction %d is in the past of %d, and no path leads there; can't happen, because pasts are made of these edges", t2, n))
	}
	for m := t2; m != n; m = came[m].from {
		if i := int(came[m].by); i >= 0 && i < k {
			s.open[k].blameAll(i/64, 1<<(i%64))
		}
	}
}

// gaveUp is the Error of what may be true.
func (s *search) gaveUp(k int, why string) *Error {
	a := &s.open[k]
	err := s.fail(s.commit[a.txn], int(a.txn), int(s.reads[a.read].op), "%s", why)
	err.GaveUp = true
	return err
}

// enter begins with an ambiguity.
func (s *search) enter(k int) *Error {
	a := &s.open[k]
	a.next, a.phase, a.floor = a.last, elsewhere, none
	clear(a.blame)
	switch s.level {
	case verdict.RA:
		if t2, ok := s.floors[a.read]; ok {
			a.floor = t2
		}
	case verdict.CC:
		a.phase = inPast
		if err := s.advance(s.commit[a.txn]); err != nil {
			return err
		}
		s.past(a.txn)
		a.floor = s.lastInPast(a.txn, s.reads[a.read].key)
	}
	return nil
}

// assign gives an ambiguity the next writer with which no axiom is broken up to
// the next ambiguity.
func (s *search) assign(k int) bool {
	a := &s.open[k]
	if s.causal != nil {
		s.causal.done = min(s.causal.done, s.commit[a.txn])
		s.reads[a.read].writer = undecided
		s.past(a.txn)
	}
	until := int32(len(s.order))
	if k+1 < len(s.open) {
		until = s.commit[s.open[k+1].txn]
	}
	for s.steps > 0 {
		w, ok := s.candidate(k)
		if !ok {
			return false
		}
		s.reads[a.read].writer = w
		if s.fits(a.txn, until) {
			return true
		}
		s.accuse(k)
		if s.causal != nil {
			s.causal.done = s.commit[a.txn]
			s.reads[a.read].writer = undecided
			s.past(a.txn)
		}
	}
	return false
}

// candidate is the next possible writer of an ambiguity.
func (s *search) candidate(k int) (int32, bool) {
	a := &s.open[k]
	for ; a.phase < atFirst; a.phase, a.next = a.phase+1, a.last {
		for a.next != none {
			w := s.writes[a.next]
			s.steps--
			if a.floor != none && s.commit[w.txn] < s.commit[a.floor] {
				s.tooOld(k, w.txn)
				break // and so do the rest
			}
			a.next = w.before
			if s.causal == nil || s.causal.has(a.txn, w.txn) == (a.phase == inPast) {
				return w.txn, true
			}
		}
	}
	if a.phase == atFirst {
		a.phase = tried
		if a.initial && a.floor == none {
			return none, true
		}
		if a.initial {
			s.tooOld(k, none)
		}
	}
	return 0, false
}

// tooOld rules out a writer that commits before the one that is visible anyway.
func (s *search) tooOld(k int, w int32) {
	a := &s.open[k]
	rd := s.reads[a.read]
	rd.writer = w
	err := s.axiom(a.txn, rd, a.floor, "which is visible to it")
	if s.fault == nil {
		s.fault = err
	}
	if s.causal != nil { // else it is for the session alone
		s.accuse(k)
	}
}

// fits tells whether no axiom is broken by transaction n, and at cc by those
// that commit after it up to an event.
func (s *search) fits(n int32, until int32) bool {
	s.steps--
	var err *Error
	switch s.level {
	case verdict.RC:
		err = s.monotonic(n)
	case verdict.RA:
		err = s.atomic(n)
	case verdict.CC:
		s.causal.done = s.commit[n]
		err = s.advance(until)
	}
	if err != nil && s.fault == nil {
		s.fault = err
	}
	return err == nil
}

// prepareCausal finds the chains, as far as they are known, and what each wrote.
func (s *search) prepareCausal() *Error {
	ch := s.cover()
	if len(ch.tail)*len(s.txns) > clocksMax {
		return s.gaveUp(0, "the history is too large to find out whom the reads of values that were written several times read from")
	}
	s.causal = &pasts{chains: ch, clocks: make([]int32, len(ch.tail)*len(s.txns)), writes: make([][]chainWrites, len(s.objects))}
	for _, e := range s.order {
		m := int32(e.Txn)
		for _, w := range s.writesOf(m) {
			noteWrite(&s.causal.writes[w.key], ch.of[m], m)
		}
	}
	return nil
}

func (p *pasts) clock(n int32) []int32 {
	k := len(p.tail)
	return p.clocks[int(n)*k : int(n+1)*k]
}

// has tells whether w is in the past of n.
func (p *pasts) has(n, w int32) bool { return p.pos[w] < p.clock(n)[p.of[w]] }

// past works out the past of a transaction, as far as its writers are decided.
func (s *search) past(n int32) {
	now := s.causal.clock(n)
	clear(now)
	join := func(p int32) {
		for i, before := range s.causal.clock(p) {
			now[i] = max(now[i], before)
		}
		now[s.causal.of[p]] = max(now[s.causal.of[p]], s.causal.pos[p]+1)
	}
	for _, p := range s.causal.before[n] {
		join(p)
	}
	s.forget()
	for _, rd := range s.readsOf(n) {
		if s.meet(rd.writer) {
			join(rd.writer)
		}
	}
}

// advance checks cc of the events from those that are known on, up to one. That
// of the next ambiguity may be checked again as more of its reads are decided.
func (s *search) advance(until int32) *Error {
	for ; s.causal.done <= until && int(s.causal.done) < len(s.order); s.causal.done++ {
		s.steps--
		n := int32(s.order[s.causal.done].Txn)
		s.past(n)
		for _, rd := range s.readsOf(n) {
			if rd.part || rd.writer == undecided {
				continue
			}
			if err := s.axiom(n, rd, s.lastInPast(n, rd.key), "which happened before it"); err != nil {
				return err
			}
		}
	}
	return nil
}

// lastInPast is who wrote a key and commits last, of the past of a transaction,
// or none.
func (s *search) lastInPast(n, key int32) int32 {
	last := int32(none)
	for _, w := range s.causal.writes[key] {
		if t2 := s.causal.lastBefore(w.txns, s.causal.clock(n)[w.chain]); t2 != none && (last == none || s.commit[last] < s.commit[t2]) {
			last = t2
		}
	}
	return last
}
