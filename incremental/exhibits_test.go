package incremental_test

import (
	"slices"
	"testing"

	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
)

func violations(t *testing.T, text string, level verdict.Level) []verdict.Violation {
	t.Helper()
	s, err := script.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	o := record.Assumptions{}.Override(s.Header)
	e := incremental.New(incremental.Options{Assumptions: record.Assumptions{UnseenUnique: new(true), Initial: o.Initial, Coverage: o.Coverage, Clock: o.Clock, Sessions: o.Sessions, MaxSkew: o.MaxSkew}, Levels: []verdict.Level{level}})
	for i := range s.Txns {
		e.Step(&s.Txns[i], 0)
	}
	return e.Close()[0].Violations
}

// A list that contradicts what was read is told as that, once. The rest of its order,
// with what was read, would make a run of updates from T1 to T5 without T4, which so
// would come after T5 though it came before it in its session.
func TestHalfAListProvesNothing(t *testing.T) {
	vs := violations(t, `initial zero
s1 T1: append(y,1) append(y,2)
s1 T2: r(y,[1,2]) append(y,3)
s1 T4: append(y,4)
s1 T5: append(y,5) append(y,7)
s1 T6: r(y,[1,2,4,3,5,7])
`, verdict.SER)
	if len(vs) != 1 || !slices.Equal(vs[0].Txns, []verdict.TxnID{1, 2}) {
		t.Errorf("%d violations, want one, of T2 and T4: %+v", len(vs), vs)
	}
}

// That the runs of updates of the initial version come before other writes rests on
// the reads along them, however many, and on nothing else that their transactions did.
func TestRunsFromTheInitialVersion(t *testing.T) {
	vs := violations(t, `initial any
s2 T2: r(y,null) w(x,4)
s1 T1: r(x,null) w(x,2) w(y,3)
s3 T3: r(x,2) w(x,5)
s4 T4: r(x,5) w(x,6)
s2 T5: r(x,6) w(x,9)
`, verdict.SER)
	if len(vs) != 1 {
		t.Fatalf("%d violations, want one: %+v", len(vs), vs)
	}
	if want := []verdict.TxnID{0, 1, 2, 3, 4}; !slices.Equal(vs[0].Evidence, want) {
		t.Errorf("evidence %v, want %v", vs[0].Evidence, want)
	}
	for _, x := range vs[0].Exhibits {
		for _, key := range slices.Concat(x.Reads, x.Writes, x.All) {
			if key != "x" {
				t.Errorf("transaction %d exhibits %s: %+v", x.Txn, key, x)
			}
		}
	}
}

// Where the whole history is the evidence, who has no part in it is none of it, and who may not
// have taken effect stands there with all that it read.
func TestTheWholeHistoryAsEvidence(t *testing.T) {
	for _, text := range []string{`initial absent
s3 T3: r(y,null) w(y,0)
s2 T2: r(y,null) w(y,null)
s1 T1: r(y,null) w(y,1) r(x,1)
s2 T4 unknown:
`, `initial zero
s1 T1: r(x,1) w(x,1)
s2 T2: r(x,1)
s3 T3 unknown: w(x,1) r(x,100)
`} {
		for _, level := range []verdict.Level{verdict.SER, verdict.SSER} {
			vs := violations(t, text, level)
			if len(vs) == 0 {
				t.Errorf("%v holds of\n%s", level, text)
			}
			s, _ := script.Parse(text)
			for _, v := range vs {
				if ok, why := proves(v, level, s.Txns, incremental.Options{Assumptions: record.Assumptions{UnseenUnique: new(true), Initial: record.Assumptions{}.Override(s.Header).Initial}}); !ok {
					t.Errorf("%v: %s%+v", level, why, v)
				}
			}
		}
	}
}

// Of a list with an element twice that nobody recorded appended, the others show what
// they always show.
func TestListsWithUnseenElementsTwice(t *testing.T) {
	for _, c := range []struct {
		text  string
		level verdict.Level
		kind  verdict.Kind
	}{
		{"coverage partial\ns3 T5: r(x,[4,6,4]) append(x,6)\n", verdict.G1, verdict.FutureRead},
		{"coverage partial\ns1 T1 aborted: append(x,6)\ns2 T2: append(x,7)\ns3 T3: r(x,[4,6,4])\n", verdict.G1, verdict.AbortedRead},
		{"coverage partial\ns1 T1: append(x,6)\ns1 T2: append(x,7)\ns2 T3: r(x,[4,7,6,4])\n", verdict.SER, verdict.Cycle},
	} {
		if vs := violations(t, c.text, c.level); len(vs) != 1 || vs[0].Kind != c.kind {
			t.Errorf("%s: %+v, want %v", c.text, vs, c.kind)
		}
	}
}

// A read of which it is not known who may have written what it returned is no part of a proof: under complete
// coverage it would be of a value out of thin air. U, of unknown outcome, ran for long, and its read of z waits,
// or of x, which it wrote as well; or z is both written and appended to.
func TestOpenReadsAreNotExhibited(t *testing.T) {
	const text = `initial absent
s1 W: w(x,1) @0-10
s2 O: w(x,2) @11-12
s3 T: r(x,1) @30-40
s4 S: r(x,2) @60-70
`
	for _, c := range []struct {
		more   string
		open   string
		online bool
	}{
		{"s5 U unknown: w(x,1) r(z,7) @0-900\n", "z", true},
		{"s5 U unknown: r(x,7) w(x,1) @0-900\n", "x", true},
		{"s6 A: append(z,1) @0-10\ns7 B: w(z,3) @0-10\ns5 U unknown: w(x,1) r(z,[1]) @0-900\n", "z", false},
	} {
		s, err := script.Parse(text + c.more)
		if err != nil {
			t.Fatal(err)
		}
		e := incremental.New(incremental.Options{Levels: []verdict.Level{verdict.SSER}, Assumptions: record.Assumptions{Initial: record.InitialAbsent}, Online: c.online, MaxTransaction: 1000})
		for i := range s.Txns {
			e.Step(&s.Txns[i], s.Txns[i].End)
		}
		vs := e.Tick(1500).Violations
		if !c.online {
			vs = e.Close()[0].Violations
		}
		found := false
		for _, v := range vs {
			for _, x := range v.Exhibits {
				if s.Txns[x.Txn].ID != "U" {
					continue
				}
				found = true
				if slices.Contains(slices.Concat(x.Reads, x.All), c.open) || !slices.Contains(x.Writes, "x") {
					t.Errorf("of U %+v is exhibited", x)
				}
			}
		}
		if !found || len(vs) != 1 {
			t.Errorf("%d violations, U, which may have written what T read, is exhibited: %v", len(vs), found)
		}
	}
}

// Who wrote a value that it had read there before is exhibited with that read, without which it would have made the
// value, and the others would have read it from there.
func TestWrittenBackIsExhibited(t *testing.T) {
	thin := false
	for _, v := range violations(t, "initial any\ns1 T2: r(x,1)\ns1 T3: r(x,1) r(x,2) w(x,2)\ns1 T4: r(x,2)\n", verdict.SI) {
		if v.Kind != verdict.ThinAirRead || v.Txns[0] != 2 {
			continue
		}
		thin = true
		if !slices.ContainsFunc(v.Exhibits, func(x verdict.Exhibit) bool { return x.Txn == 1 && slices.Contains(x.All, "x") }) {
			t.Errorf("what T4 read is out of thin air, by %+v", v.Exhibits)
		}
	}
	if !thin {
		t.Error("no read is out of thin air")
	}
}
