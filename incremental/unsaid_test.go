package incremental_test

import (
	"testing"

	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
)

// That nothing was read of a list says that it was before the first append, also with partial coverage; and
// also where the record of the first append, by which it is known to be a list, comes later. Of
// other keys it says nothing.
func TestNothingReadBeforeTheFirstAppend(t *testing.T) {
	for _, tc := range []struct {
		text string
		want verdict.Outcome
	}{
		{"s1 T1: r(y,null) r(x,[1])\ns2 T2: append(x,1) append(y,2)\n", verdict.Violated},
		{"s1 T1: r(x,[1]) r(y,null)\ns3 T3 aborted: append(y,7)\ns2 T2: append(x,1) append(y,2)\n", verdict.Violated},
		{"s1 T1: r(y,null) r(x,[1])\ns2 T2 unknown: append(x,1) append(y,2)\n", verdict.Violated},
		{"s1 T1: r(y,null)\ns2 T2: append(x,1) append(y,2)\ns1 T3: r(x,[1])\n", verdict.Satisfied},
		{"s1 T1: r(y,null) r(x,1)\ns2 T2: w(x,1) w(y,2)\n", verdict.Satisfied},
		{"s1 T1: append(y,3)\ns1 T2: w(y,2)\ns1 T3: r(y,[])\n", verdict.Unknown},
	} {
		for _, level := range []verdict.Level{verdict.RA, verdict.SI, verdict.SER} {
			for _, unique := range []bool{true, false} {
				s, err := script.Parse(tc.text)
				if err != nil {
					t.Fatal(err)
				}
				for _, online := range []bool{false, true} {
					e := incremental.New(incremental.Options{Online: online, UniqueValues: unique, Assumptions: record.Assumptions{UnseenUnique: new(true), Initial: record.InitialAny, Coverage: record.CoveragePartial}, Levels: []verdict.Level{level}, MaxTransaction: 100})
					told := 0
					for i := range s.Txns {
						e.Step(&s.Txns[i], int64(10*i))
						told += len(e.Tick(int64(10 * i)).Violations)
					}
					r := e.Close()[0]
					told += len(e.Tick(0).Violations)
					if r.Outcome != tc.want || online && told != len(r.Violations) {
						t.Errorf("online %v, unique values %v: %v is %v, %d told; want %v of\n%s", online, unique, level, r.Outcome, told, tc.want, tc.text)
					}
				}
			}
		}
	}
}

// Nothing that was read of a key to which only lists and nothing were written is what a list holds at first, if somebody
// appends to it, however late, whoever wrote nothing as well. Where nobody does, it was read of who did, or is out of thin
// air, which is known when the input ends.
func TestNothingReadBeforeALateAppend(t *testing.T) {
	const absent, zero, undeclared = record.InitialAbsent, record.InitialZero, record.InitialAny
	for _, tc := range []struct {
		initial record.Initial
		text    string
		plain   bool // the key is seen to hold no lists
	}{
		{absent, "s1 T1: w(y,[1])\ns2 T2: r(y,[])", false},
		{absent, "s1 T1: w(y,null)\ns2 T2: r(y,[])", false},
		{absent, "s1 T1: w(y,[]) w(y,null)\ns2 T2: r(y,[])", false},
		{absent, "s1 T1: w(y,[]) w(y,[1])\ns2 T2: r(y,[])", false},
		{absent, "s1 T1 aborted: w(y,[])\ns2 T2: r(y,[])", false},
		{absent, "s1 T1: w(z,1)\ns2 T2: r(y,[]) w(y,[])", false},
		{absent, "s1 T1: r(y,[])\ns1 T2: w(y,[])", false},
		{undeclared, "s1 T1: r(y,[])\ns1 T2: w(y,[])", false},
		{zero, "s1 T1: r(y,[])\ns1 T2: w(y,[])", false},
		{undeclared, "s1 T1: r(y,null)\ns1 T2: w(y,null)", false},
		{zero, "s1 T1: r(y,null)\ns1 T2: w(y,null)", false},
		{absent, "s1 T1: w(y,5)\ns2 T2: r(y,[])", true},
		{undeclared, "s1 T1: r(y,[]) w(y,5)\ns1 T2: w(y,[])", true},
	} {
		for _, late := range []bool{false, true} {
			s, err := script.Parse(tc.text + "\ns3 T3: append(y,9)\n")
			if err != nil {
				t.Fatal(err)
			}
			e := incremental.New(incremental.Options{Online: true, Levels: []verdict.Level{verdict.RC, verdict.SI},
				Assumptions: record.Assumptions{Initial: tc.initial}, MaxTransaction: 100})
			told := 0
			for i := range s.Txns[:2] {
				e.Step(&s.Txns[i], int64(10*i))
			}
			for at := range int64(100) {
				told += len(e.Tick(100 * at).Violations)
			}
			want := verdict.Violated
			if late {
				e.Step(&s.Txns[2], 20_000)
				want = verdict.Unknown
			}
			if tc.plain != (told > 0) {
				t.Errorf("%v, %q: %d told before any append", tc.initial, tc.text, told)
			} else if r := e.Close()[0]; !tc.plain && r.Outcome != want {
				t.Errorf("%v, %q, appended to late: %v: %+v", tc.initial, tc.text, late, r)
			}
		}
	}
}

