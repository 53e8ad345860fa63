package app

import (
	"testing"

	"pgregory.net/rapid"
)

// TestProgress compares with a set of offsets: floor is always the least offset
// that was read and not finished, and resume the last mark up to it.
func TestProgress(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p progress
		type rec struct {
			ticket uint64
			offset int64
		}
		var open []rec
		next, last := int64(0), int64(0)
		p.begin(mark{})
		marks := []mark{{}}
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0, 1:
				next += rapid.Int64Range(0, 2).Draw(t, "hole")
				open = append(open, rec{p.read(next), next})
				next++
			case 2:
				next += rapid.Int64Range(0, 2).Draw(t, "skipped")
				p.advance(next)
			case 4:
				marks = append(marks, mark{next, int64(len(marks))})
				p.mark(marks[len(marks)-1])
			case 3:
				if len(open) == 0 {
					continue
				}
				i := rapid.IntRange(0, len(open)-1).Draw(t, "which")
				p.finish(open[i].ticket)
				p.finish(open[i].ticket)
				open = append(open[:i], open[i+1:]...)
			}
			want := next
			if len(open) > 0 {
				want = open[0].offset
			}
			if got := p.floor(); got != want {
				t.Fatalf("floor %d, want %d", got, want)
			}
			if want < last {
				t.Fatalf("floor fell from %d to %d", last, want)
			}
			last = want
			for len(marks) > 1 && marks[1].next <= want {
				marks = marks[1:]
			}
			if got, ok := p.resume(); !ok || got != marks[0] {
				t.Fatalf("resume at %v %v, want %v", got, ok, marks[0])
			}
			if p.pending() < len(open) {
				t.Fatalf("%d pending, %d are open", p.pending(), len(open))
			}
			if len(p.queue) > 2*p.pending()+1 {
				t.Fatalf("%d places for %d pending", len(p.queue), p.pending())
			}
		}
	})
}

// TestResetForgetsTickets: after the input was replaced, tickets of the old one
// finish nothing of the new one.
func TestResetForgetsTickets(t *testing.T) {
	var p progress
	p.begin(mark{100, 1})
	old := p.read(100)
	p.reset()
	if _, ok := p.resume(); ok {
		t.Error("a place to resume before anything was read")
	}
	p.begin(mark{0, 2})
	fresh := p.read(0)
	p.mark(mark{1, 2})
	p.finish(old)
	if got, _ := p.resume(); got != (mark{0, 2}) {
		t.Errorf("resume at %v with a record open", got)
	}
	p.finish(fresh)
	if got, _ := p.resume(); got != (mark{1, 2}) {
		t.Errorf("resume at %v, want behind the record", got)
	}
}
