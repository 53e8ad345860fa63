//go:build unix

package soak

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/isowatch/isowatch/ingest/generate"
	"github.com/isowatch/isowatch/internal/lab/endless"
	"github.com/isowatch/isowatch/internal/lab/rig"
)

// Options say how long, with what, and what goes wrong.
type Options struct {
	Command rig.Command // the monitor
	Broker  string      // host:port
	Topic   string      // which exists and is empty
	// Restart kills the broker and starts it again with all that it had; nil: it can't.
	Restart func(context.Context) error
	// Disk is where the store is; nil: in Dir.
	Disk Disk
	// Dir is for the monitor's configuration, and for its store unless there is a Disk.
	Dir string

	Seed         uint64
	Transactions int64
	Every        int64   // an anomaly after so many transactions
	Shared       bool    // planted on keys that others use too, before and after
	Rate         float64 // transactions in a second, also of the stream's time
	Unknown      float64 // share of transactions whose outcome the client never learns
	Levels       string
	Encoding     rig.Encoding
	Set          []string // of the monitor's configuration, key=value
	Faults       []Fault
	// FaultEvery is after how much of the stream's time the next fault is due.
	FaultEvery time.Duration
	// Log is told what happens, a line at a time; may be nil.
	Log io.Writer
}

// World is what faults strike.
type World struct {
	opt      Options
	monitor  *supervisor
	producer *producer
}

// Report says what happened.
type Report struct {
	Took         time.Duration
	Transactions int64
	Planted      int
	Found        int
	Missing      []generate.Planting
	Doubled      []string          // anomalies that are alerts of several ids, with these
	Invented     []rig.Receipt     // alerts of nothing that was planted
	Misnamed     []string          // alerts of something that was, under another name
	Deliveries   int               // of all alerts
	Struck       map[string]int    // by fault
	Impossible   map[string]string // faults that could not strike, and why
	Starts       int               // of the monitor
	Exits        []Exit            // that nobody asked for
	Peak         uint64            // resident bytes of any monitor
	Lost         int64             // records
	Redelivered  int64
	Stepped      int64 // records with a wrong clock
}

// Run soaks. The error is of what keeps it from going on; what the monitor does wrong is in
// the report.
func Run(ctx context.Context, o Options) (*Report, error) {
	began := time.Now()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s, err := endless.New(endless.Config{Seed: o.Seed, Sessions: sessions, Rate: o.Rate, Start: began.UnixNano(),
		AbortRate: 0.02, UnknownRate: o.Unknown,
		Every: o.Every, Shared: o.Shared})
	if err != nil {
		return nil, err
	}
	receiver, err := rig.NewReceiver()
	if err != nil {
		return nil, err
	}
	defer receiver.Close()
	feed, err := rig.NewFeed(o.Broker, o.Topic, o.Encoding)
	if err != nil {
		return nil, err
	}
	defer feed.Close()
	due := make(chan struct{}, 1)
	store := o.Dir
	if o.Disk != nil {
		store = o.Disk.Path()
	}
	w := &World{opt: o,
		monitor: &supervisor{opt: rig.MonitorOptions{Command: o.Command, Dir: o.Dir, Store: store + "/store",
			Brokers: []string{o.Broker}, Topic: o.Topic,
			Levels: o.Levels, Webhook: receiver.URL, Set: o.Set}},
		producer: &producer{stream: s, feed: feed, faults: due, every: max(int64(o.FaultEvery.Seconds()*o.Rate), 1)}}
	r := &Report{Struck: map[string]int{}, Impossible: map[string]string{}}

	stop, stopped := make(chan struct{}), make(chan struct{})
	go w.monitor.run(ctx, stop, stopped)
	var striking sync.WaitGroup
	striking.Go(func() {
		if err := w.strike(ctx, due, r); err != nil {
			cancel(err)
		}
	})
	err = w.producer.run(ctx, o.Transactions)
	close(due)
	striking.Wait()
	close(stop)
	<-stopped
	if err = errors.Join(context.Cause(ctx), w.monitor.failed, err); err != nil {
		return r, err
	}
	w.log("all %d transactions are sent; judging to the end", o.Transactions)
	if err := w.monitor.finish(ctx, patience(o.Transactions)); err != nil {
		return r, err
	}
	got, err := receiver.Receipts()
	w.judge(r, got)
	r.Took, r.Transactions = time.Since(began), o.Transactions
	return r, err
}

// patience is how long the monitor may take to judge what is left at the end: what 5,000
// transactions a second take, of all.
func patience(transactions int64) time.Duration {
	return 10*time.Minute + time.Duration(transactions)*200*time.Microsecond
}

