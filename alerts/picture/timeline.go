package picture

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"time"

	"github.com/isowatch/isowatch/alerts/text"
	"github.com/isowatch/isowatch/ingest/record"
)

// Measures of a timeline in pixels.
const (
	laneGap   = 78 // between lanes, for edges and their labels
	barHead   = 24 // of a bar: its id
	tickMin   = 26 // between two moments, at least
	columnGap = 52 // between bars that follow each other without times
	axisH     = 22
	eventH    = 18 // of an event's label, above the axis
	eventCols = 60
	arc       = 40 // over the heads of bars of one lane
)

// bar is a transaction in a timeline.
type bar struct {
	box
	txn      int    // place in scene.txns
	took     string // how long, if that is known
	lane     int
	need     int // width
	from, to int // moments between which it stands
}

// lane is a session.
type lane struct {
	name string
	bars []int // in order
	y, h int
}

// happening is an event near the transactions, and where in time it is drawn.
type happening struct {
	label string
	tip   string
	x     int
}

// chart is a timeline in the making.
type chart struct {
	*scene
	c      *canvas
	bars   []bar
	lanes  []lane
	place  map[int]int // by scene.txns, the place in bars
	left   int         // where time begins
	right  int
	left0  int // transactions that are not drawn
	timed  bool
	events []happening
	edges  []edge
	routes []route
}

func (s *scene) timeline() drawing {
	t := &chart{scene: s, c: &canvas{}, place: map[int]int{}}
	t.choose()
	if len(t.bars) == 0 {
		t.c.text(margin, 30, "sans s dim", "start", "There is nothing to draw: the alert has no records.")
		return drawing{w: widthMin, h: 48, label: s.label("Timeline"), body: t.c.b.String()}
	}
	t.divide()
	y := t.heading()
	if t.timed {
		t.byTime()
	} else {
		t.byOrder()
	}
	y = t.stack(y)
	t.plan()
	t.draw(y)
	w, types := t.right+margin, map[string]bool{}
	for _, e := range t.edges {
		types[e.Type] = true
	}
	if t.left0+t.more > 0 {
		y += 20
		t.c.text(margin, y, "sans s dim", "start",
			fmt.Sprintf("… and %d more transactions, which are in the evidence", t.left0+t.more))
	}
	w, y = t.c.legend(types, max(w, widthMin), y+10, false, s.wrong())
	return drawing{w: w, h: y + margin, label: s.label("Timeline"), body: t.c.b.String()}
}

// choose picks the transactions that are drawn: those of the rings first.
func (t *chart) choose() {
	in := map[int]bool{}
	for _, r := range t.rings {
		for _, e := range r {
			for _, id := range []string{e.From, e.To} {
				if _, i, ok := t.find(id); ok && len(in) < barsMax {
					in[i] = true
				}
			}
		}
	}
	main := len(in)
	for i := range t.txns {
		if len(in) < barsMax {
			in[i] = true
		}
	}
	t.left0 = len(t.txns) - len(in)
	t.timed = true
	for i := range t.txns {
		if !in[i] {
			continue
		}
		t.timed = t.timed && t.txns[i].HasTimes
		t.place[i] = len(t.bars)
		t.bars = append(t.bars, t.bar(i))
	}
	t.connect(main > 0)
}

// connect picks the edges between bars, each once.
func (t *chart) connect(any bool) {
	seen := map[[4]string]bool{}
	for _, r := range t.rings {
		for _, e := range r {
			_, _, ok := t.find(e.From)
			_, _, found := t.find(e.To)
			k := [4]string{e.From, e.To, e.Type, e.Key}
			if !any || !ok || !found || seen[k] || e.From == e.To {
				continue
			}
			if _, drawn := t.barOf(e.From); !drawn {
				continue
			}
			if _, drawn := t.barOf(e.To); !drawn {
				continue
			}
			seen[k] = true
			t.edges = append(t.edges, e)
		}
	}
}

func (t *chart) barOf(id string) (*bar, bool) {
	_, i, ok := t.find(id)
	if !ok {
		return nil, false
	}
	j, ok := t.place[i]
	if !ok {
		return nil, false
	}
	return &t.bars[j], true
}

