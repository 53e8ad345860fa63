package storetest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/window/store"
)

// letterTests: what dead letters are kept, and what of them.
var letterTests = []test{
	{"other dead letters at one place are kept", suite.lettersAtOnePlace},
	{"dead letters are cut and bounded", suite.boundedLetters},
	{"dead letters are bounded in bytes", suite.lettersInBytes},
	{"long texts are cut", suite.longTexts},
}

func (x suite) lettersAtOnePlace(t *testing.T) {
	s := open(t, x.newPlace(t), x.opt)
	a, b, c := Letter(1, "x"), Letter(1, "x"), Letter(1, "y")
	b.Reason = "twice"
	commit(t, s, store.Commit{DeadLetters: []store.DeadLetter{a, b, c}})
	if got := len(x.read(t, s).Letters); got != 3 {
		t.Fatalf("%d dead letters", got)
	}
}

func (x suite) boundedLetters(t *testing.T) {
	ctx := t.Context()
	small := store.Options{MaxValue: 4, MaxDeadLetters: 3}
	s := open(t, x.newPlace(t), small)
	for i := range int64(5) {
		commit(t, s, store.Commit{DeadLetters: []store.DeadLetter{Letter(2*i, "0123456"), Letter(2*i+1, "01")}})
	}
	var got []string
	if err := s.DeadLetters(ctx, func(l store.DeadLetter) bool {
		got = append(got, fmt.Sprintf("%d at %d: %q of %d", l.ID, l.Pos.Offset, l.Value, l.Size))
		return true
	}); err != nil {
		t.Fatal(err)
	}
	same(t, []string{`7 at 7: "01" of 2`, `8 at 8: "0123" of 7`, `9 at 9: "01" of 2`}, got)
	// What was dropped may come again; it is a new one.
	commit(t, s, store.Commit{DeadLetters: []store.DeadLetter{Letter(0, "0123456")}})
	if l := x.read(t, s).Letters; len(l) != 3 || l[2].ID != 10 {
		t.Fatalf("%+v", l)
	}
}

func (x suite) lettersInBytes(t *testing.T) {
	s := open(t, x.newPlace(t), store.Options{MaxDeadLetterBytes: 5000})
	for i := range int64(20) {
		commit(t, s, store.Commit{DeadLetters: []store.DeadLetter{Letter(i, strings.Repeat("x", 900))}})
	}
	if l := x.read(t, s).Letters; len(l) != 5 || l[4].Pos.Offset != 19 {
		t.Fatalf("%d dead letters", len(l))
	}
	commit(t, s, store.Commit{DeadLetters: []store.DeadLetter{Letter(99, strings.Repeat("x", 9000))}})
	if l := x.read(t, s).Letters; len(l) != 1 || l[0].Pos.Offset != 99 {
		t.Fatalf("the newest must be kept, whatever its size: %d kept", len(l))
	}
}

func (x suite) longTexts(t *testing.T) {
	s := open(t, x.newPlace(t), x.opt)
	l := Letter(1, "x")
	l.Detail = strings.Repeat("é", 10_000)
	commit(t, s, store.Commit{DeadLetters: []store.DeadLetter{l}})
	got := x.read(t, s).Letters[0].Detail
	if len(got) > 4096 || !strings.HasSuffix(got, "é…") {
		t.Fatalf("%d bytes, ends %q", len(got), got[len(got)-8:])
	}
}