// strike lets faults happen when they are due, in an order that the seed decides.
func (w *World) strike(ctx context.Context, due <-chan struct{}, r *Report) error {
	rng := rand.New(rand.NewPCG(w.opt.Seed, 0xfa_017))
	var faults []Fault
	for _, f := range w.opt.Faults {
		if err := f.Possible(w); err != nil {
			r.Impossible[f.Name()] = err.Error()
			continue
		}
		faults = append(faults, f)
	}
	var deck []Fault // each comes once before any comes again
	for range due {
		if len(faults) == 0 {
			continue
		}
		if len(deck) == 0 {
			deck = slices.Clone(faults)
			rng.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
		}
		f := deck[0]
		deck = deck[1:]
		what, err := f.Strike(ctx, w, rng)
		if err != nil {
			return fmt.Errorf("fault %s: %w", f.Name(), err)
		}
		r.Struck[f.Name()]++
		w.log("%s", what)
	}
	return nil
}

func (w *World) log(format string, args ...any) {
	if w.opt.Log != nil {
		fmt.Fprintf(w.opt.Log, format+"\n", args...)
	}
}

// judge compares what was alerted with what was planted.
func (w *World) judge(r *Report, got []rig.Receipt) {
	p, m := w.producer, w.monitor
	of, told := map[string]int{}, make([][]rig.Receipt, len(p.planted))
	for i, x := range p.planted {
		for _, id := range x.Transactions {
			of[id] = i
		}
	}
	for _, x := range got {
		r.Deliveries += x.Deliveries
		at := planting(of, x.Alert.Transactions)
		if at < 0 {
			r.Invented = append(r.Invented, x)
			continue
		}
		told[at] = append(told[at], x)
		if want := p.planted[at].Anomaly; x.Alert.Name != want {
			r.Misnamed = append(r.Misnamed, fmt.Sprintf("%s as %s", want, x.Alert.Name))
		}
	}
	for i, alerts := range told {
		switch {
		case len(alerts) == 0:
			r.Missing = append(r.Missing, p.planted[i])
			continue
		case len(alerts) > 1:
			what := p.planted[i].Anomaly + " of " + strings.Join(p.planted[i].Transactions, " ")
			for _, x := range alerts {
				what += fmt.Sprintf("; %s, %s at %s of %s", x.Alert.ID, x.Alert.Name, x.Alert.Level,
					strings.Join(x.Alert.Transactions, " "))
			}
			r.Doubled = append(r.Doubled, what)
		}
		r.Found++
	}
	r.Planted, r.Lost, r.Redelivered, r.Stepped = len(p.planted), p.lost, p.redelivered, p.stepped
	r.Starts, r.Exits, r.Peak = m.starts, m.exits, m.peak
}

// planting is the one that all of an alert's transactions are of; -1 for none.
func planting(of map[string]int, ids []string) int {
	at := -1
	for _, id := range ids {
		n, ok := of[id]
		if !ok || at >= 0 && n != at {
			return -1
		}
		at = n
	}
	return at
}

// Wrong lists what the monitor did wrong; empty if nothing.
func (r *Report) Wrong() []string {
	var out []string
	for _, x := range r.Missing {
		out = append(out, fmt.Sprintf("%s of %s was not alerted", x.Anomaly, strings.Join(x.Transactions, " ")))
	}
	for _, x := range r.Doubled {
		out = append(out, "one anomaly is alerts of several ids: "+x)
	}
	for _, x := range r.Invented {
		out = append(out, fmt.Sprintf("alert %s, %s of %s, was not planted: %s", x.Alert.ID, x.Alert.Name,
			strings.Join(x.Alert.Transactions, " "), x.Alert.Summary))
	}
	for _, x := range r.Exits {
		out = append(out, fmt.Sprintf("the monitor ended by itself, with status %d: %s", x.Status, x.Said))
	}
	return out
}

// Text is the report for people.
func (r *Report) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d transactions in %v: %d of %d planted anomalies alerted, %d invented, %d deliveries\n",
		r.Transactions, r.Took.Round(time.Second), r.Found, r.Planted, len(r.Invented), r.Deliveries)
	fmt.Fprintf(&b, "the monitor was started %d times, ended by itself %d times, and took at most %d MB\n", r.Starts,
		len(r.Exits), r.Peak/1e6)
	fmt.Fprintf(&b, "%d records lost, %d sent twice, %d with a wrong clock\n", r.Lost, r.Redelivered, r.Stepped)
	for _, name := range sorted(r.Struck) {
		fmt.Fprintf(&b, "  %-10s %d times\n", name, r.Struck[name])
	}
	for _, name := range sorted(r.Impossible) {
		fmt.Fprintf(&b, "  %-10s never: %s\n", name, r.Impossible[name])
	}
	for _, x := range r.Misnamed {
		fmt.Fprintf(&b, "  named otherwise: %s\n", x)
	}
	return b.String()
}

func sorted[K cmp.Ordered, V any](m map[K]V) []K {
	var out []K
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
