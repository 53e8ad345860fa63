package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/isowatch/isowatch/internal/lab/endless"
	"github.com/isowatch/isowatch/internal/lab/rig"
)

// How alerts are timed: so long, with so many anomalies a second.
const (
	latencyFor    = 40 * time.Second
	plantedSecond = 4
)

// alertLatency measures how long it takes from an anomaly's last record to its alert, at half of
// the rate. The record's time is that before it is handed to the producer, which is earlier than that of the
// broker's having it: what is measured is a little more than what is asked.
func alertLatency(kind string) func(context.Context, *Env) (Measured, error) {
	return func(ctx context.Context, e *Env) (m Measured, err error) {
		b, err := e.broker(ctx, kind)
		if err != nil {
			return m, err
		}
		ctx, cancel := context.WithTimeoutCause(ctx, e.opt.Timeout, &lateError{e.opt.Timeout})
		defer cancel()
		rate := streamRate / 2 * e.opt.Scale
		e.stores++ // a topic of its own for each run
		t := topic{broker: b, name: fmt.Sprintf("latency-%d", e.stores), rate: rate}
		if err := rig.CreateTopic(ctx, b, t.name, streamPartitions); err != nil {
			return m, err
		}
		r, err := rig.NewReceiver()
		if err != nil {
			return m, err
		}
		defer r.Close()
		store := e.store()
		defer removeStore(store)
		mon, err := e.watch(t, levelsOfBoth, store, r)
		if err != nil {
			return m, err
		}
		defer mon.Kill()
		if err := ready(ctx, mon); err != nil {
			return m, err
		}
		p, err := e.play(ctx, &t, r)
		if err != nil {
			return m, err
		}
		use, err := rig.UsageOf(mon.PID())
		if err != nil {
			return m, skipf("%v", err)
		}
		st := e.streamed(t)
		m = Measured{Histories: 1, Runs: 1, PeakBytes: use.Peak, Stream: st,
			How: fmt.Sprintf("monitor run --level %s, %.0f records a second", levelsOfBoth, rate)}
		got, err := r.Receipts()
		st.Latency = p.judge(st, got)
		return m, err
	}
}

