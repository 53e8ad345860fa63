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
		if i+1 < len(t.lanes) {
			t.c.raw(`<path d="M%d %dH%d" class="lane"/>`+"\n", margin, l.y+l.h+laneGap/2, t.right)
		}
	}
	if t.timed {
		t.axis(bottom)
	}
	for i, e := range t.events {
		y := t.lanes[0].y - axisH - (len(t.events)-1-i)*eventH
		t.c.raw("<g>")
		t.c.title(e.tip)
		t.c.raw(`<path d="M%d %dV%d" class="e rt"/>`+"\n", e.x, y-10, bottom)
		t.c.text(e.x+6, y, "l rt", "start", e.label)
		t.c.raw("</g>\n")
	}
	for i := range t.bars {
		t.drawBar(&t.bars[i])
	}
	t.drawRoutes()
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
	if t.timed {
		t.c.text(b.at.x+b.at.w-padX, b.at.y+17, "s dim", "end", b.took)
	}
	t.c.operations(&b.box, b.at.y+barHead)
	t.c.raw("</g>\n")
	t.c.taken = append(t.c.taken, b.at)
}

// port is where an edge meets a bar: at its upper or lower side.
type port struct {
	bar *bar
	top bool
	by  int // where the other end is
	x   int
}

// side is the place of a port.
func (p *port) side() point {
	if p.top {
		return point{p.x, p.bar.at.y}
	}
	return point{p.x, p.bar.at.y + p.bar.at.h}
}

// route is an edge on its way from bar to bar.
type route struct {
	edge     edge
	from, to *port // nil for what leads to the next bar of its lane
	through  int   // where it passes the lanes between
}

// plan gives the edges of each side of each bar places next to each other, in the
// order of their other ends, and those that pass lanes a way between the bars there.
func (t *chart) plan() {
	var ports []*port
	for _, e := range t.edges {
		a, _ := t.barOf(e.From)
		b, _ := t.barOf(e.To)
		r := route{edge: e}
		if !t.adjacent(a, b) || e.Type != "so" {
			r.from = &port{bar: a, top: b.lane <= a.lane, by: b.at.x + b.at.w/2}
			r.to = &port{bar: b, top: a.lane <= b.lane, by: a.at.x + a.at.w/2}
			ports = append(ports, r.from, r.to)
		}
		t.routes = append(t.routes, r)
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
				p.x = p.bar.at.x + p.bar.at.w*(2*j+1)/(2*len(side))
			}
		}
	}
	for i := range t.routes {
		if r := &t.routes[i]; r.from != nil && r.span() > 1 {
			r.through = t.corridor(i)
			t.right = max(t.right, r.through+8)
		}
	}
}

// span is how many lanes lie between the ends, plus one.
func (r *route) span() int { return max(r.from.bar.lane-r.to.bar.lane, r.to.bar.lane-r.from.bar.lane) }

// passes tells whether a route passes a lane on its way.
func (r *route) passes(lane int) bool {
	if r.from == nil {
		return false
	}
	a, b := min(r.from.bar.lane, r.to.bar.lane), max(r.from.bar.lane, r.to.bar.lane)
	return a < lane && lane < b
}

const corridorW = 14

// corridor is where the i-th route can pass the lanes between its ends without
// meeting a bar or an earlier route, with the least detour.
func (t *chart) corridor(i int) int {
	r := &t.routes[i]
	type span struct{ from, to int }
	var blocked []span
	end := t.left
	for j := range t.bars {
		b := &t.bars[j]
		end = max(end, b.at.x+b.at.w)
		if r.passes(b.lane) {
			blocked = append(blocked, span{b.at.x - corridorW, b.at.x + b.at.w + corridorW})
		}
	}
	for j := range t.routes[:i] {
		o := &t.routes[j]
		shared := slices.ContainsFunc(t.bars, func(b bar) bool { return r.passes(b.lane) && o.passes(b.lane) })
		if shared {
			blocked = append(blocked, span{o.through - corridorW, o.through + corridorW})
		}
		end = max(end, o.through)
	}
	ways := []int{r.from.x, r.to.x, end + corridorW}
	for _, b := range blocked {
		ways = append(ways, b.from, b.to)
	}
	best, cost := end+corridorW, -1
	for _, x := range ways {
		free := x >= t.left && !slices.ContainsFunc(blocked, func(b span) bool { return b.from < x && x < b.to })
		if c := max(x-r.from.x, r.from.x-x) + max(x-r.to.x, r.to.x-x); free && (cost < 0 || c < cost) {
			best, cost = x, c
		}
	}
	return best
}

// drawRoutes draws all edges, and then their labels, so that none of these is
// crossed out.
func (t *chart) drawRoutes() {
	for i := range t.routes {
		r := &t.routes[i]
		t.c.raw("<g>")
		t.c.title(edgeTip(r.edge))
		t.drawRoute(r)
		t.c.raw("</g>\n")
	}
	for i := range t.routes {
		if r := &t.routes[i]; r.from != nil {
			t.c.taken = append(t.c.taken, r.to.head())
		}
	}
	for i := range t.routes {
		if r := &t.routes[i]; r.from != nil {
			label := edgeLabel(r.edge)
			t.c.label(label, kindOf(r.edge), t.clearest(i, labelW(label)))
		}
	}
}

