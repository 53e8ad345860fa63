package list_test

import (
	"slices"
	"testing"

	"github.com/isowatch/isowatch/alerts/list"
	"github.com/isowatch/isowatch/ingest/record"
)

func TestElements(t *testing.T) {
	for _, c := range []struct {
		v    record.Value
		want []string
		ok   bool
	}{
		{record.Null, nil, true},
		{record.Value{Kind: record.KindList, Text: "[]"}, []string{}, true},
		{record.Value{Kind: record.KindList, Text: `[3,"a,]",[1,2],{"k":[]},null]`}, []string{"3", `"a,]"`, "[1,2]", `{"k":[]}`, "null"}, true},
		{record.Value{Kind: record.KindList, Text: "[3,"}, nil, false}, // no decoder makes it
		{record.Int(5), nil, false},
		{record.String("[1]"), nil, false},
	} {
		got, ok := list.Elements(c.v)
		if !slices.Equal(got, c.want) || ok != c.ok {
			t.Errorf("%v: %q, %v", c.v, got, ok)
		}
	}
}

func TestPlace(t *testing.T) {
	v := record.Value{Kind: record.KindList, Text: `[3,"17",17]`}
	for _, c := range []struct {
		element record.Value
		want    int
	}{{record.Int(3), 0}, {record.String("17"), 1}, {record.Int(17), 2}, {record.Int(1), -1}} {
		if got := list.Place(v, c.element); got != c.want {
			t.Errorf("%v: %d, want %d", c.element, got, c.want)
		}
	}
}

func TestCommonAndRepeated(t *testing.T) {
	if got := list.Common([]string{"1", "2", "3"}, []string{"1", "2", "4", "3"}); got != 2 {
		t.Errorf("common prefix %d, want 2", got)
	}
	if got := list.Common(nil, []string{"1"}); got != 0 {
		t.Errorf("common prefix %d, want 0", got)
	}
	if e, n := list.Repeated([]string{"1", "2", "3", "2", "1", "2"}); e != "2" || n != 3 {
		t.Errorf("%s %d times, want 2 three times", e, n)
	}
	if e, n := list.Repeated([]string{"1", "2"}); e != "" || n != 0 {
		t.Errorf("%s %d times, want none", e, n)
	}
}
