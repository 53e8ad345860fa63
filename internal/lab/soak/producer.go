//go:build unix

package soak

import (
	"context"
	"sync"
	"time"

	"github.com/isowatch/isowatch/ingest/generate"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/endless"
	"github.com/isowatch/isowatch/internal/lab/rig"
)

// sessions is how many clients there are.
const sessions = 24

// recentMax is how many records the producer may send again.
const recentMax = 500

// producer sends the stream, and does wrong what it is ordered to. Records of anomalies
// are never lost and their times always right: they must be found.
type producer struct {
	stream *endless.Stream
	feed   *rig.Feed
	pace   rig.Pace
	every  int64           // a fault is due after so many
	faults chan<- struct{} // that one is due; where those before take long, it is waited for

	mu     sync.Mutex
	orders []func(*producer)

	// What is ordered.
	step  clockStep
	again int
	lose  int

	recent  []rig.Message // a ring
	next    int
	planted []generate.Planting
	// What was done.
	lost, redelivered, stepped int64
}

// clockStep is a session whose clock is wrong for its next transactions.
type clockStep struct {
	session string
	by      time.Duration
	left    int
}

// order has the producer do something before its next record.
func (p *producer) order(f func(*producer)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.orders = append(p.orders, f)
}

func (p *producer) obey() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.orders {
		f(p)
	}
	p.orders = p.orders[:0]
}

// run sends n transactions at the stream's pace.
func (p *producer) run(ctx context.Context, n int64) error {
	for p.stream.Handed() < n {
		t, planting := p.stream.Next()
		if _, err := p.pace.Until(ctx, t.End); err != nil {
			return err
		}
		if planting != nil {
			p.planted = append(p.planted, *planting)
		}
		p.obey()
		if err := p.send(ctx, t); err != nil {
			return err
		}
		if p.every > 0 && p.stream.Handed()%p.every == 0 {
			select {
			case p.faults <- struct{}{}:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
	return p.feed.Flush(ctx)
}

// send sends one record, unless it is to be lost.
func (p *producer) send(ctx context.Context, t *record.Transaction) error {
	if scripted := t.ID != ""; !scripted {
		if p.lose > 0 && t.Seq%2 == 0 { // single ones and several in a row
			p.lose--
			p.lost++
			return nil
		}
		if p.step.left > 0 && t.Session == p.step.session {
			p.step.left--
			p.stepped++
			t.Start += int64(p.step.by)
			t.End += int64(p.step.by)
		}
	}
	m := p.feed.Encode(t)
	if err := p.feed.Send(ctx, m); err != nil {
		return err
	}
	if len(p.recent) < recentMax {
		p.recent = append(p.recent, m)
	} else {
		p.recent[p.next] = m
	}
	p.next = (p.next + 1) % recentMax
	return p.sendAgain(ctx)
}

// sendAgain sends the last records once more, in their order.
func (p *producer) sendAgain(ctx context.Context) error {
	n := min(p.again, len(p.recent))
	p.again = 0
	for i := n; i > 0; i-- {
		if err := p.feed.Send(ctx, p.recent[(p.next-i+len(p.recent))%len(p.recent)]); err != nil {
			return err
		}
		p.redelivered++
	}
	return nil
}
