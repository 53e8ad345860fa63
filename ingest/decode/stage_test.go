package decode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/reject"
	"github.com/isowatch/isowatch/ingest/source"
	"github.com/isowatch/isowatch/internal/lab/leak"
	_ "github.com/isowatch/isowatch/internal/lab/seeds"
)

func TestMain(m *testing.M) { leak.Main(m) }

// list is a source of batches that are known, and of what comes at their end.
type list struct {
	batches []source.Batch
	end     error
	reads   atomic.Int32
}

func (l *list) Read(ctx context.Context) (source.Batch, error) {
	n := int(l.reads.Add(1)) - 1
	if n < len(l.batches) {
		return l.batches[n], ctx.Err()
	}
	if l.end == nil {
		<-ctx.Done()
		return source.Batch{}, ctx.Err()
	}
	return source.Batch{}, l.end
}

func (l *list) Partitions() int { return 1 }
func (l *list) Close() error    { return nil }

// readAll reads to the end.
func readAll(t testing.TB, src source.Source, opts Options) []*Batch {
	t.Helper()
	s := New(src, opts)
	defer s.Close()
	var out []*Batch
	for {
		b, err := s.Read(t.Context())
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, b)
	}
}

// drawMessage is a message of any kind: a record, one without a name, or none.
func drawMessage(t *rapid.T, partition int, offset int64) source.Message {
	x := record.Transaction{DB: rapid.SampledFrom([]string{"a", "a", "b"}).Draw(t, "db"), Session: rapid.SampledFrom([]string{"s", "t", "u/7"}).Draw(t, "session"),
		Status: record.Status(rapid.IntRange(0, 2).Draw(t, "status"))}
	for range rapid.IntRange(0, 4).Draw(t, "operations") {
		x.Ops = append(x.Ops, record.Op{Kind: record.OpKind(rapid.IntRange(0, 2).Draw(t, "kind")), Key: fmt.Sprint("k", rapid.IntRange(0, 99).Draw(t, "key")),
			Value: record.Int(rapid.Int64Range(-5, 1<<40).Draw(t, "value"))})
	}
	m := source.Message{Pos: record.Position{Source: "t", Kafka: true, Partition: partition, Offset: offset}, Time: rapid.Int64Range(0, 1<<50).Draw(t, "time")}
	switch rapid.IntRange(0, 12).Draw(t, "message") {
	case 0: // neither seq nor id
	case 1:
		x.HasTimes, x.Start, x.End = true, 7, 9
	case 2:
		x.ID = "named"
	default:
		x.HasSeq, x.Seq = true, rapid.Int64Range(0, 1<<30).Draw(t, "seq")
		x.HasTimes, x.Start = true, rapid.Int64Range(0, 1<<60).Draw(t, "start")
		x.End = x.Start + rapid.Int64Range(0, 1<<30).Draw(t, "length")
	}
	m.Value = codec.AppendJSON(nil, &x)
	switch rapid.IntRange(0, 30).Draw(t, "damage") {
	case 0:
		m.Value = m.Value[:rapid.IntRange(0, len(m.Value)-1).Draw(t, "cut")]
	case 1:
		m.Oversize = 1 << 30
	case 2:
		m.ContentType = "text/plain"
	case 3:
		m.ContentType = "Application/JSON; charset=utf-8"
	case 4:
		m.ContentType = ContentTypeJSON
		m.Value = append([]byte("  "), m.Value...)
	}
	return m
}

func drawBatches(t *rapid.T) []source.Batch {
	var out []source.Batch
	next := [3]int64{}
	for range rapid.IntRange(0, 8).Draw(t, "batches") {
		p := rapid.IntRange(0, 2).Draw(t, "partition")
		b := source.Batch{Partition: p, Identity: 77, Lag: rapid.Int64Range(0, 100).Draw(t, "lag"), CaughtUp: rapid.Bool().Draw(t, "caught up"), Midst: rapid.Bool().Draw(t, "midst")}
		if rapid.IntRange(0, 4).Draw(t, "gap") == 0 {
			b.Gaps = []source.Gap{{Source: "t", Partition: p, From: next[p], To: next[p] + 5, Why: "deleted"}}
			next[p] += 5
		}
		for range rapid.IntRange(0, 20).Draw(t, "messages") {
			b.Messages = append(b.Messages, drawMessage(t, p, next[p]))
			next[p] += 1 + rapid.Int64Range(0, 2).Draw(t, "hidden")
		}
		b.Next = next[p]
		out = append(out, b)
	}
	return out
}

