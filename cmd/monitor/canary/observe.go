package canary

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/isowatch/isowatch/cmd/monitor/canary/target"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/wait"
)

// observeEvery is how often each node is asked how it is doing, observeMax how long its answer may take.
const (
	observeEvery = time.Second
	observeMax   = 5 * time.Second
)

// The kinds of events that a canary sees, or causes; a closed set.
const (
	kindLost     = "connection-lost"
	kindBack     = "node-back"
	kindRole     = "role"
	kindReadOnly = "read-only"
	kindCluster  = "cluster-state"
	kindLag      = "replica-lag"
	kindFault    = "fault"
)

// observed is how a node is doing, as it was seen last.
type observed struct {
	asked bool // it has answered once
	target.State
	down    time.Time // since when it can't be reached; zero: it can
	why     string
	up      time.Time     // since when it can again; zero: it always could
	lag     time.Duration // -1: not known
	lagging bool
}

// next is o after an answer, or an error, at a time; and what has happened since o. newest is how far any node's log
// is known to go: a replica that has applied all of it is not behind, however long ago that was. alone: no node that
// takes writes can be reached.
func (o observed) next(s target.State, err error, now time.Time, newest uint64, alone bool,
	lagMax time.Duration) (observed, []record.Event) {
	var events []record.Event
	say := func(kind, format string, args ...any) {
		events = append(events, record.Event{At: now.UnixNano(), Kind: kind, Text: fmt.Sprintf(format, args...)})
	}
	if err != nil {
		o.why = oneLine(err)
		if o.down.IsZero() {
			o.down = now
			say(kindLost, "can't be reached: %s", o.why)
		}
		return o, events
	}
	if !o.down.IsZero() {
		say(kindBack, "can be reached again, after %s", now.Sub(o.down).Round(100*time.Millisecond))
	}
	n := observed{asked: true, State: s, lag: s.Age, up: o.up}
	if !o.down.IsZero() {
		n.up = now
	}
	switch {
	case alone: // nobody knows what it lacks
		n.lag, n.lagging = -1, o.lagging
	case n.lag > 0 && s.Position > 0 && s.Position >= newest:
		n.lag = 0
		fallthrough
	default:
		n.lagging = lagMax > 0 && n.lag > lagMax
	}
	if !o.asked {
		return n, events
	}
	if s.Server != o.Server {
		say(kindRole, "is served by %s now, and was by %s", s.Server, o.Server)
	}
	if s.Role != o.Role {
		say(kindRole, "became %s", s.Role)
	} else if s.ReadOnly != o.ReadOnly {
		say(kindReadOnly, "%s", map[bool]string{true: "takes no writes any more", false: "takes writes"}[s.ReadOnly])
	}
	if s.Cluster != o.Cluster {
		say(kindCluster, "is %s in its cluster, and was %s", orNone(s.Cluster), orNone(o.Cluster))
	}
	if n.lagging != o.lagging {
		if n.lagging {
			say(kindLag, "is %s behind", n.lag.Round(100*time.Millisecond))
		} else {
			say(kindLag, "has caught up")
		}
	}
	return n, events
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

func orNone(state string) string {
	if state == "" {
		return "nothing"
	}
	return state
}

// observer asks all nodes how they are doing, and records what has happened to them.
type observer struct {
	db     target.Database
	counts *counts // what it sees is kept there
	lagMax time.Duration
	happen func(record.Event)
	newest uint64 // how far any node's log is known to go; counts.mu guards it
}

// run works until ctx ends.
func (o *observer) run(ctx context.Context) {
	var asking sync.WaitGroup
	for _, n := range o.db.Nodes() {
		asking.Go(func() {
			for wait.Sleep(ctx, observeEvery) == nil {
				o.look(ctx, n)
			}
		})
	}
	asking.Wait()
}

// look asks one node. Of a database that can't say how it is doing, sessions that can't connect do.
func (o *observer) look(ctx context.Context, n target.Node) {
	var s target.State
	var err error
	if db, ok := o.db.(target.Observer); ok {
		asking, cancel := context.WithTimeout(ctx, observeMax)
		s, err = db.Observe(asking, n)
		cancel()
		if ctx.Err() != nil {
			return // asked to stop
		}
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("no answer in %s", observeMax)
		}
	} else {
		s.Age = -1
		err = o.counts.refused(n)
	}
	o.counts.mu.Lock()
	at := o.counts.of(n)
	alone := !slices.ContainsFunc(o.db.Nodes(),
		func(n target.Node) bool { return !n.Replica && o.counts.of(n).down.IsZero() })
	var events []record.Event
	at.observed, events = at.next(s, err, time.Now(), o.newest, alone, o.lagMax)
	at.promoted = n.Replica && at.Role == "primary"
	if !at.lagging && err == nil {
		o.newest = max(o.newest, s.Position)
	}
	o.counts.mu.Unlock()
	for _, e := range events {
		e.Node = n.Name
		o.happen(e)
	}
}
