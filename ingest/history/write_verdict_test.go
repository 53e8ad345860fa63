package history

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/reject"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
	"github.com/isowatch/isowatch/internal/lab/oracle/tiny"
	"github.com/isowatch/isowatch/internal/lab/race"
)

// verdicts are what the engine says of a history, with and without real time, as
// `check` asks it.
func verdicts(h *History) map[verdict.Level]verdict.Outcome {
	opt := incremental.Options{Assumptions: record.Assumptions{UnseenUnique: new(true)}, MaxViolations: 1,
		Levels: []verdict.Level{verdict.SI, verdict.SER, verdict.StrongSI, verdict.SSER}}
	if v := h.Header.Initial; v != nil {
		opt.Initial = *v
	}
	if v := h.Header.Sessions; v != nil {
		opt.Sessions = *v
	}
	if v := h.Header.MaxSkew; v != nil {
		opt.MaxSkew = *v
	}
	if v := h.Header.Coverage; v != nil {
		opt.Coverage = *v
	}
	last := map[string]int64{}
	for i := range h.Transactions {
		t := &h.Transactions[i]
		if seq, ok := last[t.Session]; ok && t.HasSeq && t.Seq > seq+1 {
			opt.Coverage = record.CoveragePartial // a hole in the capture
		}
		last[t.Session] = t.Seq
	}
	e := incremental.New(opt)
	for i := range h.Transactions {
		e.Step(&h.Transactions[i], 0)
	}
	out := map[verdict.Level]verdict.Outcome{}
	for _, r := range e.Close() {
		out[r.Level] = r.Outcome
	}
	return out
}

// scenario draws a tiny history of everything that convert may meet.
func scenario(r *rand.Rand) *History {
	cfg := tiny.Config{Txns: 4, Keys: 2, Ops: 3, Times: true, Duplicates: true, Values: 2, Aborted: true, Unknown: true,
		Mutations: 2, Updates: 40, Appends: r.IntN(3) == 0, Mixed: true, Partial: r.IntN(4) == 0, PartialLists: true}
	if r.IntN(4) == 0 {
		cfg.Ops, cfg.Keys = 1, 1 // operations, not transactions
	}
	s := tiny.Random(r, cfg)
	h := &History{DB: record.DefaultDB, Format: isowatchFormat, Header: s.Header, Transactions: s.Txns}
	if r.IntN(4) == 0 {
		ignore := record.SessionsIgnore
		h.Header.Sessions = &ignore
	}
	if r.IntN(2) == 0 {
		initial := record.InitialAny
		h.Header.Initial = &initial
	}
	if r.IntN(12) == 0 && len(h.Transactions) > 2 {
		i := r.IntN(len(h.Transactions))
		h.Transactions = slices.Delete(h.Transactions, i, i+1) // may leave a hole in seq
	}
	list := func(text string) record.Value { return record.Value{Kind: record.KindList, Text: text} }
	odd := []record.Value{record.Null, record.Int(0), record.Int(1), record.Int(2), record.Int(7), list("[]"), list("[1]"), list("[1,2]"), record.String("v")}
	for range r.IntN(4) {
		t := &h.Transactions[r.IntN(len(h.Transactions))]
		if len(t.Ops) == 0 {
			continue
		}
		op := &t.Ops[r.IntN(len(t.Ops))]
		switch v := odd[r.IntN(len(odd))]; {
		case op.Kind == record.Append && (v.IsNull() || v.Kind == record.KindList):
		case r.IntN(4) == 0:
			for i := range h.Transactions { // one value for another, everywhere
				for j := range h.Transactions[i].Ops {
					if o := &h.Transactions[i].Ops[j]; o != op && o.Key == op.Key && o.Value == op.Value && o.Kind != record.Append {
						o.Value = v
					}
				}
			}
			if op.Kind != record.Append {
				op.Value = v
			}
		default:
			op.Value = v
		}
	}
	return h
}

// simplify makes every transaction what a log of single operations can say.
func simplify(r *rand.Rand, h *History) {
	for i := range h.Transactions {
		t := &h.Transactions[i]
		for j := range t.Ops {
			t.Ops[j].Key = "x"
		}
		if len(t.Ops) >= 2 && t.Ops[0].Kind == record.Read && t.Ops[1].Kind == record.Write && r.IntN(2) == 0 {
			t.Ops = t.Ops[:2]
		} else {
			t.Ops = t.Ops[:min(1, len(t.Ops))]
		}
	}
	h.Transactions = slices.DeleteFunc(h.Transactions, func(t record.Transaction) bool { return len(t.Ops) == 0 })
}