// simple is what the stage should make of a message, the simple way.
func simple(m *source.Message) (t record.Transaction, reason reject.Reason) {
	if m.ContentType == "text/plain" {
		return t, reject.ContentType
	}
	if m.Oversize > 0 {
		return t, reject.TooLarge
	}
	if err := codec.Decode(m.Value, &t); err != nil {
		return t, reject.From(err).Reason
	}
	if t.ID == "" && t.HasTimes {
		h := record.HeadOf(&t)
		t.ID = string(record.AppendContentID(nil, t.Session, h.Content))
	} else if t.ID == "" {
		t.ID = fmt.Sprintf("t/%d@%d", m.Pos.Partition, m.Pos.Offset)
	}
	return t, reject.None
}

// What comes out is what the codec makes of every message in turn, in order, nothing
// left out, whatever the number of workers and the size of batches.
func TestStage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawBatches(t)
		opts := Options{RecordsMax: rapid.IntRange(1, 30).Draw(t, "records"), BytesMax: rapid.Int64Range(1, 4000).Draw(t, "bytes"),
			QueueMax: rapid.IntRange(1, 4).Draw(t, "queue"), WaitingMax: rapid.Int64Range(1, 20_000).Draw(t, "waiting")}
		var first []*Batch
		for workers := 1; workers <= 4; workers++ {
			opts.Workers = workers
			s := New(&list{batches: in, end: io.EOF}, opts)
			var out []*Batch
			for {
				b, err := s.Read(context.Background())
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				if again, err := Unmarshal(b.Marshal(nil)); err != nil {
					t.Fatal(err)
				} else {
					sameBatch(t, again, b)
				}
				out = append(out, b)
			}
			if _, bytes := s.Waiting(); bytes != 0 {
				t.Fatalf("%d bytes wait when all is read", bytes)
			}
			s.Close()
			if first == nil {
				first = out
				checkBatches(t, in, out, &opts)
				continue
			}
			if len(out) != len(first) {
				t.Fatalf("%d batches with %d workers, %d with one", len(out), workers, len(first))
			}
			for i := range out {
				if !slices.Equal(out[i].Marshal(nil), first[i].Marshal(nil)) || !reflect.DeepEqual(out[i].Rejected, first[i].Rejected) {
					t.Fatalf("batch %d is another with %d workers", i, workers)
				}
			}
		}
	})
}

// sameBatch compares a batch that was bytes with the one that it was before.
func sameBatch(t *rapid.T, got, want *Batch) {
	if !slices.Equal(got.Block.Marshal(nil), want.Block.Marshal(nil)) {
		t.Fatal("another block")
	}
	g, w := *got, *want
	g.Block, w.Block, w.Rejected, w.State = nil, nil, nil, nil
	if len(w.Offsets) == 0 {
		g.Offsets, g.Arrivals, g.Sums, w.Offsets, w.Arrivals, w.Sums = nil, nil, nil, nil, nil, nil
	}
	if diff := cmp.Diff(w, g); diff != "" {
		t.Fatal(diff)
	}
}

// checkBatches compares out with the batches in, message by message.
func checkBatches(t *rapid.T, in []source.Batch, out []*Batch, opts *Options) {
	for _, b := range in {
		messages, gaps, midst := b.Messages, b.Gaps, b.Midst
		for last := false; !last; {
			if len(out) == 0 {
				t.Fatalf("no batch is left for messages %d of partition %d", len(messages), b.Partition)
			}
			got := out[0]
			out = out[1:]
			n := checkMessages(t, messages, got)
			if n > opts.RecordsMax {
				t.Fatalf("a batch of %d messages", n)
			}
			messages = messages[n:]
			last = len(messages) == 0
			next := b.Next
			if !last {
				next = messages[0].Pos.Offset
			}
			if got.Next != next || got.Resume != next || got.Identity != b.Identity || got.Partition != b.Partition || got.Next+got.Lag != b.Next+b.Lag ||
				got.CaughtUp != (last && b.CaughtUp) || !slices.Equal(got.Gaps, gaps) || got.Midst != midst {
				t.Fatalf("%+v of %+v, %d messages left", got, b, len(messages))
			}
			gaps, midst = nil, false
		}
	}
	if len(out) > 0 {
		t.Fatalf("%d batches too many", len(out))
	}
}

