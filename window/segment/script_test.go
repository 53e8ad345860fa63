package segment

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/isowatch/isowatch/ingest/record"
)

// script runs the files of testdata/cuts. Records are lines:
//
//	[N*] SESSION [START-END|@ARRIVAL] [aborted|unknown] [OP KEY VALUE]…
//
// N* says so many times. Where no time is said a record lasts from 9 before the time of its
// place, ten times its position, to that. An OP is r, w or append. "fence" reads what was last
// written to the key f, and writes the next number; $ in a value is a number that is new, % in a key
// the record's position.
type script struct {
	c      *Cutter
	opt    Options
	n      uint64
	fence  int64
	values int64
	out    strings.Builder
}

func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/cuts", func(t *testing.T, path string) {
		var s script
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.out.Reset()
			s.run(t, d)
			if s.c != nil { // it is the same after every restart
				c, err := Restore(s.opt, s.c.Snapshot(nil))
				if err != nil {
					t.Fatal(err)
				}
				s.c = c
			}
			return s.out.String()
		})
	})
}

func (s *script) run(t *testing.T, d *datadriven.TestData) {
	switch d.Cmd {
	case "new":
		opt := Options{MinOverlap: 4, MaxOverlap: 32, IdleAfter: 1000, SnapshotKeys: -1}
		for name, to := range map[string]*uint64{"min": &opt.MinOverlap, "max": &opt.MaxOverlap} {
			d.MaybeScanArgs(t, name, to)
		}
		d.MaybeScanArgs(t, "idle", &opt.IdleAfter)
		d.MaybeScanArgs(t, "skew", &opt.MaxSkew)
		d.MaybeScanArgs(t, "sessions", &opt.MaxSessions)
		d.MaybeScanArgs(t, "keys", &opt.SnapshotKeys)
		opt.RealTime, opt.NoClock = d.HasArg("real-time"), d.HasArg("no-clock")
		*s = script{c: New(opt), opt: opt}
	case "add":
		from := s.n
		var straddling []string
		for line := range strings.Lines(d.Input) {
			words, times := strings.Fields(line), 1
			if n, ok := strings.CutSuffix(words[0], "*"); ok {
				times, words = int(number(t, n)), words[1:]
			}
			for range times {
				x, arrival := s.record(t, words)
				if s.c.Add(s.n, x, arrival) {
					straddling = append(straddling, fmt.Sprintf("%d of %s", s.n, x.Session))
				}
				s.n++
			}
		}
		fmt.Fprintf(&s.out, "from %d to %d\n", from, s.n)
		if len(straddling) > 0 {
			fmt.Fprintf(&s.out, "straddling: %s\n", strings.Join(straddling, ", "))
		}
	case "cut":
		s.cut()
	case "chain":
		f := &s.c.fences
		fmt.Fprintf(&s.out, "key %q, places %d to %d, torn before %d, %d waiting; %d candidates\n", f.key, int(f.top)-len(f.ring)+1, f.top, f.base, len(f.wait), len(f.votes))
	case "sessions":
		for _, x := range s.c.sessions.sorted() {
			seen := "never"
			if at := s.c.Seen(x.name); at != math.MinInt64 {
				seen = fmt.Sprint(at)
			}
			fmt.Fprintf(&s.out, "%s: seen %s", x.name, seen)
			for _, m := range x.marks {
				fmt.Fprintf(&s.out, ", fence %d at %d", m.place, m.pos)
				if m.next > 0 {
					fmt.Fprintf(&s.out, " and on at %d", m.next)
				}
			}
			s.out.WriteString("\n")
		}
		if s.c.Seen("nobody") != math.MinInt64 {
			s.out.WriteString("nobody was seen\n")
		}
		fmt.Fprintf(&s.out, "straddled: %d\n", s.c.straddled)
	default:
		t.Fatalf("%s: no such command", d.Pos)
	}
}

func (s *script) cut() {
	k := s.c.Cut()
	fmt.Fprintf(&s.out, "%v from %d", k.Kind, k.From)
	if k.Complete {
		s.out.WriteString(", complete")
	}
	if k.AssumingRealTime {
		s.out.WriteString(", assuming real time")
	}
	if k.Kind == Clock {
		fmt.Fprintf(&s.out, ", all before had ended at %d", k.At)
	}
	if k.Straddlers > 0 {
		fmt.Fprintf(&s.out, ", %d straddle: %v", k.Straddlers, k.Straddling)
	}
	s.out.WriteString("\n")
}

func number(t *testing.T, text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (s *script) record(t *testing.T, words []string) (*record.Transaction, int64) {
	at := int64(s.n) * 10
	x := &record.Transaction{Session: words[0], Start: at - 9, End: at, HasTimes: true}
	for words = words[1:]; len(words) > 0; {
		word := words[0]
		words = words[1:]
		start, end, span := strings.Cut(word, "-")
		arrival, untimed := strings.CutPrefix(word, "@")
		i := slices.Index([]string{"r", "w", "append"}, word)
		switch {
		case word == "aborted":
			x.Status = record.Aborted
		case word == "unknown":
			x.Status = record.Unknown
		case word == "fence":
			x.Ops = append(x.Ops, r("f", s.fence), w("f", s.fence+1))
			s.fence++
		case i >= 0:
			v := words[1]
			if strings.Contains(v, "$") {
				s.values++
				v = strings.ReplaceAll(v, "$", fmt.Sprint(1000+s.values))
			}
			value := record.Null
			if strings.HasPrefix(v, "[") {
				value = record.Value{Kind: record.KindList, Text: v}
			} else if v != "null" {
				value = record.Int(number(t, v))
			}
			x.Ops = append(x.Ops, record.Op{Kind: []record.OpKind{record.Read, record.Write, record.Append}[i], Key: strings.ReplaceAll(words[0], "%", fmt.Sprint(s.n)), Value: value})
			words = words[2:]
		case untimed:
			at = number(t, arrival)
			x.HasTimes, x.Start, x.End = false, at-9, at // they are not to be used
		case span:
			x.Start, x.End = number(t, start), number(t, end)
		default:
			t.Fatalf("what is %s", word)
		}
	}
	return x, at
}
