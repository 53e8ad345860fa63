package kafka

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
	"testing"

	"github.com/segmentio/kafka-go/compress"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/isowatch/isowatch/ingest/source"
)

// stored is a record batch as it lies in a log, which may have been compacted:
// records at any offsets of [base, last].
type stored struct {
	base, last int64
	records    map[int64]string
	producer   int64
	txn        bool
	marker     int16 // of a control batch
	control    bool
	codec      compress.Compression
	magic      int8 // 0 means 2
	mangle     func([]byte)
}

func (s stored) bytes() []byte {
	var body []byte
	n := int32(0)
	add := func(offset int64, key, value []byte) {
		r := kmsg.Record{OffsetDelta: int32(offset - s.base), Key: key, Value: value}
		r.Length = int32(len(r.AppendTo(nil)) - 1)
		for { // the length's own size depends on it
			if l := int32(len(r.AppendTo(nil)) - len(binary.AppendVarint(nil, int64(r.Length)))); l == r.Length {
				break
			}
			r.Length = int32(len(r.AppendTo(nil)) - len(binary.AppendVarint(nil, int64(r.Length))))
		}
		body = r.AppendTo(body)
		n++
	}
	if s.control {
		add(s.base, binary.BigEndian.AppendUint16([]byte{0, 0}, uint16(s.marker)), make([]byte, 6))
	}
	for o := s.base; o <= s.last; o++ {
		if v, ok := s.records[o]; ok {
			add(o, []byte("key"), []byte(v))
		}
	}
	b := kmsg.RecordBatch{FirstOffset: s.base, Magic: 2, LastOffsetDelta: int32(s.last - s.base), ProducerID: s.producer, NumRecords: n,
		FirstTimestamp: 1000, MaxTimestamp: 1000, PartitionLeaderEpoch: 3}
	if s.magic != 0 {
		b.Magic = s.magic
	}
	if s.codec != compress.None {
		var z bytes.Buffer
		w := s.codec.Codec().NewWriter(&z)
		_, _ = w.Write(body)
		w.Close()
		body = z.Bytes()
		b.Attributes |= int16(s.codec)
	}
	if s.txn || s.control {
		b.Attributes |= attrTxn
	}
	if s.control {
		b.Attributes |= attrControl
	}
	b.Records = body
	b.Length = int32(batchHeader - batchLengthAt + len(body))
	out := b.AppendTo(nil)
	binary.BigEndian.PutUint32(out[17:], crc32.Checksum(out[batchCRCFrom:], crcTable))
	if s.mangle != nil {
		s.mangle(out)
	}
	return out
}

// response encodes a fetch response of a version.
func response(version int16, code int16, stable int64, aborted []abortedTxn, sets ...[]byte) []byte {
	resp := kmsg.NewPtrFetchResponse()
	resp.Version = version
	rt := kmsg.NewFetchResponseTopic()
	rt.Topic = topic
	rp := kmsg.NewFetchResponseTopicPartition()
	rp.Partition, rp.ErrorCode, rp.HighWatermark, rp.LastStableOffset, rp.LogStartOffset = 2, code, 1000, stable, 0
	for _, a := range aborted {
		ra := kmsg.NewFetchResponseTopicPartitionAbortedTransaction()
		ra.ProducerID, ra.FirstOffset = a.producer, a.first
		rp.AbortedTransactions = append(rp.AbortedTransactions, ra)
	}
	rp.RecordBatches = bytes.Join(sets, nil)
	rt.Partitions = append(rt.Partitions, rp)
	resp.Topics = append(resp.Topics, rt)
	return resp.AppendTo(nil)
}

var testLimits = limits{messageMax: 1 << 20, decodedMax: 1 << 20}

func asking(next int64) ask {
	return ask{topic: topic, topicID: [16]byte{1}, partition: 2, next: next, end: forever, limits: testLimits}
}

