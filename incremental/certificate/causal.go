package certificate

import (
	"cmp"
	"slices"

	"github.com/isowatch/isowatch/ingest/record"
)

// chainsAtOnce is how many chains a pass of causal looks at; its clocks take so
// many times 4 bytes for each transaction.
const chainsAtOnce = 16

// chains covers happens-before, which is session order and read-from, by total
// orders: sessions mostly.
type chains struct {
	of, pos []int32   // by transaction: its chain and its place there
	tail    []int32   // by chain: its last transaction
	before  [][]int32 // by transaction: its immediate predecessors
}

// causal checks cc: visible is whatever a path of session order and read-from
// leads to the reader from. Walking along the order of commits, it knows for
// each transaction how much of each chain happened before it, a few chains at a
// time. O(n·k) time for k chains.
func (c *commitOrder) causal() *Error {
	ch := c.cover()
	for from := 0; from < len(ch.tail); from += chainsAtOnce {
		if err := c.causalPass(ch, int32(from)); err != nil {
			return err
		}
	}
	return nil
}

// cover finds the immediate predecessors of each transaction and a chain for it:
// its session's if it follows the last of that, else one of those that it read
// from if that is the last of its chain, else a new one.
func (c *commitOrder) cover() *chains {
	n := len(c.txns)
	ch := &chains{of: make([]int32, n), pos: make([]int32, n), before: make([][]int32, n)}
	if c.opt.Sessions == record.SessionsKeep {
		for _, members := range c.bySession() {
			last := int32(none)
			for _, m := range members {
				if last != none {
					ch.before[m] = append(ch.before[m], last)
				}
				if c.txns[m].Status != record.Unknown {
					last = m
				}
			}
		}
	}
	for _, e := range c.order {
		m := int32(e.Txn)
		c.nextRound()
		for _, rd := range c.readsOf(m) {
			if c.noteSource(rd.writer) {
				ch.before[m] = append(ch.before[m], rd.writer)
			}
		}
		ch.put(m)
	}
	return ch
}

// put gives a transaction, whose predecessors have theirs, its chain.
func (ch *chains) put(m int32) {
	for _, p := range ch.before[m] {
		if ch.tail[ch.of[p]] == p {
			ch.of[m], ch.pos[m] = ch.of[p], ch.pos[p]+1
			ch.tail[ch.of[p]] = m
			return
		}
	}
	ch.of[m] = int32(len(ch.tail))
	ch.tail = append(ch.tail, m)
}

// clock says of chainsAtOnce chains how many of their first transactions
// happened before one.
type clock [chainsAtOnce]int32

// chainWrites are the transactions of a chain that wrote some key, in order.
type chainWrites struct {
	chain int32
	txns  []int32
}

// causalPass is causal for the chains from, from+1, ….
func (c *commitOrder) causalPass(ch *chains, from int32) *Error {
	clocks := make([]clock, len(c.txns))
	writes := make([][]chainWrites, len(c.objects)) // by key
	for _, e := range c.order {
		m := int32(e.Txn)
		now := &clocks[m]
		for _, p := range ch.before[m] {
			for i, n := range clocks[p] {
				now[i] = max(now[i], n)
			}
			if i := ch.of[p] - from; i >= 0 && i < chainsAtOnce {
				now[i] = max(now[i], ch.pos[p]+1)
			}
		}
		for _, rd := range c.readsOf(m) {
			for _, w := range writes[rd.key] {
				t2 := ch.lastBefore(w.txns, now[w.chain])
				if err := c.axiom(m, rd, t2, "which happened before it"); err != nil {
					return err
				}
			}
		}
		if i := ch.of[m] - from; i >= 0 && i < chainsAtOnce {
			for _, w := range c.writesOf(m) {
				noteWrite(&writes[w.key], i, m)
			}
		}
	}
	return nil
}

// lastBefore is the last of some transactions of one chain that are among its
// first n, or none.
func (ch *chains) lastBefore(txns []int32, n int32) int32 {
	if n == 0 {
		return none
	}
	at, _ := slices.BinarySearchFunc(txns, n, func(t, n int32) int { return cmp.Compare(ch.pos[t], n) })
	if at == 0 {
		return none
	}
	return txns[at-1]
}

func noteWrite(ws *[]chainWrites, chain, m int32) {
	for i := range *ws {
		if (*ws)[i].chain == chain {
			(*ws)[i].txns = append((*ws)[i].txns, m)
			return
		}
	}
	*ws = append(*ws, chainWrites{chain, []int32{m}})
}
