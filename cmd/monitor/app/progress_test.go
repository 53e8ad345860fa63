package app

import (
	"testing"

	"pgregory.net/rapid"
)

// TestProgress compares with a set of offsets: resume is always the least
// offset that was read and not finished.
func TestProgress(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p progress
		type rec struct {
			ticket uint64
			offset int64
		}
		var open []rec
		next, last := int64(0), int64(0)
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0, 1:
				next += rapid.Int64Range(0, 2).Draw(t, "hole")
				open = append(open, rec{p.read(next), next})
				next++
			case 2:
				next += rapid.Int64Range(0, 2).Draw(t, "skipped")
				p.advance(next)
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
			if got := p.resume(); got != want {
				t.Fatalf("resume at %d, want %d", got, want)
			}
			if p.resume() < last {
				t.Fatalf("resume fell from %d to %d", last, p.resume())
			}
			last = p.resume()
			if p.pending() < len(open) {
				t.Fatalf("%d pending, %d are open", p.pending(), len(open))
			}
			if len(p.queue) > 2*p.pending()+1 {
				t.Fatalf("%d places for %d pending", len(p.queue), p.pending())
			}
		}
	})
}