func (t *chart) bar(i int) bar {
	r := &t.txns[i]
	b := bar{txn: i, box: box{id: middle(text.Name(r.ID), idCols), class: "box"}}
	b.tip = text.Name(r.ID) + ", session " + text.Session(r)
	if r.Node != "" {
		b.id += " at " + middle(text.Name(r.Node), sessionCols)
	}
	if r.Status != record.Committed {
		b.id += " · " + r.Status.String()
		b.class = "ghost"
	}
	if r.HasTimes {
		b.tip += fmt.Sprintf(", %s, %v", clock(r.Start), time.Duration(r.End-r.Start))
	}
	b.lines, b.more = t.lines(i, opsMaxInTime)
	w, h := b.size()
	if b.need = px(b.id, 13); r.HasTimes {
		b.took = time.Duration(r.End - r.Start).String()
		b.need += 10 + px(b.took, 11)
	}
	b.need = max(b.need, w, 60) + 2*padX
	b.at.h = barHead + h + 6
	b.at.w = b.need
	return b
}

// clock is a moment, in UTC.
func clock(ns int64) string { return time.Unix(0, ns).UTC().Format("2006-01-02 15:04:05.000000 UTC") }

// divide makes a lane per session, in order of appearance. Transactions of one
// session that overlap by the clocks stand in lanes of their own.
func (t *chart) divide() {
	order := make([]int, len(t.bars))
	for i := range order {
		order[i] = i
	}
	if t.timed {
		slices.SortStableFunc(order, func(a, b int) int { return before(&t.txns[t.bars[a].txn], &t.txns[t.bars[b].txn]) })
	}
	var names []string
	for i := range t.bars {
		if s := t.txns[t.bars[i].txn].Session; !slices.Contains(names, s) {
			names = append(names, s)
		}
	}
	for _, n := range names {
		first := len(t.lanes)
		for _, i := range order {
			r := &t.txns[t.bars[i].txn]
			if r.Session != n {
				continue
			}
			l := first
			for l < len(t.lanes) && t.overlaps(l, r) {
				l++
			}
			if l == len(t.lanes) {
				t.lanes = append(t.lanes, lane{name: middle(text.Name(n), sessionCols)})
			}
			t.bars[i].lane = l
			t.lanes[l].bars = append(t.lanes[l].bars, i)
		}
	}
}

func before(a, b *record.Transaction) int {
	return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End))
}

// overlaps tells whether a transaction began before the last one in a lane ended.
func (t *chart) overlaps(l int, r *record.Transaction) bool {
	bars := t.lanes[l].bars
	return t.timed && len(bars) > 0 && t.txns[t.bars[bars[len(bars)-1]].txn].End > r.Start
}

// heading says how to read the picture, and leaves room for the names of lanes.
func (t *chart) heading() int {
	for _, l := range t.lanes {
		t.left = max(t.left, px(l.name, 11))
	}
	t.left += margin + 14
	say := []string{"The records have no times. What stands further right",
		"comes later in its session, or read what stands further left."}
	if t.timed {
		first := t.txns[t.bars[0].txn].Start
		for i := range t.bars {
			first = min(first, t.txns[t.bars[i].txn].Start)
		}
		say = []string{"Clients' clocks from " + clock(first) + ";", "drawn in order, lengths are not to scale."}
	}
	if !t.timed {
		for _, e := range t.alert.Events {
			say = append(say, middle("It "+printable(e.Told, 400), 2*eventCols)+".")
		}
	}
	if len(t.rings) > 1 {
		say = append(say, "The edges are those of all cases.")
	}
	y := 8
	for _, s := range say {
		y += 16
		t.c.text(margin, y, "sans s dim", "start", s)
		t.right = max(t.right, margin+sans(s, 11))
	}
	return y + 12
}

