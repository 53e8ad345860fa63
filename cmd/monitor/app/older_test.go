package app

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/window/store"
)

// older is a checkpoint's state as the version before wrote it: its order has another
// version, and all checksums fit.
func older(t *testing.T, state []byte) []byte {
	t.Helper()
	state = slices.Clone(state)
	const sections = 7
	lengths := state[len(state)-4-8*sections:]
	at := 4 + int(binary.LittleEndian.Uint64(lengths)) // behind what is told of the whole
	length := binary.LittleEndian.Uint64(lengths[8:])
	if length < 9 {
		t.Fatal("the checkpoint has no order")
	}
	order := state[at:][:length]
	order[0]--
	body := len(order) - 8
	binary.LittleEndian.PutUint64(order[body:], xxhash.Sum64(order[:body]))
	sum := len(state) - 4
	binary.LittleEndian.PutUint32(state[sum:], crc32.Checksum(state[:sum], crc32.MakeTable(crc32.Castagnoli)))
	return state
}

// TestAnotherVersion: a state that another version of the monitor wrote is not damaged.
// The history is judged anew from the records that are kept, as after a change of the
// configuration, and finds what the whole run finds.
func TestAnotherVersion(t *testing.T) {
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
	c.state = older(t, c.state)
	st.checkpoints[record.DefaultDB] = c.append(nil)
	send(t, p, txns[2])
	r := start(t, testConfig(brokers), st, true)
	if err := r.wait(t); err != nil {
		t.Fatal(err)
	}
	if len(st.ids()) != 1 || !strings.Contains(r.log.String(), "another version of the monitor wrote the state") {
		t.Errorf("%d alerts, want 1; it said\n%s", len(st.ids()), r.log.String())
	}
}

// TestFormOfAnotherVersion: what has a form that this version does not know is not damaged,
// as its checksum fits. Who wrote it is said, and what to do; nothing is changed.
func TestFormOfAnotherVersion(t *testing.T) {
	brokers := cluster(t)
	txns := lostUpdate(1, 1000)
	send(t, producer(t, brokers), txns...)
	for _, what := range []string{"the state of alerts", "the checkpoint of history \"default\"", "entry 1 of the journal", "the records of entry 1 of the journal"} {
		for by, is := range map[int]error{1: store.ErrNewer, -1: store.ErrOlder} {
			st := newMemStore("r")
			if err := start(t, testConfig(brokers), st, true).wait(t); err != nil {
				t.Fatal(err)
			}
			form := &st.checkpoints[record.DefaultDB][0]
			if strings.HasSuffix(what, "journal") {
				c, err := parseCheckpoint(record.DefaultDB, st.checkpoints[record.DefaultDB])
				if err != nil {
					t.Fatal(err)
				}
				st.checkpoints[record.DefaultDB] = c.anew(c.config).append(nil) // the journal is read again
				data := st.journal[1].Data
				if form = &data[0]; strings.Contains(what, "records") {
					e, err := parseEntry(1, data)
					if err != nil {
						t.Fatal(err)
					}
					form = &data[len(data)-len(e.batch.Marshal(nil))]
				}
			}
			if what == "the state of alerts" {
				form = &st.life[0]
			}
			*form = byte(int(*form) + by)
			kept := slices.Clone(st.life)
			err := start(t, testConfig(brokers), st, true).wait(t)
			if !errors.Is(err, is) || errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), what) || !strings.Contains(err.Error(), "--rebuild") {
				t.Errorf("%s: %v, want %v", what, err, is)
			}
			if !slices.Equal(st.life, kept) {
				t.Errorf("%s: the state of alerts is another", what)
			}
		}
	}
}