// shown renders what was decoded: gaps, offsets and values in their order.
func shown(f *fetched) string {
	var out []string
	for _, b := range f.batches {
		for _, g := range b.Gaps {
			out = append(out, fmt.Sprintf("gap[%d,%d)", g.From, g.To))
		}
		for _, m := range b.Messages {
			v := string(m.Value)
			if len(v) > 20 {
				v = fmt.Sprintf("%dx%c", len(v), v[0])
			}
			out = append(out, fmt.Sprintf("%d:%s", m.Pos.Offset, v))
		}
		out = append(out, "/")
	}
	out = append(out, fmt.Sprintf("next=%d", f.next))
	if f.bad != nil {
		out = append(out, fmt.Sprintf("bad skip=%d", f.skip))
	}
	return strings.Join(out, " ")
}

func data(base int64, values ...string) stored {
	s := stored{base: base, last: base + int64(len(values)) - 1, records: map[int64]string{}, producer: -1}
	for i, v := range values {
		s.records[base+int64(i)] = v
	}
	return s
}

func inTxn(producer, base int64, values ...string) stored {
	s := data(base, values...)
	s.producer, s.txn = producer, true
	return s
}

func marker(producer, base int64, kind int16) stored {
	return stored{base: base, last: base, producer: producer, control: true, marker: kind}
}

const commit = 1

func TestDecode(t *testing.T) {
	cut := func(s stored, n int) []byte { b := s.bytes(); return b[:len(b)-n] }
	join := func(ss ...stored) (out []byte) {
		for _, s := range ss {
			out = append(out, s.bytes()...)
		}
		return out
	}
	damaged := data(4, "e", "f")
	damaged.mangle = func(b []byte) { b[len(b)-1] ^= 1 }
	lying := data(4, "e", "f")
	lying.mangle = func(b []byte) { // more records than there are, with a right checksum
		binary.BigEndian.PutUint32(b[57:], 3)
		binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[batchCRCFrom:], crcTable))
	}
	old := data(4, "e")
	old.magic = 1
	holes := stored{base: 10, last: 19, producer: -1, records: map[int64]string{12: "c", 13: "d", 16: "g"}}
	for _, tc := range []struct {
		name    string
		next    int64
		end     int64
		stable  int64
		aborted []abortedTxn
		set     []byte
		want    string
	}{
		{name: "nothing", next: 7, want: "next=7"},
		{name: "two batches", set: join(data(0, "a", "b"), data(2, "c")), want: "0:a 1:b 2:c / next=3"},
		{name: "from the middle of a batch", next: 1, set: join(data(0, "a", "b"), data(2, "c")), want: "1:b 2:c / next=3"},
		{name: "a batch read before", next: 2, set: join(data(0, "a", "b"), data(2, "c")), want: "2:c / next=3"},
		{name: "the last batch is cut", set: append(join(data(0, "a")), cut(data(1, "b"), 1)...), want: "0:a / next=1"},
		{name: "the last batch's head is cut", set: append(join(data(0, "a")), data(1, "b").bytes()[:30]...), want: "0:a / next=1"},
		{name: "only a part of the first", set: cut(data(0, "a"), 1), want: "next=0 bad skip=0"},
		{name: "hole between batches", set: join(data(0, "a"), data(5, "f")), want: "0:a / gap[1,5) 5:f / next=6"},
		{name: "holes within a batch", next: 10, set: join(holes),
			want: "gap[10,12) 12:c 13:d / gap[14,16) 16:g / gap[17,20) / next=20"},
		{name: "a batch compacted to nothing", next: 10, set: join(stored{base: 10, last: 19, producer: -1}, data(20, "u")),
			want: "gap[10,20) 20:u / next=21"},
		{name: "committed transaction", set: join(inTxn(7, 0, "a", "b"), marker(7, 2, commit), data(3, "d")),
			want: "0:a 1:b 3:d / next=4"},
		{name: "aborted transaction", aborted: []abortedTxn{{7, 0}}, set: join(inTxn(7, 0, "a", "b"), marker(7, 2, controlAbort), data(3, "d")),
			want: "3:d / next=4"},
		{name: "the same producer commits after aborting", aborted: []abortedTxn{{7, 0}},
			set:  join(inTxn(7, 0, "a"), marker(7, 1, controlAbort), inTxn(7, 2, "c"), marker(7, 3, commit)),
			want: "2:c / next=4"},
		{name: "aborted twice, listed out of order", aborted: []abortedTxn{{7, 3}, {7, 0}},
			set:  join(inTxn(7, 0, "a"), marker(7, 1, controlAbort), inTxn(8, 2, "c"), inTxn(7, 3, "d"), marker(7, 4, controlAbort), marker(8, 5, commit)),
			want: "2:c / next=6"},
		{name: "an aborting producer's records outside transactions", aborted: []abortedTxn{{7, 0}},
			set:  join(inTxn(7, 0, "a"), stored{base: 1, last: 1, producer: 7, records: map[int64]string{1: "b"}}),
			want: "1:b / next=2"},
		{name: "the aborted transaction goes on behind the fetch", aborted: []abortedTxn{{7, 0}}, set: join(inTxn(7, 0, "a", "b")), want: "next=2"},
		{name: "nothing beyond the last stable offset", stable: 2, set: join(data(0, "a", "b"), data(2, "c")), want: "0:a 1:b / next=2"},
		{name: "the wanted end within a batch", end: 2, set: join(data(0, "a", "b", "c"), data(3, "d")), want: "0:a 1:b / next=2"},
		{name: "the wanted end within hidden records", end: 1, aborted: []abortedTxn{{7, 0}}, set: join(inTxn(7, 0, "a", "b"), data(2, "c")), want: "next=1"},
		{name: "the wanted end within a hole", end: 3, set: join(data(0, "a"), data(5, "f")), want: "0:a / gap[1,3) / next=3"},
		{name: "damaged", set: append(join(data(0, "a", "b", "c", "d")), damaged.bytes()...), want: "0:a 1:b 2:c 3:d / next=4 bad skip=6"},
		{name: "damaged, with a hole before", next: 1, set: damaged.bytes(), want: "next=1 bad skip=6"},
		{name: "lying about its records", next: 4, set: lying.bytes(), want: "next=4 bad skip=6"},
		{name: "format of before 0.11", next: 4, set: old.bytes(), want: "next=4 bad skip=5"},
		{name: "oversize", set: join(data(0, "a", strings.Repeat("x", 2<<20), "c")), want: "0:a 1:65536xx 2:c / next=3"},
		{name: "more than may be decoded at once", set: join(data(0, strings.Repeat("x", 600<<10), strings.Repeat("y", 600<<10), strings.Repeat("z", 600<<10))),
			want: "0:614400xx 1:614400xy / next=2"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, version := range []int16{4, 7, 11, 13} {
				a := asking(tc.next)
				if tc.end != 0 {
					a.end = tc.end
				}
				stable := int64(1000)
				if tc.stable != 0 {
					stable = tc.stable
				}
				aborted := append([]abortedTxn(nil), tc.aborted...)
				f, err := a.decode(bufio.NewReader(bytes.NewReader(response(version, 0, stable, aborted, tc.set))), version)
				if err != nil {
					t.Fatal(err)
				}
				if got := shown(f); got != tc.want {
					t.Errorf("version %d:\ngot  %s\nwant %s", version, got, tc.want)
				}
			}
		})
	}
}

