package picture

import (
	"maps"
	"slices"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
)

// Bounds of what is looked at and drawn; what is beyond is said to be there.
const (
	recordsMax   = 4096    // records of the evidence that are looked at
	recordBytes  = 1 << 20 // of one of them
	nodesMax     = 24      // transactions of one cycle that are drawn
	casesMax     = 8
	barsMax      = 256 // transactions in a timeline
	opsMax       = 6   // operations of a transaction in a cycle
	opsMaxInTime = 10  // and in a timeline
	sheetMax     = 20  // alerts in one file
)

// scene is what an alert has to be drawn: the transactions of its evidence, and the
// edges between them.
type scene struct {
	alert alerts.Alert
	txns  []record.Transaction // of the evidence, in its order
	at    map[string]int       // by id, the place in txns
	more  int                  // records of the evidence that were not looked at, or can't be read
	rings [][]edge
	marks map[mark]bool // operations that matter; true if they can't be
}

// mark is an operation of a transaction.
type mark struct {
	txn int // place in scene.txns
	op  int
}

// edge is an edge of a ring.
type edge struct {
	alerts.Edge
	nobody bool // it comes from a writer that does not exist
	single bool // the ring does not go on from its end
}

func newScene(a alerts.Alert) *scene {
	s := &scene{alert: a, at: map[string]int{}, marks: map[mark]bool{}}
	s.read()
	switch {
	case len(a.Cycle) > 0:
		s.ring(a.Cycle)
	case len(a.Cases) > 0:
		for i, c := range a.Cases {
			if i == casesMax {
				break
			}
			s.ring(c)
		}
	default:
		s.oneRead()
	}
	return s
}

// read takes the transactions out of the evidence.
func (s *scene) read() {
	lines := s.alert.Evidence
	if len(lines) > 0 {
		lines = lines[1:] // the header
	}
	for i, line := range lines {
		if i == recordsMax {
			s.more += len(lines) - i
			break
		}
		var t record.Transaction
		if len(line) > recordBytes || codec.Decode(line, &t) != nil {
			s.more++
			continue
		}
		if _, ok := s.at[t.ID]; !ok {
			s.at[t.ID] = len(s.txns)
			s.txns = append(s.txns, t)
		}
	}
}

// find is the place of a transaction, and whether it is in the evidence.
func (s *scene) find(id string) (*record.Transaction, int, bool) {
	i, ok := s.at[id]
	if !ok {
		return nil, -1, false
	}
	return &s.txns[i], i, true
}

func (s *scene) ring(c []alerts.Edge) {
	r := make([]edge, 0, len(c))
	for _, e := range c {
		r = append(r, edge{Edge: e})
		s.markEdge(e)
	}
	s.rings = append(s.rings, r)
}

// markOnly marks what the edges of one ring rest on, and nothing else.
func (s *scene) markOnly(r []edge) {
	s.marks = map[mark]bool{}
	for _, e := range r {
		s.markEdge(e.Edge)
	}
}

// markEdge marks the operations that an edge rests on.
func (s *scene) markEdge(e alerts.Edge) {
	from, i, ok := s.find(e.From)
	to, j, found := s.find(e.To)
	switch e.Type {
	case "wr":
		read := -1
		if found {
			read = readFrom(to, e.Key, from)
			s.mark(j, read, false)
		}
		if ok {
			s.mark(i, writeSeen(from, e.Key, to, read), false)
		}
	case "ww":
		if ok {
			s.mark(i, name.LastWrite(from, e.Key), false)
		}
		if found {
			s.mark(j, name.LastWrite(to, e.Key), false)
		}
	case "rw":
		if ok {
			s.mark(i, readBefore(from, e.Key, to), false)
		}
		if found {
			s.mark(j, name.LastWrite(to, e.Key), false)
		}
	}
}

func (s *scene) mark(txn, op int, wrong bool) {
	if op >= 0 {
		m := mark{txn, op}
		s.marks[m] = s.marks[m] || wrong
	}
}

// readFrom is the first read of key that shows what w wrote, or the first of all
// if w is not known or none does; -1 if there is no read of it.
func readFrom(t *record.Transaction, key string, w *record.Transaction) int {
	if w != nil {
		if at := name.ReadOf(t, key, w); at >= 0 {
			return at
		}
	}
	return name.FirstRead(t, key)
}

// readBefore is the last read of key, before t wrote it itself, that does not show
// what w wrote; -1 if there is none.
func readBefore(t *record.Transaction, key string, w *record.Transaction) int {
	last := -1
	for i, op := range t.Ops {
		if op.Key != key {
			continue
		}
		if op.Kind.Writes() {
			break
		}
		if op.Kind == record.Read && (w == nil || !name.Shows(op, w)) {
			last = i
		}
	}
	return last
}

// writeSeen is the last write of key that a read of another transaction shows; the
// last write of all if that is not known.
func writeSeen(t *record.Transaction, key string, reader *record.Transaction, read int) int {
	if reader != nil && read >= 0 {
		for i, op := range slices.Backward(t.Ops) {
			one := record.Transaction{Ops: []record.Op{op}}
			if op.Key == key && name.Shows(reader.Ops[read], &one) {
				return i
			}
		}
	}
	return name.LastWrite(t, key)
}

// wrong tells whether any operation is marked as one that can't be.
func (s *scene) wrong() bool {
	return slices.Contains(slices.Collect(maps.Values(s.marks)), true)
}

// closed tells whether the pictures are cycles.
func (s *scene) closed() bool {
	return len(s.rings) > 0 && len(s.rings[0]) > 0 && !s.rings[0][0].single
}
