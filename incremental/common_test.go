package incremental_test

import (
	"testing"

	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
)

// Anybody may write null, and what keys hold at first: with unique values too nothing is told that rests on
// who wrote them before all have come who may have. So may anybody empty a list. What rests on other values, and on
// what followed what in one list, is told at the next tick; and that null was written twice says nothing of
// the values of others.
func TestCommonValues(t *testing.T) {
	const soon, late, never = 1, 2, 0 // at the tick of the last record, at that of when nobody can come any more
	for _, tc := range []struct {
		title, text string
		level       verdict.Level
		told        int
	}{
		{"one deletes between two updates", `
			initial absent
			s1 A: r(x,null) w(x,1) @0-10
			s2 C: r(x,null) w(x,2) @5-30
			s3 D: w(x,null) @12-40`, verdict.SI, never},
		{"nobody does", `
			initial absent
			s1 A: r(x,null) w(x,1) @0-10
			s2 C: r(x,null) w(x,2) @5-30`, verdict.SI, late},
		{"both updates are of what was deleted", `
			initial zero
			s0 D: w(x,5) @0-1
			s3 E: r(x,5) w(x,null) @2-3
			s1 A: r(x,null) w(x,1) @4-10
			s2 C: r(x,null) w(x,2) @5-30`, verdict.SI, late},
		{"who put back zero put 11 as well", `
			initial zero
			s1 A: r(y,0) r(x,11) @0-10
			s2 B: w(x,11) w(y,0) @5-30`, verdict.RA, never},
		{"nobody put back zero", `
			initial zero
			s1 A: r(y,0) r(x,11) @0-10
			s2 B: w(x,11) w(y,1) @5-30`, verdict.RA, late},
		{"null is no value that is known to be read where that is not declared", `
			s0 B: w(x,null) @0-10
			s1 A: r(x,null) r(y,7) @5-20
			s2 C: w(x,null) w(y,7) @5-30`, verdict.RA, never},
		{"other values are not waited for", `
			initial absent
			s0 Z: w(x,1) w(y,null) @0-1
			s3 Y: w(y,null) @0-2
			s1 A: r(x,1) w(x,2) @3-10
			s2 C: r(x,1) w(x,3) @5-30`, verdict.SI, soon},
		{"one empties a list", `
			initial absent
			s1 A: append(x,1) append(y,1) @0-10
			s2 C: r(x,null) r(y,[1]) @11-30
			s3 D: w(x,[]) @12-40`, verdict.RA, never},
		{"nobody does", `
			initial absent
			s1 A: append(x,1) append(y,1) @0-10
			s2 C: r(x,null) r(y,[1]) @11-30`, verdict.RA, late},
		{"one does before the first append to it comes", `
			initial absent
			s0 Z: append(y,0) @0-1
			s1 A: r(x,[]) r(y,[0,1]) @2-10
			s2 B: append(x,1) append(y,1) @5-30
			s3 D: w(x,null) @6-40`, verdict.RA, never},
		{"nobody does so", `
			initial absent
			s0 Z: append(y,0) @0-1
			s1 A: r(x,[]) r(y,[0,1]) @2-10
			s2 B: append(x,1) append(y,1) @5-30`, verdict.RA, late},
		{"two lists begin otherwise, as one emptied it between", `
			s1 A: append(x,1) @0-10
			s2 B: r(x,[1]) @11-20
			s1 C: append(x,2) @21-30
			s2 D: r(x,[2]) @31-40
			s3 E: w(x,[]) @15-50`, verdict.G1, never},
		{"nobody did", `
			s1 A: append(x,1) @0-10
			s2 B: r(x,[1]) @11-20
			s1 C: append(x,2) @21-30
			s2 D: r(x,[2]) @31-40`, verdict.G1, late},
		{"what was appended before a list's first element is not in it, as one emptied it", `
			s1 A: append(x,1) @0-10
			s1 B: append(x,2) @11-20
			s2 C: r(x,[2]) @21-30
			s3 D: w(x,[]) @5-40`, verdict.SER, never},
		{"for no reason", `
			s1 A: append(x,1) @0-10
			s1 B: append(x,2) @11-20
			s2 C: r(x,[2]) @21-30`, verdict.SER, late},
		{"at rc", `
			s1 A: append(x,1) append(y,1) @0-10
			s2 B: r(y,[1]) append(x,2) @11-20
			s3 C: r(x,[2]) @21-30`, verdict.RC, late},
		{"it was appended between two that follow each other, whoever emptied it", `
			s1 A: append(x,1) @0-10
			s2 B: append(x,2) @11-20
			s3 C: r(x,[1]) append(x,3) @5-30
			s2 D: r(x,[1,2]) @31-40`, verdict.SI, soon},
	} {
		s, err := script.Parse(tc.text)
		if err != nil {
			t.Fatal(err)
		}
		initial := record.InitialAny
		if s.Header.Initial != nil {
			initial = *s.Header.Initial
		}
		e := incremental.New(incremental.Options{Online: true, UniqueValues: true, Assumptions: record.Assumptions{UnseenUnique: new(true), Initial: initial, MaxSkew: 5}, Levels: []verdict.Level{tc.level},
			MaxTransaction: 100})
		told := 0
		for i := range s.Txns {
			e.Step(&s.Txns[i], 0)
			told += len(e.Tick(s.Txns[i].End).Violations)
		}
		if told > 0 != (tc.told == soon) {
			t.Errorf("%s: %d are told at once", tc.title, told)
		}
		if told += len(e.Tick(1000).Violations); told > 0 != (tc.told != never) {
			t.Errorf("%s: %d are told", tc.title, told)
		}
		if violated := e.Close()[0].Outcome == verdict.Violated; violated != (tc.told != never) {
			t.Errorf("%s: %+v", tc.title, e.Results()[0])
		}
		if !e.State().Unique {
			t.Errorf("%s: values are no longer taken for unique", tc.title)
		}
	}
}
