package app

import (
	"slices"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/internal/race"
)

// TestKilledAtEveryWrite: a store dies at the n-th commit, for every n there is, with
// keys in memory and with keys in the store: the next run finds what one that did not
// die finds, under the same ids, and all of it is delivered.
func TestKilledAtEveryWrite(t *testing.T) {
	brokers := cluster(t)
	const anomalies = 3
	topicOf(t, brokers, testTopic, plantedIn(t, 240, anomalies, 60))
	c := testConfig(brokers)
	smallWindows(c)
	c.Window.Segment, c.Window.Overlap = 60, 20
	for _, way := range []struct {
		name string
		keys int
		set  func(*App)
	}{{"keys in memory", c.Window.Keys, fine}, {"keys in the store", 1, spilling}} {
		t.Run(way.name, func(t *testing.T) {
			c := *c
			c.Window.Keys = way.keys
			whole := newMemStore("r")
			if err := start(t, &c, whole, true, way.set).wait(t); err != nil {
				t.Fatal(err)
			}
			want := whole.ids()
			if len(want) != anomalies {
				t.Fatalf("%d alerts without a crash, want %d", len(want), anomalies)
			}
			if spilled := way.keys == 1; spilled != (whole.spills > 0) {
				t.Fatalf("%d keys went to the store", whole.spills)
			}
			died, step := 0, 1
			if race.Brief() {
				step = 3
			}
			for n := 1; ; n += step {
				h := newHook(t)
				c.Alerts.Webhooks = []config.Webhook{h.webhook()}
				st := newMemStore(webhookName(h.webhook()))
				st.die(n)
				err := start(t, &c, st, true, way.set).wait(t)
				if err != nil && !strings.Contains(err.Error(), errDisk.Error()) {
					t.Fatalf("dead at write %d: %v", n, err)
				}
				if err == nil {
					break // it was done before it could die
				}
				died++
				st.die(0)
				if err := start(t, &c, st, true, way.set).wait(t); err != nil {
					t.Fatalf("after its death at write %d: %v", n, err)
				}
				if got := st.ids(); !slices.Equal(got, want) {
					t.Errorf("after its death at write %d: %d alerts, want %d:\n%v\n%v", n, len(got), len(want), got, want)
				}
				h.mu.Lock()
				for _, id := range want {
					if h.seen[id] == 0 {
						t.Errorf("after its death at write %d: alert %s was never delivered", n, id)
					}
				}
				h.mu.Unlock()
			}
			if t.Logf("died at each of %d writes", died); died < 12/step {
				t.Errorf("it died %d times; a run makes more commits than that", died)
			}
		})
	}
}
