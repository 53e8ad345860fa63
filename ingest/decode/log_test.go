package decode

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/record/packed"
	"github.com/isowatch/isowatch/ingest/source"
)

// piped is a source that hands out what a test gives it.
type piped chan source.Batch

func (p piped) Read(ctx context.Context) (source.Batch, error) {
	select {
	case b, ok := <-p:
		if !ok {
			return b, io.EOF
		}
		return b, nil
	case <-ctx.Done():
		return source.Batch{}, ctx.Err()
	}
}

func (piped) Partitions() int { return 2 }
func (piped) Close() error    { return nil }

// part is a batch of a partition whose messages begin at an offset.
func part(partition int, offset int64, messages ...string) source.Batch {
	b := source.Batch{Partition: partition, Next: offset + int64(len(messages)), Identity: 7}
	for i, m := range messages {
		b.Messages = append(b.Messages, source.Message{Value: []byte(m),
			Pos: record.Position{Source: "t", Kafka: true, Partition: partition, Offset: offset + int64(i)}})
	}
	return b
}

func write(session, xid string) string {
	return fmt.Sprintf(`{"session":%q,"seq":1,"status":"committed","xid":%q,"ops":[["w","k",1]]}`, session, xid)
}

func logged(xid string, lsn int) string {
	return fmt.Sprintf(`{"logged":{"xid":%q,"lsn":%d}}`, xid, lsn)
}

// reading is a stage that is read in the background.
type reading struct {
	mu   sync.Mutex
	got  []string // of each batch that came since now, its partition and its records with their LSNs
	last *Batch
	stop func() // ends it, and waits for that
}

func reads(t *testing.T, s *Stage) *reading {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, ended := &reading{}, make(chan struct{})
	r.stop = func() { cancel(); <-ended }
	go func() {
		defer close(ended)
		var in packed.Reader
		for {
			b, err := s.Read(ctx)
			if err != nil {
				return
			}
			says := fmt.Sprint(b.Partition)
			for i := range b.Len() {
				says += fmt.Sprintf(" %s=%d", b.Block.At(i, &in).Session, b.Block.At(i, &in).LSN)
			}
			r.mu.Lock()
			r.last, r.got = b, append(r.got, says)
			r.mu.Unlock()
		}
	}()
	return r
}

// now gives what came by now, and the last batch.
func (r *reading) now() (got []string) {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	got, r.got = r.got, nil
	return got
}

func (r *reading) batch() *Batch {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

func expect(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// A record waits for the change that says where it is in the log, and all that was read after it waits, too.
func TestWaitsForTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := make(piped, 9)
		s := New(in, Options{Workers: 2, LogWait: time.Second})
		defer s.Close()
		r := reads(t, s)
		defer r.stop()
		in <- part(0, 0, write("a", "1"), write("b", "4294967298"), `{"session":"c","seq":1,"status":"committed","xid":"3","ops":[["r","k",1]]}`)
		in <- part(1, 0, write("d", "4"))
		expect(t, "before any change", r.now())
		in <- part(1, 1, logged("2", 20), logged("4", 40))
		expect(t, "of one of two", r.now())
		in <- part(1, 3, logged("1", 10))
		expect(t, "all there", r.now(), "0 a=10 b=20 c=0", "1 d=40", "1", "1")
		// The changes are kept for records that come late, and would be read again.
		if b := r.batch(); b.Resume != 1 || b.Next != 4 || b.State == nil {
			t.Errorf("resume %d, next %d, state %v", b.Resume, b.Next, b.State)
		}
		in <- part(0, 3, write("e", "2"))
		expect(t, "a change that was there", r.now(), "0 e=20")
		in <- part(0, 4, write("f", "6"), logged("7", 70))
		time.Sleep(999 * time.Millisecond)
		expect(t, "in vain, not yet", r.now())
		time.Sleep(time.Millisecond)
		expect(t, "in vain", r.now(), "0 f=0")
		if b := r.batch(); b.Unlogged != 1 || b.Logged != 0 {
			t.Errorf("%d logged, %d not", b.Logged, b.Unlogged)
		}
		time.Sleep(2 * time.Second)
		in <- part(1, 4)
		expect(t, "later", r.now(), "1")
		if b := r.batch(); b.Unrecorded != 1 { // 7
			t.Errorf("%d changes without a record", b.Unrecorded)
		}
		if b := r.batch(); b.Resume != b.Next {
			t.Errorf("what is too old is read again, from %d", b.Resume)
		}
		in <- part(0, 6, write("g", "8"))
		time.Sleep(time.Second)
		expect(t, "no change came since the last wait", r.now(), "0 g=0")
		in <- part(0, 7, write("h", "9"))
		expect(t, "no change comes any more", r.now(), "0 h=0")
		in <- part(1, 4, logged("99", 99))
		in <- part(0, 8, write("i", "10"))
		expect(t, "one came", r.now(), "1")
		close(in)
		expect(t, "the end", r.now(), "0 i=0")
	})
}

// After a restart the changes are read again whose records had not come.
func TestLogAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := make(piped, 9)
		s := New(in, Options{Workers: 1, LogWait: time.Second})
		r := reads(t, s)
		in <- part(1, 0, `{"session":"x","seq":1,"status":"committed","ops":[]}`, logged("1", 10), logged("2", 20))
		expect(t, "at first", r.now(), "1 x=0")
		b := r.batch()
		r.stop()
		s.Close()
		if b.Resume != 1 || b.Next != 3 {
			t.Fatalf("resume %d, next %d", b.Resume, b.Next)
		}
		again := make(piped, 9)
		s = New(again, Options{Workers: 1, LogWait: time.Second, Offsets: map[int]int64{1: b.Resume}, Seen: map[int]int64{1: b.Next},
			States: map[int][]byte{1: b.State}})
		defer s.Close()
		r = reads(t, s)
		defer r.stop()
		again <- part(0, 0, write("a", "2"))
		again <- part(1, 1, logged("1", 10), logged("2", 20), write("b", "1"))
		expect(t, "again", r.now(), "0 a=20", "1 b=10")
		if n := len(r.batch().Losses); n > 0 {
			t.Errorf("%d losses: %v", n, r.batch().Losses)
		}
	})
}

// A change that can't be used is a dead letter. What can't be read may have been a record that is lost; a change of
// another log is none.
func TestBadChange(t *testing.T) {
	out := readAll(t, &list{batches: []source.Batch{part(0, 0, `{"logged":{}}`, `{"logged":{"xid":"1","lsn":1,"log":"a"}}`,
		`{"logged":{"xid":"2","lsn":1,"log":"b"}}`)}, end: io.EOF}, Options{})
	if len(out) != 1 || len(out[0].Rejected) != 2 || out[0].Lost != 1 {
		t.Fatalf("%d batches, %+v", len(out), out)
	}
}
