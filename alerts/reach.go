package alerts

import (
	"slices"

	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/alerts/veil"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// reachMax bounds the transactions of evidence that is judged at more levels than the
// one that it proves; of more, the levels are those of the name.
const reachMax = 4096

// reach is how far down the levels an anomaly reaches, whatever was asked for: the
// weakest one that its evidence breaks, and the strongest ones that it does not. That
// is what its name says, unless the evidence shows more: what a strong level's rules
// make of some records may be something simpler to a weak one. One or two judgements
// as a rule, at most two a level.
func reach(n name.Name, p proof, proved bool, ctx Context) (verdict.Level, []verdict.Level) {
	if ctx.Judge == nil || !proved || len(p.txns) > reachMax {
		return n.Weakest, n.Holds()
	}
	judge := func(l verdict.Level) verdict.Outcome { return judgeAs(l, p, ctx) }
	// the first is what was proved
	named := n.Weakest == n.Breaks[0] && !ctx.Clock.Enforces() || judge(n.Weakest) == verdict.Violated
	if holds := n.Holds(); named && !slices.ContainsFunc(holds,
		func(l verdict.Level) bool { return judge(l) != verdict.Satisfied }) {
		return n.Weakest, holds
	}
	var broken, whole []verdict.Level
	for _, l := range name.Ordered() {
		if named && l.Implies(n.Weakest) || slices.ContainsFunc(broken, l.Implies) {
			broken = append(broken, l)
			continue
		}
		switch judge(l) {
		case verdict.Violated:
			broken = append(broken, l)
		case verdict.Satisfied:
			whole = append(whole, l)
		}
	}
	switch {
	case len(broken) == 0:
		return n.Weakest, n.Holds()
	case slices.Contains(broken, n.Weakest) && !n.Weakest.Implies(broken[0]): // neither implies the other
		return n.Weakest, verdict.Maximal(whole)
	}
	return broken[0], verdict.Maximal(whole)
}

// judgeAs judges a proof at a level as that is defined.
func judgeAs(l verdict.Level, p proof, ctx Context) verdict.Outcome {
	return ctx.Judge(l, literal(p.header), p.txns)
}

// literal is a header without enforced clocks, under which si and ser would be read as the
// levels with real time.
func literal(h record.Header) record.Header {
	if h.Clock != nil && *h.Clock == record.ClockEnforce {
		h.Clock = new(record.ClockPrune)
	}
	return h
}

// unless is what keys would have to hold at first for a proof to be none, where that is not declared and may be:
// somebody reads null or 0 of a key, and it is somebody's write. (What nobody writes is taken for what a key held.)
// One or two judgements of such proofs, in the order that the clocks show: a key's first record is as a rule what it
// held then. Where values are hidden nobody is to learn of a 0.
func unless(level verdict.Level, p proof, ctx Context) record.Initial {
	if ctx.Judge == nil || len(p.txns) > reachMax || *p.header.Initial != record.InitialAny {
		return record.InitialAny
	}
	for _, initial := range []record.Initial{record.InitialAbsent, record.InitialZero} {
		value, complete, h := record.Null, record.CoverageComplete, p.header
		if initial == record.InitialZero {
			if value = record.Int(0); ctx.Veil.Mode() != veil.Full {
				break
			}
		}
		h.Initial, h.Coverage, h.UniqueValues = &initial, &complete, nil
		if enforce := record.ClockEnforce; h.Clock != nil && *h.Clock == record.ClockPrune {
			h.Clock = &enforce
		}
		if readsAndWrites(p.txns, value) && ctx.Judge(level, h, p.txns) == verdict.Satisfied {
			return initial
		}
	}
	return record.InitialAny
}

// readsAndWrites tells whether a value is read of a key, and written to it.
func readsAndWrites(txns []record.Transaction, value record.Value) bool {
	read, written := map[string]bool{}, map[string]bool{}
	for i := range txns {
		for _, op := range txns[i].Ops {
			switch {
			case op.Value != value:
			case op.Kind == record.Read:
				read[op.Key] = true
			case op.Kind == record.Write:
				written[op.Key] = true
			}
			if read[op.Key] && written[op.Key] {
				return true
			}
		}
	}
	return false
}

// needsSessions tells whether a proof at a level, as that is defined, needs the order of
// sessions: the reason of a step may be one that is not told.
func needsSessions(level verdict.Level, p proof, ctx Context) bool {
	sessions := map[string]bool{}
	for i := range p.txns {
		sessions[p.txns[i].Session] = true
	}
	if len(sessions) == len(p.txns) || *p.header.Sessions == record.SessionsIgnore {
		return false
	}
	p.header.Sessions = new(record.SessionsIgnore)
	return judgeAs(level, p, ctx) == verdict.Satisfied
}
