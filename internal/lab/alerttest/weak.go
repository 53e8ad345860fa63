package alerttest

import (
	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/incremental/verdict"
)

// weak are violations as g1, rc, ra, cc, pc and lin find them. An order of writes
// that an axiom asks for has as its reason the reader that would otherwise have
// missed what was visible to it; one that session order and reads give has as its
// reason the way from the one writer to the other.
var weak = []Case{
	{
		Title: "g1: circular information flow", History: "initial zero\ns1 T1: w(x,1) r(y,1)\ns2 T2: r(x,1)\ns2 T3: w(y,1)",
		Kind: verdict.Cycle, Level: verdict.G1, Cycle: "T1 wr(x) T2 so T3 wr(y) T1",
		Want: name.Name{Name: "circular-information-flow", Adya: "G1c-process", Weakest: verdict.G1, Severity: name.Critical},
	},
	{
		Title: "rc: non-monotonic by a session's order", History: "s1 T1: w(x,1)\ns1 T2: w(x,2) w(y,2)\ns2 T3: r(y,2) r(x,1)",
		Kind: verdict.Cycle, Level: verdict.RC, Cycle: "T2 wr(y) T3 rw(x,order: T1 so T2 ww(x,case) T1) T2",
		Want: name.Name{Name: "non-monotonic-read", Adya: "G-single", Weakest: verdict.RC, Severity: name.Critical},
	},
	{
		Title: "rc: a key read three times", History: "s1 T1: w(x,1)\ns2 T2: r(x,1) w(x,2)\ns3 T3: r(x,1) r(x,2) r(x,1) " +
			"r(x,2)",
		Kind: verdict.Cycle, Level: verdict.RC, Cycle: "T2 wr(x) T3 rw(x,order: T1 wr(x) T2 ww(x,case) T1) T2",
		Want: name.Name{Name: "non-monotonic-read", Adya: "G-single", Weakest: verdict.RC, Severity: name.Critical},
	},
	{
		Title: "rc: two readers disagree", History: "s1 T1: w(x,1) w(y,1)\ns2 T2: w(x,2) w(y,2)\ns3 T3: r(x,1) r(y,2)\ns4 " +
			"T4: r(x,2) r(y,1)",
		Kind: verdict.Cycle, Level: verdict.RC,
		Cycle: "T1 ww(y,order: T1 wr(x) T3 rw(y,case) T1) T2 ww(y,order: T2 wr(x) T4 rw(y,case) T2) T1",
		Want:  name.Name{Name: "non-monotonic-read", Adya: "G-single", Weakest: verdict.RC, Severity: name.Critical},
	},
	{
		Title: "rc: no writer can be the one", Kind: verdict.Unsatisfiable, Level: verdict.RC,
		History: "initial zero\ns1 T1: w(x,1) w(y,1)\ns2 T2: w(x,1) w(z,1)\ns3 T3: r(x,1) r(y,0) r(z,0)",
		Cases:   []string{"T1 wr(x,case) T3 rw(y,initial) T1", "T2 wr(x,case) T3 rw(z,initial) T2"},
		Want:    name.Name{Name: "non-monotonic-read", Adya: "G-single", Weakest: verdict.RC, Severity: name.Critical},
	},
	{
		Title: "ra: non-repeatable", History: "s1 T0: w(x,0)\ns1 T1: w(x,1)\ns2 T2: r(x,0) r(x,1)",
		Kind: verdict.NonRepeatableRead, Level: verdict.RA, Txns: "T2 T1", Key: "x", Read: 1,
		Want: name.Name{Name: "non-repeatable-reads", Adya: "internal", Weakest: verdict.RA, Severity: name.Critical},
	},
	{
		Title:   "ra: one key, first the old value and then the new",
		History: "s0 T0: w(x,0)\ns1 T1: r(x,0) w(x,1)\ns2 T2: r(x,0) r(x,1)",
		Kind:    verdict.Cycle, Level: verdict.RA, Cycle: "T1 wr(x) T2 rw(x,order: T0 wr(x) T1 ww(x,case) T0) T1",
		Want: name.Name{Name: "non-repeatable-reads", Adya: "internal", Weakest: verdict.RA, Severity: name.Critical},
	},
	{
		Title: "ra: fractured by a session's order", History: "s1 T1: w(x,1)\ns1 T2: w(x,2) w(y,2)\ns2 T3: r(x,1) r(y,2)",
		Kind: verdict.Cycle, Level: verdict.RA, Cycle: "T2 wr(y) T3 rw(x,order: T1 so T2 ww(x,case) T1) T2",
		Want: name.Name{Name: "fractured-read", Adya: "G-single", Weakest: verdict.RA, Severity: name.Critical},
	},
	{
		Title: "ra: half of each", History: "s1 T1: w(x,1) w(y,1)\ns2 T2: w(x,2) w(y,2)\ns3 T3: r(x,1) r(y,2)",
		Kind: verdict.Cycle, Level: verdict.RA,
		Cycle: "T2 ww(x,order: T2 wr(y) T3 rw(x,case) T2) T1 ww(y,order: T1 wr(x) T3 rw(y,case) T1) T2",
		Want:  name.Name{Name: "fractured-read", Adya: "G-single", Weakest: verdict.RA, Severity: name.Critical},
	},
	{
		Title:   "ra: own writes not seen, by another's read",
		History: "s1 T1: w(x,1)\ns1 T2: r(x,2)\ns2 T3: w(x,2)\ns2 T4: r(x,1)",
		Kind:    verdict.Cycle, Level: verdict.RA,
		Cycle: "T1 ww(x,order: T1 so T2 rw(x,case) T1) T3 ww(x,order: T3 so T4 rw(x,case) T3) T1",
		Want: name.Name{Name: "session-guarantee-violation", Adya: "G-single", Guarantee: "read-your-writes",
			Weakest: verdict.RA, Severity: name.Critical},
	},
	{
		Title: "ra: a session and a half", History: "s1 T1: w(x,1)\ns1 T2: r(x,2)\ns2 T3: w(x,2) w(y,2)\ns3 T4: r(x,1) r(y,2)",
		Kind: verdict.Cycle, Level: verdict.RA,
		Cycle: "T1 ww(x,order: T1 so T2 rw(x,case) T1) T3 ww(x,order: T3 wr(y) T4 rw(x,case) T3) T1",
		Want:  name.Name{Name: "commit-order-cycle", Adya: "G-single", Weakest: verdict.RA, Severity: name.Critical},
	},
	{
		Title: "cc: monotonic reads of two sessions", History: monotonic,
		Kind: verdict.Cycle, Level: verdict.CC,
		Cycle: "T1 ww(x,order: T1 wr(x) T3 so T4 rw(x,case) T1) T2 ww(x,order: T2 wr(x) T5 so T6 rw(x,case) T2) T1",
		Want: name.Name{Name: "causality-violation", Adya: "G-single", Guarantee: "monotonic-reads", Weakest: verdict.CC,
			Severity: name.Critical},
	},
	{
		Title: "cc: monotonic reads of two sessions, as snapshot isolation finds them", History: monotonic,
		Kind: verdict.Cycle, Level: verdict.SI, Cycle: "T2 wr(x) T5 so T6 rw(x,order: T1 wr(x) T3 so T4 rw(x,case) T1) T2",
		Want: name.Name{Name: "causality-violation", Adya: "G-single-process", Guarantee: "monotonic-reads",
			Weakest: verdict.CC, Severity: name.Critical},
	},
	{
		Title: "cc: monotonic writes", History: "initial zero\ns1 T1: w(x,1)\ns1 T2: w(y,1)\ns2 T3: r(y,1) r(x,0)",
		Kind: verdict.Cycle, Level: verdict.CC, Cycle: "T1 so T2 wr(y) T3 rw(x,initial) T1",
		Want: name.Name{Name: "causality-violation", Adya: "G-single-process", Guarantee: "monotonic-writes",
			Weakest: verdict.CC, Severity: name.Critical},
	},
	{
		Title:   "cc: writes follow reads of the session before",
		History: "initial zero\ns1 T1: w(x,1)\ns2 T2: r(x,1)\ns2 T3: w(y,1)\ns3 T4: r(y,1) r(x,0)",
		Kind:    verdict.Cycle, Level: verdict.CC, Cycle: "T1 wr(x) T2 so T3 wr(y) T4 rw(x,initial) T1",
		Want: name.Name{Name: "causality-violation", Adya: "G-single-process", Guarantee: "writes-follow-reads",
			Weakest: verdict.CC, Severity: name.Critical},
	},
	{
		Title:   "cc: a longer way",
		History: "initial zero\ns1 T1: w(x,1)\ns1 T2: w(y,1)\ns2 T3: r(y,1)\ns2 T4: r(x,0)",
		Kind:    verdict.Cycle, Level: verdict.CC, Cycle: "T1 so T2 wr(y) T3 so T4 rw(x,initial) T1",
		Want: name.Name{Name: "causality-violation", Adya: "G-single-process", Weakest: verdict.CC, Severity: name.Critical},
	},
	{
		Title: "pc: long fork", History: "s0 T0: w(x,0) w(y,0)\ns1 T1: r(x,0) w(x,1)\ns2 T2: r(y,0) w(y,1)\ns3 T3: r(x,1) " +
			"r(y,0)\ns4 T4: r(x,0) r(y,1)",
		Kind: verdict.Cycle, Level: verdict.PC, Cycle: "T1 wr(x) T3 rw(y) T2 wr(y) T4 rw(x) T1",
		Want: name.Name{Name: "long-fork", Adya: "G-nonadjacent", Weakest: verdict.PC, Severity: name.Critical},
	},
	{
		Title: "pc: a prefix that is none",
		History: "initial zero\ns1 T1: w(x,1) w(z,1)\ns1 T6: r(z,2)\ns2 T2: w(z,2) w(y,1)\ns3 T3: r(y,1) r(a,0)\ns4 T4: " +
			"w(a,1) w(b,1)\ns5 T5: r(b,1) r(x,0)",
		Kind: verdict.Cycle, Level: verdict.PC,
		Cycle: "T1 ww(z,order: T1 so T6 rw(z,case) T1) T2 wr(y) T3 rw(a,initial) T4 wr(b) T5 rw(x,initial) T1",
		Want:  name.Name{Name: "prefix-violation", Adya: "G-nonadjacent", Weakest: verdict.PC, Severity: name.Critical},
	},
	{
		Title: "lin: stale read", History: "initial zero\ns1 T1: w(x,1) @10-20\ns2 T2: r(x,0) @30-40",
		Kind: verdict.Cycle, Level: verdict.LIN, Cycle: "T1 rt T2 rw(x,initial) T1",
		Want: name.Name{Name: "stale-read", Adya: "G-single-realtime", Weakest: verdict.StrongSI, ClockDependent: true,
			Severity: name.Warning},
	},
	{
		Title: "lin: lost update", History: "initial zero\ns1 T1: r(x,0) w(x,1) @10-20\ns2 T2: r(x,0) w(x,2) @12-22",
		Kind: verdict.Cycle, Level: verdict.LIN, Cycle: "T1 rw(x,initial) T2 rw(x,initial) T1",
		Want: name.Name{Name: "lost-update", Divergence: true, Adya: "G-single", Weakest: verdict.SI,
			Severity: name.Critical},
	},
	{
		Title:   "lin: seen by one and then not by another",
		History: "initial zero\ns1 T1: w(x,1) @10-90\ns2 T2: r(x,1) @20-30\ns3 T3: r(x,0) @40-50",
		Kind:    verdict.Cycle, Level: verdict.LIN, Cycle: "T1 wr(x) T2 rt T3 rw(x,initial) T1",
		Want: name.Name{Name: "stale-read", Adya: "G-single-realtime", Weakest: verdict.StrongSI, ClockDependent: true,
			Severity: name.Warning},
	},
}

const monotonic = "s1 T1: w(x,1)\ns2 T2: w(x,2)\ns3 T3: r(x,1)\ns3 T4: r(x,2)\ns4 T5: r(x,2)\ns4 T6: r(x,1)"
