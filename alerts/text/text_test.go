package text_test

import (
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/isowatch/isowatch/alerts/text"
	"github.com/isowatch/isowatch/ingest/record"
)

func TestValue(t *testing.T) {
	for _, c := range []struct {
		v    record.Value
		want string
	}{
		{record.Null, `null`},
		{record.Int(-5), `-5`},
		{record.String("a b"), `"a b"`},
		{record.String("Zoë 雪"), `"Zoë 雪"`},
		{record.String("\x1b[2J"), `"\x1b[2J"`},
		{record.String("a\u202eb\u200d"), `"a\u202eb\u200d"`},
		{record.String("bad \xff utf-8"), `"bad \xff utf-8"`},
		{record.Value{Kind: record.KindBool, Text: "true"}, `true`},
		{record.Value{Kind: record.KindList, Text: `[1,"a\"b\\",2]`}, `[1,"a\"b\\",2]`},
		{record.Value{Kind: record.KindObject, Text: "{\"a\":\"\u202e\\\"\"}"}, `{"a":"\u202e\""}`},
		{record.String(strings.Repeat("é", 5000)), `"` + strings.Repeat("é", text.ValueMax) + `…" (10000 bytes)`},
		{record.Value{Kind: record.KindList, Text: "[" + strings.Repeat("1,", 1000) + "1]"}, "[" + strings.Repeat("1,", text.ValueMax/2-1) + "1… (2003 bytes)"},
	} {
		if got := text.Value(c.v); got != c.want {
			t.Errorf("%v: %s, want %s", c.v.Kind, got, c.want)
		}
	}
}

func TestName(t *testing.T) {
	long := strings.Repeat("x", 100) + "#42"
	for s, want := range map[string]string{
		"acct:1":   "acct:1",
		"":         `""`,
		"a b":      `"a b"`,
		"a\nb":     `"a\nb"`,
		"<b>é</b>": "<b>é</b>",
	} {
		if got := text.Name(s); got != want {
			t.Errorf("%q: %s, want %s", s, got, want)
		}
	}
	got := text.Name(long)
	if !strings.HasSuffix(got, "#42") || !strings.Contains(got, "…") || utf8.RuneCountInString(got) > text.NameMax+1 {
		t.Errorf("a long name became %s", got)
	}
}

func FuzzShown(f *testing.F) {
	f.Add("a\x1b\\\"\u2028\xff")
	f.Fuzz(func(t *testing.T, s string) {
		for _, got := range []string{text.Name(s), text.Printable(s), text.Value(record.String(s)), text.Value(record.Value{Kind: record.KindList, Text: s})} {
			if !utf8.ValidString(got) {
				t.Fatalf("%q: invalid UTF-8: %q", s, got)
			}
			for _, r := range got {
				if !strconv.IsPrint(r) {
					t.Fatalf("%q: shows %q", s, r)
				}
			}
		}
		if got := text.Name(s); utf8.RuneCountInString(got) > 10*text.NameMax+20 {
			t.Fatalf("%d runes", utf8.RuneCountInString(got))
		}
	})
}

func TestList(t *testing.T) {
	var long []record.Value
	for i := range 1000 {
		long = append(long, record.Int(int64(i)))
	}
	for _, c := range []struct {
		elements []record.Value
		places   []int
		want     string
	}{
		{nil, nil, "[]"},
		{[]record.Value{record.Int(1), record.String("a")}, []int{1}, `[1, "a"]`},
		{long, []int{41, 42}, "[…, 39, 40, 41, 42, 43, 44, …] (1000 elements)"},
		{long, []int{0}, "[0, 1, 2, …] (1000 elements)"},
		{long, []int{2, 999}, "[0, 1, 2, 3, 4, …, 997, 998, 999] (1000 elements)"},
		{long, nil, "[0, 1, 2, 3, 4, 5, 6, 7, …] (1000 elements)"},
		{long, []int{-1}, "[0, 1, …] (1000 elements)"},
		{[]record.Value{{Kind: record.KindList, Text: "\"\x1b[2J\""}, {Kind: record.KindNumber, Text: strings.Repeat("é", 100)}}, nil, `["\x1b[2J", ` + strings.Repeat("é", 24) + "… (200 bytes)]"},
	} {
		if got := text.List(c.elements, c.places...); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}
