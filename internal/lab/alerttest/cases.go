// Package alerttest has violations of every kind, written by hand, for the tests
// of alerts.
package alerttest

import (
	"slices"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
)

// Case is a violation by hand. Its cycle is written as in "T1 wr(x) T2 rw(y)
// T1"; a reason other than the usual one follows the key, and the reason's
// cycle that: "ww(x,order: T2 ww(x) T1 rt T2)"; the cycles of an elimination
// have semicolons between them.
type Case struct {
	Title   string
	History string // in the notation of package script; may be empty
	Kind    verdict.Kind
	Level   verdict.Level // what the engine says
	Txns    string        // for kinds without cycle
	Key     string
	Read    int
	Cycle   string
	Cases   []string
	// Want is its name; without Breaks, which depend on what was asked.
	Want name.Name
}

// Cases has every name that there is: what strong levels find, and what weak ones
// do and linearizability.
var Cases = slices.Concat(strong, weak)

var strong = []Case{
	{
		Title: "thin air", History: "initial zero\ns1 T1: r(x,7)",
		Kind: verdict.ThinAirRead, Level: verdict.SI, Txns: "T1", Key: "x", Read: 0,
		Want: name.Name{Name: "thin-air-read", Weakest: verdict.G1, Severity: name.Critical},
	},
	{
		Title: "aborted", History: "s1 T1 aborted: w(x,1)\ns2 T2: r(x,1)",
		Kind: verdict.AbortedRead, Level: verdict.SI, Txns: "T2 T1", Key: "x", Read: 0,
		Want: name.Name{Name: "aborted-read", Adya: "G1a", Weakest: verdict.G1, Severity: name.Critical},
	},
	{
		Title: "future", History: "initial zero\ns1 T1: r(x,5) w(x,5)",
		Kind: verdict.FutureRead, Level: verdict.SI, Txns: "T1", Key: "x", Read: 0,
		Want: name.Name{Name: "future-read", Adya: "internal", Weakest: verdict.G1, Severity: name.Critical},
	},
	{
		Title: "not my last write", History: "s1 T1: w(x,1) w(x,2) r(x,1)",
		Kind: verdict.NotMyLastWrite, Level: verdict.SI, Txns: "T1", Key: "x", Read: 2,
		Want: name.Name{Name: "not-my-last-write", Adya: "internal", Weakest: verdict.G1, Severity: name.Critical},
	},
	{
		Title: "not my own write", History: "s1 T1: w(x,1)\ns2 T2: w(x,2) r(x,1)",
		Kind: verdict.NotMyOwnWrite, Level: verdict.SI, Txns: "T2 T1", Key: "x", Read: 1,
		Want: name.Name{Name: "not-my-own-write", Adya: "internal", Weakest: verdict.G1, Severity: name.Critical},
	},
	{
		Title: "intermediate", History: "s1 T1: w(x,1) w(x,2)\ns2 T2: r(x,1)",
		Kind: verdict.IntermediateRead, Level: verdict.SI, Txns: "T2 T1", Key: "x", Read: 0,
		Want: name.Name{Name: "intermediate-read", Adya: "G1b", Weakest: verdict.G1, Severity: name.Critical},
	},
	{
		Title: "non-repeatable", History: "initial zero\ns1 T1: w(x,1)\ns2 T2: r(x,0) r(x,1)",
		Kind: verdict.NonRepeatableRead, Level: verdict.SI, Txns: "T2 T1", Key: "x", Read: 1,
		Want: name.Name{Name: "non-repeatable-reads", Adya: "internal", Weakest: verdict.RA, Severity: name.Critical},
	},
	{
		Title: "divergence", History: "s1 T0: w(x,0)\ns1 T1: r(x,0) w(x,1)\ns2 T2: r(x,0) w(x,2)",
		Kind: verdict.Divergence, Level: verdict.SI, Txns: "T1 T2 T0", Key: "x", Read: 0,
		Want: name.Name{Name: "lost-update", Divergence: true, Adya: "G-single", Weakest: verdict.SI,
			Severity: name.Critical},
	},
	{
		Title: "session guarantee", History: "initial zero\ns1 T1: w(x,1)\ns1 T2: r(x,0)",
		Kind: verdict.Cycle, Level: verdict.SI, Cycle: "T1 so T2 rw(x,initial) T1",
		Want: name.Name{Name: "session-guarantee-violation", Adya: "G-single-process", Guarantee: "read-your-writes",
			Weakest: verdict.RA, Severity: name.Critical},
	},
	{
		Title:   "session guarantee, a transaction between",
		History: "initial zero\ns1 T1: w(x,1)\ns1 T3: w(y,1)\ns1 T2: r(x,0)",
		Kind:    verdict.Cycle, Level: verdict.SI, Cycle: "T1 so T3 so T2 rw(x,initial) T1",
		Want: name.Name{Name: "session-guarantee-violation", Adya: "G-single-process", Guarantee: "read-your-writes",
			Weakest: verdict.RA, Severity: name.Critical},
	},
	{
		Title: "non-monotonic", History: "initial zero\ns1 T1: w(x,1) w(y,1)\ns2 T2: r(x,1) r(y,0)",
		Kind: verdict.Cycle, Level: verdict.SI, Cycle: "T1 wr(x) T2 rw(y,initial) T1",
		Want: name.Name{Name: "non-monotonic-read", Adya: "G-single", Weakest: verdict.RC, Severity: name.Critical},
	},
	{
		Title: "non-monotonic on one key", History: "initial zero\ns1 T1: w(x,1)\ns2 T2: r(x,1) r(x,0)",
		Kind: verdict.Cycle, Level: verdict.RC, Cycle: "T1 wr(x) T2 rw(x,initial) T1",
		Want: name.Name{Name: "non-monotonic-read", Adya: "G-single", Weakest: verdict.RC, Severity: name.Critical},
	},
	{
		Title: "fractured", History: "initial zero\ns1 T1: w(x,1) w(y,1)\ns2 T2: r(x,0) r(y,1)",
		Kind: verdict.Cycle, Level: verdict.SI, Cycle: "T2 rw(x,initial) T1 wr(y) T2",
		Want: name.Name{Name: "fractured-read", Adya: "G-single", Weakest: verdict.RA, Severity: name.Critical},
	},
	{
		Title: "fractured, shown by an overwrite", History: "initial zero\ns1 T1: w(x,1) w(y,1)\ns2 T2: r(x,0) r(y,1) w(y,2)",
		Kind: verdict.Cycle, Level: verdict.SI, Cycle: "T1 ww(y,overwrite) T2 rw(x,initial) T1",
		Want: name.Name{Name: "fractured-read", Adya: "G-single", Weakest: verdict.RA, Severity: name.Critical},
	},
	{
		Title: "phantom", History: "initial absent\ns1 T1: w(t:1 where v>0,true) w(y,1)\ns2 T2: r(t:1 where v>0,null) r(y,1)",
		Kind: verdict.Cycle, Level: verdict.SI, Cycle: "T2 rw(t:1 where v>0,initial) T1 wr(y) T2",
		Want: name.Name{Name: "phantom", Item: "fractured-read", Phantom: true, Adya: "G-single", Weakest: verdict.RA,
			Severity: name.Critical},
	},
	{
		Title:   "phantom, seen by another condition",
		History: "initial absent\ns1 T1: w(t:1 where v>0,true) w(t:1 where v>1,true)\ns2 T2: r(t:1 where v>0,null) r(t:1 where v>1,true)",
		Kind:    verdict.Cycle, Level: verdict.SI, Cycle: "T2 rw(t:1 where v>0,initial) T1 wr(t:1 where v>1) T2",
		Want: name.Name{Name: "phantom", Item: "fractured-read", Phantom: true, Again: true, Adya: "G-single",
			Weakest: verdict.RA, Severity: name.Critical},
	},
	{
		Title: "predicate lost update", History: "initial absent\ns1 T0: w(t:1 where v>0,true)\ns1 T1: r(t:1 where v>0,true) " +
			"w(t:1 where v>0,null)\ns2 T2: r(t:1 where v>0,true) w(t:1 where v>0,null)",
		Kind: verdict.Divergence, Level: verdict.SI, Txns: "T1 T2 T0", Key: "t:1 where v>0", Read: 0,
		Want: name.Name{Name: "predicate-lost-update", Item: "lost-update", Phantom: true, Divergence: true, Adya: "G-single",
			Weakest: verdict.SI, Severity: name.Critical},
	},
	{
		Title: "predicate write skew", History: "initial absent\ns1 T1: r(t:2 where v>0,null) w(t:1 where v>0,true)\n" +
			"s2 T2: r(t:1 where v>0,null) w(t:2 where v>0,true)",
		Kind: verdict.Cycle, Level: verdict.SER, Cycle: "T1 rw(t:2 where v>0,initial) T2 rw(t:1 where v>0,initial) T1",
		Want: name.Name{Name: "predicate-write-skew", Item: "write-skew", Phantom: true, Adya: "G2-item", Weakest: verdict.SER,
			Severity: name.Error},
	},
	{
		Title: "causality", History: "initial zero\ns1 T1: w(post,1)\ns2 T2: r(post,1) w(reply,1)\ns3 T3: r(reply,1) " +
			"r(post,0)",
		Kind: verdict.Cycle, Level: verdict.SI, Cycle: "T1 wr(post) T2 wr(reply) T3 rw(post,initial) T1",
		Want: name.Name{Name: "causality-violation", Adya: "G-single", Guarantee: "writes-follow-reads", Weakest: verdict.CC,
			Severity: name.Critical},
	},
	{
		Title: "causality in a session", History: "initial zero\ns1 T1: w(x,1)\ns2 T2: r(x,1)\ns2 T3: r(x,0)",
		Kind: verdict.Cycle, Level: verdict.SI, Cycle: "T1 wr(x) T2 so T3 rw(x,initial) T1",
		Want: name.Name{Name: "causality-violation", Adya: "G-single-process", Guarantee: "monotonic-reads",
			Weakest: verdict.CC, Severity: name.Critical},
	},
	{
		Title: "long fork", History: "initial zero\ns1 T1: w(x,1)\ns2 T2: w(y,1)\ns3 T3: r(x,1) r(y,0)\ns4 T4: r(x,0) r(y,1)",
		Kind: verdict.Cycle, Level: verdict.SI, Cycle: "T1 wr(x) T3 rw(y,initial) T2 wr(y) T4 rw(x,initial) T1",
		Want: name.Name{Name: "long-fork", Adya: "G-nonadjacent", Weakest: verdict.PC, Severity: name.Critical},
	},
	{
		Title: "lost update", History: "initial zero\ns1 T1: r(x,0) w(x,1)\ns2 T2: r(x,0) w(x,2)\ns2 T3: r(x,2)",
		Kind: verdict.Cycle, Level: verdict.SI, Cycle: "T1 ww(x,order) T2 rw(x,initial) T1",
		Want: name.Name{Name: "lost-update", Divergence: true, Adya: "G-single", Weakest: verdict.SI,
			Severity: name.Critical},
	},
	{
		Title:   "lost update, as serializability finds it",
		History: "initial zero\ns1 T1: r(x,0) w(x,1)\ns2 T2: r(x,0) w(x,2)",
		Kind:    verdict.Cycle, Level: verdict.SER, Cycle: "T1 rw(x,initial) T2 rw(x,initial) T1",
		Want: name.Name{Name: "lost-update", Divergence: true, Adya: "G-single", Weakest: verdict.SI,
			Severity: name.Critical},
	},
	{
		Title:   "a skew whose writers conflict",
		History: "initial zero\ns1 T1: r(x,0) r(y,0) w(x,1) w(z,1)\ns2 T2: r(x,0) r(y,0) w(y,1) w(z,2)",
		Kind:    verdict.Cycle, Level: verdict.SER, Cycle: "T1 rw(y,initial) T2 rw(x,initial) T1",
		Want: name.Name{Name: "lost-update", Adya: "G-single", Weakest: verdict.SI, Severity: name.Critical},
	},
	{
		Title: "write skew", History: "initial zero\ns1 T1: r(x,0) r(y,0) w(x,1)\ns2 T2: r(x,0) r(y,0) w(y,1)",
		Kind: verdict.Cycle, Level: verdict.SER, Cycle: "T1 rw(y,initial) T2 rw(x,initial) T1",
		Want: name.Name{Name: "write-skew", Adya: "G2-item", Weakest: verdict.SER, Severity: name.Error},
	},
	{
		Title: "read-only anomaly", History: "initial zero\ns1 T1: r(x,0) r(y,0) w(x,-11)\ns2 T2: r(y,0) w(y,20)\ns3 T3: " +
			"r(x,0) r(y,20)",
		Kind: verdict.Cycle, Level: verdict.SER, Cycle: "T3 rw(x,initial) T1 rw(y,initial) T2 wr(y) T3",
		Want: name.Name{Name: "read-only-anomaly", Adya: "G2-item", Weakest: verdict.SER, Severity: name.Error},
	},
	{
		Title: "skew of three", History: "initial zero\ns1 T1: r(x,0) w(y,1)\ns2 T2: r(y,0) w(z,1)\ns3 T3: r(z,0) w(x,1)",
		Kind: verdict.Cycle, Level: verdict.SER, Cycle: "T1 rw(x,initial) T3 rw(z,initial) T2 rw(y,initial) T1",
		Want: name.Name{Name: "serialization-cycle", Adya: "G2-item", Weakest: verdict.SER, Severity: name.Error},
	},
	{
		Title: "read skew by a prefix", History: "initial zero\ns1 T1: w(x,1) w(z,1)\ns1 T4: r(z,2)\ns2 T2: w(z,2) " +
			"w(y,1)\ns3 T3: r(y,1) r(x,0)",
		Kind: verdict.Cycle, Level: verdict.SI,
		Cycle: "T1 ww(z,order: T2 ww(z) T1 so T4 rw(z,overwrite) T2) T2 wr(y) T3 rw(x,initial) T1",
		Want:  name.Name{Name: "read-skew", Adya: "G-single", Weakest: verdict.PC, Severity: name.Critical},
	},
	{
		Title:   "concurrent writers of two keys",
		History: "initial zero\ns1 T1: w(x,1) w(y,1)\ns2 T2: r(y,0) w(x,2)\ns1 T3: r(x,2)",
		Kind:    verdict.Cycle, Level: verdict.SI, Cycle: "T1 ww(x,order) T2 rw(y,initial) T1",
		Want: name.Name{Name: "snapshot-cycle", Adya: "G-single", Weakest: verdict.SI, Severity: name.Critical},
	},
	{
		Title: "information flow by an inferred order", Kind: verdict.Cycle, Level: verdict.SI,
		Cycle: "T1 ww(x,order: T2 ww(x,case) T3 wr(y) T4 rw(z) T2) T2 wr(v) T1",
		Want:  name.Name{Name: "snapshot-cycle", Adya: "G-single", Weakest: verdict.SI, Severity: name.Critical},
	},
	{
		Title: "snapshot cycle", Kind: verdict.Cycle, Level: verdict.SI,
		Cycle: "T1 ww(x,case) T2 rw(y) T3 wr(z) T4 rw(v) T1",
		Want:  name.Name{Name: "snapshot-cycle", Adya: "G-nonadjacent", Weakest: verdict.SI, Severity: name.Critical},
	},
	{
		Title: "dirty write", Kind: verdict.Cycle, Level: verdict.SI,
		Cycle: "T1 ww(x,case) T2 ww(y,case) T1",
		Want:  name.Name{Name: "dirty-write", Adya: "G0", Weakest: verdict.RC, Severity: name.Critical},
	},
	{
		Title: "session's writes turned round", Kind: verdict.Cycle, Level: verdict.SI,
		Cycle: "T1 so T2 ww(x,case) T1",
		Want: name.Name{Name: "session-guarantee-violation", Adya: "G0-process", Guarantee: "monotonic-writes",
			Weakest: verdict.RC, Severity: name.Critical},
	},
	{
		Title: "circular information flow", History: "initial zero\ns1 T1: w(x,1) r(y,1)\ns2 T2: w(y,1) r(x,1)",
		Kind: verdict.Cycle, Level: verdict.SI, Cycle: "T1 wr(x) T2 wr(y) T1",
		Want: name.Name{Name: "circular-information-flow", Adya: "G1c", Weakest: verdict.G1, Severity: name.Critical},
	},
	{
		Title: "read from later in the session", History: "initial zero\ns1 T1: r(x,1)\ns1 T2: w(x,1)",
		Kind: verdict.Cycle, Level: verdict.SI, Cycle: "T1 so T2 wr(x) T1",
		Want: name.Name{Name: "circular-information-flow", Adya: "G1c-process", Weakest: verdict.G1, Severity: name.Critical},
	},
	{
		Title: "stale read", History: "initial zero\ns1 T1: w(x,1) @10-20\ns2 T2: r(x,0) @21-30",
		Kind: verdict.Cycle, Level: verdict.StrongSI, Cycle: "T1 rt T2 rw(x,initial) T1",
		Want: name.Name{Name: "stale-read", Adya: "G-single-realtime", Weakest: verdict.StrongSI, ClockDependent: true,
			Severity: name.Warning},
	},
	{
		Title: "read before it was written", History: "initial zero\ns1 T1: r(x,1) @10-20\ns2 T2: w(x,1) @30-40",
		Kind: verdict.Cycle, Level: verdict.StrongSI, Cycle: "T1 rt T2 wr(x) T1",
		Want: name.Name{Name: "real-time-violation", Adya: "G1c-realtime", Weakest: verdict.StrongSI, ClockDependent: true,
			Severity: name.Warning},
	},
	{
		Title:   "real time through two anti-dependencies",
		History: "initial zero\ns1 B: r(z,0) w(b,1) @10-50\ns2 C: w(z,1) @11-20\ns3 A: r(b,0) @30-40",
		Kind:    verdict.Cycle, Level: verdict.SSER, Cycle: "A rw(b,initial) B rw(z,initial) C rt A",
		Want: name.Name{Name: "real-time-violation", Adya: "G2-item-realtime", Weakest: verdict.SSER, ClockDependent: true,
			Severity: name.Warning},
	},
	{
		Title: "a write order by the clock", Kind: verdict.Cycle, Level: verdict.StrongSI,
		Cycle: "T1 ww(x,order: T2 ww(x) T1 rt T2) T2 rw(y) T1",
		Want: name.Name{Name: "real-time-violation", Adya: "G-single-realtime", Weakest: verdict.StrongSI,
			ClockDependent: true, Severity: name.Warning},
	},
	{
		Title: "lost update by a blind write", Kind: verdict.Unsatisfiable, Level: verdict.SI,
		History: "initial zero\ns1 T1: w(x,1)\ns1 T4: r(x,2)\ns1 T5: r(x,3)\ns2 T2: w(x,2)\ns3 T3: r(x,1) w(x,3)",
		Cases:   []string{"T1 so T4 rw(x,case) T1", "T2 ww(x,case) T3 rw(x,overwrite) T2", "T2 wr(x) T4 so T5 rw(x,case) T2"},
		Want:    name.Name{Name: "lost-update", Adya: "G-single-process", Weakest: verdict.SI, Severity: name.Critical},
	},
	{
		Title: "all cases alike", Kind: verdict.Unsatisfiable, Level: verdict.SER,
		Cases: []string{"T1 rw(x,case) T2 rw(y,case) T1", "T2 rw(x,case) T1 rw(y,case) T2"},
		Want:  name.Name{Name: "write-skew", Adya: "G2-item", Weakest: verdict.SER, Severity: name.Error},
	},
	{
		Title: "a case needs the clock", Kind: verdict.Unsatisfiable, Level: verdict.SSER,
		Cases: []string{"T1 rw(x,case) T2 rw(y,case) T1", "T2 rw(x,case) T1 rt T2"},
		Want: name.Name{Name: "real-time-violation", Adya: "G2-item-realtime", Weakest: verdict.SSER, ClockDependent: true,
			Severity: name.Warning},
	},
	{
		Title: "a case that is not told", Kind: verdict.Unsatisfiable, Level: verdict.SI,
		Cases: []string{"", "T1 so T2 wr(x) T1"},
		Want:  name.Name{Name: "snapshot-cycle", Adya: "G1c-process", Weakest: verdict.SI, Severity: name.Critical},
	},
	{
		Title: "incompatible order", History: "initial absent\ns1 T1: append(x,1)\ns2 T2: append(x,2)\ns3 T3: " +
			"r(x,[1,2])\ns4 T4: r(x,[2,1])",
		Kind: verdict.IncompatibleOrder, Level: verdict.SI, Txns: "T3 T4", Key: "x", Read: 0,
		Want: name.Name{Name: "incompatible-order", Adya: "G1a", Weakest: verdict.G1, Severity: name.Critical},
	},
	{
		Title: "duplicate elements", History: "initial absent\ns1 T1: append(x,1)\ns2 T2: append(x,2)\ns3 T3: r(x,[1,2,1])",
		Kind: verdict.DuplicateElements, Level: verdict.SI, Txns: "T3", Key: "x", Read: 0,
		Want: name.Name{Name: "duplicate-elements", Weakest: verdict.G1, Severity: name.Critical},
	},
	{
		Title: "an element out of thin air", History: "initial absent\ns1 T1: append(x,1)\ns2 T2: r(x,[1,7])",
		Kind: verdict.ThinAirRead, Level: verdict.SI, Txns: "T2", Key: "x", Read: 0,
		Want: name.Name{Name: "thin-air-read", Weakest: verdict.G1, Severity: name.Critical},
	},
	{
		Title: "an aborted element", History: "initial absent\ns1 T1 aborted: append(x,1)\ns2 T2: append(x,2)\ns3 T3: " +
			"r(x,[1,2])",
		Kind: verdict.AbortedRead, Level: verdict.SI, Txns: "T3 T1", Key: "x", Read: 0,
		Want: name.Name{Name: "aborted-read", Adya: "G1a", Weakest: verdict.G1, Severity: name.Critical},
	},
	{
		Title: "half of what was appended", History: "initial absent\ns1 T1: append(x,1) append(x,2)\ns2 T2: r(x,[1])",
		Kind: verdict.IntermediateRead, Level: verdict.SI, Txns: "T2 T1", Key: "x", Read: 0,
		Want: name.Name{Name: "intermediate-read", Adya: "G1b", Weakest: verdict.G1, Severity: name.Critical},
	},
	{
		Title: "own element missing", History: "initial absent\ns1 T1: append(x,1) r(x,null)",
		Kind: verdict.NotMyOwnWrite, Level: verdict.SI, Txns: "T1", Key: "x", Read: 1,
		Want: name.Name{Name: "not-my-own-write", Adya: "internal", Weakest: verdict.G1, Severity: name.Critical},
	},
	{
		Title: "an element before it was appended", History: "initial absent\ns1 T1: r(x,[1]) append(x,1)",
		Kind: verdict.FutureRead, Level: verdict.SI, Txns: "T1", Key: "x", Read: 0,
		Want: name.Name{Name: "future-read", Adya: "internal", Weakest: verdict.G1, Severity: name.Critical},
	},
	{
		Title: "a lost append", History: "initial absent\ns1 T0: append(x,5)\ns1 T1: r(x,[5]) append(x,1)\ns2 T2: r(x,[5]) " +
			"append(x,2)",
		Kind: verdict.Divergence, Level: verdict.SI, Txns: "T1 T2", Key: "x", Read: 0,
		Want: name.Name{Name: "lost-update", Divergence: true, Adya: "G-single", Weakest: verdict.SI,
			Severity: name.Critical},
	},
	{
		Title:   "lists that went back in time",
		History: "initial absent\ns1 T1: append(x,1) append(y,1)\ns2 T2: r(x,[1]) r(y,null)",
		Kind:    verdict.Cycle, Level: verdict.SI, Cycle: "T1 wr(x,list) T2 rw(y,list) T1",
		Want: name.Name{Name: "non-monotonic-read", Adya: "G-single", Weakest: verdict.RC, Severity: name.Critical},
	},
	{
		Title:   "a list that grew between two reads",
		History: "initial absent\ns1 T1: append(x,1)\ns2 T2: append(x,2)\ns3 T3: r(x,[1]) r(x,[1,2])",
		Kind:    verdict.NonRepeatableRead, Level: verdict.SI, Txns: "T3", Key: "x", Read: 1,
		Want: name.Name{Name: "non-repeatable-reads", Adya: "internal", Weakest: verdict.RA, Severity: name.Critical},
	},
	{
		Title: "two lists in opposite orders",
		History: "initial absent\ns1 T1: append(x,1) append(y,1)\ns2 T2: append(x,2) append(y,2)\ns3 T3: r(x,[1,2])\ns4 " +
			"T4: r(y,[2,1])",
		Kind: verdict.Cycle, Level: verdict.SI, Cycle: "T1 ww(x,list) T2 ww(y,list) T1",
		Want: name.Name{Name: "dirty-write", Adya: "G0", Weakest: verdict.RC, Severity: name.Critical},
	},
	{
		Title:   "skew of lists",
		History: "initial absent\ns1 T1: r(x,null) r(y,null) append(x,1)\ns2 T2: r(x,null) r(y,null) append(y,1)",
		Kind:    verdict.Cycle, Level: verdict.SER, Cycle: "T1 rw(y,list) T2 rw(x,list) T1",
		Want: name.Name{Name: "write-skew", Adya: "G2-item", Weakest: verdict.SER, Severity: name.Error},
	},
	{
		Title:   "a writer found by elimination",
		History: "initial zero\ns1 T1: w(x,1)\ns2 T2: w(x,1) w(y,1)\ns3 T3: r(x,1) r(y,0)\ns3 T4: r(x,0)",
		Kind:    verdict.Cycle, Level: verdict.SI,
		Cycle: "T1 wr(x,elimination: T2 wr(x,case) T3 rw(y,initial) T2) T3 so T4 rw(x,initial) T1",
		Want:  name.Name{Name: "causality-violation", Adya: "G-single-process", Weakest: verdict.CC, Severity: name.Critical},
	},
	{
		Title: "an elimination that is not told", Kind: verdict.Cycle, Level: verdict.SI,
		Cycle: "T1 wr(x,elimination) T2 rw(y) T1",
		Want:  name.Name{Name: "read-skew", Adya: "G-single", Weakest: verdict.SI, Severity: name.Critical},
	},
	{
		Title: "a writer of unknown outcome", History: "initial zero\ns1 T1 unknown: w(x,1) w(y,1)\ns2 T2: r(x,1) r(y,0)",
		Kind: verdict.Cycle, Level: verdict.SI, Cycle: "T1 wr(x) T2 rw(y,initial) T1",
		Want: name.Name{Name: "non-monotonic-read", Adya: "G-single", Weakest: verdict.RC, Severity: name.Critical},
	},
	{
		Title:   "an unknown outcome that another reader shows",
		History: "initial zero\ns1 T1 unknown: r(x,0) w(x,1)\ns2 T2: r(x,0) w(x,2)\ns3 T3: r(x,1)",
		Kind:    verdict.Divergence, Level: verdict.SI, Txns: "T1 T2", Key: "x", Read: 0,
		Want: name.Name{Name: "lost-update", Divergence: true, Adya: "G-single", Weakest: verdict.SI,
			Severity: name.Critical},
	},
	{
		Title: "no writer can be the one", Kind: verdict.Unsatisfiable, Level: verdict.SI,
		History: "initial zero\ns1 T1: w(x,1) w(y,1)\ns2 T2: w(x,1) w(z,1)\ns3 T3: r(x,1) r(y,0) r(z,0)",
		Cases:   []string{"T1 wr(x,case) T3 rw(y,initial) T1", "T2 wr(x,case) T3 rw(z,initial) T2"},
		Want:    name.Name{Name: "non-monotonic-read", Adya: "G-single", Weakest: verdict.RC, Severity: name.Critical},
	},
	{
		Title: "no writer and no order", Kind: verdict.Unsatisfiable, Level: verdict.SI,
		History: "initial zero\ns1 T1: w(x,1) w(y,1)\ns2 T2: w(x,1) w(z,1)\ns3 T3: r(x,1) r(y,0) r(z,4)\ns4 T4: w(z,4)\ns4 " +
			"T5: r(z,1)",
		Cases: []string{"T1 wr(x,case) T3 rw(y,initial) T1", "T2 wr(x,case) T3 rw(z,case) T2", "T4 so T5 rw(z,case) T4"},
		Want: name.Name{Name: "session-guarantee-violation", Adya: "G-single-process", Weakest: verdict.RA,
			Severity: name.Critical},
	},
	{
		Title: "no writer can be the one, nor one of unknown outcome", Kind: verdict.Unsatisfiable, Level: verdict.SI,
		History: "initial zero\ns1 T1 unknown: w(x,1) w(y,1)\ns2 T2: w(x,1) w(z,1)\ns3 T3: r(x,1) r(y,0) r(z,0)",
		Cases:   []string{"T1 wr(x,case) T3 rw(y,initial) T1", "T2 wr(x,case) T3 rw(z,initial) T2"},
		Want:    name.Name{Name: "non-monotonic-read", Adya: "G-single", Weakest: verdict.RC, Severity: name.Critical},
	},
	{
		Title: "no cases told", Kind: verdict.Unsatisfiable, Level: verdict.SER,
		Want: name.Name{Name: "serialization-cycle", Weakest: verdict.SER, Severity: name.Error},
	},
}

// Load makes the history and the violation of a case. Its evidence is the
// whole history.
func (c Case) Load(t testing.TB) (script.Script, verdict.Violation) {
	t.Helper()
	s, err := script.Parse(c.History)
	if err != nil {
		t.Fatal(err)
	}
	p := NewParser(s.Txns)
	v := verdict.Violation{Kind: c.Kind, Level: c.Level, Key: c.Key, Read: c.Read, ClockDependent: c.Want.ClockDependent}
	if c.Key == "" {
		v.Read = -1
	}
	for _, w := range strings.Fields(c.Txns) {
		v.Txns = append(v.Txns, p.ID(w))
	}
	v.Cycle = p.Cycle(t, c.Cycle)
	for _, text := range c.Cases {
		v.Cases = append(v.Cases, p.Cycle(t, text))
	}
	for _, e := range slices.Concat(append(v.Cases, v.Cycle)...) {
		if !slices.Contains(v.Txns, e.From) {
			v.Txns = append(v.Txns, e.From)
		}
	}
	for i := range s.Txns {
		v.Evidence = append(v.Evidence, verdict.TxnID(i))
	}
	return s, v
}
