package order

import "github.com/isowatch/isowatch/ingest/record"

// rig is an Order together with the records that it knows by their heads only,
// as its caller has them.
type rig struct {
	*Order
	txns []*record.Transaction
}

// out is a release and the record as the engine would get it: the added one, or
// a changed copy.
type out struct {
	Release
	Txn *record.Transaction
}

func newRig(opt Options) *rig { return &rig{Order: New(opt)} }

func (g *rig) Add(p int, t *record.Transaction, arrival int64) Fate {
	h := record.HeadOf(t)
	h.Bytes = bytesOf(t)
	g.txns = append(g.txns, t)
	return g.Order.Add(p, &h, uint64(len(g.txns)-1), arrival)
}

// bytesOf is what a record takes, as far as an Order knows.
func bytesOf(t *record.Transaction) int { return 1 + int(uint64(t.Seq)%5) }

func (g *rig) Next() (out, bool) {
	r, ok := g.Order.Next()
	if !ok {
		return out{}, false
	}
	t := g.txns[r.Ref]
	if r.TimesDropped || r.Detached {
		c := *t
		c.HasTimes = c.HasTimes && !r.TimesDropped
		if r.Detached {
			c.Session, c.HasSeq = r.Session, false
		}
		t = &c
	}
	return out{r, t}, true
}

// isFull tells whether MaxBuffered records wait.
func (o *Order) isFull() bool { return o.held+o.more >= o.opt.MaxBuffered }
