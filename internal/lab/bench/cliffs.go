package bench

import (
	"fmt"
	"strconv"
)

// cliffs is the suite of what is quadratic in some way of deciding: many sessions, many blind writes, many
// unknown outcomes, hot keys, many candidates, many clocks. Each work is measured at several sizes, and has a
// row for how its time grows.
func cliffs() Suite {
	s := Suite{Name: "cliffs", About: "histories without times that cost the square of something, at growing sizes; " +
		"processes of their own, reading the file included", Runs: 1, Scale: 0.25}
	for _, level := range levels {
		s.Rows = append(s.Rows, manySessions(level, 100_000, []int{100, 300, 1000}, Target{Seconds: 8, MB: 500})...)
	}
	for _, x := range []struct {
		name, work   string
		transactions int
		flags        []string
		levels       []string
		target       Target
	}{
		{"blind", "nothing but writes", 200_000, []string{"--read-share", "0"}, levels, Target{Seconds: 1.5, MB: 250}},
		{"unknown", "5% of unknown outcome", 200_000, []string{"--unknown-rate", "0.05"}, levels,
			Target{Seconds: 3, MB: 500}},
		{"uniform", "uniform keys", 1_000_000, nil, levels, Target{Seconds: 8, MB: 1000}},
		{"zipf", "keys by Zipf 1.5", 1_000_000, []string{"--key-zipf", "1.5"}, levels, Target{Seconds: 12, MB: 1500}},
		{"duplicates", "half of the keys with duplicates", 1_000_000, []string{"--duplicates", "0.5"}, []string{"si"},
			Target{Seconds: 60}},
	} {
		for _, level := range x.levels {
			s.Rows = append(s.Rows, bySize(x.name, x.work, level, x.transactions, x.flags, x.target)...)
		}
	}
	s.Rows = append(s.Rows, manySessions("cc", 100_000, []int{500, 1000, 5000}, Target{})...)
	return s
}

// untimed is a history of registers without times, with 10,000 keys.
func untimed(level string, n int, flags ...string) Spec {
	return Spec{Level: level, Workload: "general", Transactions: n, Keys: 10_000,
		Flags: append([]string{"--no-times"}, flags...)}
}

// bySize is one work at a fourth, half and all of the transactions, on as many keys, and how its time grows.
func bySize(name, work, level string, n int, flags []string, target Target) []Row {
	var out []Row
	var specs []Spec
	for _, size := range []int{n / 4, n / 2, n} {
		spec := untimed(level, size, flags...)
		specs = append(specs, spec)
		row := Row{Name: fmt.Sprintf("%s-%dk-%s", name, size/1000, level),
			Work: fmt.Sprintf("%s, %d transactions", work, size), Level: level, Measure: generated(spec, level)}
		if size == n {
			row.Target = target
		}
		out = append(out, row)
	}
	return append(out, Row{Name: name + "-growth-" + level, Work: "the same: growth with the transactions", Level: level,
		Target:  Target{Exponent: 1.2},
		Measure: exponent(specs, level, nil)})
}

// manySessions is one history's size in ever more sessions, and how its time grows with these.
func manySessions(level string, n int, sessions []int, target Target) []Row {
	var out []Row
	var specs []Spec
	measure := generated
	if level == "cc" {
		measure = beside
	}
	for i, k := range sessions {
		spec := untimed(level, n, "--sessions", strconv.Itoa(k))
		specs = append(specs, spec)
		row := Row{Name: fmt.Sprintf("sessions-%d-%s", k, level), Work: fmt.Sprintf("%d transactions, %d sessions", n, k),
			Level: level, Measure: measure(spec, level)}
		if i == len(sessions)-1 {
			row.Target = target
		}
		out = append(out, row)
	}
	size := func(i int, _ Measured) float64 { return float64(sessions[i]) }
	return append(out, Row{Name: "sessions-growth-" + level, Work: "the same: growth with the sessions", Level: level,
		Target:  Target{Exponent: 1.1},
		Measure: exponent(specs, level, size)})
}
