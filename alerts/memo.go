package alerts

import (
	"slices"

	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/alerts/shrink"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
)

// While one alert is made the same few records are looked up again and again, and the same
// histories judged again: shrinking leaves out in several passes, and its result is judged
// at the levels around the one that it was shrunk for. What was found is remembered until
// the alert is made. Neither changes meanwhile, so that nothing else comes out.

// memoMax bounds the transactions of a history whose judgement is remembered: of more, to
// remember costs more than it saves.
const memoMax = 64

// remembering is a context whose lookups and judgements are remembered.
func (c Context) remembering() Context {
	if c.Lookup != nil {
		c.Lookup = Remembered(c.Lookup)
	}
	if c.Judge != nil {
		c.Judge = judgedOnce(c.Judge)
	}
	return c
}

// Remembered looks each record up once, as long as the same are there.
func Remembered(find name.Lookup) name.Lookup {
	type found struct {
		t  *record.Transaction
		ok bool
	}
	known := map[verdict.TxnID]found{}
	return func(id verdict.TxnID) (*record.Transaction, bool) {
		f, ok := known[id]
		if !ok {
			f.t, f.ok = find(id)
			known[id] = f
		}
		return f.t, f.ok
	}
}

// judgedOnce is a judge that is asked once about each small history, and not at all where it
// follows from what it said of another level. What it does not know it is asked again: it may
// have been stopped.
func judgedOnce(judge shrink.Judge) shrink.Judge {
	known := map[string]outcomes{}
	var key []byte
	return func(level verdict.Level, h record.Header, txns []record.Transaction) verdict.Outcome {
		if len(txns) > memoMax {
			return judge(level, h, txns)
		}
		key = codec.AppendHeader(key[:0], &h)
		for i := range txns {
			key = codec.AppendJSON(append(key, '\n'), &txns[i])
		}
		before := known[string(key)]
		if o := before.of(level, h); o != verdict.Unknown {
			return o
		}
		o := judge(level, h, txns)
		if o != verdict.Unknown {
			known[string(key)] = append(before, outcome{level, o})
		}
		return o
	}
}

// outcomes are what a history was found to be at some levels.
type outcomes []outcome

type outcome struct {
	level verdict.Level
	what  verdict.Outcome
}

// of is the outcome at a level: what it was found to be, or what follows from that, as what
// keeps a level keeps those that it implies. unknown if neither.
func (os outcomes) of(level verdict.Level, h record.Header) verdict.Outcome {
	// Where there are no clocks, nothing is said of levels with real time.
	timeless := h.Clock != nil && *h.Clock == record.ClockIgnore && level.RealTime()
	for _, o := range os {
		switch {
		case o.level == level:
			return o.what
		case timeless:
		case o.what == verdict.Satisfied && o.level.Implies(level), o.what == verdict.Violated && level.Implies(o.level):
			return o.what
		}
	}
	return verdict.Unknown
}

// leaving is a judge that says of levels that are left open only what follows from the others.
func leaving(open []verdict.Level, judge shrink.Judge) shrink.Judge {
	return func(level verdict.Level, h record.Header, txns []record.Transaction) verdict.Outcome {
		if !slices.Contains(open, level) {
			return judge(level, h, txns)
		}
		for _, l := range name.Ordered() {
			if level.Implies(l) && !slices.Contains(open, l) && judge(l, h, txns) == verdict.Violated {
				return verdict.Violated
			}
		}
		return verdict.Unknown
	}
}
