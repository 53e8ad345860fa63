package picture

import (
	"fmt"
	"slices"
	"time"
)

// draw writes lanes, bars and the edges between them; bottom is the lower end.
func (t *chart) draw(bottom int) {
	for i, l := range t.lanes {
		if i == 0 || t.lanes[i-1].name != l.name {
			t.c.text(margin, l.y+17, "s dim", "start", l.name)
		}
		t.c.raw(`<path d="M%d %dH%d" class="lane"/>`+"\n", margin, l.y+l.h+laneGap/2, t.right)
	}
	if t.timed {
		t.axis(bottom)
	}
	for i := range t.bars {
		t.drawBar(&t.bars[i])
	}
	t.drawEdges()
}

// axis says when transactions started, as long after the first as fits.
func (t *chart) axis(bottom int) {
	order := make([]int, len(t.bars))
	first := t.txns[t.bars[0].txn].Start
	for i := range order {
		order[i] = i
		first = min(first, t.txns[t.bars[i].txn].Start)
	}
	slices.SortStableFunc(order, func(a, b int) int { return t.bars[a].at.x - t.bars[b].at.x })
	y, free := t.lanes[0].y-10, 0
	for _, i := range order {
		b := &t.bars[i]
		t.c.raw(`<path d="M%d %dV%d" class="tick"/>`+"\n", b.at.x, y+4, bottom)
		since := uint64(t.txns[b.txn].Start) - uint64(first) //nolint:gosec // a difference of ordered numbers
		label := "0"
		switch {
		case since >= 1<<62:
			label = "later"
		case since > 0:
			label = "+" + time.Duration(since).String() //nolint:gosec // less than 1<<62
		}
		if b.at.x >= free {
			t.c.text(b.at.x, y, "s dim", "start", label)
			free = b.at.x + px(label, 11) + 10
		}
	}
}

func (t *chart) drawBar(b *bar) {
	t.c.raw("<g>")
	t.c.title(b.tip)
	t.c.raw("\n")
	t.c.raw(`<rect x="%d" y="%d" width="%d" height="%d" rx="8" class="bg"/>`+"\n", b.at.x, b.at.y, b.at.w, b.at.h)
	t.c.box(b.at, b.class)
	t.c.text(b.at.x+padX, b.at.y+17, "id ink", "start", b.id)
	y := b.at.y + barHead
	for _, l := range b.lines {
		t.c.line(b.at.x, y, b.at.w, l)
		y += lineH
	}
	if b.more > 0 {
		t.c.text(b.at.x+padX, y+13, "s dim", "start", fmt.Sprintf("… %d more", b.more))
	}
	t.c.raw("</g>\n")
	t.c.taken = append(t.c.taken, b.at)
}

// port is where an edge meets a bar: at its upper or lower side.
type port struct {
	edge int
	ends bool // the edge ends here
	bar  *bar
	top  bool
	by   int // where the other end is
	x    int
}

// drawEdges gives the edges of each side of each bar places next to each other,
// in the order of their other ends, and draws them.
func (t *chart) drawEdges() {
	var ports []*port
	for i, e := range t.edges {
		a, _ := t.barOf(e.From)
		b, _ := t.barOf(e.To)
		if t.adjacent(a, b) && e.Type == "so" {
			continue
		}
		ports = append(ports,
			&port{edge: i, bar: a, top: b.lane <= a.lane, by: b.at.x + b.at.w/2},
			&port{edge: i, ends: true, bar: b, top: a.lane <= b.lane, by: a.at.x + a.at.w/2})
	}
	for i := range t.bars {
		for _, top := range []bool{true, false} {
			var side []*port
			for _, p := range ports {
				if p.bar == &t.bars[i] && p.top == top {
					side = append(side, p)
				}
			}
			slices.SortStableFunc(side, func(p, q *port) int { return p.by - q.by })
			for j, p := range side {
				p.x = p.bar.at.x + p.bar.at.w*(j+1)/(len(side)+1)
			}
		}
	}
	for i, e := range t.edges {
		var from, to *port
		for _, p := range ports {
			switch {
			case p.edge != i:
			case p.ends:
				to = p
			default:
				from = p
			}
		}
		t.c.raw("<g>")
		t.c.title(edgeTip(e))
		t.edge(e, from, to)
		t.c.raw("</g>\n")
	}
}

func (t *chart) edge(e edge, from, to *port) {
	class, label := kindOf(e), edgeLabel(e)
	if from == nil || to == nil { // the next one in its session
		a, _ := t.barOf(e.From)
		b, _ := t.barOf(e.To)
		y := max(a.at.y+14, min(a.at.y+min(a.at.h, b.at.h)/2, a.at.y+40))
		t.c.across(a.at, b.at, y, y-7, class, label)
		return
	}
	p, q := from.side(), to.side()
	bend := (q.y - p.y) / 2
	c1, c2 := point{p.x, p.y + bend}, point{q.x, q.y - bend}
	if from.top == to.top { // both in one lane: over their heads
		c1, c2 = point{p.x, p.y - laneGap/2}, point{q.x, q.y - laneGap/2}
	}
	head, tail := up, point{q.x, q.y + 8}
	if to.top {
		head, tail = down, point{q.x, q.y - 8}
	}
	t.c.raw(`<path d="M%d %dC%d %d %d %d %d %d" class="e %s"/>`, p.x, p.y, c1.x, c1.y, c2.x, c2.y, tail.x, tail.y, class)
	t.c.arrow(q, head, class)
	t.c.label(label, class, [4]point{p, c1, c2, q})
}

// side is where a port is.
func (p *port) side() point {
	if p.top {
		return point{p.x, p.bar.at.y}
	}
	return point{p.x, p.bar.at.y + p.bar.at.h}
}

// label writes a label beside a curve where nothing else stands, if there is such
// a place.
func (c *canvas) label(s, class string, curve [4]point) {
	w := px(s, 12)
	var best rect
	for i, at := range []int64{50, 40, 60, 32, 68, 25, 75} {
		p := onCurve(curve, at)
		r := rect{p.x - w/2, p.y - 9, w, 16}
		if i == 0 {
			best = r
		}
		if !slices.ContainsFunc(c.taken, r.meets) {
			best = r
			break
		}
	}
	c.taken = append(c.taken, best)
	c.text(best.x+w/2, best.y+13, "l "+class, "middle", s)
}

// onCurve is the point of a Bézier curve at t hundredths.
func onCurve(c [4]point, t int64) point {
	u := 100 - t
	at := func(a, b, d, e int) int {
		return int((int64(a)*u*u*u + 3*int64(b)*u*u*t + 3*int64(d)*u*t*t + int64(e)*t*t*t) / 1_000_000)
	}
	return point{at(c[0].x, c[1].x, c[2].x, c[3].x), at(c[0].y, c[1].y, c[2].y, c[3].y)}
}