func TestDecodeCompressed(t *testing.T) {
	t.Parallel()
	for _, codec := range []compress.Compression{compress.Gzip, compress.Snappy, compress.Lz4, compress.Zstd} {
		a, b, big := data(0, "a", "b"), inTxn(7, 2, "c"), data(3, "d", strings.Repeat("x", 30<<20), "f")
		a.codec, b.codec, big.codec = codec, codec, codec
		f, err := asking(1).decode(bufio.NewReader(bytes.NewReader(response(13, 0, 1000, []abortedTxn{{7, 2}}, a.bytes(), b.bytes(), big.bytes()))), 13)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := shown(f), "1:b 3:d 4:65536xx 5:f / next=6"; got != want {
			t.Errorf("%v: got %s, want %s", codec, got, want)
		}
		if m := f.batches[0].Messages[2]; m.Oversize != 30<<20 || string(m.Key) != "key" || m.Time != 1e9 {
			t.Errorf("%v: oversize %d, key %q, time %d", codec, m.Oversize, m.Key, m.Time)
		}
	}
	unknown := data(0, "a")
	unknown.mangle = func(b []byte) {
		b[22] |= 6
		binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[batchCRCFrom:], crcTable))
	}
	f, err := asking(0).decode(bufio.NewReader(bytes.NewReader(response(13, 0, 1000, nil, unknown.bytes()))), 13)
	if err != nil || f.bad == nil {
		t.Errorf("compression 6: %v, %v", f, err)
	}
}

