package history

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/reject"
	"github.com/isowatch/isowatch/internal/lab/oracle"
)

// What is no read or write in a log becomes reads and writes. These tests judge
// logs by what the operations mean, trying all orders, and the records by the
// oracle for strict serializability: both must say the same.

// model is a kind of object: how it answers, and how a log of it is written.
type model struct {
	format string
	fs     []string
	args   []string // of all functions but reads
	answer []string // what a read might have returned
	// apply does f in a state; held is false for an answer "no".
	apply func(state, f, arg string) (next, answer string)
	// line is an event's; value is the argument or the answer.
	line func(process int, kind, f, value string) string
	// failing operations complete with the answer no.
	failing string
}

func ednLine(process int, kind, f, value string) string {
	return fmt.Sprintf("{:process %d, :type :%s, :f :%s, :value %s}\n", process, kind, f, value)
}

func casModel(state, arg string) (next, answer string) {
	var from, to string
	if n, _ := fmt.Sscanf(arg, "[%s %s", &from, &to); n != 2 {
		panic(arg)
	}
	if state == from {
		return strings.TrimSuffix(to, "]"), arg
	}
	return state, "no"
}

func registerModel(state, f, arg string) (next, answer string) {
	switch f {
	case "read":
		return state, state
	case "write":
		return arg, arg
	}
	return casModel(state, arg)
}

func stringModel(state, f, arg string) (next, answer string) {
	arg = strings.Trim(arg, `"`)
	switch f {
	case "get":
		return state, `"` + state + `"`
	case "put":
		return arg, `"` + arg + `"`
	}
	return state + arg, `"` + arg + `"`
}

var models = map[string]model{
	"cas register": {format: jepsenEDN, fs: []string{"read", "write", "cas"}, args: []string{"1", "2"}, answer: []string{"nil", "1", "2"}, apply: registerModel, line: ednLine},
	"refused cas": {format: porcupineLog, fs: []string{"read", "write", "cas", "cas"}, args: []string{"1", "2"}, answer: []string{"nil", "1", "2"}, apply: registerModel, failing: "cas",
		line: func(process int, kind, f, value string) string {
			return fmt.Sprintf("INFO  jepsen.util - %d\t:%s\t:%s\t%s\n", process, kind, f, value)
		}},
	"mutex": {format: jepsenEDN, fs: []string{"acquire", "release"}, args: []string{"nil"}, line: ednLine,
		apply: func(state, f, arg string) (next, answer string) {
			if (state == "held") == (f == "acquire") {
				return state, "no"
			}
			if f == "acquire" {
				return "held", arg
			}
			return "nil", arg
		}},
	"set": {format: jepsenEDN, fs: []string{"read", "read", "add"}, args: []string{"1", "2", "3"}, answer: []string{"#{}", "#{1}", "#{1 2}", "#{3}"}, line: ednLine,
		apply: func(state, f, arg string) (next, answer string) {
			elements := strings.Fields(strings.Trim(strings.TrimPrefix(state, "nil"), "#{}"))
			if f == "add" && !slices.Contains(elements, arg) {
				elements = append(elements, arg)
			}
			slices.Sort(elements)
			next = "#{" + strings.Join(elements, " ") + "}"
			if f == "read" {
				return next, next
			}
			return next, arg
		}},
	"strings": {format: porcupineKV, fs: []string{"get", "get", "put", "append", "append"}, args: []string{`"a"`, `"b"`, `"c"`, `"ab"`, `""`}, answer: []string{`""`, `"a"`, `"ab"`, `"bc"`, `"ba"`}, apply: func(state, f, arg string) (string, string) {
		return stringModel(strings.TrimPrefix(state, "nil"), f, arg)
	},
		line: func(process int, kind, f, value string) string {
			return fmt.Sprintf("{:process %d, :type :%s, :f :%s, :key \"k\", :value %s}\n", process, kind, f, value)
		}},
}

// deed is one operation of a log.
type deed struct {
	f, arg, answer string
	from, to       int // lines; to is beyond all others if nobody knows
	known          bool
}

const deedsMax = 5

