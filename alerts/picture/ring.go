package picture

import (
	"fmt"

	"github.com/isowatch/isowatch/alerts/text"
	"github.com/isowatch/isowatch/ingest/record"
)

// Measures in pixels.
const (
	margin   = 16
	lineH    = 18 // of an operation
	headH    = 44 // of a box: id, session
	padX     = 12
	boxMin   = 108
	rowGap   = 62
	widthMin = 330
)

// node is a box of a ring.
type node struct {
	box
	under string // as shown, under its name
	w, h  int
}

// cycle draws the alert's rings beneath each other.
func (s *scene) cycle() drawing {
	c := &canvas{}
	y, w := margin, widthMin
	types := map[string]bool{}
	for i, r := range s.rings {
		if len(s.rings) > 1 {
			s.markOnly(r)
			y += min(i, 1) * 14
		}
		for j, l := range s.captions(i) {
			y += 20
			class := "sans s ink"
			if j == 0 {
				class = "sans id ink"
			}
			c.text(margin, y, class, "start", l)
			w = max(w, 2*margin+sans(l, 11))
		}
		if len(s.rings) > 1 {
			y += 14
		}
		size := c.ring(s.nodes(r), r, y)
		w, y = max(w, size.x), size.y
		for _, e := range r {
			if e.To != "" {
				types[e.Type] = true
			}
		}
	}
	if n := len(s.alert.Cases) - len(s.rings); len(s.rings) > 1 && n > 0 {
		y += 24
		c.text(margin, y, "sans s dim", "start", fmt.Sprintf("… and %d more cases, each with a cycle of its own", n))
	}
	if len(s.rings) == 0 {
		y += 24
		c.text(margin, y, "sans s dim", "start", "There is nothing to draw: the alert has neither a cycle nor transactions.")
		w = max(w, 460)
	}
	w, y = c.legend(types, w, y+10, s.closed(), s.wrong())
	return drawing{w: w, h: y + margin, label: s.label("Cycle"), body: c.b.String()}
}

// captions are the lines above a case: what it supposes.
func (s *scene) captions(i int) []string {
	if len(s.alert.Cases) < 2 || len(s.alert.Cycle) > 0 {
		return nil
	}
	out := []string{fmt.Sprintf("Case %d of %d", i+1, len(s.alert.Cases))}
	for _, e := range s.rings[i] {
		if e.Basis == "case" && len(out) <= 4 {
			out = append(out, wrap(printable(e.Why, 400), captionCols)...)
		}
	}
	return out
}

const captionCols = 76

// nodes are the boxes of a ring, in its order; where it is too long some in the
// middle are one box.
func (s *scene) nodes(r []edge) []node {
	if len(r) == 1 && r[0].single {
		e := r[0]
		switch {
		case e.nobody:
			return []node{size(node{box: box{id: "nobody", tip: "No recorded transaction wrote this value.", class: "ghost"},
				under: "no recorded writer"}), s.node(e.To)}
		case e.To == "":
			return []node{s.node(e.From)}
		}
		return []node{s.node(e.From), s.node(e.To)}
	}
	out := make([]node, 0, min(len(r), nodesMax))
	for i := range r {
		if len(r) > nodesMax && i >= nodesMax/2 && i < len(r)-nodesMax/2+1 {
			if i == nodesMax/2 {
				out = append(out, size(node{box: box{id: fmt.Sprintf("… %d more …", len(r)-nodesMax+1),
					tip: "The alert has all of them.", class: "box"}, under: "transactions"}))
			}
			continue
		}
		out = append(out, s.node(r[i].From))
	}
	return out
}

func (s *scene) node(id string) node {
	n := node{box: box{id: middle(text.Name(id), idCols), tip: text.Name(id), class: "box"}}
	if id == "" {
		n.id, n.under, n.tip, n.class = "(not recorded)", "a writer", "A writer that was not recorded.", "ghost"
		return size(n)
	}
	t, at, ok := s.find(id)
	if !ok {
		n.under = "not in the evidence"
		return size(n)
	}
	n.under = "session " + middle(text.Name(t.Session), sessionCols)
	n.tip += ", session " + text.Session(t)
	if t.Node != "" {
		n.under += " at " + middle(text.Name(t.Node), sessionCols)
	}
	if t.Status != record.Committed {
		n.under += " · " + t.Status.String()
		n.tip += ", " + t.Status.String()
		n.class = "ghost"
	}
	n.lines, n.more = s.lines(at, opsMax)
	return size(n)
}

