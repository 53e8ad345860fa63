package bench

import (
	"fmt"
)

// Where the recordings come from.
const (
	fromPolySI = "github.com/hengxin/PolySI-PVLDB2023-Artifacts, artifact/PolySIHistories, each history.bincode " +
		"renamed to its set and number"
	fromCobra    = "github.com/DBCobra/CobraLogs, one-shot-10k, each directory packed as tar.gz"
	fromRecorded = "BlindW on PostgreSQL at serializable, recorded with the clients' clocks as records of ours"
	fromMany     = "histories of dbcop, Cobra and PolySI's artifacts in which a violation is known"
)

// levels are what each piece of work is judged at.
var levels = []string{"ser", "si"}

// strong is the suite of the levels that are decided by search.
func strong() Suite {
	s := Suite{Name: "strong", About: "ser and si of whole histories: processes of their own, reading the file included"}
	s.Rows = append(s.Rows, recordings()...)
	s.Rows = append(s.Rows, workloads()...)
	s.Rows = append(s.Rows, large()...)
	s.Rows = append(s.Rows, blindW()...)
	s.Rows = append(s.Rows, anomalous()...)
	return s
}

const (
	satisfied = "satisfied"
	violated  = "violated"
	undecided = "unknown"
)

func recordings() []Row {
	var out []Row
	for _, x := range []struct {
		name, work, glob, from string
		target                 Target
		peer                   map[string]Peer
	}{
		{"polysi-fig7", "PolySI's fig7, the worst", "polysi/fig7-*.bincode.gz", fromPolySI, Target{Seconds: 0.1, MB: 60},
			map[string]Peer{"si": {"", "PolySI, Figure 5, draws it"}, "ser": {"", "PolySI checks si alone"}}},
		{"polysi-fig8", "PolySI's fig8_9_10, the worst", "polysi/fig8_9_10-*", fromPolySI, Target{Seconds: 0.1, MB: 60},
			map[string]Peer{"si": {"", "PolySI, Figures 8 to 10, draw it"}, "ser": {"", "PolySI checks si alone"}}},
		{"cobra-10k", "Cobra's logs of 10,000 transactions, the worst", "cobra/one-shot-10k-*", fromCobra,
			Target{Seconds: 0.15},
			map[string]Peer{"ser": {"Cobra 15 s", "VeriStrong 7.2.3"}, "si": {"Viper over 400 s", "VeriStrong 7.2.3"}}},
		{"recorded-blindw-10k", "BlindW of PostgreSQL, 10,000 transactions", "recorded/postgres-ser-blindw-10k.jsonl.gz",
			fromRecorded, Target{Seconds: 0.1, MB: 40},
			map[string]Peer{"ser": {"Vbox 0.31 s, 44 MB", "Vbox, scalability"}}},
		{"recorded-blindw-100k", "BlindW of PostgreSQL, 100,000 transactions", "recorded/postgres-ser-blindw-100k.jsonl.gz",
			fromRecorded, Target{Seconds: 1.2, MB: 200},
			map[string]Peer{"ser": {"Vbox 4.16 s, 417 MB", "Vbox, scalability"}}},
	} {
		for _, level := range levels {
			out = append(out, Row{Name: x.name + "-" + level, Work: x.work, Level: level, Target: x.target, Peer: x.peer[level],
				Measure: worst(recording{glob: x.glob, from: x.from}, level)})
		}
	}
	return out
}

// workload is one of VeriStrong 7.1. A store that gives snapshots refuses some
// transactions, more where more is written, which takes a greater number to
// have 10,000 that committed. What VeriStrong checks has no times.
func workload(name, level string) Spec {
	n := map[string]int{"rh": 10_100, "bl": 12_200, "wh": 14_200, "hd": 12_200}
	if level == "ser" {
		n[name] = 10_000
	}
	return Spec{Level: level, Workload: name, Transactions: n[name], Keys: 5000, Flags: []string{"--no-times"}}
}

func workloads() []Row {
	var out []Row
	for _, name := range []string{"rh", "wh", "bl", "hd"} {
		target := Target{Seconds: 1}
		if name == "hd" {
			target.Seconds = 5
		}
		for _, level := range levels {
			out = append(out, Row{Name: "veristrong-" + name + "-" + level,
				Work: fmt.Sprintf("VeriStrong's %s, 10,000 transactions of 20", name), Level: level,
				Target: target, Peer: Peer{"", "VeriStrong, Figure 13, draws it"}, Expect: satisfied,
				Measure: generated(workload(name, level), level)})
		}
	}
	return out
}

