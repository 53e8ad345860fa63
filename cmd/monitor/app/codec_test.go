package app

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/isowatch/isowatch/alerts/life"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/decode"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/record/packed"
	"github.com/isowatch/isowatch/window/store"
)

func testBatch() *decode.Batch {
	var c packed.Chunk
	txns := lostUpdate(1, 1000)
	b := &decode.Batch{Partition: 2, First: 5, Next: 8, Resume: 8, Identity: 9, CaughtUp: true}
	for i := range txns {
		c.Add(&txns[i])
		b.Offsets, b.Arrivals = append(b.Offsets, int64(5+i)), append(b.Arrivals, 77)
	}
	b.Block = c.Seal()
	b.Sums, b.DBs = b.Block.Sums(), b.Block.DBs()
	return b
}

func testCheckpoints() []*checkpoint {
	full := newTold()
	for i := range toldMax + 10 {
		full.cover(fmt.Sprint(i), outcome{level: verdict.SER, id: fmt.Sprint(i)})
	}
	return []*checkpoint{
		{origin: "kafka t", config: 1 << 60, born: 1, coverage: record.CoverageComplete, consumed: 0, floor: 1, told: newTold()},
		{origin: "kafka t", config: 5, born: 9, coverage: record.CoveragePartial, headed: true, consumed: 8, floor: 9, told: newTold()},
		{origin: "", config: 3, born: 7, coverage: record.CoveragePartial, whole: true, consumed: 1 << 40, floor: 8, told: full, state: []byte("the state")},
	}
}

func TestCheckpointIsReadAsWritten(t *testing.T) {
	for i, c := range testCheckpoints() {
		b := c.append(nil)
		got, err := parseCheckpoint("db", b)
		if err != nil {
			t.Fatalf("%d: %v", i, err)
		}
		if again := got.append(nil); !bytes.Equal(again, b) {
			t.Errorf("%d: written again it is another: %+v", i, got)
		}
		if got.origin != c.origin || got.config != c.config || got.born != c.born || got.coverage != c.coverage || got.whole != c.whole || got.headed != c.headed ||
			got.consumed != c.consumed || got.floor != c.floor || !bytes.Equal(got.state, c.state) || len(got.told.old) != len(c.told.old) {
			t.Errorf("%d: got %+v, want %+v", i, got, c)
		}
	}
}

func TestEntryIsReadAsWritten(t *testing.T) {
	for i, e := range []*entry{
		{number: 3, time: -5},
		{number: 4, time: 1 << 60, partitions: 12, returned: true, sample: map[string]uint8{"b": 3, "a": 20}},
		{number: 5, time: 9, partitions: 3, sample: map[string]uint8{"default": 1}, batch: testBatch(), returned: true},
	} {
		b := e.append(nil)
		got, err := parseEntry(e.number, b)
		if err != nil {
			t.Fatalf("%d: %v", i, err)
		}
		if again := got.append(nil); !bytes.Equal(again, b) {
			t.Errorf("%d: written again it is another: %+v", i, got)
		}
		if got.number != e.number || got.time != e.time || got.partitions != e.partitions || got.returned != e.returned || fmt.Sprint(got.sample) != fmt.Sprint(e.sample) || (got.batch == nil) != (e.batch == nil) {
			t.Errorf("%d: got %+v, want %+v", i, got, e)
		}
		if e.batch != nil && (got.batch.Len() != e.batch.Len() || got.batch.Head(2) != e.batch.Head(2) || got.batch.Next != e.batch.Next) {
			t.Errorf("%d: the batch is %+v, want %+v", i, got.batch, e.batch)
		}
	}
}

// TestFormOfWhatIsStored: if this fails something that the store keeps is written in another way: then store.Schema has to
// be another number.
func TestFormOfWhatIsStored(t *testing.T) {
	l := life.New(life.Config{})
	l.Raise(life.Condition{Kind: "lag", DB: "d", Text: "t"}, 5)
	b := l.Append(testProved().append(nil))
	for _, c := range testCheckpoints() {
		b = c.append(b)
	}
	batch := testBatch()
	b = (&entry{time: 9, partitions: 3, sample: map[string]uint8{"default": 1}}).append(batch.Block.Marshal(b))
	if got, want := fmt.Sprintf("%d: %016x", store.Schema, record.HashBytes(b)), "5: 2ca256893b055e84"; got != want {
		t.Errorf("it is %s, and was %s", got, want)
	}
}

// TestTold: an anomaly is told once for all levels that it breaks, by whichever it is
// found first, and again only after many others.
func TestTold(t *testing.T) {
	a := newTold()
	if a.covered("x", verdict.SER) || !a.cover("x", outcome{level: verdict.SI, id: "1"}) {
		t.Error("a new anomaly was told already")
	}
	if !a.covered("x", verdict.SER) || !a.covered("x", verdict.SI) || a.covered("x", verdict.RC) {
		t.Error("an anomaly that is told at si is told at ser and si, and not at rc")
	}
	if a.cover("y", outcome{level: verdict.SI, id: "1"}) {
		t.Error("one alert is told twice")
	}
	for i := range 3 * toldMax {
		a.cover(fmt.Sprint(i), outcome{level: verdict.SI, id: fmt.Sprint("id", i)})
	}
	if a.covered("x", verdict.SI) {
		t.Error("everything is remembered for ever")
	}
	if n := len(a.cur) + len(a.old); n > 2*toldMax {
		t.Errorf("%d are remembered", n)
	}
}

func FuzzEntry(f *testing.F) {
	f.Add([]byte{})
	f.Add((&entry{}).append(nil))
	f.Add((&entry{time: 1, sample: map[string]uint8{"db": 2}, batch: testBatch()}).append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := parseEntry(1, b)
		if err != nil {
			return
		}
		again, err := parseEntry(1, e.append(nil))
		if err != nil || again.time != e.time || again.partitions != e.partitions || len(again.sample) != len(e.sample) {
			t.Errorf("read %+v, written and read again %+v, %v", e, again, err)
		}
	})
}

func FuzzCheckpoint(f *testing.F) {
	f.Add([]byte{})
	f.Add(testCheckpoints()[0].append(nil))
	small := testCheckpoints()[1]
	small.told = newTold()
	small.told.cover("x", outcome{level: verdict.SI, id: "1"})
	f.Add(small.append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := parseCheckpoint("db", b)
		if err != nil {
			return
		}
		if again, err := parseCheckpoint("db", c.append(nil)); err != nil || again.floor != c.floor || !bytes.Equal(again.state, c.state) {
			t.Errorf("read %+v, written and read again %+v, %v", c, again, err)
		}
	})
}
