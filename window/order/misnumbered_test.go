package order

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/isowatch/isowatch/ingest/record"
)

// Numbers that contradict both the clocks and how records came are the producer's error: such a record has no place in
// its session. A clock that was set back, and a record that comes late, are no such thing.
//
// A record is its number in the session, its end in milliseconds, and "wrong" if its number is; "silent" if it is where no broker
// says how records came: the input may then be in the order of wrong numbers.
func TestWrongNumbers(t *testing.T) {
	for _, c := range []struct{ name, lines string }{
		{"in order", "1 10, 2 20, 3 30, 4 40"},
		{"backwards", "9 10, 8 20 wrong, 7 30 wrong, 6 40 wrong"},
		{"backwards and no faster than clocks differ", "9 100, 8 104 silent, 7 108 wrong"},
		{"begun anew", "7 10, 8 20, 1 30 wrong, 2 40 wrong, 9 50"},
		{"all the same", "3 10, 3 20 wrong, 3 30 wrong"},
		{"two producers", "100 10, 1 20 wrong, 101 30, 2 40 wrong, 102 50"},
		{"a hole that is filled late", "1 10, 3 30, 2 20, 4 40"},
		{"a clock that was set back", "1 100, 2 110, 3 50 silent, 4 60 silent, 5 120"},
		{"backwards, in that order", "6 40, 7 30 silent, 8 20 silent, 9 10 silent"},
		{"backwards by a little", "1 103, 2 102 silent, 3 101 silent"},
		{"a clock that was set ahead", "1 10, 2 500, 3 510"},
	} {
		for _, trial := range []bool{false, true} { // without a broker's time the first records are on trial
			t.Run(fmt.Sprintf("%s, on trial %v", c.name, trial), func(t *testing.T) { wrongNumbers(t, c.lines, trial) })
		}
	}
}

// Where no broker says how records came, a record whose number contradicts the clock of any committed one before it in its
// session has a wrong number: whether that one waits, was handed out, came late, is far ahead, or has one without times behind it.
//
// A record is its session, its number, its start and end in seconds, and "wrong" if its number is.
func TestNumbersNeedAWitness(t *testing.T) {
	others := "f 1 45 46, f 2 46 47, f 3 60 61, f 4 120 121, "
	for _, c := range []struct{ name, lines string }{
		{"the one before", "s 1 50 51, s 2 15 16 wrong, s 3 49 50, s 4 52 53"},
		{"one without times between", "s 1 50 51, s 2 - -, s 3 15 16 wrong"},
		{"one that overlaps between", "s 1 100 150, s 2 80 200, s 3 50 90 wrong"},
		{"a short one before one that overlaps", "s 1 50 51, s 2 12 52, s 3 15 16 wrong"},
		{"wrong ones between", "s 1 50 51, s 2 15 16 wrong, s 3 10 11 wrong, s 4 17 18 wrong, s 5 30 52"},
		{"one that came late", others + "s 1 40 41, f 5 121 122, s 2 10 11 wrong, s 3 39 40"},
		{"one that is far ahead", "f 1 1 2, s 1 3600 3601, f 2 2 3, s 2 5 6 wrong, s 3 1 2 wrong, f 3 7 8"},
		{"one that is far ahead at first", "s 1 3600 3601, f 1 1 2, s 2 5 6 wrong, f 2 7 8"},
		{"another session", "s 1 50 51, f 1 15 16"},
	} {
		for _, waits := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, all wait %v", c.name, waits), func(t *testing.T) {
				o := newRig(Options{Partitions: []int{0}, Lateness: time.Second, MaxAhead: 5 * time.Minute})
				var want, got []string
				var all []out
				for line := range strings.SplitSeq(c.lines, ", ") {
					var session, from, to string
					var seq, start, end int64
					_, _ = fmt.Sscan(line, &session, &seq, &from, &to)
					_, err := fmt.Sscan(from+" "+to, &start, &end)
					x := txn(session, seq, start*1e9, end*1e9)
					if x.ID = line; err != nil {
						noTimes(x)
					}
					if strings.HasSuffix(line, "wrong") {
						want = append(want, line)
					}
					o.Add(0, x, 0)
					if !waits {
						all = append(all, drain(o)...)
					}
				}
				o.Flush()
				for _, r := range append(all, drain(o)...) {
					if r.Misnumbered {
						got = append(got, r.Txn.ID)
					}
					if r.Misnumbered && !(r.Detached && r.TimesDropped) {
						t.Errorf("%s has a wrong number and its place in the session, or its times", r.Txn.ID)
					}
				}
				slices.Sort(got)
				if slices.Sort(want); !slices.Equal(got, want) {
					t.Errorf("wrong are %q, want %q", got, want)
				}
			})
		}
	}
}

