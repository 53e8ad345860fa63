package app

import (
	"slices"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/ingest/record"
)

// older is a checkpoint's state in a form that another version wrote.
func older(state []byte) []byte {
	state = slices.Clone(state)
	state[0]--
	return state
}

// TestAnotherVersion: a state that another version of the monitor wrote is not damaged.
// The history is judged anew from the records that are kept, as after a change of the
// configuration, and finds what the whole run finds. A history that has no state yet is nobody else's.
func TestAnotherVersion(t *testing.T) {
	for _, other := range []bool{true, false} {
		brokers := cluster(t)
		txns := lostUpdate(1, 1000)
		p := producer(t, brokers)
		send(t, p, txns[:2]...)
		st := newMemStore("r")
		if err := start(t, testConfig(brokers), st, true).wait(t); err != nil {
			t.Fatal(err)
		}
		c, err := parseCheckpoint(record.DefaultDB, st.checkpoints[record.DefaultDB])
		if err != nil {
			t.Fatal(err)
		}
		if c.state = older(c.state); !other { // as it was stored before the history had consumed anything
			c.state, c.consumed, c.floor, c.told = nil, c.born-1, c.born, newTold()
		}
		st.checkpoints[record.DefaultDB] = c.append(nil)
		send(t, p, txns[2])
		r := start(t, testConfig(brokers), st, true)
		if err := r.wait(t); err != nil {
			t.Fatal(err)
		}
		if len(st.ids()) != 1 || other != strings.Contains(r.log.String(), "another version of the monitor wrote the state") {
			t.Errorf("%d alerts, want 1; it said\n%s", len(st.ids()), r.log.String())
		}
	}
}