func TestDecodeErrorsAndDivergence(t *testing.T) {
	f, err := asking(5).decode(bufio.NewReader(bytes.NewReader(response(13, 1, -1, nil))), 13)
	if err != nil || f.code != 1 {
		t.Errorf("%+v, %v", f, err)
	}
	resp := kmsg.NewPtrFetchResponse()
	resp.Version = 13
	rt := kmsg.NewFetchResponseTopic()
	rp := kmsg.NewFetchResponseTopicPartition()
	rp.Partition = 2
	rp.DivergingEpoch.Epoch, rp.DivergingEpoch.EndOffset = 4, 3
	rt.Partitions = append(rt.Partitions, rp)
	resp.Topics = append(resp.Topics, rt)
	f, err = asking(5).decode(bufio.NewReader(bytes.NewReader(resp.AppendTo(nil))), 13)
	if err != nil || !f.diverged || f.divergedAt != 3 {
		t.Errorf("%+v, %v", f, err)
	}
	// The answer to another question closes the connection.
	if _, err = (ask{partition: 1}).decode(bufio.NewReader(bytes.NewReader(response(13, 0, 0, nil))), 13); err == nil {
		t.Error("took another partition's answer")
	}
}

// Whatever bytes a broker sends, decoding ends, stays within its bounds and
// keeps the promises of its result.
func FuzzDecode(f *testing.F) {
	for _, version := range []int16{4, 11, 13} {
		f.Add(response(version, 0, 1000, []abortedTxn{{7, 2}}, data(0, "a", "b").bytes(), inTxn(7, 2, "c").bytes(), marker(7, 3, 0).bytes()), version, int64(1))
	}
	z := data(0, "a", "b")
	z.codec = compress.Zstd
	f.Add(response(13, 0, 1000, nil, z.bytes()), int16(13), int64(0))
	f.Fuzz(func(t *testing.T, b []byte, version int16, next int64) {
		if version < 4 || version > 13 || next < 0 {
			return
		}
		a := asking(next)
		a.limits = limits{messageMax: 1 << 10, decodedMax: 4 << 10}
		out, err := a.decode(bufio.NewReader(bytes.NewReader(b)), version)
		if err != nil {
			return
		}
		check(t, a, out)
	})
}

// FuzzRecordSet is FuzzDecode for the part that the fuzzer finds hard to reach:
// it mends the checksums.
func FuzzRecordSet(f *testing.F) {
	f.Add(data(0, "a", "b").bytes(), int64(0))
	f.Add(append(inTxn(7, 0, "c").bytes(), marker(7, 1, 0).bytes()...), int64(0))
	f.Add(stored{base: 3, last: 9, producer: 1, records: map[int64]string{5: "x"}}.bytes(), int64(4))
	f.Fuzz(func(t *testing.T, set []byte, next int64) {
		if next < 0 {
			return
		}
		for rest := set; len(rest) >= batchHeader; {
			n := int64(binary.BigEndian.Uint32(rest[8:])) + batchLengthAt
			if n < batchHeader || n > int64(len(rest)) {
				break
			}
			binary.BigEndian.PutUint32(rest[17:], crc32.Checksum(rest[batchCRCFrom:n], crcTable))
			rest = rest[n:]
		}
		a := asking(next)
		a.limits = limits{messageMax: 1 << 10, decodedMax: 4 << 10}
		out := &fetched{next: next, epoch: -1, stable: -1}
		d := newDecoder(a, out, []abortedTxn{{7, 0}})
		d.recordSet(&io.LimitedReader{R: bytes.NewReader(set), N: int64(len(set))})
		d.finish()
		check(t, a, out)
	})
}

