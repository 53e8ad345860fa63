package script_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
)

func TestParse(t *testing.T) {
	s, err := script.Parse(`
		# a comment
		initial zero
		max_skew 5
		s1 T1: r(x,0) w(x,-1) @10-20   # another
		s1 T2 aborted: append(l, "a") r(l,[1, "a" ,null])
		s2 T3 unknown: w(y,null)
	`)
	if err != nil {
		t.Fatal(err)
	}
	zero, skew := record.InitialZero, int64(5)
	want := script.Script{
		Header: record.Header{Initial: &zero, MaxSkew: &skew},
		Txns: []record.Transaction{
			{DB: "default", Session: "s1", ID: "T1", HasSeq: true, Start: 10, End: 20, HasTimes: true, Ops: []record.Op{
				{Kind: record.Read, Key: "x", Value: record.Int(0)}, {Kind: record.Write, Key: "x", Value: record.Int(-1)}}},
			{DB: "default", Session: "s1", ID: "T2", Seq: 1, HasSeq: true, Status: record.Aborted, Ops: []record.Op{
				{Kind: record.Append, Key: "l", Value: record.String("a")},
				{Kind: record.Read, Key: "l", Value: record.Value{Kind: record.KindList, Text: `[1,"a",null]`}}}},
			{DB: "default", Session: "s2", ID: "T3", HasSeq: true, Status: record.Unknown, Ops: []record.Op{
				{Kind: record.Write, Key: "y"}}},
		},
	}
	if d := cmp.Diff(want, s); d != "" {
		t.Fatal(d)
	}
	again, err := script.Parse(script.Format(s))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(s, again); d != "" {
		t.Fatalf("Format then Parse: %s", d)
	}
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"hello":                          "line 1:",
		"initial ten":                    `initial can't be "ten"`,
		"max_skew -1":                    "max_skew",
		"s1: r(x,1)":                     "expected a session",
		"s1 T1 gone: r(x,1)":             "outcome",
		"s1 T1: q(x,1)":                  "expected r(key,value)",
		"s1 T1: r(x)":                    "expected r(key,value)",
		"s1 T1: r(x,1":                   "expected r(key,value)",
		"s1 T1: r(x,one)":                "expected an integer",
		"s1 T1: r(x,[1,one])":            "expected an integer",
		`s1 T1: r(x,"one)`:               "no string",
		"s1 T1: rp(x,1)":                 "expected r(key,value)",
		"s1 T1: r(x,1) @20-10":           "start <= end",
		"s1 T1: r(x,1)\ns2 T1: r(x,1)":   "line 2: a second transaction T1",
		"s1 T1: r(x,1)\nsessions ignore": "line 2:",
	} {
		_, err := script.Parse(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q in it", text, err, want)
		}
	}
}