// size gives a box its width and height.
func size(n node) node {
	w, h := n.size()
	n.w = max(boxMin, w, px(n.under, 11)) + 2*padX
	if n.h = headH; h > 0 {
		n.h += h + 8
	}
	return n
}

// ring draws boxes in two columns, clockwise, and the edges between; y is where it
// begins. It returns the right and lower end.
func (c *canvas) ring(ns []node, r []edge, y int) point {
	if len(ns) == 0 {
		return point{0, y}
	}
	closed := !r[0].single
	w := 0
	for _, n := range ns {
		w = max(w, n.w)
	}
	labels := edgeLabels(r, len(ns))
	gap := 76
	for i, l := range labels {
		switch {
		case i == 0 || len(ns)%2 == 0 && i == len(ns)/2:
			gap = max(gap, px(l, 12)+44)
		case i < len(ns)/2: // to the right, and one to the left, share what is between
			gap = max(gap, px(l, 12)+px(labels[len(ns)-1-i+len(ns)%2], 12)+48-w)
		}
	}
	left, right := margin, margin+w+gap
	end := place(ns, left, right, w, gap, y)
	for i := range labels {
		if closed || i == 0 && len(ns) == 2 {
			c.ringEdge(ns, r, i, labels[i])
		}
	}
	for _, n := range ns {
		c.node(n)
	}
	if len(ns) == 1 {
		return point{left + w + margin, end}
	}
	return point{right + w + margin, end}
}

// place gives every box its place: the first at the left, the second at its right,
// on down the right column and up the left one; an odd one out stands between, at
// the bottom.
func place(ns []node, left, right, w, gap, y int) int {
	rows := (len(ns) + 1) / 2
	for row := range rows {
		l, r := (len(ns)-row)%len(ns), row+1
		h := ns[l].h
		if r < len(ns) && r != l {
			h = max(h, ns[r].h)
		}
		if r == l || r >= len(ns) {
			x := left
			if len(ns) > 1 {
				x = left + (w+gap)/2
			}
			ns[l].at = rect{x, y, w, ns[l].h}
		} else {
			ns[l].at = rect{left, y + (h-ns[l].h)/2, w, ns[l].h}
			ns[r].at = rect{right, y + (h-ns[r].h)/2, w, ns[r].h}
		}
		y += h
		if row < rows-1 {
			y += rowGap
		}
	}
	return y
}

// edgeLabels are what stands at the edges between boxes that follow each other.
func edgeLabels(r []edge, nodes int) []string {
	out := make([]string, nodes)
	for i := range out {
		e := ringEdgeAt(r, nodes, i)
		if e == nil {
			out[i] = "…"
			continue
		}
		out[i] = edgeLabel(*e)
	}
	return out
}

// ringEdgeAt is the edge that leaves the i-th of so many boxes; nil if it is left
// out.
func ringEdgeAt(r []edge, nodes, i int) *edge {
	switch {
	case len(r) <= nodes || i < nodesMax/2:
		if i < len(r) {
			return &r[i]
		}
		return nil
	case i == nodesMax/2:
		return nil
	}
	return &r[len(r)-nodes+i]
}

func edgeLabel(e edge) string {
	l := e.Type
	if kindOf(e) == "xx" {
		l = head(text.Name(e.Type), labelCols)
	}
	if e.Key != "" {
		l += " " + middle(text.Name(e.Key), labelCols)
	}
	return l
}

// ringEdge draws the edge from the i-th box to the next.
func (c *canvas) ringEdge(ns []node, r []edge, i int, label string) {
	from, to := ns[i].at, ns[(i+1)%len(ns)].at
	class, tip := "so", "Steps that are left out."
	if e := ringEdgeAt(r, len(ns), i); e != nil {
		class = kindOf(*e)
		tip = edgeTip(*e)
	}
	c.raw("<g>")
	c.title(tip)
	switch {
	case len(ns) == 2 && len(r) == 2:
		c.mutual(from, to, i, class, label)
	case from.y < to.y+to.h && to.y < from.y+from.h: // side by side
		y := max(from.y, to.y) + min(from.h, to.h)/2
		c.across(from, to, y, y-8, class, label)
	case len(ns)%2 == 1 && (i+1)%len(ns) == (len(ns)+1)/2: // down to the one at the bottom
		c.intoMiddle(from, to, class, label)
	case len(ns)%2 == 1 && i == (len(ns)+1)/2:
		c.outOfMiddle(from, to, class, label)
	default:
		c.vertical(from, to, class, label)
	}
	c.raw("</g>\n")
}

