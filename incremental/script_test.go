package incremental_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
)

// Histories to be read, with what the engine says about them. The command
//
//	check [levels=(si,ser)] [online] [stats]
//
// where levels may be all, and are the strong ones if not given, prints a line per level and the violations under it, each with its cycles;
// online, it ticks after every transaction. Whatever is printed, the oracle has
// to agree with it, and with all evidence. The command
//
//	judge [levels=(cc,ra)]
//
// prints which of the levels hold and which are broken by the definitions, and
// asks engines, batch and online, whether they say the same of all levels (or that they don't know
// where they need not; see mustDecide). To renew: go test ./incremental -run
// TestScripts -rewrite, and read the difference.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s, err := script.Parse(d.Input)
			switch {
			case err != nil:
				return err.Error() + "\n"
			case d.Cmd == "check":
				return checked(t, d, s)
			case d.Cmd == "judge":
				return judged(t, d, s)
			}
			d.Fatalf(t, "command %q: use check or judge", d.Cmd)
			return ""
		})
	})
}

func checked(t *testing.T, d *datadriven.TestData, s script.Script) string {
	def := record.Assumptions{}.Override(s.Header)
	opt := incremental.Options{Assumptions: record.Assumptions{UnseenUnique: new(true), Initial: def.Initial, Coverage: def.Coverage, Sessions: def.Sessions, Clock: def.Clock, MaxSkew: def.MaxSkew}, Levels: strong, Online: d.HasArg("online"), UniqueValues: true}
	opt.Levels = levelsOf(t, d, strong)
	results, txns := run(s, opt)
	want := definition(txns, opt)
	var b strings.Builder
	for _, r := range results {
		if r.Outcome == verdict.Satisfied && !want.holds(r.Level) || r.Outcome == verdict.Violated && want.holds(r.Level) {
			d.Fatalf(t, "%v: engine says %v, the definition %v", r.Level, r.Outcome, want.holds(r.Level))
		}
		fmt.Fprintf(&b, "%v: %v", r.Level, r.Outcome)
		if r.Outcome == verdict.Unknown {
			fmt.Fprintf(&b, " (%v, %d)", r.Reason, r.Count)
		}
		if d.HasArg("stats") {
			fmt.Fprintf(&b, ", constraints %d, pruned %d, residual %d, conflicts %d", r.Stats.Constraints, r.Stats.Pruned, r.Stats.Residual, r.Stats.Conflicts)
		}
		b.WriteByte('\n')
		for _, v := range r.Violations {
			if ok, why := proves(v, r.Level, txns, opt); !ok {
				d.Fatalf(t, "%v: the evidence proves nothing:\n%s", r.Level, why)
			}
			describe(&b, v, txns)
		}
	}
	return b.String()
}

// levelsOf are the levels that a command names, or these.
func levelsOf(t *testing.T, d *datadriven.TestData, otherwise []verdict.Level) []verdict.Level {
	i := slices.IndexFunc(d.CmdArgs, func(a datadriven.CmdArg) bool { return a.Key == "levels" })
	if i < 0 {
		return otherwise
	}
	var out []verdict.Level
	for _, name := range d.CmdArgs[i].Vals {
		l, ok := verdict.ParseLevel(name)
		if name == "all" {
			return verdict.Levels()
		}
		if !ok {
			d.Fatalf(t, "level %q", name)
		}
		out = append(out, l)
	}
	return out
}

// judged asks the definitions, and engines in every order of arrival that has
// each session in its order, as far as there are few.
func judged(t *testing.T, d *datadriven.TestData, s script.Script) string {
	def := record.Assumptions{}.Override(s.Header)
	st := stream{txns: s.Txns, opt: incremental.Options{Assumptions: record.Assumptions{UnseenUnique: new(true), Initial: def.Initial, Coverage: def.Coverage, Sessions: def.Sessions, Clock: def.Clock, MaxSkew: def.MaxSkew}, Levels: verdict.Levels(), Proof: true}}
	want := definition(st.txns, st.opt)
	arrivals(s.Txns, 30, func(txns []record.Transaction) {
		now := st
		now.txns = txns
		for i := range txns {
			now.end = append(now.end, int64(i))
			now.tick = append(now.tick, noTick)
		}
		for _, online := range []bool{false, true} {
			now.opt.Online = online
			if c := now.examine(newTally()); c != nil {
				t.Errorf("%s: %s: %s\n%v", d.Pos, c.class, c.says, &now)
				return // one complaint is enough for an order
			}
		}
	})
	var b strings.Builder
	for _, holds := range []bool{true, false} {
		line := map[bool]string{true: "holds:", false: "broken:"}[holds]
		any := false
		for _, l := range levelsOf(t, d, strong) {
			if want.applies(l) && want.holds(l) == holds {
				line, any = line+" "+l.String(), true
			}
		}
		if any {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// arrivals calls f with the orders in which transactions may arrive, at most n.
func arrivals(txns []record.Transaction, n int, f func([]record.Transaction)) {
	var order []record.Transaction
	taken := make([]bool, len(txns))
	var next func()
	next = func() {
		if len(order) == len(txns) && n > 0 {
			n--
			f(slices.Clone(order))
		}
		first := map[string]bool{}
		for i, x := range txns {
			if taken[i] || first[x.Session] || n == 0 {
				continue
			}
			first[x.Session], taken[i] = true, true
			order = append(order, x)
			next()
			order, taken[i] = order[:len(order)-1], false
		}
	}
	next()
}

func describe(b *strings.Builder, v verdict.Violation, txns []record.Transaction) {
	fmt.Fprintf(b, "  %v", v.Kind)
	if v.Key != "" {
		fmt.Fprintf(b, " of %s", v.Key)
	}
	b.WriteByte(':')
	if len(v.Cycle) == 0 && len(v.Cases) == 0 {
		for _, id := range v.Txns {
			b.WriteString(" " + txns[id].ID)
		}
	}
	if len(v.Cycle) > 0 {
		b.WriteString(" " + drawn(v.Cycle, txns))
	}
	b.WriteByte('\n')
	for _, e := range v.Cycle {
		if len(e.Because) > 0 {
			fmt.Fprintf(b, "    %v(%s) by %v, or else %s\n", e.Type, e.Key, e.Why, drawn(e.Because, txns))
		}
	}
	for _, c := range v.Cases {
		fmt.Fprintf(b, "    case %s\n", drawn(c, txns))
	}
}

// drawn is a cycle as in T1 -wr(x)-> T2 -rw(y)-> T1.
func drawn(c []verdict.Edge, txns []record.Transaction) string {
	var b strings.Builder
	for _, e := range c {
		name := e.Type.String()
		if e.Key != "" {
			name += "(" + e.Key + ")"
		}
		fmt.Fprintf(&b, "%s -%s-> ", txns[e.From].ID, name)
	}
	return b.String() + txns[c[0].From].ID
}
