package incremental_test

import (
	"testing"

	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
)

// A session whose records come after all of another's: what their lists show leads, in
// the orders of the weak levels, from place to place and back, and to transactions beyond
// the stretch that has to be sorted again.
const lateLists = `initial absent
s1 T1: r(k1,[2]) @8-9
s1 T2: append(k1,5) @13-14
s1 T3: r(k0,[1,3,4,6]) @17-18
s1 T4: append(k1,8) append(k1,9) @25-27
s1 T5: append(k0,14) @34-36
s1 T6:  @74-75
s0 T7: append(k0,1) append(k1,2) append(k0,3) @3-4
s0 T8: append(k0,4) @8-9
s0 T9: append(k0,6) @13-15
s0 T10: r(k1,[2,5,8,9]) @26-28
s0 T11: append(k0,11) @30-31
s0 T12: append(k0,12) @34-35
s0 T13: append(k0,15) @38-39
s0 T14: append(k0,16) @43-44
s0 T15: append(k0,17) @47-49
s0 T16: r(k0,[1,3,4,6,11,12,14,15,16,17]) @50-51
`

func TestWeakOrdersOfLateLists(t *testing.T) {
	s, err := script.Parse(lateLists)
	if err != nil {
		t.Fatal(err)
	}
	levels := []verdict.Level{verdict.RC, verdict.RA, verdict.CC}
	for every := 1; every <= len(s.Txns); every++ {
		e := incremental.New(incremental.Options{Levels: levels, Assumptions: record.Assumptions{Initial: record.InitialAbsent, Coverage: record.CoveragePartial, UnseenUnique: new(true)}, Online: true, UniqueValues: true})
		for i := range s.Txns {
			e.Step(&s.Txns[i], 0)
			if (i+1)%every == 0 {
				e.Tick(s.Txns[i].End)
			}
		}
		for _, r := range e.Close() {
			if r.Outcome != verdict.Satisfied {
				t.Errorf("a tick after %d: %v is %v: %+v", every, r.Level, r.Outcome, r.Violations)
			}
		}
	}
}
