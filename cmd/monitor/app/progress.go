package app

// progress tracks one partition: which of the records read have been dealt with,
// and so from where a restart must read again.
//
// Records are read in order of offset and finish in any order. The queue holds
// those that were read and whose predecessors are not all finished, by
// consecutive ticket numbers; it is as long as the window, not as the stream.
//
// A source can be resumed only where a batch of it ended, because the identity
// of the input goes with that offset. So the ends of batches are kept as marks, and
// resume is the last mark that everything before is finished of.
//
// Invariant: floor is the offset of the first unfinished record, or next if there
// is none; it never falls but by reset.
type progress struct {
	base    uint64 // ticket of queue[head]
	queue   []ticket
	head    int   // queue[:head] is spent
	next    int64 // offset after everything read
	started bool  // next means something
	marks   []mark
}

// mark is a place where a source can be resumed.
type mark struct {
	next     int64
	identity int64
}

type ticket struct {
	offset int64
	done   bool
}

// read notes a record and returns its ticket. Offsets rise. O(1) amortized.
func (p *progress) read(offset int64) uint64 {
	p.queue = append(p.queue, ticket{offset: offset})
	p.advance(offset + 1)
	return p.base + uint64(len(p.queue)-p.head) - 1
}

// advance says that everything before next was read, whether or not there were
// records.
func (p *progress) advance(next int64) {
	if next > p.next || !p.started {
		p.next, p.started = next, true
	}
}

// finish says that the record of that ticket need not be read again. Finishing
// twice is allowed. O(1) amortized.
func (p *progress) finish(t uint64) {
	if t < p.base {
		return
	}
	p.queue[p.head+int(t-p.base)].done = true
	for p.head < len(p.queue) && p.queue[p.head].done {
		p.head++
		p.base++
	}
	// Move the rest to the front once at least half is spent: each record is
	// moved once on average, and the array does not outgrow the window.
	if p.head > 0 && p.head >= len(p.queue)-p.head {
		p.queue = append(p.queue[:0], p.queue[p.head:]...)
		p.head = 0
	}
}

// begin sets where reading began, if nothing was read yet.
func (p *progress) begin(m mark) {
	if !p.started {
		p.next, p.started = m.next, true
		p.marks = append(p.marks, m)
	}
}

// mark notes the end of a batch.
func (p *progress) mark(m mark) {
	p.advance(m.next)
	p.marks = append(p.marks, m)
}

// reset says that the input has been replaced: what comes now has offsets of its
// own. Tickets that were given out may still be finished, to no effect.
func (p *progress) reset() {
	*p = progress{base: p.base + uint64(p.pending())}
}

// resume is where a restart can read again; false if there is no such place yet.
// Marks that are passed are forgotten.
func (p *progress) resume() (mark, bool) {
	floor, n := p.floor(), 0
	for n < len(p.marks) && p.marks[n].next <= floor {
		n++
	}
	if n == 0 {
		return mark{}, false
	}
	p.marks = append(p.marks[:0], p.marks[n-1:]...)
	return p.marks[0], true
}

// floor is the offset before which everything is finished.
func (p *progress) floor() int64 {
	if p.pending() > 0 {
		return p.queue[p.head].offset
	}
	return p.next
}

// pending is the number of records that are read and whose turn is not over.
func (p *progress) pending() int { return len(p.queue) - p.head }
