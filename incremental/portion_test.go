package incremental_test

import (
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle"
)

// A portion is what one engine gets of a history: some of its records, some of
// them reduced to a part of their operations, and what it is told to be missing.
type portion struct {
	stream
	of    []int    // for each record its place in the whole history
	lossy []string // keys of which a write is missing, where coverage is complete
	mixed []string // of these, those of lists that were overwritten
	open  bool     // the engine is dropped after its last tick, not closed
	seeds int      // so many records are stubs that are given first
	base  []bool   // records that are stubs and are not; nil: none
}

// feed gives the portion to an engine. Stubs that this can't place are left out of
// the portion, and their keys are lossy.
func (p *portion) feed() (told spoken) {
	p.opt.Seeds = p.seeds
	e := incremental.New(p.opt)
	for _, k := range p.lossy {
		e.Lose(k, slices.Contains(p.mixed, k))
	}
	for i := 0; i < len(p.txns); i++ {
		switch {
		case p.base == nil || !p.base[i]:
			e.Step(&p.txns[i], p.end[i])
		default:
			if _, ok := e.Base(&p.txns[i]); !ok {
				p.lossy = append(p.lossy, p.txns[i].Ops[0].Key)
				p.leaveOut(i)
				i--
				continue
			}
		}
		if p.tick[i] != noTick {
			told.ticked = append(told.ticked, e.Tick(p.tick[i]).Violations...)
		}
	}
	if !p.open {
		told.results = e.Close()
	}
	return told
}

// leaveOut takes away a record that the engine did not get.
func (p *portion) leaveOut(i int) {
	p.txns, p.end, p.tick = slices.Delete(slices.Clone(p.txns), i, i+1), slices.Delete(slices.Clone(p.end), i, i+1), slices.Delete(slices.Clone(p.tick), i, i+1)
	p.of, p.base = slices.Delete(slices.Clone(p.of), i, i+1), slices.Delete(slices.Clone(p.base), i, i+1)
}

func (p *portion) String() string {
	s := p.stream.String()
	if p.opt.Coverage == record.CoverageComplete {
		s += fmt.Sprintf("# lossy keys: %s\n", strings.Join(p.lossy, " "))
	}
	return s
}

// judge feeds the portion to an engine and returns what is wrong with what it
// says, or nil: it accuses the whole history of nothing that this has not done,
// everything that it says is proved by records that it got, and what these prove
// by themselves it finds. broken are the levels that it called violated.
func (p *portion) judge(whole *truth) (broken []verdict.Level, found *complaint) {
	defer func() {
		if r := recover(); r != nil {
			found = &complaint{"panic", fmt.Sprintf("the engine panics: %v\n%s", r, debug.Stack())}
		}
	}()
	said := p.feed()
	note := func(l verdict.Level) {
		if !slices.Contains(broken, l) {
			broken = append(broken, l)
		}
	}
	accuse := func(v verdict.Violation, l verdict.Level) *complaint {
		note(l)
		if whole.applies(l) && whole.holds(l) {
			return &complaint{fmt.Sprintf("a false alarm at %v", l), fmt.Sprintf("%v holds of the whole; said of a part: %+v", l, v)}
		}
		if ok, why := p.proves(v, l); !ok {
			return &complaint{fmt.Sprintf("evidence %v", l), fmt.Sprintf("the evidence of %v %v at %v proves nothing:\n%s%+v", v.Level, v.Kind, l, why, v)}
		}
		return nil
	}
	for _, v := range said.ticked {
		if c := accuse(v, v.Level); c != nil {
			return broken, c
		}
	}
	for _, r := range said.results {
		if r.Outcome != verdict.Violated {
			continue
		}
		note(r.Level)
		if whole.applies(r.Level) && whole.holds(r.Level) {
			return broken, &complaint{fmt.Sprintf("a false alarm at %v", r.Level), fmt.Sprintf("%v holds of the whole; a part is said to be violated: %+v", r.Level, r.Violations)}
		}
		for _, v := range r.Violations {
			if c := accuse(v, r.Level); c != nil {
				return broken, c
			}
		}
	}
	return broken, p.missed(broken, said.results)
}

