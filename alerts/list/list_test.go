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
		want []record.Value
		ok   bool
	}{
		{record.Null, nil, true},
		{record.Value{Kind: record.KindList, Text: "[]"}, nil, true},
		{record.Value{Kind: record.KindList, Text: `[3,"a,]",[1,2],{"k":[]},null]`}, []record.Value{record.Int(3), record.String("a,]"),
			{Kind: record.KindList, Text: "[1,2]"}, {Kind: record.KindObject, Text: `{"k":[]}`}, record.Null}, true},
		{record.Int(5), nil, false},
		{record.String("[1]"), nil, false},
	} {
		got, ok := list.Elements(c.v)
		if !slices.Equal(got, c.want) || ok != c.ok {
			t.Errorf("%v: %v, %v", c.v, got, ok)
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
	es := func(text string) []record.Value { return record.Value{Kind: record.KindList, Text: text}.Elements() }
	if got := list.Common(es("[1,2,3]"), es("[1,2,4,3]")); got != 2 {
		t.Errorf("common prefix %d, want 2", got)
	}
	if got := list.Common(nil, es("[1]")); got != 0 {
		t.Errorf("common prefix %d, want 0", got)
	}
	if e, n := list.Repeated(es("[1,2,3,2,1,2]")); e != record.Int(2) || n != 3 {
		t.Errorf("%s %d times, want 2 three times", e, n)
	}
	if e, n := list.Repeated(es("[1,null]")); !e.IsNull() || n != 0 {
		t.Errorf("%s %d times, want none", e, n)
	}
}