// changed says which verdict is another one in a format, "" if none is, and
// whether the format can say the history at all.
func changed(t testing.TB, h *History, opt WriteOptions) (what string, written bool) {
	t.Helper()
	var b bytes.Buffer
	notes, err := Write(&b, h, opt)
	if err != nil {
		if reject.From(err) == nil {
			t.Fatal(err)
		}
		return "", false
	}
	hs, err := Read("h", bytes.NewReader(b.Bytes()), Options{Format: opt.Format})
	if err != nil {
		return fmt.Sprintf("it can't be read: %v\n%s", err, text(b.Bytes())), true
	}
	timed := !opt.DropTimes && !slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, "times are left out") })
	before, after := verdicts(h), verdicts(&hs[0])
	for _, level := range []verdict.Level{verdict.SI, verdict.SER, verdict.StrongSI, verdict.SSER} {
		if before[level] != after[level] && (timed || level == verdict.SI || level == verdict.SER) {
			return fmt.Sprintf("%v: %v, and %v as\n%s%v", level, before[level], after[level], text(b.Bytes()), notes), true
		}
	}
	return "", true
}

// text is what was written, if a person can read it.
func text(b []byte) string {
	if !utf8.Valid(b) {
		return fmt.Sprintf("%x\n", b)
	}
	return string(b)
}

// shrunk is as small a part of h as still has what of it.
func shrunk(h *History, still func(h *History) bool) *History {
	for {
		smaller := (*History)(nil)
		try := func(change func(txns []record.Transaction) []record.Transaction) {
			if smaller != nil {
				return
			}
			next := *h
			next.Transactions = slices.Clone(h.Transactions)
			for i := range next.Transactions {
				next.Transactions[i].Ops = slices.Clone(next.Transactions[i].Ops)
			}
			if next.Transactions = change(next.Transactions); len(next.Transactions) > 0 && still(&next) {
				smaller = &next
			}
		}
		for i := range h.Transactions {
			try(func(txns []record.Transaction) []record.Transaction { return slices.Delete(txns, i, i+1) })
			for j := range h.Transactions[i].Ops {
				try(func(txns []record.Transaction) []record.Transaction {
					txns[i].Ops = slices.Delete(txns[i].Ops, j, j+1)
					return txns
				})
			}
		}
		if smaller == nil {
			return h
		}
		h = smaller
	}
}

// Whatever is converted is judged as before, at every level, unless a note says
// that times are gone.
func TestWriteKeepsVerdicts(t *testing.T) {
	rounds := uint64(race.Draws(200, 2000))
	const enough = 5 // to look at
	complaints := 0
	written, kinds := map[string]int{}, map[verdict.Outcome]int{}
	for seed := range rounds {
		r := rand.New(rand.NewPCG(seed, 21))
		drawn := scenario(r)
		if r.IntN(4) == 0 {
			if simplify(r, drawn); len(drawn.Transactions) == 0 {
				continue
			}
		}
		for _, format := range WrittenFormats() {
			h, opt := timedFor(drawn, format), WriteOptions{Format: format, DropAborted: r.IntN(2) == 0, DropTimes: r.IntN(6) == 0}
			what, ok := changed(t, h, opt)
			if ok {
				written[format]++
				kinds[verdicts(h)[verdict.SI]]++
			}
			if what == "" {
				continue
			}
			least := shrunk(h, func(h *History) bool {
				what, _ := changed(t, h, opt)
				return what != ""
			})
			what, _ = changed(t, least, opt)
			t.Errorf("seed %d, %+v: the verdict changes\n%s%s", seed, opt, script.Format(script.Script{Header: least.Header, Txns: least.Transactions}), what)
			if complaints++; complaints == enough {
				t.FailNow()
			}
		}
	}
	t.Log(written, kinds)
	for _, format := range WrittenFormats() {
		if written[format] < int(rounds)/100 {
			t.Errorf("%s: only %d were written", format, written[format])
		}
	}
	for _, o := range []verdict.Outcome{verdict.Satisfied, verdict.Violated} {
		if kinds[o] < int(rounds)/2 {
			t.Errorf("only %d histories written are %v", kinds[o], o)
		}
	}
}