// head is what the arrow head at a port takes, and a little room.
func (p *port) head() rect {
	at := p.side()
	if p.top {
		return rect{at.x - 7, at.y - 12, 14, 12}
	}
	return rect{at.x - 7, at.y, 14, 12}
}

// clearest are the places for the label of the i-th route, so wide, those first where it
// hides least of other routes.
func (t *chart) clearest(i, width int) []point {
	var others []point
	for j := range t.routes {
		if r := &t.routes[j]; j != i && r.from != nil {
			others = append(others, t.along(r)...)
		}
	}
	places := t.places(&t.routes[i])
	hides := make(map[point]int, len(places))
	for _, p := range places {
		hides[p] = 0
		for _, o := range others {
			if labelAt(p, width).meets(rect{o.x - 2, o.y - 2, 4, 4}) {
				hides[p]++
			}
		}
	}
	slices.SortStableFunc(places, func(p, q point) int { return hides[p] - hides[q] })
	return places
}

// along are points of a route, a few pixels apart.
func (t *chart) along(r *route) []point {
	var out []point
	cs := t.curves(r)
	for _, c := range cs {
		for at := int64(0); at <= 100; at += 5 {
			out = append(out, onCurve(c, at))
		}
	}
	if len(cs) > 1 {
		a, b := cs[0][3], cs[1][0]
		for y := min(a.y, b.y); y < max(a.y, b.y); y += 6 {
			out = append(out, point{a.x, y})
		}
	}
	return out
}

func (t *chart) drawRoute(r *route) {
	class := kindOf(r.edge)
	if r.from == nil { // the next one in its session
		a, _ := t.barOf(r.edge.From)
		b, _ := t.barOf(r.edge.To)
		y := a.at.y + 14
		t.c.across(a.at, b.at, y, y-7, class, edgeLabel(r.edge))
		return
	}
	d := ""
	for i, c := range t.curves(r) {
		if i == 0 {
			d = fmt.Sprintf("M%d %d", c[0].x, c[0].y)
		} else {
			d += fmt.Sprintf("V%d", c[0].y)
		}
		d += fmt.Sprintf("C%d %d %d %d %d %d", c[1].x, c[1].y, c[2].x, c[2].y, c[3].x, c[3].y)
	}
	t.c.raw(`<path d="%s" class="e %s"/>`, d, class)
	head := up
	if r.to.top {
		head = down
	}
	t.c.arrow(r.to.side(), head, class)
}

// curves are the bent parts of a route; what is between two of them is upright.
func (t *chart) curves(r *route) [][4]point {
	p, q := r.from.side(), r.to.side()
	if r.to.top { // the arrow head has its place
		q.y -= 8
	} else {
		q.y += 8
	}
	if r.from.top == r.to.top { // both in one lane: over their heads
		return [][4]point{{p, {p.x, p.y - arc}, {q.x, q.y - arc}, q}}
	}
	if r.span() == 1 {
		return [][4]point{bend(p, q)}
	}
	a, b := p.y+laneGap-14, q.y-laneGap+22
	if r.from.top {
		a, b = p.y-laneGap+14, q.y+laneGap-22
	}
	if l := &t.lanes[r.from.bar.lane]; !r.from.top { // bars of a lane differ in height
		a = l.y + l.h + laneGap - 8
	}
	if l := &t.lanes[r.to.bar.lane]; !r.to.top {
		b = l.y + l.h + laneGap - 8
	}
	return [][4]point{bend(p, point{r.through, a}), bend(point{r.through, b}, q)}
}

// bend is a curve that leaves and arrives upright.
func bend(p, q point) [4]point {
	h := (q.y - p.y) * 3 / 10
	return [4]point{p, {p.x, p.y + h}, {q.x, q.y - h}, q}
}

// places are where the label of a route may stand, best first.
func (t *chart) places(r *route) []point {
	var out []point
	cs := t.curves(r)
	for _, at := range []int64{50, 44, 56, 38, 62, 33, 67, 28, 72, 24, 76, 20, 80} {
		for _, c := range cs {
			out = append(out, onCurve(c, at))
		}
	}
	if len(cs) > 1 {
		a, b := cs[0][3], cs[1][0]
		for _, share := range []int{8, 6, 10, 4, 12} {
			out = append(out, point{a.x, a.y + (b.y-a.y)*share/16})
		}
	}
	return out
}

// labelW is how wide a label is, labelAt what it takes around a point.
func labelW(s string) int             { return px(s, 12) + 6 }
func labelAt(p point, width int) rect { return rect{p.x - width/2, p.y - 9, width, 17} }

// label writes a label on its edge where nothing else stands, if there is such a
// place.
func (c *canvas) label(s, class string, places []point) {
	w := labelW(s)
	at := func(p point) rect { return labelAt(p, w) }
	best := at(places[0])
	for _, p := range places {
		if r := at(p); r.x >= 0 && !slices.ContainsFunc(c.taken, r.meets) {
			best = r
			break
		}
	}
	c.taken = append(c.taken, rect{best.x - 3, best.y - 3, best.w + 6, best.h + 6}) // not touching either
	c.raw(`<rect x="%d" y="%d" width="%d" height="%d" rx="4" class="bg"/>`, best.x, best.y, best.w, best.h)
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