// checkMessages compares a batch with the first of the messages, and returns how many
// there are in it.
func checkMessages(t *rapid.T, messages []source.Message, b *Batch) int {
	var bytes int64
	var dbs []string
	n, i, rejected := 0, 0, 0
	if len(messages) > 0 && b.First != messages[0].Pos.Offset || len(messages) == 0 && b.First != b.Next {
		t.Fatalf("a batch that begins at %d", b.First)
	}
	for ; n < len(messages) && messages[n].Pos.Offset < b.Next; n++ {
		m := &messages[n]
		bytes += max(int64(len(m.Value)), m.Oversize)
		want, reason := simple(m)
		if reason != reject.None {
			r := b.Rejected[rejected]
			rejected++
			if r.Err.Reason != reason || r.Err.Pos != m.Pos || string(r.Value) != string(m.Value) || r.Size != max(int64(len(m.Value)), m.Oversize) {
				t.Fatalf("rejected %+v, should be for %v at %v", r, reason, m.Pos)
			}
			continue
		}
		if got := b.Block.Copy(i); !cmp.Equal(got, want) {
			t.Fatal(cmp.Diff(want, got))
		}
		if got, want := b.Head(i), record.HeadOf(&want); got != want {
			t.Fatal(cmp.Diff(want, got))
		}
		if b.Offsets[i] != m.Pos.Offset || b.Arrivals[i] != m.Time {
			t.Fatalf("offset %d and arrival %d of %+v", b.Offsets[i], b.Arrivals[i], m)
		}
		if !slices.Contains(dbs, want.DB) {
			dbs = append(dbs, want.DB)
		}
		i++
	}
	if i != b.Len() || rejected != len(b.Rejected) || rejected != b.Lost || bytes != b.Bytes || !slices.Equal(dbs, b.DBs) {
		t.Fatalf("%d records, %d rejected, %d bytes of %q, should be %d, %d, %d, %q", b.Len(), len(b.Rejected), b.Bytes, b.DBs, i, rejected, bytes, dbs)
	}
	return n
}

// The first line of a file may be a header, which is no record. A header elsewhere is a
// dead letter.
func TestHeader(t *testing.T) {
	line := func(n int64, text string) source.Message {
		return source.Message{Pos: record.Position{Source: "f", Line: n, Offset: 100 * n}, Value: []byte(text)}
	}
	const header = `{"history":{"initial":"zero"}}`
	out := readAll(t, &list{batches: []source.Batch{{Next: 900, Messages: []source.Message{
		line(1, header), line(2, `{"session":"s","seq":1,"status":"committed","ops":[]}`), line(3, header)}}}, end: io.EOF}, Options{})
	if len(out) != 1 || out[0].Len() != 1 || out[0].Lost != 1 || out[0].Rejected[0].Err.Reason != reject.MisplacedHeader {
		t.Errorf("%+v", out)
	}
}

// Nobody reads: the source is read until what waits reaches its bounds, and then not
// any more; and again when one batch is taken.
func TestBounds(t *testing.T) {
	one := source.Batch{Messages: messages(blindW(10)), Next: 10}
	size := int64(0)
	for _, m := range one.Messages {
		size += int64(len(m.Value))
	}
	for _, c := range []struct {
		name string
		opts Options
		want int32 // read at most
	}{
		// One more is in the reader's hands.
		{"batches", Options{Workers: 2, QueueMax: 3, WaitingMax: 1 << 30}, 4},
		{"bytes", Options{Workers: 2, QueueMax: 100, WaitingMax: 4 * size}, 4},
		{"a batch larger than all that may wait", Options{Workers: 2, QueueMax: 100, WaitingMax: 1}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				src := &list{batches: slices.Repeat([]source.Batch{one}, 50), end: io.EOF}
				s := New(src, c.opts)
				defer s.Close()
				synctest.Wait()
				before := src.reads.Load()
				if before > c.want || before < c.want-1 {
					t.Errorf("%d batches were read, want %d", before, c.want)
				}
				batches, bytes := s.Waiting()
				if batchesMax, bytesMax := s.Capacity(); batches > batchesMax || bytes > bytesMax || batches == 0 || bytes == 0 {
					t.Errorf("%d batches of %d, %d bytes of %d", batches, batchesMax, bytes, bytesMax)
				}
				if _, err := s.Read(t.Context()); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if got := src.reads.Load(); got != before+1 {
					t.Errorf("%d batches were read after one was taken, before %d", got, before)
				}
			})
		})
	}
}