func large() []Row {
	var out []Row
	for _, x := range []struct {
		name, work string
		spec       Spec
		target     Target
		peer       Peer
	}{
		{"large-unique", "100,000 transactions of 20, 50,000 keys, unique values",
			Spec{Workload: "bl", Keys: 50_000, Flags: []string{"--no-times", "--duplicates", "0"}}, Target{Seconds: 5, MB: 1000},
			Peer{"under 5 h, 64 GB", "VeriStrong 7.2.3"}},
		{"large-duplicates", "the same, half of the keys with duplicates",
			Spec{Workload: "bl", Keys: 50_000, Flags: []string{"--no-times"}}, Target{Seconds: 60, MB: 2000},
			Peer{"under 5 h, 64 GB", "VeriStrong 7.2.3"}},
	} {
		for _, level := range levels {
			spec := x.spec
			spec.Level, spec.Transactions = level, map[string]int{"ser": 100_000, "si": 102_500}[level] // so many commit
			out = append(out, Row{Name: x.name + "-" + level, Work: x.work, Level: level, Target: x.target, Peer: x.peer,
				Expect: satisfied, Measure: generated(spec, level)})
		}
	}
	for _, level := range levels {
		// One in 100,000 is refused at si: the two levels can share the file.
		spec := Spec{Level: "ser", Workload: "large", Transactions: 1_000_000, Keys: 1_000_000_000,
			Flags: []string{"--no-times"}}
		row := Row{Name: "polysi-large-" + level, Work: "PolySI's large, 1,000,000 transactions of 15", Level: level,
			Target: Target{Seconds: 30, MB: 4000},
			Expect: satisfied, Measure: generated(spec, level)}
		if level == "si" {
			row.Peer = Peer{"at most 4 h, 40 GB", "PolySI 5.4.4"}
		}
		out = append(out, row)
	}
	return out
}

// blind is Vbox's workload with times.
func blind(n int) Spec {
	return Spec{Level: "sser", Workload: "blindw-wr", Transactions: n, Keys: 10_000,
		Flags: []string{"--ops", "8", "--sessions", "24"}}
}

func blindW() []Row {
	var out []Row
	for _, level := range levels {
		for _, x := range []struct {
			name, size string
			n          int
			target     Target
			peer       string
		}{
			{"blindw-10k", "10,000", 10_000, Target{Seconds: 0.1, MB: 40}, "Vbox 0.31 s, 44 MB"},
			{"blindw-100k", "100,000", 100_000, Target{Seconds: 1.2, MB: 200}, "Vbox 4.16 s, 417 MB"},
			{"blindw-1m", "1,000,000", 1_000_000, Target{}, ""},
		} {
			row := Row{Name: x.name + "-" + level, Work: "BlindW-WR with times, " + x.size + " transactions", Level: level,
				Target: x.target,
				Expect: satisfied, Measure: generated(blind(x.n), level)}
			if level == "ser" && x.peer != "" {
				row.Peer = Peer{x.peer, "Vbox, scalability"}
			}
			out = append(out, row)
		}
		row := Row{Name: "blindw-growth-" + level, Work: "the same: growth from 10,000 to 1,000,000, beyond linear",
			Level: level, Target: Target{Growth: 1.2},
			Expect: satisfied, Measure: growth(blind(10_000), blind(1_000_000), level)}
		if level == "ser" {
			row.Peer = Peer{"Vbox ×1.34 over a tenfold", "Vbox, scalability"}
		}
		out = append(out, row)
	}
	return out
}

func anomalous() []Row {
	return []Row{
		{Name: "anomalous-ser", Work: "histories with anomalies, average of check's own seconds", Level: "ser",
			Target: Target{Seconds: 0.020},
			Peer:   Peer{"VeriStrong 143 ms", "VeriStrong, Table 2"}, Expect: violated,
			Measure: average(recording{violated: "SER", from: fromMany}, "ser")},
		{Name: "anomalous-si", Work: "histories with anomalies, average of check's own seconds", Level: "si",
			Target: Target{Seconds: 0.010},
			Peer:   Peer{"VeriStrong 18 ms", "VeriStrong, Table 2"}, Expect: violated,
			Measure: average(recording{violated: "SI", from: fromMany}, "si")},
	}
}