// What formats would judge differently: whether each can say it, and, if it can't,
// where the refusal points.
func TestWriteInitial(t *testing.T) {
	jepsen := []string{jepsenEDN, jepsenJSON}
	numbers := []string{polysiFormat, dbcopFormat, dbcopYAMLFormat, dbcopJSONFormat, histFormat}
	for _, c := range []struct {
		name, history string
		formats       []string
		refused       string // "" if it is written
	}{
		{"an empty list that nobody changes", "initial any\ns1 T1: r(x,[])\ns2 T2: r(x,null)", slices.Concat(jepsen, numbers, []string{cobraFormat, porcupineKV}), ""},
		{"a list of no list is a value", "initial any\ns1 T1: r(x,[1,2])\ns2 T2: r(x,[1,2]) w(x,1)", slices.Concat(jepsen, numbers), ""},
		{"nor of absent keys", "initial absent\ns1 T1: r(x,[])", slices.Concat(jepsen, numbers), ""},
		{"nor with times", "initial absent\nclock database\ns1 T1: r(x,[]) @1-2", []string{timekillerList}, ""},
		{"times that are no instants", "initial absent\ns1 T1: r(x,1) @1-2", []string{timekillerKV}, `"T1"`},
		{"instants of a database", "initial absent\nclock database\ns1 T1: r(x,1) @1-2", jepsen, `"T1"`},
		{"an empty list of no list is a value", "initial any\ns1 T1: r(x,[])\ns2 T2: w(x,[])", slices.Concat(numbers, []string{cobraFormat, porcupineKV}), ""},
		{"an empty list is none of absent keys", "initial absent\ns1 T1: r(x,[])\ns2 T2: w(x,1)", numbers, ""},
		{"nor is it nil", "initial absent\ns1 T1: r(x,[])\ns2 T2: w(x,1)", jepsen, "ops[0] of transaction \"T1\""},
		{"an empty list of a list", "initial zero\ns1 T1: r(x,[])\ns2 T2: append(x,1)", jepsen, ""},
		{"zero is none of a list", "initial zero\ns1 T1: r(x,0)\ns2 T2: append(x,1)", jepsen, ""},
		{"two values of one key", "initial any\ns1 T1: r(x,5)\ns2 T2: r(x,6)", slices.Concat(jepsen, numbers), ""},
		{"one of two is nil", "initial any\ns1 T1: r(x,5)\ns2 T2: r(x,null)", jepsen, "ops[0] of transaction \"T2\""},
		{"read from one that read it first", "initial any\nsessions ignore\ns1 T1: r(x,1)\ns2 T2 aborted: r(x,1) w(x,2) w(x,1)", slices.Concat(jepsen, numbers), ""},
		{"the reader alone wrote it", "initial any\ns1 T1: r(x,1) w(y,3)\ns2 T2: r(x,1) w(x,1) r(y,3)\ns3 T3: r(x,1) w(x,2)", slices.Concat(jepsen, numbers, []string{cobraFormat}), "ops[0] of transaction \"T1\""},
		{"nil of an unknown outcome", "initial any\ns1 T1 unknown: r(x,7) w(x,2)\ns2 T2: w(x,1) w(x,0)\ns3 T3: r(x,2)", jepsen, "ops[0] of transaction \"T1\""},
		{"nil of one that nobody read from", "initial any\ns1 T1 unknown: r(x,7) w(x,2)\ns2 T2: w(x,1) w(x,0)\ns3 T3: r(x,0)", jepsen, ""},
		{"two unknown outcomes", "initial any\ns1 T1: r(y,1)\ns1 T2 unknown: r(x,7) w(y,1)\ns2 T3 unknown: r(x,8) w(y,1)", []string{cobraFormat, jepsenEDN}, "ops[0] of transaction \"T3\""},
		{"nil for null and for an empty list", "initial absent\ns1 T1: w(x,null) r(x,[])\ns2 T2: append(x,1)", jepsen, "ops[1] of transaction \"T1\""},
		{"a comparison of no log", "initial zero\ns1 T1: w(x,1)\ns1 T2: r(x;5,null)", []string{porcupineLog}, "ops[0] of transaction \"T2\""},
		{"an unseen writer of null", "initial absent\ncoverage partial\ns1 T1: w(x,1)\ns1 T2: r(x,null)\ns2 T3: w(x,null)", slices.Concat(jepsen, numbers), "ops[0] of transaction \"T2\""},
		{"an unseen writer", "initial any\ncoverage partial\ns1 T1: w(x,1)\ns1 T2: r(x,2) w(x,2)", numbers, "ops[0] of transaction \"T2\""},
		{"an element of a list that is not one", "initial any\ncoverage partial\ns1 T1 aborted: append(x,1)\ns2 T2: r(x,1)", jepsen, "ops[0] of transaction \"T2\""},
	} {
		s, err := script.Parse(c.history)
		if err != nil {
			t.Fatal(err)
		}
		for i := range s.Txns {
			for j := range s.Txns[i].Ops {
				op := &s.Txns[i].Ops[j] // the notation has no blanks in keys
				op.Key = strings.ReplaceAll(op.Key, ";", " = ")
			}
		}
		h := &History{DB: record.DefaultDB, Format: isowatchFormat, Header: s.Header, Transactions: s.Txns}
		for _, format := range c.formats {
			opt := WriteOptions{Format: format, DropAborted: true}
			_, err := Write(&bytes.Buffer{}, h, opt)
			if e := reject.From(err); err != nil && (e == nil || e.Field != c.refused && "of transaction "+c.refused != e.Field) || (err == nil) != (c.refused == "") {
				t.Errorf("%s, %s: want it refused at %q: %v", c.name, format, c.refused, err)
			}
			if what, _ := changed(t, h, opt); what != "" {
				t.Errorf("%s, %s: the verdict changes: %s", c.name, format, what)
			}
		}
	}
}

