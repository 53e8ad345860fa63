package canary

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/isowatch/isowatch/alerts/page"
	"github.com/isowatch/isowatch/cmd/monitor/canary/target"
	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/ingest/record"
)

// What a node says of itself becomes events where it changes, and nothing where it does not.
func TestObserved(t *testing.T) {
	primary, standby := target.State{Role: "primary", Age: -1}, target.State{Role: "standby", ReadOnly: true, Age: time.Second}
	late, idle := standby, standby
	late.Age, late.Position = 12*time.Second, 5
	idle.Age, idle.Position = time.Hour, 10
	in := func(cluster string) target.State { return target.State{Cluster: cluster, Age: -1} }
	at := func(server string) target.State { return target.State{Role: "primary", Server: server, Age: -1} }
	refused := errors.New("refused")
	for _, c := range []struct {
		name string
		says []any // a State or an error, a second apart
		want []string
	}{
		{"the same", []any{primary, primary, standby}, []string{"role became standby"}},
		{"the first answer", []any{standby}, nil},
		{"lost and back", []any{primary, refused, refused, primary}, []string{"connection-lost can't be reached: refused", "node-back can be reached again, after 2s"}},
		{"lost from the beginning", []any{refused, primary}, []string{"connection-lost can't be reached: refused", "node-back can be reached again, after 1s"}},
		{"back as another", []any{standby, refused, primary}, []string{"connection-lost can't be reached: refused", "node-back can be reached again, after 1s", "role became primary"}},
		{"another took over", []any{at("db-1"), refused, at("db-2")}, []string{"connection-lost can't be reached: refused",
			"node-back can be reached again, after 1s", "role is served by db-2 now, and was by db-1"}},
		{"read-only", []any{target.State{Age: -1}, target.State{Age: -1, ReadOnly: true}, target.State{Age: -1}}, []string{"read-only takes no writes any more", "read-only takes writes"}},
		{"wsrep", []any{in("Synced"), in("Donor/Desynced"), in("")}, []string{"cluster-state is Donor/Desynced in its cluster, and was Synced", "cluster-state is nothing in its cluster, and was Donor/Desynced"}},
		{"behind", []any{standby, late, late, standby}, []string{"replica-lag is 12s behind", "replica-lag has caught up"}},
		{"alone", []any{standby, late, late}, nil},
		{"nothing to apply", []any{standby, idle, idle}, nil},
	} {
		var o observed
		var got []string
		for i, says := range c.says {
			s, _ := says.(target.State)
			err, _ := says.(error)
			next, events := o.next(s, err, time.Unix(int64(i), 0), 10, c.name == "alone", 10*time.Second)
			o = next
			for _, e := range events {
				got = append(got, e.Kind+" "+e.Text)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// A canary stops when too much fails, or takes too long, for as long as it may, and not before.
func TestLimits(t *testing.T) {
	for _, c := range []struct {
		name string
		config.StopIf
		each strain // of each second
		from int    // the second from which on it is so
		at   int    // when it stops; -1: never
		says string
	}{
		{"off", config.StopIf{For: 3 * time.Second}, strain{10, 10, 10}, 0, -1, ""},
		{"few errors", config.StopIf{Errors: 50, For: 3 * time.Second}, strain{10, 5, 0}, 0, -1, ""},
		{"errors", config.StopIf{Errors: 50, For: 3 * time.Second}, strain{10, 6, 0}, 0, 3, "18 of 30 transactions and attempts to connect failed in the last 3s"},
		{"errors later", config.StopIf{Errors: 50, For: 3 * time.Second}, strain{10, 10, 0}, 10, 12, "20 of 30"},
		{"one in a hundred slow", config.StopIf{P99: time.Second, For: 3 * time.Second}, strain{100, 0, 1}, 0, -1, ""},
		{"slow", config.StopIf{P99: time.Second, For: 3 * time.Second}, strain{100, 0, 2}, 0, 3, "6 of 300 transactions took longer than 1s"},
		{"nothing is done", config.StopIf{Errors: 50, P99: time.Second, For: 3 * time.Second}, strain{}, 0, -1, ""},
	} {
		l := limits{StopIf: c.StopIf}
		at, says := -1, ""
		var sum strain
		for i := range 20 {
			if says = l.exceeded(sum, time.Unix(int64(i), 0)); says != "" {
				at = i
				break
			}
			if add := c.each; i >= c.from {
				sum = strain{sum.done + add.done, sum.failed + add.failed, sum.slow + add.slow}
			} else {
				sum.done += add.done
			}
		}
		if at != c.at || !strings.Contains(says, c.says) {
			t.Errorf("%s: stopped at %d (%s), want %d (%s)", c.name, at, says, c.at, c.says)
		}
		if len(l.past) > 5 {
			t.Errorf("%s: %d moments are kept", c.name, len(l.past))
		}
	}
}

// What is told as the reason of a stall may be one: that transactions collide stalls nothing.
func TestFailure(t *testing.T) {
	n := target.Node{Name: "db-3"}
	conflict := ended{outcome: record.Aborted, why: target.Conflict, err: errors.New("conflict")}
	slow := ended{outcome: record.Unknown, why: target.Slow, err: errors.New("no leader")}
	for _, c := range []struct {
		met  []ended
		want string
	}{
		{nil, "no answer that says why"},
		{[]ended{conflict}, "no answer that says why"},
		{[]ended{slow}, "timeout: no leader"},
		{[]ended{slow, conflict}, "timeout: no leader"},
		{[]ended{slow, {outcome: record.Committed, does: true}, conflict}, "no answer that says why"},
	} {
		of := counts{sessions: 2}
		for _, e := range c.met {
			of.asks(1, n, true)
			of.add(1, n, e)
		}
		of.asks(1, n, true)
		if got := of.node(n, time.Now().Add(time.Minute)).Why; got != c.want {
			t.Errorf("after %v: %q, want %q", c.met, got, c.want)
		}
	}
}

// How a node stands: only what sessions try there counts, and what they have done before it was lost is not held against it.
func TestStanding(t *testing.T) {
	n, failed := target.Node{Name: "db-3"}, errors.New("refused")
	waits := func(c *counts) { c.asks(1, n, false); c.lacks(true) }
	wrote, none, replica := ended{outcome: record.Committed, does: true}, ended{outcome: record.Committed}, target.Node{Name: "db-3", Replica: true}
	for name, c := range map[string]struct {
		happens func(*counts)
		after   time.Duration
		want    string
	}{
		"nobody is at work there, and a group could not be made or removed there": {func(c *counts) {
			c.asks(2, n, true)
			c.unreachable(2, n, target.Lost, failed)
		}, time.Hour, page.NodeUp},
		"sessions try":                    {func(c *counts) { c.asks(1, n, true) }, 10 * time.Second, page.NodeStalled},
		"not for long":                    {func(c *counts) { c.asks(1, n, true) }, 9 * time.Second, page.NodeUp},
		"it waits for keys":               {waits, 10 * time.Second, page.NodeStalled},
		"it has waited for them":          {func(c *counts) { waits(c); c.lacks(false) }, time.Hour, page.NodeUp},
		"only reads are tried":            {func(c *counts) { c.asks(1, n, false) }, time.Hour, page.NodeUp},
		"a session wrote":                 {func(c *counts) { c.asks(1, n, true); c.add(1, n, wrote) }, time.Hour, page.NodeUp},
		"a replica shows something":       {func(c *counts) { c.asks(1, replica, false); c.add(1, replica, wrote) }, time.Hour, page.NodeUp},
		"it shows nothing":                {func(c *counts) { c.asks(1, replica, false); c.add(1, replica, none) }, 10 * time.Second, page.NodeStalled},
		"another client wrote":            {func(c *counts) { c.asks(1, n, true); c.add(2, n, wrote) }, time.Hour, page.NodeStalled},
		"sessions can't connect":          {func(c *counts) { c.unreachable(1, n, target.TooMany, failed) }, 10 * time.Second, page.NodeStalled},
		"they can":                        {func(c *counts) { c.unreachable(1, n, target.TooMany, failed); c.reached(1, n) }, time.Hour, page.NodeUp},
		"lost":                            {func(c *counts) { c.of(n).down = time.Now() }, 0, page.NodeUnreachable},
		"lost to who asks only":           {func(c *counts) { c.of(n).down = time.Now(); c.add(2, n, ended{outcome: record.Committed}) }, 0, page.NodeUp},
		"back, before sessions are":       {func(c *counts) { c.asks(1, n, true); c.of(n).up = time.Now().Add(time.Hour) }, time.Hour, page.NodeUp},
		"back, and nothing comes of that": {func(c *counts) { c.asks(1, n, true); c.of(n).up = time.Now() }, 11 * time.Second, page.NodeStalled},
	} {
		of := counts{sessions: 2}
		c.happens(&of)
		if got := of.node(n, time.Now().Add(c.after)); got.State != c.want {
			t.Errorf("%s: it is %s, want %s", name, got.State, c.want)
		}
	}
}

// Since when a node can't be reached is told by that alone, also where sessions had waited before. That nothing comes of what they try
// counts from when they began to.
func TestUnreachableSince(t *testing.T) {
	n, of := target.Node{Name: "db-3"}, counts{sessions: 2}
	of.asks(1, n, true)
	lost := time.Now().Add(8 * time.Second)
	of.of(n).down = lost
	if got := of.node(n, lost.Add(time.Second)); got.State != page.NodeUnreachable || got.Since != lost.UnixNano() {
		t.Errorf("it is %s for %s when it was lost", got.State, lost.Sub(time.Unix(0, got.Since)))
	}
	if at := of.idle(n); !at.Before(lost) {
		t.Errorf("nothing comes of what sessions try since %s after it was lost", at.Sub(lost))
	}
}
