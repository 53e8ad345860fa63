package kafka

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/cenkalti/backoff/v5"
	kafkago "github.com/segmentio/kafka-go"

	"github.com/isowatch/isowatch/ingest/source"
	"github.com/isowatch/isowatch/internal/wait"
)

// badTries is how often a batch that can't be decoded is fetched again before
// it is given up as a gap: the damage may have happened on the way.
const badTries = 4

// partition reads one partition. All fields belong to its goroutine.
//
// Invariant: every offset from where it began up to next is accounted for: it
// was delivered, or hidden by read-committed, or lies in a reported gap.
type partition struct {
	s  *Source
	n  int
	q  *lane    // its place in the queue
	id [16]byte // identity of the topic that next belongs to

	lost  *source.Gap // to be told first: the stored offset was of another topic
	midst bool        // to be told with the first batch: there were records in front of it
	next  int64
	end   int64 // UntilEnd: where to stop; else the greatest offset
	epoch int32 // leader epoch of the last batch, -1 for none

	told     int64     // Next of the last batch
	caughtUp bool      // whether the end was reached, as last told
	failed   bool      // OnRetry was told, and not yet OnWorks
	bad      int       // consecutive tries of a batch that can't be decoded
	slow     time.Time // when an answer that took long came last; see hangs

	swell float64 // how many times larger records are in memory than on the wire
}

// PartitionError is a failure to read one partition, of which OnRetry is told. Others may go on;
// this one works again when OnWorks is told.
type PartitionError struct {
	Partition int
	Err       error
}

func (e *PartitionError) Error() string { return e.Err.Error() }

func (e *PartitionError) Unwrap() error { return e.Err }

// run fetches until ctx ends or end is reached.
func (p *partition) run(ctx context.Context) {
	defer p.s.queue.stuck(p.q) // nothing more comes
	retry := p.s.newRetry()
	if p.lost != nil && p.s.queue.put(ctx, p.q, p.batch(source.Batch{Next: p.next, Gaps: []source.Gap{*p.lost}}),
		0) != nil {
		return
	}
	for ctx.Err() == nil && p.next < p.end {
		err := p.step(ctx)
		if err == nil {
			retry.Reset()
			continue
		}
		if ctx.Err() != nil {
			return
		}
		p.s.queue.stuck(p.q)
		p.fails(err)
		if wait.Sleep(ctx, retry.NextBackOff()) != nil {
			return
		}
	}
}

// fails tells that the partition can't be read.
func (p *partition) fails(err error) {
	p.failed = true
	p.s.retrying(&PartitionError{Partition: p.n,
		Err: fmt.Errorf("kafka topic %q partition %d at offset %d: %w", p.s.opts.Topic, p.n, p.next, err)})
}

// An answer that takes hangMin longer than Options.Wait is of a broker that was out of reach meanwhile, perhaps for
// those who write as well. If one within hangAgain before took as long it is slow, for those who read at least.
const (
	hangMin   = time.Second
	hangAgain = time.Minute
)

// hangs tells whether the broker was out of reach between a question and its answer.
func (p *partition) hangs(asked, answered time.Time) bool {
	if answered.Sub(asked) <= p.s.opts.Wait+hangMin {
		return false
	}
	again := asked.Sub(p.slow) <= hangAgain
	p.slow = answered
	return !again
}

// step makes one fetch and hands on what it returned. An error is transient.
func (p *partition) step(ctx context.Context) error {
	t := p.s.topology()
	if t.id != p.id {
		return p.recreated(ctx, t)
	}
	leader, err := t.leader(p.n)
	if err != nil {
		p.s.refresh()
		return err
	}
	f, err := ask{
		leader: leader, topic: p.s.opts.Topic, topicID: t.id, partition: int32(p.n),
		next: p.next, end: p.end, lastEpoch: p.epoch,
		wait: p.s.opts.Wait, bytesMax: p.ask(), limits: ordinary,
	}.send(ctx, p.s.conns.wire)
	if err != nil {
		p.s.refresh() // the leader may be gone
		return err
	}
	switch {
	case kafkago.Error(f.code) == kafkago.OffsetOutOfRange:
		return p.outOfRange(ctx, t)
	case f.code != 0:
		if staleTopology(f.code) {
			p.s.refresh()
		}
		return codeError(f.code)
	case f.diverged:
		return p.jump(ctx, f.divergedAt, f.divergedAt, f.divergedAt,
			"Kafka lost records that it had handed out (unclean leader election): "+
				"the log goes on from there with others")
	}
	return p.deliver(ctx, f)
}

// deliver puts what was fetched into the queue.
func (p *partition) deliver(ctx context.Context, f *fetched) error {
	if now := time.Now(); p.hangs(f.asked, now) {
		p.fails(fmt.Errorf("the broker answered only after %v", now.Sub(f.asked).Round(time.Millisecond)))
	}
	if p.failed && f.bad == nil { // it is known before there is room for what was fetched
		p.failed = false
		tell(p.s, p.s.opts.OnWorks, p.n)
	}
	p.swells(f)
	for _, b := range f.batches {
		if err := p.put(ctx, b, f, f.bytes/len(f.batches)); err != nil {
			return err
		}
	}
	moved := f.next > p.next
	if p.next = f.next; f.epoch >= 0 {
		p.epoch = f.epoch
	}
	// That offsets passed hidden is news as well, and that nothing more is there
	// is told after every fetch: time passes for the reader by it.
	caughtUp := p.reached(f, f.next)
	if p.told != f.next || caughtUp && len(f.batches) == 0 || caughtUp && !p.caughtUp {
		if err := p.put(ctx, source.Batch{Next: f.next}, f, 0); err != nil {
			return err
		}
	}
	p.caughtUp = caughtUp
	if f.bad == nil || moved { // if moved, fetch again from where the damage is
		p.bad = 0
		return nil
	}
	if p.bad++; p.bad < badTries || f.skip <= p.next {
		return f.bad
	}
	p.bad = 0
	return p.jump(ctx, p.next, f.skip, f.skip, fmt.Sprintf("%s: %v", whyUndecoded, f.bad))
}

