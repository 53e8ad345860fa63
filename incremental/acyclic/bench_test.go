package acyclic

import (
	"testing"

	"github.com/isowatch/isowatch/incremental/sat"
)

// classes are the problems of the benchmarks, each with some seeds.
var classes = []struct {
	name  string
	seeds int
	make  func(seed uint64) *task
}{
	// Histories from a serial schedule: hardly a conflict, what counts is the
	// cost of going through.
	{"serial", 2, func(seed uint64) *task { return serial(20000, 20000, 0, seed) }},
	// Twelve open pairs for each transaction.
	{"dense", 1, func(seed uint64) *task { return serial(5000, 60000, 0, seed) }},
	// The same with orders that can't be: refuted after some conflicts.
	{"broken", 5, func(seed uint64) *task { return serial(5000, 20000, 40, seed) }},
	// Polygraphs near the threshold between solvable and not.
	{"random", 10, func(seed uint64) *task { return random(60, 110, seed) }},
	{"random-large", 5, func(seed uint64) *task { return random(100, 160, seed) }},
	// 3-SAT by MTC's reduction, at 4.26 clauses for a variable.
	{"3sat", 5, func(seed uint64) *task { return threeSAT(80, 341, seed) }},
	// Seven versions for eight readers.
	{"crowd", 1, func(uint64) *task { return crowd(7) }},
	// Reads of values that several transactions wrote, solvable and not.
	{"duplicates", 2, func(seed uint64) *task { return duplicates(3000, 1500, 10, 0, seed) }},
	{"stale", 5, func(seed uint64) *task { return duplicates(300, 100, 10, 0.2, seed) }},
}

// ablations switch off one thing each.
var ablations = []struct {
	name string
	opt  sat.Options
	set  func(p *task)
}{
	{name: "default"},
	{name: "no-steady-start", opt: sat.Options{Steady: -1}},
	{name: "auxiliaries-decided", set: func(p *task) { p.aux = nil }},
}

// BenchmarkSolve searches each class, at most 20,000 conflicts a problem, with
// each ablation; making the theory and the solver is part of it.
func BenchmarkSolve(b *testing.B) {
	for _, c := range classes {
		for _, a := range ablations {
			b.Run(c.name+"/"+a.name, func(b *testing.B) {
				var tasks []*task
				for seed := range c.seeds {
					p := c.make(uint64(seed))
					if a.set != nil {
						a.set(p)
					}
					tasks = append(tasks, p)
				}
				conflicts, ended := 0, 0
				for b.Loop() {
					conflicts, ended = 0, 0
					for _, p := range tasks {
						th := p.theory()
						s := sat.New(len(p.phase), th, a.opt)
						p.state(s)
						if s.Solve(20000) == sat.Budget {
							ended++
						}
						conflicts += s.Stats.Conflicts
					}
				}
				b.ReportMetric(float64(conflicts), "conflicts")
				b.ReportMetric(float64(ended), "undecided")
			})
		}
	}
}