// An error comes after all that was read before it, and stays.
func TestErrors(t *testing.T) {
	startup := &source.StartupError{What: "no topic", Do: "create it"}
	for _, end := range []error{io.EOF, startup} {
		src := &list{batches: slices.Repeat([]source.Batch{{Messages: messages(blindW(3)), Next: 3}}, 5), end: end}
		s := New(src, Options{Workers: 3})
		n := 0
		var err error
		for ; err == nil; n++ {
			_, err = s.Read(t.Context())
		}
		if n != 6 || !errors.Is(err, end) {
			t.Errorf("%v after %d batches", err, n-1)
		}
		if _, again := s.Read(t.Context()); !errors.Is(again, end) {
			t.Errorf("then %v", again)
		}
		s.Close()
		if _, err := s.Read(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	}
}

// Read is over when its context is, and loses nothing by that.
func TestCancel(t *testing.T) {
	src := &list{batches: []source.Batch{{Messages: messages(blindW(3)), Next: 3}}}
	s := New(src, Options{})
	defer s.Close()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	got := 0
	for range 3 { // it may have the batch, and not see that its context is over
		b, err := s.Read(gone)
		if err == nil {
			got += b.Len()
		} else if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	if got == 0 {
		b, err := s.Read(t.Context())
		if err != nil || b.Len() != 3 {
			t.Fatalf("%v, %v", b, err)
		}
	}
	if _, err := s.Read(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("with nothing to read: %v", err)
	}
}

// Close ends everything at any point.
func TestClose(t *testing.T) {
	for n := range 6 {
		src := &list{batches: slices.Repeat([]source.Batch{{Messages: messages(blindW(3)), Next: 3}}, 5)}
		s := New(src, Options{Workers: 2, QueueMax: 1})
		for range n - 1 {
			if _, err := s.Read(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		s.Close()
	}
}

// at are messages that name themselves by their session, at offsets.
func at(partition int, offsets ...int64) (out []source.Message) {
	for _, o := range offsets {
		out = append(out, source.Message{Pos: record.Position{Source: "t", Kafka: true, Partition: partition, Offset: o},
			Value: fmt.Appendf(nil, `{"session":"p%d","seq":%d,"status":"committed","ops":[]}`, partition, o)})
	}
	return out
}

// A batch ends with the message that reaches BytesMax.
func TestBytesMax(t *testing.T) {
	in := messages(blindW(9))
	size := int64(len(in[0].Key) + len(in[0].Value))
	for _, b := range readAll(t, &list{batches: []source.Batch{{Messages: in, Next: 9}}, end: io.EOF}, Options{BytesMax: 2*size + size/2})[:2] {
		if b.Len() != 3 {
			t.Errorf("a batch of %d records", b.Len())
		}
	}
}

// told says what batches hold: the IDs of records, and the borders.
func told(batches []*Batch) string {
	var out []string
	for _, b := range batches {
		s := fmt.Sprintf("%d:%d-%d", b.Partition, b.First, b.Next)
		for i := range b.Len() {
			s += " " + b.Block.Copy(i).ID
		}
		if b.Lost > 0 {
			s += fmt.Sprintf(" lost %d", b.Lost)
		}
		out = append(out, s)
	}
	return strings.Join(out, "; ")
}

// What was handed out before a restart is not again, unless the input is another.
func TestSeen(t *testing.T) {
	bad := source.Message{Pos: record.Position{Source: "t", Kafka: true, Offset: 12}, Value: []byte("no record")}
	for _, c := range []struct {
		name    string
		batches []source.Batch
		want    string
	}{
		{"a part of a batch was seen", []source.Batch{{Messages: at(0, 10, 11, 14, 15), Next: 16}}, "0:14-16 p0#14 p0#15"},
		{"a whole one was", []source.Batch{{Messages: at(0, 10, 11), Next: 12}, {Messages: at(0, 12, 13), Next: 14}, {Messages: at(0, 14), Next: 15}}, "0:14-14; 0:14-15 p0#14"},
		{"dead letters too", []source.Batch{{Messages: append(append(at(0, 11), bad), at(0, 14)...), Next: 15}}, "0:14-15 p0#14"},
		{"another partition", []source.Batch{{Partition: 1, Messages: at(1, 10, 11), Next: 12}}, "1:10-12 p1#10 p1#11"},
		{"offsets begin anew", []source.Batch{{Messages: at(0, 0, 1), Next: 2}}, "0:0-2 p0#0 p0#1"},
		{"offsets begin anew later", []source.Batch{{Messages: at(0, 10, 11), Next: 12}, {Messages: at(0, 3), Next: 4}}, "0:3-4 p0#3"},
		{"nobody knows how much is missing", []source.Batch{{Messages: at(0, 10, 11), Next: 12, Gaps: []source.Gap{{From: 14, To: 14}}}}, "0:10-12 p0#10 p0#11"},
		{"a hole", []source.Batch{{Messages: at(0, 12, 14), Next: 15, Gaps: []source.Gap{{From: 10, To: 12}}}}, "0:14-15 p0#14"},
		{"only news of the end", []source.Batch{{Next: 12}, {Next: 14, CaughtUp: true}}, "0:14-14"},
	} {
		opts := Options{Offsets: map[int]int64{0: 10}, Seen: map[int]int64{0: 14}}
		if got := told(readAll(t, &list{batches: c.batches, end: io.EOF}, opts)); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, c.want)
		}
	}
}