// In whatever state the records before are, it is those that record.RunsBack says, of all committed ones.
func TestNumbersNeedAWitnessWhateverComes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := newRig(Options{Partitions: []int{0}, Lateness: 20, MaxAhead: 200})
		seqs, latest, want := map[string]int64{}, map[string]int64{}, map[string]bool{}
		var all []out
		for range rapid.IntRange(1, 30).Draw(t, "records") {
			s := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "session")
			start := rapid.OneOf(rapid.Int64Range(1, 100), rapid.Int64Range(1, 1000)).Draw(t, "start")
			seqs[s] += rapid.Int64Range(1, 2).Draw(t, "step")
			x := txn(s, seqs[s], start, start+rapid.Int64Range(0, 100).Draw(t, "takes"))
			x.ID = fmt.Sprint(s, seqs[s])
			x.Status = rapid.SampledFrom([]record.Status{record.Committed, record.Committed, record.Aborted, record.Unknown}).Draw(t, "status")
			last, ok := latest[s]
			switch {
			case rapid.IntRange(0, 5).Draw(t, "times") == 0:
				noTimes(x)
			case ok && record.RunsBack(x.End, last):
				want[x.ID] = true
			case x.Status == record.Committed:
				latest[s] = max(last, start)
			}
			o.Add(0, x, 0)
			if rapid.Bool().Draw(t, "handed out") {
				all = append(all, drain(o)...)
			}
		}
		o.Flush()
		for _, r := range append(all, drain(o)...) {
			if r.Misnumbered != want[r.Txn.ID] {
				t.Fatalf("%s: wrong number %v, want %v", r.Txn.ID, r.Misnumbered, want[r.Txn.ID])
			}
		}
	})
}

// In whatever order they come: no session's order that is used contradicts its clock.
func TestOrderIsNotAgainstTheClock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := newRig(Options{Partitions: []int{0}, Lateness: 2000, MaxAhead: 5000})
		seqs := rapid.Permutation([]int64{1, 2, 3, 4, 5, 6, 7, 8}).Draw(t, "seqs")
		var all []out
		for _, seq := range seqs[:rapid.IntRange(2, len(seqs)).Draw(t, "records")] {
			start := rapid.Int64Range(1, 1000).Draw(t, "start")
			x := txn("s", seq, start, start+rapid.Int64Range(0, 300).Draw(t, "takes"))
			o.Add(0, x, 0)
			if rapid.Bool().Draw(t, "handed out") {
				all = append(all, drain(o)...)
			}
		}
		o.Flush()
		latest := int64(-1)
		for _, r := range append(all, drain(o)...) {
			was := o.txns[r.Ref]
			if r.Own != was.Session {
				t.Fatalf("a record of %s is said to be of %s", was.Session, r.Own)
			}
			if !r.Detached {
				if record.RunsBack(was.End, latest) {
					t.Fatalf("%d, which ended at %d, follows one that began at %d", was.Seq, was.End, latest)
				}
				latest = max(latest, was.Start)
			}
		}
	})
}

// Numbers that are believed are a session's order however they came.
func TestBelievedNumbers(t *testing.T) {
	for _, c := range []struct {
		seqs []int64
		gaps int64
	}{
		{[]int64{3, 2, 1, 4}, 0},
		{[]int64{4, 2, 1, 5}, 1},
	} {
		o := newRig(Options{Partitions: []int{0}, Whole: true, Numbered: true, Lateness: time.Second, MaxSkew: time.Millisecond})
		for i, seq := range c.seqs {
			o.Add(0, txn("s", seq, int64(i)*1e8, int64(i)*1e8+5e7), 0)
		}
		o.Flush()
		for i, r := range drain(o) {
			if want := slices.Sorted(slices.Values(c.seqs))[i]; r.Txn.Seq != want || r.Detached {
				t.Errorf("%v: %d is handed out, detached %v; want %d", c.seqs, r.Txn.Seq, r.Detached, want)
			}
		}
		if n := o.Counts(); n.Gaps != c.gaps || n.Misnumbered != 0 {
			t.Errorf("%v: %d gaps, %d misnumbered", c.seqs, n.Gaps, n.Misnumbered)
		}
	}
}

func wrongNumbers(t *testing.T, lines string, trial bool) {
	o := newRig(Options{Partitions: []int{0}, Lateness: 100 * time.Millisecond, MaxSkew: 5 * time.Millisecond, MaxAhead: time.Minute})
	want, wrong := map[string]bool{}, int64(0)
	for i, line := range strings.Split(lines, ", ") {
		var seq, end int64
		_, _ = fmt.Sscan(line, &seq, &end)
		x := txn("s", seq, end*1e6-1000, end*1e6)
		x.ID = fmt.Sprintf("%d: %s", i, line)
		if want[x.ID] = strings.HasSuffix(line, "wrong") || trial && strings.HasSuffix(line, "silent"); want[x.ID] {
			wrong++
		}
		arrival := end*1e6 + 1
		if trial {
			arrival = 0
		}
		if f := o.Add(0, x, arrival); f != Taken {
			t.Errorf("%s is %v", x.ID, f)
		}
	}
	o.Flush()
	for _, r := range drain(o) {
		if r.Misnumbered != want[r.Txn.ID] || r.Detached != r.Misnumbered {
			t.Errorf("%s: misnumbered %v, detached %v", r.Txn.ID, r.Misnumbered, r.Detached)
		}
		delete(want, r.Txn.ID)
	}
	if n := o.Counts().Misnumbered; len(want) > 0 || n != wrong {
		t.Errorf("%d are misnumbered, want %d; never handed out: %v", n, wrong, want)
	}
}