// missed tells whether the engine, at the end of its portion, calls a level
// satisfied that the portion breaks by itself.
func (p *portion) missed(broken []verdict.Level, results []verdict.Result) *complaint {
	least := seenAlone(p.txns, p.opt, p.isLossy)
	for _, r := range results {
		timed := r.Level == verdict.SSER || r.Level == verdict.StrongSI || r.Level == verdict.LIN
		if slices.Contains(p.base, true) && !timed {
			continue // what precedes a base is only known by the clock
		}
		if r.Outcome == verdict.Satisfied && least.applies(r.Level) && !least.holds(r.Level) && !(timed && p.late()) {
			return &complaint{fmt.Sprintf("missed %v", r.Level), fmt.Sprintf("%v is satisfied, and what is there breaks it without anything unseen; broken are %v", r.Level, broken)}
		}
	}
	return nil
}

// isLossy tells whether somebody who was not seen may have written the key.
func (p *portion) isLossy(key string) bool {
	return p.opt.Coverage == record.CoveragePartial || slices.Contains(p.lossy, key)
}

// proves tells whether the evidence of v stands by itself. With partial coverage
// that is as for any history. With complete coverage of some keys either it does
// so with partial coverage of all; or with complete coverage, without the reads of
// lossy keys that somebody unseen may have answered.
func (p *portion) proves(v verdict.Violation, level verdict.Level) (bool, string) {
	if p.opt.Coverage == record.CoveragePartial || len(p.lossy) == 0 {
		return proves(v, level, p.txns, p.opt)
	}
	part := p.opt
	part.Coverage = record.CoveragePartial
	if ok, _ := proves(v, level, p.txns, part); ok {
		return true, ""
	}
	txns := slices.Clone(p.txns)
	cut := cutDown(v, p.txns, p.opt.Clock)
	for i := range txns {
		var ops []record.Op
		wrote := map[string]bool{}
		for _, op := range txns[i].Ops {
			wrote[op.Key] = wrote[op.Key] || op.Kind == record.Write
			switch {
			case op.Kind != record.Read || wrote[op.Key] || !slices.Contains(p.lossy, op.Key):
			case op.Key == v.Key && (v.Kind == verdict.NonRepeatableRead || v.Kind == verdict.NotMyOwnWrite): // whoever wrote them, they differ
			case isList(cut, op.Key) && unseenUnique(p.opt):
				op.Value = withoutUnseen(cut, op)
			case oracle.Made(cut, op.Key, op.Value) && unseenUnique(p.opt): // and by nobody unseen
			case maybeUnseen(cut, op, "", part):
				continue
			}
			ops = append(ops, op)
		}
		txns[i].Ops = ops
	}
	return proves(v, level, txns, p.opt)
}

// withoutUnseen is the list that was read less the elements that nobody of txns
// appended: what they say of the others stays as it is.
func withoutUnseen(txns []record.Transaction, read record.Op) record.Value {
	var out []string
	for _, e := range strings.Split(strings.Trim(read.Value.Text, "[]"), ",") {
		if slices.ContainsFunc(txns, func(x record.Transaction) bool {
			return slices.ContainsFunc(x.Ops, func(op record.Op) bool {
				return op.Kind == record.Append && op.Key == read.Key && op.Value.String() == e
			})
		}) {
			out = append(out, e)
		}
	}
	if len(out) == 0 {
		return record.Null
	}
	return record.Value{Kind: record.KindList, Text: "[" + strings.Join(out, ",") + "]"}
}

// within are those of levels that the oracle judges a history at.
func within(levels []verdict.Level, txns []record.Transaction) []verdict.Level {
	return slices.DeleteFunc(slices.Clone(levels), func(l verdict.Level) bool { return !slices.Contains(oracle.Levels(txns), l) })
}

// repeatsUnseen tells whether a write that is not fed has the key and value of one that is, or that one that is fed writes
// back what it read.
func repeatsUnseen(whole, fed []record.Transaction) bool {
	count := func(txns []record.Transaction) map[record.Op]int {
		n := map[record.Op]int{}
		for _, x := range txns {
			for _, op := range x.Ops {
				back := record.Op{Kind: record.Write, Key: op.Key, Value: op.Value}
				if op.Kind != record.Read {
					n[op]++
				} else if slices.Contains(x.Ops, back) {
					n[back]++
				}
			}
		}
		return n
	}
	all, some := count(whole), count(fed)
	for op, n := range some {
		if all[op] > n {
			return true
		}
	}
	return false
}

// writtenKeys are the keys of a transaction's writes and appends.
func writtenKeys(ops []record.Op) []string {
	var out []string
	for _, op := range ops {
		if op.Kind != record.Read && !slices.Contains(out, op.Key) {
			out = append(out, op.Key)
		}
	}
	return out
}