// ready waits until a monitor says that it is.
func ready(ctx context.Context, mon *rig.Monitor) error {
	for tick := time.NewTicker(10 * time.Millisecond); ; {
		if mon.Ready(ctx) {
			tick.Stop()
			return nil
		}
		select {
		case <-tick.C:
		case <-mon.Exited():
			return fmt.Errorf("the monitor ended with status %d: %s", mon.Status(), lastLine(mon.Said()))
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// played is what was planted, and when its last record was sent.
type played struct {
	of    map[string]int // by transaction
	sent  []time.Time    // by planting
	timed int            // so many of them count: the others came too near to the end
}

// play sends a stream of now at its own pace, and waits for the alerts.
func (e *Env) play(ctx context.Context, t *topic, r *rig.Receiver) (*played, error) {
	s, err := endless.New(endless.Config{Seed: 2, Rate: t.rate, Start: time.Now().UnixNano(),
		Every: max(int64(t.rate/plantedSecond), 1)})
	if err != nil {
		return nil, err
	}
	f, err := rig.NewFeed(t.broker.Addr(), t.name, e.encoding)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p := &played{of: map[string]int{}}
	// Records go on after the last anomaly that counts, so that time does.
	timed := int64(t.rate * latencyFor.Seconds())
	all := timed + int64(t.rate*(e.lateness()+3*time.Second).Seconds())
	var pace rig.Pace
	for s.Handed() < all {
		x, planting := s.Next()
		if _, err := pace.Until(ctx, x.End); err != nil {
			return nil, errors.Join(context.Cause(ctx), err)
		}
		if planting != nil {
			for _, id := range planting.Transactions {
				p.of[id] = len(p.sent)
			}
			p.sent = append(p.sent, time.Now())
			if s.Handed() <= timed {
				p.timed = len(p.sent)
			}
		}
		if err := f.Send(ctx, f.Encode(x)); err != nil {
			return nil, err
		}
		if s.Handed()%int64(max(t.rate, 1)) == 0 {
			e.opt.Progress(fmt.Sprintf("timing alerts, %d%%", 100*s.Handed()/all))
		}
	}
	if err := f.Flush(ctx); err != nil {
		return nil, err
	}
	t.transactions, t.bytes = f.Sent(), float64(f.Bytes())/float64(f.Sent())
	return p, p.wait(ctx, r)
}

// wait gives alerts that are late some time more.
func (p *played) wait(ctx context.Context, r *rig.Receiver) error {
	const patience = 15 * time.Second
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		got, err := r.Receipts()
		if err != nil || len(p.firsts(got)) >= p.timed {
			return err
		}
		select {
		case <-r.Came():
		case <-late.C:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// firsts is when each planting that counts was alerted first.
func (p *played) firsts(got []rig.Receipt) map[int]time.Time {
	out := map[int]time.Time{}
	for _, x := range got {
		if n, ok := p.planting(x); ok && n < p.timed {
			if _, again := out[n]; !again {
				out[n] = x.At
			}
		}
	}
	return out
}

// planting finds the planting that an alert is of.
func (p *played) planting(x rig.Receipt) (int, bool) {
	for _, id := range x.Alert.Transactions {
		if n, ok := p.of[id]; ok {
			return n, true
		}
	}
	return 0, false
}

// judge fills in what was found and returns the times.
func (p *played) judge(st *Streamed, got []rig.Receipt) *Latency {
	for _, x := range got {
		if _, ok := p.planting(x); !ok {
			st.Invented++
		}
	}
	var times []float64
	for n, at := range p.firsts(got) {
		times = append(times, at.Sub(p.sent[n]).Seconds())
	}
	st.Planted, st.Found = p.timed, len(times)
	if len(times) == 0 {
		return nil
	}
	slices.Sort(times)
	return &Latency{P50: quantile(times, 0.50), P99: quantile(times, 0.99), Max: times[len(times)-1]}
}

// quantile is the least of sorted values that a share of them does not exceed.
func quantile(sorted []float64, share float64) float64 {
	return sorted[max(int(math.Ceil(share*float64(len(sorted))))-1, 0)]
}

// restart measures how long a monitor takes to go on where the one that was killed
// had come to. It is killed in the middle of the stream, when its window is full.
func restart(kind string) func(context.Context, *Env) (Measured, error) {
	return func(ctx context.Context, e *Env) (m Measured, err error) {
		t, err := e.topicOf(ctx, kind, "10k", endless.Config{})
		if err != nil {
			return m, err
		}
		r, err := rig.NewReceiver()
		if err != nil {
			return m, err
		}
		defer r.Close()
		st := e.streamed(t)
		m = Measured{Histories: 1, Runs: e.opt.Runs, Stream: st,
			How: fmt.Sprintf("monitor run --level %s, kill -9, the same again", levelsOfBoth)}
		var readies, readings []float64
		for range e.opt.Runs {
			x, err := e.killAndStart(ctx, t, r)
			if err != nil {
				return m, err
			}
			readies, readings = append(readies, x.Ready), append(readings, x.Reading)
		}
		st.Restart = &Restart{Ready: median(readies), Reading: median(readings)}
		m.Seconds = max(st.Restart.Ready, st.Restart.Reading)
		got, err := r.Receipts()
		st.Invented = len(got)
		return m, err
	}
}

// killAndStart lets a monitor come to the middle of the stream, kills it, starts another, and ends that.
func (e *Env) killAndStart(ctx context.Context, t topic, r *rig.Receiver) (x Restart, err error) {
	store := e.store()
	defer removeStore(store)
	first, err := e.watch(t, levelsOfBoth, store, r)
	if err != nil {
		return x, err
	}
	defer first.Kill()
	goal := e.reachable(t) / 2
	if _, _, err := e.follow(ctx, first, func(s sample) bool {
		e.opt.Progress(fmt.Sprintf("filling the window, %d%%", int(100*s.judged/goal)))
		return s.judged >= goal || e.enough(s)
	}); err != nil {
		return x, err
	}
	first.Kill()

	ctx, cancel := context.WithTimeoutCause(ctx, e.opt.Timeout, &lateError{e.opt.Timeout})
	defer cancel()
	began := time.Now()
	second, err := e.watch(t, levelsOfBoth, store, r)
	if err != nil {
		return x, err
	}
	defer second.Kill()
	if err := ready(ctx, second); err != nil {
		return x, err
	}
	x.Ready = time.Since(began).Seconds()
	for ctx.Err() == nil {
		if metrics, err := second.Metrics(ctx); err == nil && goesOn(metrics) {
			x.Reading = time.Since(began).Seconds()
			second.Kill()
			return x, nil
		}
		select {
		case <-second.Exited():
			return x, fmt.Errorf("the monitor ended with status %d: %s", second.Status(), lastLine(second.Said()))
		case <-time.After(5 * time.Millisecond):
		}
	}
	return x, context.Cause(ctx)
}

// goesOn tells whether a monitor reads on where the one before it had come to: it has read
// something, or has seen of every partition that there is nothing more, as of a short topic the
// first may have read all.
func goesOn(m rig.Metrics) bool {
	return m.Sum(metricRead) > 0 || len(m.By(metricBehind, "partition")) == streamPartitions && m.Sum(metricBehind) == 0
}
