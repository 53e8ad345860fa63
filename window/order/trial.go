package order

import (
	"math"
	"slices"
)

// trial is what has come of a partition and ended far ahead of all others of it: by more than MaxAhead
// beyond what the partition has reached and the time that has passed since. It is for input without a
// broker, whose time tells such an end at once. Either the stream has gone on after a pause, or one clock is wrong: the
// records that come next tell which. Until then it does not move the partition, so it waits; no other does.
//
//   - One of another session that is as far, or farther, shows that the stream is there.
//   - One that is back with the others shows that those on trial are wrong: their times are dropped.
//   - Of more than trialMost the one with the least end is believed.
//   - So is what has been the last for IdleAfter, or the first of all, where nothing more is there, unless it is ahead of
//     the time of day.
//
// So the first record of all does not tell where the stream is, either. Nor does one without times, of which the time
// of day is on trial: the others may be of long ago.
type trial struct {
	ends  []probe // as they came
	since int64   // when the first of them came, by the time of day that passes
}

// probe is a record on trial.
type probe struct {
	session string // with its history, if that is another one
	own     bool   // it waits, as item
	item    int32
	end     int64
}

// trialMost bounds the records of a partition that are on trial.
const trialMost = 8

// endMost is the greatest end that is believed, some time in 2116: sums with it don't overflow.
const endMost = math.MaxInt64 / 2

// far tells whether an end is far ahead of partition p.
func (o *Order) far(p *partition, end int64) bool {
	base := max(p.greatest, p.observed)
	if o.opt.MaxAhead <= 0 || base == none {
		return o.opt.MaxAhead > 0
	}
	if !o.moved && o.greatest != none {
		base = max(base, add(o.greatest, sub(o.now, o.reachedAt))) // the stream's time
	}
	return end > add(base, int64(o.opt.MaxAhead))
}

// heed decides about what is on trial in p by what came after it. O(trialMost).
func (o *Order) heed(p *partition, session string, end int64) {
	for len(p.trial.ends) > 0 {
		if !o.far(p, end) && max(p.greatest, p.observed) != none {
			o.settleTrial(p)
			return
		}
		i := slices.IndexFunc(p.trial.ends, func(x probe) bool {
			return x.session != session &&
				end >= sub(x.end, int64(o.opt.MaxAhead))
		})
		if i < 0 {
			return
		}
		o.believe(p, i)
	}
}

// settleTrial ends the trial: those that are near where p is are believed, the others not.
func (o *Order) settleTrial(p *partition) {
	for len(p.trial.ends) > 0 {
		if i := slices.IndexFunc(p.trial.ends, func(x probe) bool { return !o.far(p, x.end) }); i >= 0 {
			o.believe(p, i)
			continue
		}
		x := p.trial.ends[0]
		p.trial.ends = slices.Delete(p.trial.ends, 0, 1)
		if x.own {
			o.drops(p, x)
		}
	}
}

// drops takes the times of a record that was on trial and waits for not true.
func (o *Order) drops(p *partition, x probe) {
	it, s := o.at(x.item), o.sessions[x.session]
	it.flags &^= isOnTrial
	if it.flags&hasTimes != 0 {
		o.counts.Ahead++
		it.flags, it.start = it.flags|isVague|isAhead, x.end
		s.aheadEnd = max(s.aheadEnd, x.end)
	}
	if it.key = max(p.greatest, p.observed, 0); it.key < o.watermark {
		it.flags |= isDue
	}
	if o.first(s) == x.item {
		o.put(s)
	}
}

// believe has the partition reach one of those that are on trial, and all that are no farther.
func (o *Order) believe(p *partition, i int) {
	to := p.trial.ends[i].end
	rest := p.trial.ends[:0]
	for _, x := range p.trial.ends {
		if x.end > to {
			rest = append(rest, x)
			continue
		}
		o.accept(p, x)
	}
	clear(p.trial.ends[len(rest):])
	p.trial.ends = rest
}

func (o *Order) accept(p *partition, x probe) {
	if !x.own {
		o.observed(p, x.end)
		return
	}
	o.at(x.item).flags &^= isOnTrial
	if o.at(x.item).flags&hasTimes == 0 {
		o.reached(p, x.end, x.end)
		return
	}
	s := o.sessions[x.session]
	s.maxEnd = max(s.maxEnd, x.end)
	if o.at(x.item).seq == s.maxSeq {
		s.topEnd = x.end
	}
	p.timed = true
	o.reached(p, x.end, 0)
}

// tries puts a record on trial.
func (o *Order) tries(p *partition, x probe) {
	if len(p.trial.ends) == 0 {
		p.trial.since = o.now
	}
	p.trial.ends = append(p.trial.ends, x)
	if len(p.trial.ends) > trialMost {
		o.believe(p, o.leastOf(p))
	}
}

// leastOf is which of those on trial has the least end.
func (o *Order) leastOf(p *partition) int {
	least := 0
	for i, x := range p.trial.ends {
		if x.end < p.trial.ends[least].end {
			least = i
		}
	}
	return least
}

// rests believes what is on trial in p, of which nothing more is there, if it has been the last for
// long, or is all that there is.
func (o *Order) rests(p *partition) {
	for len(p.trial.ends) > 0 && (max(p.greatest, p.observed) == none || sub(o.now, p.trial.since) >= int64(o.opt.IdleAfter)) {
		i := o.leastOf(p)
		if p.trial.ends[i].end > add(o.now, int64(o.opt.MaxAhead)) {
			return
		}
		o.believe(p, i)
	}
}

// leaves says that an item leaves that is on trial.
func (o *Order) leaves(i int32) {
	p := &o.partitions[o.at(i).partition]
	p.trial.ends = slices.DeleteFunc(p.trial.ends, func(x probe) bool { return x.own && x.item == i })
}
