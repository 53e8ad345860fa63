package incremental

import (
	"fmt"
	"slices"
	"strings"

	"github.com/isowatch/isowatch/incremental/verdict"
)

// report notes a violation of the level that it carries, and of all that imply
// that.
func (o *output) report(v verdict.Violation) {
	base := v.Level
	if o.witness != nil && breaks(o.witness.level, base) {
		o.witness.found = append(o.witness.found, v)
	}
	if !slices.ContainsFunc(o.opt.Levels, func(l verdict.Level) bool { return breaks(l, base) && o.applies(l) }) {
		return
	}
	if !o.ev.vouch(&v) {
		o.blocked++
		return
	}
	if o.unprovable(&v) {
		return
	}
	o.nShared[base]++
	if o.opt.MaxViolations == 0 || o.nShared[base] <= o.opt.MaxViolations || o.opt.Online {
		o.shared = append(o.shared, v)
	}
	if o.opt.Online {
		v.Level = o.weakestBrokenBy(base)
		o.told = append(o.told, v)
	}
}

// breaks tells whether what is no history of base is none of l. Those of lin are,
// key by key, histories of all levels but for session order.
func breaks(l, base verdict.Level) bool { return l == verdict.LIN || l.Implies(base) }

// applies: lin is not about transactions of several objects.
func (o *output) applies(l verdict.Level) bool { return l != verdict.LIN || !o.h.several }

// weakestBrokenBy is the weakest level asked for of those that what breaks base
// breaks.
func (o *output) weakestBrokenBy(base verdict.Level) verdict.Level {
	w := verdict.LIN
	for _, l := range o.opt.Levels {
		if breaks(l, base) && o.applies(l) && (w == verdict.LIN || w.Implies(l)) {
			w = l
		}
	}
	return w
}

// sharedOf are the reported violations that break l, and whether there are any,
// as not all are kept.
func (o *output) sharedOf(l verdict.Level) (out []verdict.Violation, violated bool) {
	for base, n := range o.nShared {
		violated = violated || n > 0 && breaks(l, base)
	}
	for _, v := range o.shared {
		if breaks(l, v.Level) && (o.opt.MaxViolations == 0 || len(out) < o.opt.MaxViolations || o.opt.Online) {
			v.Level = o.weakestBrokenBy(v.Level)
			out = append(out, v)
		}
	}
	return out, violated
}

// output is what is told: of a violation once, at the weakest level asked for that it breaks.
type output struct {
	opt *Options
	h   *history
	ev  *evidence
	// shared are read anomalies and divergences: what breaks every level that is,
	// or implies, the one they are noted with.
	shared  []verdict.Violation
	nShared map[verdict.Level]int    // by that level
	seen    map[string]bool          // violations of levels with a polygraph
	weakest map[string]verdict.Level // by the transactions of a cycle: the weakest level it was told of; nil if all have one
	told    []verdict.Violation      // since the last Tick
	blocked int                      // findings that were not told, as what they rest on is not known
	// witness is a level that nobody asked for, or nil: where it holds it answers for weak levels whose reads may be
	// of several writers, which takes them a long search. It goes as soon as it does not.
	witness *check
}

// untimed notes, of violations that are told now, whose times are not used.
func (o *output) untimed(vs []verdict.Violation) {
	if o.h.timed == 0 {
		return // nobody's are
	}
	for n := range vs {
		vs[n].Untimed = nil
		for _, id := range vs[n].Evidence {
			if i := o.h.indexOf[id]; i != none && !o.h.txns.At(i).timed {
				vs[n].Untimed = append(vs[n].Untimed, id)
			}
		}
	}
}

// broken tells whether level l, of which so much was found, is known to be violated. In batch what is open is
// not searched for more then: it may be hard, and decides nothing.
func (o *output) broken(l verdict.Level, found []verdict.Violation) bool {
	_, violated := o.sharedOf(l)
	return violated || len(found) > 0
}

// tell records a violation of c's level, once.
func (o *output) tell(c *check, v verdict.Violation) {
	name := c.level.String() + v.Kind.String() + canonical(v)
	if o.seen[name] {
		return
	}
	o.seen[name] = true
	if o.unprovable(&v) {
		return
	}
	c.found = append(c.found, v)
	if o.opt.Online && !o.toldWeaker(c.level, v) {
		o.told = append(o.told, v)
	}
}

// unprovable counts as not checked what rests on a read of a key of which only then somebody came who made it one that
// is not checked: what followed what in a list still holds, say, but there is no evidence of it that says so.
func (o *output) unprovable(v *verdict.Violation) bool {
	rests := func(index ordinal, key string) bool {
		k := o.h.keyNumber(key)
		p := o.h.perKey.At(k)
		read := func(c cellID) bool { return o.h.cells.At(c).key == k }
		return p.appended && !p.isListKey() && slices.ContainsFunc(o.h.external(index), read)
	}
	for _, x := range v.Exhibits {
		if int(x.Txn) >= len(o.h.indexOf) || o.h.indexOf[x.Txn] == none { // at hand, or aborted
			continue
		}
		if slices.ContainsFunc(slices.Concat(x.Reads, x.All),
			func(key string) bool { return rests(o.h.indexOf[x.Txn], key) }) {
			o.blocked++
			return true
		}
	}
	return false
}

// canonical names a violation by its transactions, whatever the order.
func canonical(v verdict.Violation) string {
	ids := slices.Clone(v.Txns)
	slices.Sort(ids)
	return strings.Trim(fmt.Sprint(ids), "[]")
}

// tellWeak records a violation, unless it is unprovable, and tells of it unless a weaker level had it.
func (o *output) tellWeak(c *weakCheck, v verdict.Violation) (violated bool) {
	o.ev.vouch(&v)
	if o.unprovable(&v) {
		return false
	}
	c.found = append(c.found, v)
	if o.opt.Online && !o.toldWeaker(c.level, v) {
		o.told = append(o.told, v)
	}
	return true
}

// toldWeaker tells whether a cycle of the same transactions has been told of at a
// level that l implies.
func (o *output) toldWeaker(l verdict.Level, v verdict.Violation) bool {
	if o.weakest == nil || v.Kind != verdict.Cycle {
		return false
	}
	name := canonical(v)
	was, ok := o.weakest[name]
	if ok && was != l && l.Implies(was) {
		return true
	}
	if !ok || was.Implies(l) {
		o.weakest[name] = l
	}
	return false
}
