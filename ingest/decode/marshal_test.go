package decode

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
	"slices"
	"testing"

	"github.com/isowatch/isowatch/ingest/source"
)

// sample are batches that have everything that one can have.
func sample(t testing.TB) []*Batch {
	all := source.Batch{Partition: 3, Messages: append(at(3, 100, 104), messages(blindW(3))...), Next: 120, Identity: -5, Lag: 7, CaughtUp: true, Midst: true,
		Gaps: []source.Gap{{Source: "topic", Partition: 3, From: 90, To: 100, Why: "deleted"}}}
	for i := range all.Messages {
		all.Messages[i].Pos.Offset = 100 + int64(i)
	}
	all.Messages[4].Value = []byte("no record")
	out := readAll(t, &list{batches: []source.Batch{all, {Next: math.MaxInt64, Identity: math.MinInt64}}, end: io.EOF}, Options{})
	out[0].Resume = 64
	out[0].Losses = []Loss{{DB: "d", Session: "s", Txn: "t", Offset: 102, Why: "no end"}, {Why: "nothing is known"}}
	return out
}

// What is cut is noticed, and whatever byte is changed does no harm.
func TestDamagedBatches(t *testing.T) {
	for _, b := range sample(t) {
		good := b.Marshal(nil)
		again, err := Unmarshal(good)
		if err != nil {
			t.Fatal(err)
		}
		if again.Resume != b.Resume || !slices.Equal(again.Losses, b.Losses) || !slices.Equal(again.Gaps, b.Gaps) || again.Lost != b.Lost || again.CaughtUp != b.CaughtUp || again.Midst != b.Midst {
			t.Errorf("%+v became %+v", b, again)
		}
		for n := range good {
			if _, err := Unmarshal(good[:n]); !errors.Is(err, ErrDamaged) {
				t.Fatalf("the first %d bytes: %v", n, err)
			}
			bad := slices.Clone(good)
			bad[n] ^= 0x10
			check(t, bad)
		}
	}
}

// check reads bytes, and all that they give.
func check(t testing.TB, b []byte) {
	out, err := Unmarshal(b)
	if err != nil {
		if !errors.Is(err, ErrDamaged) {
			t.Fatalf("not an ErrDamaged: %v", err)
		}
		return
	}
	for i := range out.Len() {
		out.Block.Copy(i)
		out.Head(i)
	}
	second, err := Unmarshal(out.Marshal(nil))
	if err != nil || second.Len() != out.Len() || second.Next != out.Next {
		t.Fatalf("what can be read can't be read again: %v", err)
	}
}

// A size that is not true costs no memory.
func TestSizeIsChecked(t *testing.T) {
	good := sample(t)[0].Marshal(nil)
	right, n := binary.Uvarint(good)
	for _, size := range []uint64{0, 1, right - 1, right + 1, 1 << 29, 1 << 31, math.MaxUint64} {
		if _, err := Unmarshal(append(binary.AppendUvarint(nil, size), good[n:]...)); !errors.Is(err, ErrDamaged) {
			t.Errorf("a size of %d: %v", size, err)
		}
	}
}

// Every record has an offset and an arrival.
func TestOffsetsAreChecked(t *testing.T) {
	b := sample(t)[0]
	b.Offsets, b.Arrivals = b.Offsets[1:], b.Arrivals[1:]
	content := b.appendContent(nil)
	if _, err := Unmarshal(compressor.EncodeAll(content, binary.AppendUvarint(nil, uint64(len(content))))); !errors.Is(err, ErrDamaged) {
		t.Errorf("the error is %v", err)
	}
}

// FuzzContent begins behind the compression.
func FuzzUnmarshal(f *testing.F) {
	for _, b := range sample(f) {
		f.Add(b.Marshal(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) { check(t, b) })
}

func FuzzContent(f *testing.F) {
	for _, b := range sample(f) {
		f.Add(b.appendContent(nil))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		check(t, compressor.EncodeAll(content, binary.AppendUvarint(nil, uint64(len(content)))))
	})
}
