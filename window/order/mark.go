package order

// behindDelays is for how many times Lateness and MaxSkew it is remembered how much records came behind, at least; at
// most for twice as many.
const behindDelays = 32

// waitsFor is how much p shows that it has to be waited for.
func (o *Order) waitsFor(p *partition) int64 {
	if !o.opt.Prompt || p.unnumbered {
		return o.delay
	}
	return min(o.delay, 2*max(p.behind, p.behindBefore))
}

// comesBehind notes by how much a record of p ended before others that came before it, if it is in time.
func (o *Order) comesBehind(p *partition, end int64) {
	if p.greatest != none && sub(p.greatest, end) <= o.delay {
		p.behind = max(p.behind, sub(p.greatest, end))
	}
}

// goesOnTo notes that p has reached t.
func (o *Order) goesOnTo(p *partition, t int64) {
	if p.turned == none || sub(t, p.turned) > behindDelays*o.delay {
		p.turned, p.behind, p.behindBefore = t, 0, p.behind
	}
	p.place = max(p.place, sub(t, o.waitsFor(p)))
}
