package bench

import (
	"fmt"
	"strconv"

	"github.com/isowatch/isowatch/incremental/verdict"
)

// weakLevels are AWDIT's.
var weakLevels = []string{"rc", "ra", "cc"}

// What AWDIT's artifact says it took, on its authors' machine, for the four histories of
// 8.9 to 9.3 million operations (results/fig8-…-expected.csv). They are the nearest to the
// 8 million of ours.
var awditSeconds = map[string]string{"rc": "6.8 to 7.2 s", "ra": "9.7 to 10.1 s", "cc": "33 to 47 s"}

func awdit(level string) Peer {
	return Peer{"AWDIT " + awditSeconds[level] + " for 9 million operations", "AWDIT's artifact, Figure 8"}
}

// weak is the suite of the levels below si, of mini-transactions and of lin, which
// take no search but for pc.
func weak() Suite {
	s := Suite{Name: "weak", About: "rc, ra, cc, pc, g1 and lin, and mini-transactions: processes of their own, reading " +
		"the file included; online rows in this process"}
	s.Rows = append(s.Rows, cTwitter()...)
	s.Rows = append(s.Rows, bySessions()...)
	s.Rows = append(s.Rows, others()...)
	s.Rows = append(s.Rows, minis()...)
	s.Rows = append(s.Rows, triangles()...)
	s.Rows = append(s.Rows, onlines()...) // last, as they fill this process
	return s
}

// tweets is C-Twitter with so many users that a transaction has 7.6 operations on
// average, as AWDIT's have. Weak levels know no times.
func tweets(level string, n, sessions int) Spec {
	return Spec{Level: level, Workload: "c-twitter", Transactions: n, Keys: n / 240,
		Flags: []string{"--no-times", "--sessions", strconv.Itoa(sessions)}}
}

const (
	twitterMax      = 1 << 20
	twitterSessions = 50
)

// linear is what a fitted exponent must not exceed where time is to be linear: what one
// level of a cache costs more than another is within it.
const linear = 1.15

func cTwitter() []Row {
	var out []Row
	target := Target{Seconds: 4, MB: 1500}
	for _, level := range weakLevels {
		// AWDIT's histories come from databases at a strong level.
		spec := tweets("ser", twitterMax, twitterSessions)
		out = append(out,
			Row{Name: "c-twitter-" + level, Work: "C-Twitter at ser, 1,048,576 transactions, 50 sessions", Level: level,
				Target: target, Peer: awdit(level),
				Expect: satisfied, Measure: beside(spec, level)},
			Row{Name: "c-twitter-growth-" + level, Work: "the same: growth from 131,072 transactions on", Level: level,
				Target: Target{Exponent: linear},
				Peer:   Peer{"", "AWDIT, Figure 9, draws it: linear"}, Expect: satisfied,
				Measure: exponent(several(spec, 4), level, nil)},
			Row{Name: "c-twitter-weak-" + level, Work: "C-Twitter valid at no more than the level, 1,048,576 transactions, 50 " +
				"sessions", Level: level, Target: target,
				Expect: satisfied, Measure: beside(tweets(level, twitterMax, twitterSessions), level)},
			Row{Name: "c-twitter-weak-growth-" + level, Work: "the same: growth from 131,072 transactions on", Level: level,
				Target: Target{Exponent: linear},
				Expect: satisfied, Measure: exponent(several(tweets(level, twitterMax, twitterSessions), 4), level, nil)})
	}
	return out
}

// bySessions is AWDIT's Figure 9, middle.
func bySessions() []Row {
	var out []Row
	var specs []Spec
	sessions := []int{10, 50, 100, 200}
	for _, k := range sessions {
		spec := tweets("cc", 1<<18, k)
		specs = append(specs, spec)
		out = append(out, Row{Name: fmt.Sprintf("sessions-%d-cc", k),
			Work: fmt.Sprintf("C-Twitter at cc, 262,144 transactions, %d sessions", k), Level: "cc",
			Peer: Peer{"", "AWDIT, Figure 9, draws it"}, Expect: satisfied, Measure: beside(spec, "cc")})
	}
	size := func(i int, _ Measured) float64 { return float64(sessions[i]) }
	return append(out, Row{Name: "sessions-growth-cc", Work: "the same: growth with the sessions", Level: "cc",
		Target: Target{Exponent: 1},
		Peer:   Peer{"linear", "AWDIT, Theorem 1.2"}, Expect: satisfied, Measure: exponent(specs, "cc", size)})
}

// manyLevels are those that one stream is promised at once.
var manyLevels = []string{"rc", "ra", "cc", "si", "ser", "sser"}