// A hole in seq is a gap in the capture, and times of a clock that stepped back
// count for nothing: neither can be said elsewhere.
func TestWriteGaps(t *testing.T) {
	in := func(lines ...string) *History {
		hs, err := Read("h", strings.NewReader(strings.Join(lines, "\n")), Options{Format: isowatchFormat})
		if err != nil {
			t.Fatal(err)
		}
		return &hs[0]
	}
	for _, c := range []struct {
		h       *History
		opt     WriteOptions
		refused string
	}{
		{in(`{"session":"a","seq":1,"id":"t1","status":"committed","ops":[["w","x",1]]}`,
			`{"session":"a","seq":3,"id":"t3","status":"committed","ops":[["r","x",2]]}`), WriteOptions{Format: polysiFormat}, `ops[0] of transaction "t3"`},
		{in(`{"session":"a","seq":1,"id":"t1","status":"committed","ops":[["w","x",1]]}`,
			`{"session":"a","seq":3,"id":"t3","status":"committed","ops":[["r","x",1]]}`), WriteOptions{Format: polysiFormat}, ""},
		{in(`{"history":{"sessions":"ignore"}}`, `{"session":"a","seq":1,"id":"t1","start":5,"end":9,"status":"committed","ops":[["w","x",1]]}`,
			`{"session":"a","seq":2,"id":"t2","start":1,"end":2,"status":"committed","ops":[["r","x",1]]}`), WriteOptions{Format: jepsenEDN}, `of transaction "t2"`},
		{in(`{"history":{"sessions":"ignore"}}`, `{"session":"a","seq":1,"id":"t1","start":5,"end":9,"status":"committed","ops":[["w","x",1]]}`,
			`{"session":"a","seq":2,"id":"t2","start":1,"end":2,"status":"committed","ops":[["r","x",1]]}`), WriteOptions{Format: jepsenEDN, DropTimes: true}, ""},
	} {
		_, err := Write(&bytes.Buffer{}, c.h, c.opt)
		if e := reject.From(err); (err == nil) != (c.refused == "") || err != nil && e.Field != c.refused {
			t.Errorf("%+v: want it refused at %q: %v", c.opt, c.refused, err)
		}
		if what, _ := changed(t, c.h, c.opt); what != "" {
			t.Errorf("%+v: the verdict changes: %s", c.opt, what)
		}
	}
}

// A clock that makes times part of all levels is told of.
func TestWriteClock(t *testing.T) {
	h := randomHistory(rand.New(rand.NewPCG(1, 1)))
	h.Transactions = []record.Transaction{{DB: h.DB, Session: "a", ID: "t1", Start: 1, End: 2, HasTimes: true}}
	enforce := record.ClockEnforce
	h.Header = record.Header{Clock: &enforce}
	notes, err := Write(&bytes.Buffer{}, h, WriteOptions{Format: jepsenEDN})
	if want := "clock: enforce is left out"; err != nil || !strings.Contains(strings.Join(notes, "\n"), want) {
		t.Errorf("want a note %q: %v, %v", want, notes, err)
	}
}
