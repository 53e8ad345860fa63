package alerts

import (
	"slices"

	"github.com/isowatch/isowatch/alerts/name"
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
	named := n.Weakest == n.Breaks[0] && !ctx.Clock.Enforces() || judge(n.Weakest) == verdict.Violated // the first is what was proved
	if holds := n.Holds(); named && !slices.ContainsFunc(holds, func(l verdict.Level) bool { return judge(l) != verdict.Satisfied }) {
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
		prune := record.ClockPrune
		h.Clock = &prune
	}
	return h
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
	ignore := record.SessionsIgnore
	p.header.Sessions = &ignore
	return judgeAs(level, p, ctx) == verdict.Satisfied
}
