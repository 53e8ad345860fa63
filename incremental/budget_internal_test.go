package incremental

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/incremental/version"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/race"
)

// askedWithin is how many steps may lie between two questions to Stop, and after it has said so: one
// piece of work that is not divided, of the histories below. At ten to thirty nanoseconds a step that is less than 100 ms.
const askedWithin = 1 << 22

// Whichever stage is at work when Stop says so, the engine does next to nothing any more; and it is asked often.
// What is done is counted in steps.
func TestStopIsAskedOften(t *testing.T) {
	var drawers sync.Map
	t.Cleanup(func() {
		var names []string
		drawers.Range(func(f, _ any) bool { names = append(names, f.(string)); return true })
		slices.Sort(names)
		t.Log(names)
	})
	for _, kind := range []string{"blind", "update beside it", "read", "timed", "repeated", "unknown", "broken"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			n := 600
			if n = race.Few(300, n); kind == "repeated" || kind == "broken" { // each read has a fifth of the writers for candidates; there are many violations
				n = 100
			} else if kind == "unknown" { // and who wrote for a thing to be decided
				n = 50
			}
			lastOf := map[string]int{} // by the function that drew: its last question
			stopped := func(at int) (asked int) {
				var e *Engine
				last := uint64(0)
				say := verdict.NoReason
				e = New(Options{Levels: []verdict.Level{verdict.SI, verdict.SER, verdict.SSER, verdict.CC, verdict.LIN}, Online: true, Assumptions: record.Assumptions{Initial: record.InitialAbsent, UnseenUnique: new(true), MaxSkew: 5_000_000}, UniqueValues: kind != "repeated" && kind != "unknown", MaxTransaction: 1_000_000_000, Steps: 1 << 30, Conflicts: 20, Stop: func() verdict.Reason {
					asked++
					if at == 1<<60 {
						lastOf[drawer()] = asked
					}
					if gap := e.budget.Used() - last; gap > askedWithin {
						t.Errorf("%d steps lie before question %d", gap, asked)
					}
					last = e.budget.Used()
					if asked >= at {
						say = verdict.Timeout
					}
					return say
				}})
				e.budget.Every = 128 // so that loops that are short here are met as well
				if kind == "broken" {
					e.budget.Every = 1
				}
				for i := range n {
					x := record.Transaction{Session: fmt.Sprint("s", i%20), Seq: int64(i / 20), HasSeq: true, ID: fmt.Sprint(i), Status: record.Committed}
					v := record.Int(int64(i + 1))
					switch kind {
					case "blind": // but for one that is read, so that all have to do with it
						if i == 1 {
							x.Ops = []record.Op{{Kind: record.Read, Key: "hot", Value: record.Int(1)}}
						}
					case "update beside it":
						key := fmt.Sprint("k", i%37)
						x.Ops = []record.Op{{Kind: record.Read, Key: key, Value: record.Int(int64(i + 1 - 37))}, {Kind: record.Write, Key: key, Value: v}}
					case "read":
						x.Ops = []record.Op{{Kind: record.Read, Key: "other", Value: record.Int(int64(i - i%5))}, {Kind: record.Write, Key: "other", Value: v}}[i%2:][:1]
					case "broken": // two readers of two writes, in opposite orders
						a, b := fmt.Sprint("a", i/4), fmt.Sprint("b", i/4)
						one, none := record.Int(1), record.Null
						x.Ops = [][]record.Op{{{Kind: record.Write, Key: a, Value: one}}, {{Kind: record.Write, Key: b, Value: one}},
							{{Kind: record.Read, Key: a, Value: one}, {Kind: record.Read, Key: b, Value: none}},
							{{Kind: record.Read, Key: b, Value: one}, {Kind: record.Read, Key: a, Value: none}}}[i%4]
					case "timed":
						x.Start, x.End, x.HasTimes = int64(i)*10_000-395_000, int64(i)*10_000, true
					case "unknown":
						v = record.Int(int64(i % 5))
						if x.Ops = []record.Op{{Kind: record.Read, Key: "hot", Value: record.Int(int64(i * 3 % 5))}}; i%3 == 0 {
							x.Status = record.Unknown
						}
					case "repeated":
						v = record.Int(int64(i % 7))
						x.Ops = []record.Op{{Kind: record.Read, Key: "other", Value: v}, {Kind: record.Write, Key: "other", Value: record.Int(int64(i % 5))}}
					}
					x.Ops = append(x.Ops, record.Op{Kind: record.Write, Key: "hot", Value: v})
					e.Step(&x, int64(i)*10_000)
					if i%200 == 199 {
						e.Tick(int64(i)*10_000 - 10_000_000)
					}
					if say != verdict.NoReason {
						e.Tick(int64(i) * 10_000)
						break
					}
				}
				if kind == "broken" || kind == "repeated" || kind == "unknown" {
					e.Close()
				}
				e.Frontier(verdict.TxnID(n), 8, func(id verdict.TxnID, _ []version.Key) {
					if say != verdict.NoReason {
						t.Errorf("stopped at question %d: what %d wrote was remembered after it", at, id)
					}
				})
				if left := e.budget.Used() - last; say != verdict.NoReason && left > askedWithin {
					t.Errorf("stopped at question %d: %d steps came after it", at, left)
				}
				return asked
			}
			all := stopped(1 << 60)
			if all < 5 {
				t.Errorf("asked only %d times", all)
			}
			for _, at := range lastOf {
				stopped(at)
			}
			for f := range lastOf {
				drawers.Store(f, true)
			}
		})
	}
}

// drawer is the function that draws from the budget when Stop is asked.
func drawer() string {
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	for {
		f, more := frames.Next()
		name := f.Function[strings.LastIndexByte(f.Function, '/')+1:]
		if !more || !strings.HasPrefix(name, "budget.") && !strings.HasSuffix(name, ".halted") {
			return name
		}
	}
}

// What many readers of many versions force, in one engine that sees all before it answers, has room in
// Options.BytesMax.
func TestForcedEdgesHaveRoom(t *testing.T) {
	const txns, keys, sessions, room = 2000, 100, 9, 1 << 20
	taken := func(bytes int) int {
		e := New(Options{Levels: []verdict.Level{verdict.SER}, Assumptions: record.Assumptions{Initial: record.InitialAbsent}, UniqueValues: true, BytesMax: bytes})
		held, rng := make([]record.Value, keys), rand.New(rand.NewPCG(1, 1))
		for i := range int64(txns) { // a write, and a transaction that reads all
			n := rng.IntN(keys)
			held[n] = record.Int(i)
			e.Step(&record.Transaction{Session: fmt.Sprint("w", i%sessions), Seq: i / sessions, HasSeq: true, ID: fmt.Sprint("w", i), Ops: []record.Op{{Kind: record.Write, Key: fmt.Sprint("k", n), Value: held[n]}}}, 0)
			r := record.Transaction{Session: fmt.Sprint("r", i), HasSeq: true, ID: fmt.Sprint("r", i)}
			for n, v := range held {
				r.Ops = append(r.Ops, record.Op{Kind: record.Read, Key: fmt.Sprint("k", n), Value: v})
			}
			e.Step(&r, 0)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		e.Close()
		runtime.ReadMemStats(&after)
		return int(after.TotalAlloc - before.TotalAlloc)
	}
	all, some, least := taken(0), taken(room), taken(1)
	if some-least > (all-least)/2 {
		t.Errorf("%d bytes are taken where there is room for %d, %d without a bound, %d where there is no room", some, room, all,
			least)
	}
}