// write makes a log: what an object might have answered, and sometimes not.
func (m model) write(r *rand.Rand) (text string, deeds []deed) {
	var b strings.Builder
	open := map[int]int{} // deed by process
	state, next := "nil", 0
	honest := r.IntN(4)
	for line := 0; len(deeds) < deedsMax || len(open) > 0; line++ {
		process := r.IntN(3) + next
		i, running := open[process]
		switch {
		case !running && len(deeds) == deedsMax:
			if r.IntN(20) == 0 {
				return b.String(), deeds
			}
		case !running:
			d := deed{f: m.fs[r.IntN(len(m.fs))], from: line, to: 1 << 30}
			value := m.args[r.IntN(len(m.args))]
			if d.f == "cas" {
				value = fmt.Sprintf("[%s %s]", m.answer[r.IntN(len(m.answer))], value)
			}
			if d.arg = value; d.f == "read" || d.f == "get" {
				d.arg, value = "nil", "nil"
			}
			open[process] = len(deeds)
			deeds = append(deeds, d)
			b.WriteString(m.line(process, "invoke", d.f, value))
		case r.IntN(8) == 0:
			delete(open, process)
			next += 3 // the process is not used again
			b.WriteString(m.line(process, "info", deeds[i].f, ":timed-out"))
			if r.IntN(2) == 0 {
				state, _ = m.apply(state, deeds[i].f, deeds[i].arg)
			}
		default:
			delete(open, process)
			d := &deeds[i]
			d.to, d.known = line, true
			state, d.answer = m.apply(state, d.f, d.arg)
			if isRead := d.arg == "nil" && d.f != "acquire" && d.f != "release"; r.IntN(4) < honest {
			} else if isRead {
				d.answer = m.answer[r.IntN(len(m.answer))]
			} else if r.IntN(2) == 0 {
				if d.answer = d.arg; m.failing == d.f {
					d.answer = "no"
				}
			}
			kind, value, f := "ok", d.answer, d.f
			if d.answer == "no" {
				kind, value = "fail", d.arg
				if m.failing != d.f { // it did not happen
					d.f = "nothing"
				}
			}
			b.WriteString(m.line(process, kind, f, value))
		}
	}
	return b.String(), deeds
}

// explained tells whether the deeds can have been done one after the other,
// each between its lines, with these answers.
func (m model) explained(deeds []deed, done int, state string) bool {
	first, complete := 1<<30, true // the first line at which one not done yet ended
	for i, d := range deeds {
		if done>>i&1 == 0 && d.known {
			first, complete = min(first, d.to), false
		}
	}
	if complete {
		return true
	}
	for i, d := range deeds {
		if done>>i&1 == 1 || d.from > first {
			continue
		}
		next, answer := state, ""
		if d.f != "nothing" {
			next, answer = m.apply(state, d.f, d.arg)
		}
		if (!d.known || d.f == "nothing" || answer == d.answer) && m.explained(deeds, done|1<<i, next) {
			return true
		}
	}
	return false
}

func TestEncodingsMeanTheSame(t *testing.T) {
	for name, m := range models {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(7, uint64(len(name))))
			valid, refused := 0, 0
			const logs = 800
			for range logs {
				text, deeds := m.write(r)
				hs, err := Read("log", strings.NewReader(text), Options{Format: m.format})
				if e := reject.From(err); e != nil && e.Reason == reject.Unsupported && m.format == porcupineKV {
					refused++
					continue
				}
				if err != nil {
					t.Fatalf("%v\n%s", err, text)
				}
				h := hs[0]
				want := m.explained(deeds, 0, "nil")
				if want {
					valid++
				}
				if got := oracle.Holds(verdict.SSER, h.Transactions, record.Assumptions{}.Override(h.Header)); got != want {
					t.Fatalf("the log is explained: %t; the records: %t\n%s\n%s", want, got, text, draw(h))
				}
			}
			t.Logf("%d valid, %d refused of %d", valid, refused, logs)
			if valid < logs/10 || valid+refused > logs*9/10 {
				t.Errorf("%d valid and %d refused of %d: the logs are one-sided", valid, refused, logs)
			}
		})
	}
}