// byTime gives every bar its place between the moments when its transaction
// started and ended. A moment follows the one before by at least so much that
// bars can be told apart, and bars are as long as what stands in them.
func (t *chart) byTime() {
	type moment struct {
		ns  int64
		end int // 1; ends come after starts of the same time: equal ticks order nothing
	}
	var ms []moment
	for i := range t.bars {
		r := &t.txns[t.bars[i].txn]
		ms = append(ms, moment{r.Start, 0}, moment{r.End, 1})
	}
	for _, e := range t.alert.Events {
		ms = append(ms, moment{e.At, 0})
	}
	slices.SortFunc(ms, func(a, b moment) int { return cmp.Or(cmp.Compare(a.ns, b.ns), a.end-b.end) })
	ms = slices.Compact(ms)
	gaps := make([]int, len(ms)-1)
	for i := range gaps {
		gaps[i] = tickMin + 3*bits.Len64(uint64(ms[i+1].ns)-uint64(ms[i].ns))/4 //nolint:gosec // a difference of ordered numbers
	}
	order := make([]int, len(t.bars))
	for i := range t.bars {
		b, r := &t.bars[i], &t.txns[t.bars[i].txn]
		b.from, b.to = slices.Index(ms, moment{r.Start, 0}), slices.Index(ms, moment{r.End, 1})
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return t.bars[a].to - t.bars[a].from - (t.bars[b].to - t.bars[b].from) })
	for _, i := range order { // the shortest first: longer ones have what these got
		b := &t.bars[i]
		n := b.to - b.from
		lack := b.need
		for _, g := range gaps[b.from:b.to] {
			lack -= g
		}
		for j := 0; lack > 0 && j < n; j++ {
			share := (lack + n - j - 1) / (n - j)
			gaps[b.from+j] += share
			lack -= share
		}
	}
	xs := make([]int, len(ms))
	xs[0] = t.left + 8
	for i, g := range gaps {
		xs[i+1] = xs[i] + g
	}
	for i := range t.bars {
		b := &t.bars[i]
		b.at.x, b.at.w = xs[b.from], xs[b.to]-xs[b.from]
		t.right = max(t.right, b.at.x+b.at.w)
	}
	for _, e := range t.alert.Events {
		what := e.Text
		if e.Node != "" {
			what = e.Node + " " + what
		}
		h := happening{label: middle(printable(what, 400), eventCols), tip: clock(e.At) + ": it " + printable(e.Told, 400),
			x: xs[slices.Index(ms, moment{e.At, 0})]}
		t.events = append(t.events, h)
		t.right = max(t.right, h.x+8+px(h.label, 12))
	}
}

// byOrder gives every bar a column: right of what came before it in its session,
// and of whom it read from, as far as that makes no circle.
func (t *chart) byOrder() {
	after := make([][]int, len(t.bars))
	for _, l := range t.lanes {
		for i := 1; i < len(l.bars); i++ {
			after[l.bars[i-1]] = append(after[l.bars[i-1]], l.bars[i])
		}
	}
	index := func(b *bar) int { return t.place[b.txn] }
	for _, e := range t.edges {
		if e.Type == "rw" || e.Type == disagree {
			continue
		}
		a, _ := t.barOf(e.From)
		b, _ := t.barOf(e.To)
		if i, j := index(a), index(b); !slices.Contains(after[i], j) && !reaches(after, j, i) {
			after[i] = append(after[i], j)
		}
	}
	column := make([]int, len(t.bars))
	for range t.bars { // longest ways, of a graph without circles
		for i, ns := range after {
			for _, n := range ns {
				column[n] = max(column[n], column[i]+1)
			}
		}
	}
	var widths []int
	for i, c := range column {
		for len(widths) <= c {
			widths = append(widths, 0)
		}
		widths[c] = max(widths[c], t.bars[i].need)
	}
	for i, c := range column {
		x := t.left + 8
		for _, w := range widths[:c] {
			x += w + columnGap
		}
		t.bars[i].at.x, t.bars[i].at.w = x, widths[c]
		t.right = max(t.right, x+widths[c])
	}
}

// reaches tells whether there is a way.
func reaches(after [][]int, from, to int) bool {
	seen, next := map[int]bool{from: true}, []int{from}
	for len(next) > 0 {
		at := next[0]
		next = next[1:]
		if at == to {
			return true
		}
		for _, n := range after[at] {
			if !seen[n] {
				seen[n] = true
				next = append(next, n)
			}
		}
	}
	return false
}

// stack gives every lane its height; it returns the lower end.
func (t *chart) stack(y int) int {
	if t.timed {
		y += axisH + len(t.events)*eventH
	}
	first := slices.ContainsFunc(t.edges, func(e edge) bool {
		a, _ := t.barOf(e.From)
		b, _ := t.barOf(e.To)
		return a.lane == b.lane && !t.adjacent(a, b)
	})
	if first {
		y += arc
	}
	for i := range t.lanes {
		l := &t.lanes[i]
		l.y = y
		for _, j := range l.bars {
			l.h = max(l.h, t.bars[j].at.h)
		}
		for _, j := range l.bars {
			t.bars[j].at.y = y
		}
		y += l.h + laneGap
	}
	return y - laneGap
}

// adjacent tells whether b follows a in its lane.
func (t *chart) adjacent(a, b *bar) bool {
	l := t.lanes[a.lane].bars
	i := slices.Index(l, t.place[a.txn])
	return a.lane == b.lane && i+1 < len(l) && l[i+1] == t.place[b.txn]
}