// mutual draws one of two edges between the same two boxes.
func (c *canvas) mutual(from, to rect, i int, class, label string) {
	top, h := max(from.y, to.y), min(from.h, to.h)
	if i == 0 {
		y := top + h*3/8
		c.across(from, to, y, y-9, class, label)
		return
	}
	y := top + h*5/8
	c.across(from, to, y, y+18, class, label)
}

// across draws a level line between two boxes at y, with its label at another.
func (c *canvas) across(from, to rect, y, labelY int, class, label string) {
	a, b, head := from.x+from.w, to.x, right
	if to.x < from.x {
		a, b, head = from.x, to.x+to.w, left
	}
	tail := b - 8
	if head == left {
		tail = b + 8
	}
	c.raw(`<path d="M%d %dH%d" class="e %s"/>`, a, y, tail, class)
	c.arrow(point{b, y}, head, class)
	c.text((a+b)/2, labelY, "l "+class, "middle", label)
}

// vertical draws a line between boxes above each other, with its label at the inner
// side.
func (c *canvas) vertical(from, to rect, class, label string) {
	x := from.x + from.w/2
	if to.y > from.y {
		c.raw(`<path d="M%d %dV%d" class="e %s"/>`, x, from.y+from.h, to.y-8, class)
		c.arrow(point{x, to.y}, down, class)
		c.text(x-10, (from.y+from.h+to.y)/2+4, "l "+class, "end", label)
		return
	}
	c.raw(`<path d="M%d %dV%d" class="e %s"/>`, x, from.y, to.y+to.h+8, class)
	c.arrow(point{x, to.y + to.h}, up, class)
	c.text(x+10, (from.y+to.y+to.h)/2+4, "l "+class, "start", label)
}

// intoMiddle draws an edge from the right column to the box between the columns.
func (c *canvas) intoMiddle(from, to rect, class, label string) {
	x, y := from.x+from.w*5/8, to.y+to.h/2
	if x < to.x+to.w+20 {
		x = max(from.x+from.w/2, to.x+to.w+20)
	}
	c.raw(`<path d="M%d %dV%dQ%d %d %d %dH%d" class="e %s"/>`, x, from.y+from.h, y-12, x, y, x-12, y, to.x+to.w+8, class)
	c.arrow(point{to.x + to.w, y}, left, class)
	c.text(x-10, from.y+from.h+rowGap/2+2, "l "+class, "end", label)
}

func (c *canvas) outOfMiddle(from, to rect, class, label string) {
	x, y := to.x+to.w*3/8, from.y+from.h/2
	if x > from.x-20 {
		x = min(to.x+to.w/2, from.x-20)
	}
	c.raw(`<path d="M%d %dH%dQ%d %d %d %dV%d" class="e %s"/>`, from.x, y, x+12, x, y, x, y-12, to.y+to.h+8, class)
	c.arrow(point{x, to.y + to.h}, up, class)
	c.text(x+10, to.y+to.h+rowGap/2+2, "l "+class, "start", label)
}

func (c *canvas) node(n node) {
	c.raw("<g>")
	c.title(n.tip)
	c.raw("\n")
	c.box(n.at, n.class)
	x := n.at.x + padX
	c.text(x, n.at.y+19, "id ink", "start", n.id)
	c.text(x, n.at.y+35, "s dim", "start", n.under)
	c.operations(&n.box, n.at.y+headH)
	c.raw("</g>\n")
}

// line writes an operation into a box that begins at x and is w wide.
func (c *canvas) line(x, y, w int, l line) {
	switch {
	case l.wrong:
		c.raw(`<rect x="%d" y="%d" width="%d" height="%d" rx="3" class="badbox"/>`+"\n", x+padX/2, y, w-padX, lineH)
		c.text(x+padX, y+13, "bad", "start", l.text+" ✗")
	case l.matters:
		c.text(x+padX, y+13, "m ink", "start", l.text)
	default:
		c.text(x+padX, y+13, "dim", "start", l.text)
	}
}