// reached tells whether nothing more can be read for now at offset next.
func (p *partition) reached(f *fetched, next int64) bool {
	end := f.stable
	if end < 0 {
		end = f.high
	}
	return next >= min(end, p.end)
}

// put queues one of f's batches.
func (p *partition) put(ctx context.Context, b source.Batch, f *fetched, bytes int) error {
	b.Lag, b.Asked = max(f.high-b.Next, 0), f.asked
	b.CaughtUp = p.reached(f, b.Next)
	p.told, p.caughtUp = b.Next, b.CaughtUp
	return p.s.queue.put(ctx, p.q, p.batch(b), bytes)
}

// batch says of b what is true of all batches of the partition.
func (p *partition) batch(b source.Batch) source.Batch {
	b.Partition, b.Identity = p.n, identity(p.id)
	b.Midst, p.midst = p.midst, false
	return b
}

// identity is a topic's id, which is random, cut to what an offset can hold.
func identity(id [16]byte) int64 { return int64(binary.BigEndian.Uint64(id[:8])) }

// jump reports the gap [from, to) and goes on at next.
func (p *partition) jump(ctx context.Context, from, to, next int64, why string) error {
	g := source.Gap{Source: p.s.opts.Topic, Partition: p.n, From: from, To: to, Why: why}
	p.next, p.told, p.caughtUp, p.epoch = next, next, false, -1
	return p.s.queue.put(ctx, p.q, p.batch(source.Batch{Next: next, Gaps: []source.Gap{g}}), 0)
}

// outOfRange finds where to go on after the broker said that it does not have
// the offset.
func (p *partition) outOfRange(ctx context.Context, t *topology) error {
	first, err := askOffset(ctx, p.s.conns.wire, t, p.s.opts.Topic, p.n, offsetEarliest)
	if err != nil {
		return err
	}
	last, err := askOffset(ctx, p.s.conns.wire, t, p.s.opts.Topic, p.n, offsetLatest)
	if err != nil {
		return err
	}
	switch {
	case p.next < first:
		return p.jump(ctx, p.next, first, first,
			"Kafka deleted the records before they were read (retention or DeleteRecords)")
	case p.next <= last:
		// In range after all: the log grew, or the broker could not judge the
		// epoch. Ask again without.
		p.epoch = -1
		return errors.New("the broker finds the offset out of range and has it")
	}
	if p.s.opts.UntilEnd {
		p.end = last
	}
	if p.s.resumed(p.n) == p.next {
		// Offsets were stored, the log ends before them: what Kafka has now is
		// another topic of the same name, or what was left of this one. What was
		// read before comes again with the same ids; what was not is read.
		return p.jump(ctx, p.next, p.next, first, "the log ends before the stored offset: "+
			"the topic was created anew or lost its end; it is read from its beginning")
	}
	return p.jump(ctx, last, last, last, "Kafka lost records that it had handed out: the log ends before what was read; "+
		"it is read on from its end")
}

const whyRecreated = "the topic was deleted and created anew; it is read from its beginning"

// recreated begins anew in a topic that has the name of the old one.
func (p *partition) recreated(ctx context.Context, t *topology) error {
	first, err := askOffset(ctx, p.s.conns.wire, t, p.s.opts.Topic, p.n, offsetEarliest)
	if err != nil {
		p.s.refresh()
		return err
	}
	p.id = t.id
	if p.s.opts.UntilEnd {
		p.end = first // the input as of the start is gone
	}
	return p.jump(ctx, p.next, p.next, first, whyRecreated)
}

// newRetry makes the back-off of one loop.
func (s *Source) newRetry() *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = s.opts.RetryMin, s.opts.RetryMax
	b.Multiplier = 2
	return b
}

// forever is the end of a partition that is followed.
const forever = math.MaxInt64

// fetchMin is the least to ask for however many partitions there are, in memory: less
// would cost more requests than it saves memory.
const fetchMin = 64 << 10

// ask is how many bytes to ask for: as many as will take half of the partition's share of
// the queue, so that one response can be fetched while another waits.
func (p *partition) ask() int32 {
	room := max(p.s.queue.share()/2, fetchMin)
	return int32(max(min(float64(p.s.opts.FetchMax), float64(room)/p.swell), 1))
}

// swells notes what f's bytes on the wire, which may be compressed, have become in
// memory.
func (p *partition) swells(f *fetched) {
	if f.wire >= swellMin && f.bytes > 0 {
		p.swell = max(float64(f.bytes)/float64(f.wire), 1)
	}
}

// swellMin is how many bytes tell something about how others swell; swellFirst is what
// is assumed before.
const (
	swellMin   = 4 << 10
	swellFirst = 4
)
