package oracle

import (
	"slices"

	"github.com/isowatch/isowatch/ingest/record"
)

// A set of transactions or keys, by index.
type set uint64

func (s set) has(i int) bool { return s&(1<<i) != 0 }
func (s set) with(i int) set { return s | 1<<i }

// partialOf tells whether somebody unseen may have written a key.
func (h *history) partialOf(key string) bool {
	if c, named := h.opt.Tables.Of(key); named {
		return c == record.CoveragePartial
	}
	return h.opt.Coverage == record.CoveragePartial
}

// initialOf is what is known of what a key holds at first.
func (h *history) initialOf(key string) record.Initial {
	if c, named := h.opt.Tables.Of(key); named && c == record.CoverageComplete {
		return record.InitialAbsent
	}
	return h.opt.Initial
}

// unseenDuplicates: with partial coverage, an unseen transaction may write (or append) what a seen one writes to the
// same key, too.
func (h *history) unseenDuplicates() bool { return h.opt.UnseenUnique != nil && !*h.opt.UnseenUnique }

// history is what was recorded, prepared for the searches.
type history struct {
	txns []record.Transaction
	opt  record.Assumptions

	keys     map[string]int // key -> its place in a state
	appended set            // lists: keys that somebody appends to, and those of empties
	grows    set            // keys that somebody appends to
	empties  []set          // per transaction, keys that nobody changes, and of which it reads an empty list
	writes   []set          // per transaction, the keys it writes or appends to
	touches  []set          // per transaction, all its keys

	partly map[string]bool // rows of tables with predicates of which not all writes are known
	// unseen are, per key, the values that were read and that a transaction
	// which was not seen may have written. Empty under complete coverage.
	unseen [][]record.Value
	// grown are, per list, what it may have become by appends of transactions
	// that were not seen: the states before each such element of a list that was
	// read, and after. Empty under complete coverage.
	grown [][]growth
}

// growth is a list that becomes another one by an unseen append.
type growth struct{ from, to record.Value }

func newHistory(txns []record.Transaction, opt record.Assumptions) *history {
	h := &history{txns: txns, opt: opt, keys: map[string]int{}, partly: map[string]bool{}}
	h.writes = make([]set, len(txns))
	h.touches = make([]set, len(txns))
	for i := range txns {
		for _, op := range txns[i].Ops {
			for _, key := range named(&op) {
				k, known := h.keys[key]
				if !known {
					k = len(h.keys)
					h.keys[key] = k
				}
				h.touches[i] = h.touches[i].with(k)
			}
			for _, key := range written(&op) {
				h.writes[i] = h.writes[i].with(h.keys[key])
			}
			if op.Kind == record.Append {
				h.grows = h.grows.with(h.keys[op.Key])
			}
			if isPredicate(&op) && !h.partialOf(op.Key+":") && h.initialOf(op.Key+":") != record.InitialAbsent {
				panic("oracle: predicates are judged under partial coverage, or with no rows at first")
			}
		}
	}
	h.appended = h.grows
	h.findEmpties()
	h.unseen = make([][]record.Value, len(h.keys))
	h.grown = make([][]growth, len(h.keys))
	for i := range txns {
		for _, op := range txns[i].Ops {
			if isPredicate(&op) && h.partialOf(op.Key+":") {
				for _, key := range h.rows(&op) {
					h.touches[i] = h.touches[i].with(h.keys[key])
					h.mayHold(key)
				}
			}
		}
	}
	if opt.Coverage == record.CoveragePartial || opt.Tables.Has(record.CoveragePartial) {
		for i := range txns {
			for _, op := range txns[i].Ops {
				k := h.keys[op.Key]
				switch {
				case op.Kind != record.Read, !h.partialOf(op.Key):
				case h.appended.has(k):
					h.grow(k, op.Key, op.Value)
				case h.mayBeUnseen(op.Key, op.Value) && !slices.Contains(h.unseen[k], op.Value):
					h.unseen[k] = append(h.unseen[k], op.Value)
				}
			}
		}
	}
	return h
}

// overtaken tells whether one of those that have committed wrote what t writes, though the database's log has it later.
func (h *history) overtaken(t int, committed set) bool {
	at := func(t int) int64 {
		if h.txns[t].Status != record.Committed {
			return 0
		}
		return h.txns[t].LSN
	}
	for o := range h.txns {
		if committed.has(o) && at(t) != 0 && at(o) > at(t) && h.writes[o]&h.writes[t] != 0 {
			return true
		}
	}
	return false
}