// That a transaction read one word for nothing, and had written or read the other, is told once nobody can come any more
// whom it waited for, if its key is seen to hold no lists; else it is open, and for good where who appended may not have
// been recorded.
func TestNothingAgainstOnesOwn(t *testing.T) {
	for _, tc := range []struct {
		text string
		told bool
	}{
		{"s1 T1: w(x,5)\ns2 T2: w(x,null) r(x,[])", true},
		{"s1 T1: w(x,5)\ns2 T2: w(x,[]) r(x,null)", true},
		{"s1 T1: w(x,5)\ns2 T2: r(x,null) r(x,[])", true},
		{"s1 T1: w(x,[]) r(x,null)\ns2 T2: w(x,5)", true},
		{"s1 T1: w(x,null)\ns2 T2: r(x,null) w(x,null) r(x,[])", false},
		{"s1 T1: w(x,[1])\ns2 T2: r(x,null) r(x,[])", false},
	} {
		for _, partial := range []bool{false, true} {
			level, coverage := verdict.RA, record.CoverageComplete
			if partial {
				level, coverage = verdict.SI, record.CoveragePartial
			}
			s, err := script.Parse(tc.text + "\n")
			if err != nil {
				t.Fatal(err)
			}
			e := incremental.New(incremental.Options{Online: true, UniqueValues: true, Assumptions: record.Assumptions{UnseenUnique: new(true), Initial: record.InitialAbsent, Coverage: coverage},
				Levels: []verdict.Level{level}, MaxTransaction: 100})
			told, young := 0, false
			for i := range s.Txns {
				e.Step(&s.Txns[i], int64(10*i))
				told += len(e.Tick(int64(10 * i)).Violations)
			}
			young = e.Results()[0].OpenForGood()
			told += len(e.Tick(1000).Violations)
			if open := e.Results()[0].OpenForGood(); tc.told != (told > 0) || !tc.told && (young || !open) {
				t.Errorf("%v of %q: %d told, open for good %v, then %v", level, tc.text, told, young, open)
			}
			if r := e.Close()[0]; (r.Outcome == verdict.Violated) != (tc.told || !partial) || r.Outcome == verdict.Satisfied {
				t.Errorf("%v of %q, %v: %+v", level, tc.text, coverage, r)
			} else if r.Outcome == verdict.Violated && len(r.Violations[0].Evidence) < 2 {
				t.Errorf("%v of %q, %v: nothing shows that the key holds no lists: %+v", level, tc.text, coverage, r)
			}
		}
	}
}

// Whether who writes null and then reads an empty list saw its own write says what the key turns out to hold: of a list
// they are the same, and of a key of which a write is forgotten nobody knows. Where it is none that is wrong, also of one of
// unknown outcome from whom somebody was seen to read before.
func TestNothingReadAfterNothingWritten(t *testing.T) {
	for _, tc := range []struct {
		text  string
		lossy bool
		want  verdict.Outcome
	}{
		{"s1 T1: w(x,null) r(x,[])\n", false, verdict.Violated},
		{"s1 T1: w(x,null) r(x,[])\n", true, verdict.Unknown},
		{"s1 T1: w(x,null) r(x,[])\ns2 T2: append(x,1)\n", false, verdict.Satisfied},
		{"s1 T1 unknown: w(x,[]) r(x,null) w(x,2)\ns2 T2: r(x,2)\n", false, verdict.Violated},
	} {
		for _, online := range []bool{false, true} {
			s, err := script.Parse(tc.text)
			if err != nil {
				t.Fatal(err)
			}
			e := incremental.New(incremental.Options{Online: online, UniqueValues: true, Assumptions: record.Assumptions{UnseenUnique: new(true), Initial: record.InitialAbsent}, Levels: []verdict.Level{verdict.SI}})
			if tc.lossy {
				e.Lose("x", false)
			}
			for i := range s.Txns {
				e.Step(&s.Txns[i], int64(10*i))
				e.Tick(int64(10 * i))
			}
			if r := e.Close()[0]; r.Outcome != tc.want {
				t.Errorf("online %v: %+v; want %v of\n%s", online, r, tc.want, tc.text)
			}
		}
	}
}