func others() []Row {
	many := Spec{Level: "sser", Workload: "c-twitter", Transactions: 1 << 17, Keys: (1 << 17) / 240}
	return []Row{
		{Name: "c-twitter-g1", Work: "C-Twitter valid at no more than g1, 1,048,576 transactions, 50 sessions", Level: "g1",
			Target: Target{Seconds: 4, MB: 1500},
			Expect: satisfied, Measure: generated(tweets("g1", twitterMax, twitterSessions), "g1")},
		{Name: "c-twitter-pc", Work: "C-Twitter valid at no more than pc, 131,072 transactions, 50 sessions", Level: "pc",
			Expect: satisfied, Measure: generated(tweets("pc", 1<<17, twitterSessions), "pc")},
		{Name: "general-pc", Work: "transactions of 8 on 10,000 keys, valid at no more than pc, 100,000 transactions, no " +
			"times", Level: "pc",
			Expect: satisfied, Measure: generated(Spec{Level: "pc", Workload: "general", Transactions: 100_000, Keys: 10_000,
				Flags: []string{"--no-times"}}, "pc")},
		{Name: "together", Work: "C-Twitter at sser with times, 131,072 transactions: six levels at once, beside the sum " +
			"of each alone", Level: "rc,ra,cc,si,ser,sser",
			Target: Target{Share: 0.6}, Expect: satisfied, Measure: together(many, manyLevels...)},
	}
}

// minis are MTC's: what no search is needed for.
func minis() []Row {
	var out []Row
	add := func(name, work, workload, history, level string, peer Peer) {
		spec := Spec{Level: history, Workload: workload, Transactions: 1_000_000, Keys: 10_000}
		out = append(out,
			Row{Name: name + "-" + level, Work: work, Level: level, Target: Target{Seconds: 3}, Peer: peer, Expect: satisfied,
				Measure: generated(spec, level)},
			Row{Name: name + "-growth-" + level, Work: "the same: growth from 250,000 transactions on", Level: level,
				Target: Target{Exponent: linear},
				Expect: satisfied, Measure: exponent(several(spec, 3), level, nil)})
	}
	add("mini", "1,000,000 mini-transactions with times, 10,000 keys", "mini", "sser", "ser",
		Peer{"", "MTC, Figure 7, draws it: linear"})
	add("mini", "1,000,000 mini-transactions with times, 10,000 keys", "mini", "sser", "si",
		Peer{"", "MTC, Figure 8, draws it: linear"})
	add("mini", "1,000,000 mini-transactions with times, 10,000 keys", "mini", "sser", "sser",
		Peer{"quadratic", "MTC, section IV"})
	add("lwt", "1,000,000 lightweight transactions, 10,000 keys", "lwt", "lin", "lin",
		Peer{"", "MTC, Figure 9, draws it: linear"})
	return out
}

// triangles are AWDIT's lower bounds, from bipartite graphs with half of their edges.
func triangles() []Row {
	var out []Row
	for _, x := range []struct{ workload, work, level string }{
		{"triangle", "AWDIT 4.1, a session each", "rc"},
		{"triangle", "AWDIT 4.1, a session each", "ra"},
		{"triangle", "AWDIT 4.1, a session each", "cc"},
		{"triangle-ra", "AWDIT 4.2, two sessions", "ra"},
		{"triangle-rc", "AWDIT 4.2, one session", "rc"},
	} {
		var specs []Spec
		for _, nodes := range []int{500, 1000, 2000} {
			specs = append(specs, Spec{Level: x.level, Workload: x.workload, Variables: nodes,
				Flags: []string{"--density", "0.5"}})
		}
		name := x.workload
		if name == "triangle" {
			name = "triangle-alone" // the others begin with "triangle-"
		}
		if name != "triangle-"+x.level {
			name += "-" + x.level
		}
		out = append(out, Row{Name: name, Work: x.work + ": growth with the operations, from 500 nodes to 2,000",
			Level: x.level, Target: Target{Exponent: 1.5},
			Peer: Peer{"at least 1.5, if matrices take cubic time", "AWDIT, Theorems 1.3 to 1.5"}, Expect: satisfied,
			Measure: exponent(specs, x.level, nil)})
	}
	return out
}

// onlines are the engine's throughputs, a level each.
func onlines() []Row {
	var out []Row
	for _, level := range verdict.Levels() {
		spec := Spec{Level: "sser", Workload: "c-twitter", Transactions: 1 << 18, Keys: (1 << 18) / 240}
		work := "C-Twitter with times, 262,144 transactions, 50 sessions, online"
		if level == verdict.LIN {
			spec = Spec{Level: "lin", Workload: "lwt", Transactions: 1 << 18, Keys: 10_000}
			work = "lightweight transactions with times, 262,144 transactions, online"
		}
		out = append(out, Row{Name: "online-" + level.String(), Work: work, Level: level.String(),
			Target: Target{PerSecond: 200_000},
			Expect: satisfied, Measure: online(spec, level)})
	}
	return out
}