// findEmpties finds the lists to which nobody appends. With partial coverage somebody
// unseen may have written what is read of them.
func (h *history) findEmpties() {
	h.empties = make([]set, len(h.txns))
	var changed set
	for _, w := range h.writes {
		changed |= w
	}
	for i := range h.txns {
		for _, op := range h.txns[i].Ops {
			if k := h.keys[op.Key]; op.Kind == record.Read && op.Value.Kind == record.KindList && op.Value.Text == "[]" &&
				!changed.has(k) && !h.partialOf(op.Key) {
				h.empties[i] = h.empties[i].with(k)
			}
		}
	}
}

// take has it that all take effect, and no others.
func (h *history) take(all set) {
	h.appended = h.grows
	for i, keys := range h.empties {
		if all.has(i) {
			h.appended |= keys
		}
	}
}

// mayBeUnseen tells whether a transaction that was not seen may have written a value.
func (h *history) mayBeUnseen(key string, v record.Value) bool {
	return h.unseenDuplicates() || !Made(h.txns, key, v) || v.IsNull() && h.partly[key]
}

// grow notes which unseen appends a list that was read shows.
func (h *history) grow(k int, key string, read record.Value) {
	list := record.Null
	for _, e := range elements(read) {
		longer := appended(list, e)
		g := growth{list, longer}
		if (h.unseenDuplicates() || !h.appendedBySomebody(key, e)) && !slices.Contains(h.grown[k], g) {
			h.grown[k] = append(h.grown[k], g)
		}
		list = longer
	}
}

// appendedBySomebody tells whether a transaction, of whatever outcome, appends
// the element to the key.
func (h *history) appendedBySomebody(key string, e record.Value) bool {
	for _, t := range h.txns {
		if slices.Contains(t.Ops, record.Op{Kind: record.Append, Key: key, Value: e}) {
			return true
		}
	}
	return false
}

// Made tells whether a transaction, of whatever outcome, writes that value to that key, be it overwritten at once, and
// had not read it there of others before: who had may have put back what was there.
func Made(txns []record.Transaction, key string, v record.Value) bool {
	for _, t := range txns {
		read, wrote := false, false
		for _, op := range t.Ops {
			switch {
			case op.Kind == record.PredicateWrite && slices.Contains(hits(&op), key) && gave(&op) == v:
				return true
			case op.Key != key:
			case op.Kind == record.Read:
				read = read || !wrote && op.Value == v
			case op.Kind == record.Write && op.Value == v && !read:
				return true
			default:
				wrote = true
			}
		}
	}
	return false
}

// choices are the sets of transactions that may have taken effect: the
// committed ones, with every subset of the unknown ones.
func (h *history) choices() []set {
	var committed set
	var unknown []int
	for i, t := range h.txns {
		switch t.Status {
		case record.Committed:
			committed = committed.with(i)
		case record.Unknown:
			unknown = append(unknown, i)
		}
	}
	var out []set
	for pick := 0; pick < 1<<len(unknown); pick++ {
		s := committed
		for b, i := range unknown {
			if pick&(1<<b) != 0 {
				s = s.with(i)
			}
		}
		out = append(out, s)
	}
	return out
}

// before are, per transaction, those that must have committed before it starts:
// by session order, and by real-time order if that is asked for. atOnce: what starts at its commit comes after what
// committed before that, too.
func (h *history) before(realTime, atOnce bool) []set {
	out := make([]set, len(h.txns))
	for j, s := range h.txns {
		for i, t := range h.txns {
			if i == j || t.Status == record.Unknown {
				continue // an unknown outcome may take effect at any later time
			}
			if h.opt.Sessions == record.SessionsKeep && t.Session == s.Session && i < j {
				out[j] = out[j].with(i)
			}
			if realTime && t.HasTimes && s.HasTimes && t.End+h.opt.MaxSkew < s.Start {
				out[j] = out[j].with(i)
			}
			if atOnce && t.HasTimes && s.HasTimes && s.Status != record.Unknown && t.End < s.End {
				out[j] = out[j].with(i)
			}
		}
	}
	return out
}

// onTime tells whether t's start, or its commit, can be the next event by the database's clock: nothing of the
// others is still to come that was before it.
func (r *interleaver) onTime(t int, commit bool, started, committed set) bool {
	x := &r.txns[t]
	if !r.instants || !x.HasTimes {
		return true
	}
	at := x.Start
	if commit && x.Status == record.Committed {
		at = x.End
	}
	for u := range r.txns {
		y := &r.txns[u]
		switch {
		case u == t || !r.all.has(u) || !y.HasTimes: // of one of unknown outcome only what was before its start is known
		case y.Status == record.Committed && (!started.has(u) && y.Start < at || !committed.has(u) && y.End < at):
			return false
		}
	}
	return true
}