// What waits to be read takes about what its records need.
func TestDecodeTakesNoMoreThanNeeded(t *testing.T) {
	values := make([]string, 100)
	for i := range values {
		values[i] = fmt.Sprintf("%0100d", i)
	}
	for _, batches := range []int{1, 2, 30} {
		var set []byte
		for i := range batches {
			set = append(set, data(int64(i*100), values...).bytes()...)
		}
		for _, from := range []int64{0, 95} { // 95: nearly all of the first batch was read before
			a := asking(from)
			a.limits = limits{messageMax: 1 << 20, decodedMax: 1 << 20}
			f := &fetched{next: from, epoch: -1, stable: -1, wire: int64(len(set))}
			d := newDecoder(a, f, nil)
			d.recordSet(&io.LimitedReader{R: bytes.NewReader(set), N: int64(len(set))})
			d.finish()
			if len(f.batches) != 1 || f.next != int64(batches*100) {
				t.Fatalf("%d batches from %d: next %d, bad %v", batches, from, f.next, f.bad)
			}
			m := f.batches[0].Messages
			if from == 0 && cap(m) > len(m)*11/10 || cap(m) > 2*len(m) && cap(m) > 8 {
				t.Errorf("%d batches from %d: room for %d messages, %d are there", batches, from, cap(m), len(m))
			}
		}
	}
	var small memory
	if small.take(300, 0); len(small.left) > chunkMin {
		t.Errorf("a record of 300 bytes takes %d more", len(small.left))
	}
}

// Memory that was given back is used again, and for that only.
func TestMemoryAgain(t *testing.T) {
	fill := func(m *memory) (out [][]byte) {
		for n := 1; n < 1000; n++ {
			b := m.take(n, 1<<12)
			for i := range b {
				b[i] = byte(n)
			}
			out = append(out, b)
		}
		return out
	}
	m := &memory{}
	first := fill(m)
	chunks := len(m.chunks)
	for n, b := range first {
		if len(b) != n+1 || bytes.Count(b, []byte{byte(n + 1)}) != len(b) {
			t.Fatalf("record %d of %d bytes was written over", n+1, len(b))
		}
	}
	m.messages = append(m.messages, source.Message{Value: first[0]})
	m.free()
	if len(m.messages) != 0 || m.messages[:1][0].Value != nil {
		t.Error("a message is still held")
	}
	if second := fill(m); &second[0][0] != &first[0][0] || len(m.chunks) != chunks {
		t.Errorf("%d chunks the second time, %d the first", len(m.chunks), chunks)
	}
}

// check holds for every result of decoding.
func check(t *testing.T, a ask, f *fetched) {
	t.Helper()
	if f.next < a.next {
		t.Errorf("next went back from %d to %d", a.next, f.next)
	}
	if f.bytes > a.limits.decodedMax+a.limits.messageMax+2*oversizeKeep+recordOverhead {
		t.Errorf("%d bytes decoded", f.bytes)
	}
	at := a.next
	for _, b := range f.batches {
		gap := func(g source.Gap) {
			if g.From < at || g.To <= g.From {
				t.Errorf("gap %+v at %d", g, at)
			}
			at = g.To
		}
		for _, g := range b.Gaps {
			gap(g)
		}
		for _, m := range b.Messages {
			if m.Pos.Offset < at {
				t.Errorf("offset %d at %d", m.Pos.Offset, at)
			}
			at = m.Pos.Offset + 1
		}
		if b.Next < at || b.Next > f.next {
			t.Errorf("batch's next %d at %d, next %d", b.Next, at, f.next)
		}
	}
}

// One partition's response of 1 MB: three batches of 1,000 records of 300
// bytes, read from memory.
func BenchmarkDecode(b *testing.B) {
	for _, codec := range []compress.Compression{compress.None, compress.Lz4, compress.Zstd} {
		b.Run(codec.String(), func(b *testing.B) {
			var set []byte
			values := make([]string, 1000)
			for i := range values {
				values[i] = fmt.Sprintf("%0300d", i*i*7919)
			}
			for i := range int64(3) {
				s := data(i*1000, values...)
				s.codec = codec
				set = append(set, s.bytes()...)
			}
			body := response(13, 0, 1<<40, nil, set)
			r := bufio.NewReaderSize(nil, 64<<10)
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				r.Reset(bytes.NewReader(body))
				a := asking(0)
				a.limits = ordinary
				f, err := a.decode(r, 13)
				if err != nil || f.next != 3000 {
					b.Fatal(f.next, err)
				}
				n += 3000
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "records/s")
		})
	}
}
