package decode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/isowatch/isowatch/ingest/assemble"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/reject"
	"github.com/isowatch/isowatch/ingest/source"
)

// story is an input of one partition, in which some transactions are told in events,
// and what is to come of it: the records at the offsets of their last messages.
type story struct {
	messages []source.Message
	records  map[int64]record.Transaction
	open     int // transactions without an end
}

// drawStory interleaves the sessions' messages.
func drawStory(t *rapid.T) story {
	s := story{records: map[int64]record.Transaction{}}
	type told struct {
		value []byte
		whole *record.Transaction // of the last message of a record
	}
	var sessions [][]told
	for n := range rapid.IntRange(1, 4).Draw(t, "sessions") {
		var all []told
		for seq := range rapid.IntRange(0, 5).Draw(t, "transactions") {
			x := record.Transaction{DB: rapid.SampledFrom([]string{"default", "b"}).Draw(t, "db"), Session: fmt.Sprint("s", n), Seq: int64(seq), HasSeq: true,
				ID: fmt.Sprintf("s%d#%d", n, seq), Start: int64(seq) * 10, End: int64(seq)*10 + 5, HasTimes: true}
			for op := range rapid.IntRange(0, 3).Draw(t, "operations") {
				x.Ops = append(x.Ops, record.Op{Kind: record.Write, Key: fmt.Sprint("k", op), Value: record.Int(int64(seq))})
			}
			if rapid.Bool().Draw(t, "whole") {
				all = append(all, told{codec.AppendJSON(nil, &x), &x})
				continue
			}
			put := func(e assemble.Event, whole *record.Transaction) {
				e.Session, e.Txn = x.Session, fmt.Sprint("t", seq)
				all = append(all, told{codec.AppendEvent(nil, &e), whole})
			}
			put(assemble.Event{Kind: assemble.Begin, DB: x.DB, HasSeq: true, Seq: x.Seq, HasTime: true, Time: x.Start}, nil)
			for i, op := range x.Ops {
				put(assemble.Event{Kind: assemble.Step, N: uint32(i), Op: op}, nil)
			}
			put(assemble.Event{Kind: assemble.End, N: uint32(len(x.Ops)), HasTime: true, Time: x.End, Status: x.Status}, &x)
		}
		if len(all) > 0 && all[len(all)-1].whole != nil && rapid.IntRange(0, 3).Draw(t, "no end") == 0 {
			if x := all[len(all)-1].whole; len(all[len(all)-1].value) > 0 && string(codec.AppendJSON(nil, x)) != string(all[len(all)-1].value) {
				all = all[:len(all)-1]
				s.open++
			}
		}
		sessions = append(sessions, all)
	}
	offset := int64(0)
	for {
		sessions = slices.DeleteFunc(sessions, func(x []told) bool { return len(x) == 0 })
		if len(sessions) == 0 {
			return s
		}
		i := rapid.IntRange(0, len(sessions)-1).Draw(t, "next session")
		m := sessions[i][0]
		sessions[i] = sessions[i][1:]
		s.messages = append(s.messages, source.Message{Pos: record.Position{Source: "t", Kafka: true, Offset: offset}, Time: 1000 + offset, Value: m.value})
		if m.whole != nil {
			s.records[offset] = *m.whole
		}
		offset += 1 + rapid.Int64Range(0, 1).Draw(t, "hidden")
	}
}

// cut makes batches of the messages from an offset on.
func (s *story) cut(t *rapid.T, from int64) []source.Batch {
	messages := s.messages
	for len(messages) > 0 && messages[0].Pos.Offset < from {
		messages = messages[1:]
	}
	var out []source.Batch
	for len(messages) > 0 {
		n := rapid.IntRange(1, len(messages)).Draw(t, "messages")
		out = append(out, source.Batch{Messages: messages[:n], Next: messages[n-1].Pos.Offset + 1, CaughtUp: rapid.Bool().Draw(t, "caught up")})
		messages = messages[n:]
	}
	return out
}

// Transactions told in events become the records that they would be told as whole, at
// the offset of their end, among whole ones; also when the stage ends after any batch
// and another goes on with what was stored.
func TestEvents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawStory(t)
		got, lost, unknown := map[int64]record.Transaction{}, 0, 0
		var from, seen int64
		var state []byte
		for ended := false; !ended; {
			opts := Options{Workers: 2, RecordsMax: rapid.IntRange(1, 9).Draw(t, "records"),
				Offsets: map[int]int64{0: from}, Seen: map[int]int64{0: seen}, States: map[int][]byte{0: state}}
			stage := New(&list{batches: s.cut(t, from), end: io.EOF}, opts)
			for until := rapid.IntRange(1, 6).Draw(t, "batches until the stop"); until > 0; until-- {
				b, err := stage.Read(context.Background())
				if errors.Is(err, io.EOF) {
					ended = true
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				if b.First < seen || b.Next < seen || b.Lost > 0 || b.Resume > b.Next {
					t.Fatalf("a batch from %d to %d, resume %d, with %d dead letters %v; before %d all is seen", b.First, b.Next, b.Resume, b.Lost, b.Rejected, seen)
				}
				for i := range b.Len() {
					x := b.Block.Copy(i)
					if x.Status == record.Unknown {
						unknown++
						continue
					}
					if _, twice := got[b.Offsets[i]]; twice {
						t.Fatalf("two records at offset %d", b.Offsets[i])
					}
					got[b.Offsets[i]] = x
					if head := b.Head(i); head != record.HeadOf(&x) {
						t.Fatalf("head %+v of %+v", head, x)
					}
					if i > 0 && b.Offsets[i] <= b.Offsets[i-1] {
						t.Fatalf("offset %d behind %d", b.Offsets[i], b.Offsets[i-1])
					}
				}
				lost += len(b.Losses)
				from, seen, state = b.Resume, b.Next, b.State
			}
			stage.Close()
		}
		if diff := cmp.Diff(s.records, got); diff != "" {
			t.Fatal(diff)
		}
		if unknown != s.open || lost != s.open {
			t.Fatalf("%d transactions without end, %d records of unknown outcome, %d losses", s.open, unknown, lost)
		}
	})
}

// events are those of one transaction of session s, at offsets from a first one on.
func events(first int64, txn string, ended bool) []source.Message {
	all := []assemble.Event{{Kind: assemble.Begin, DB: "default"}, {Kind: assemble.Step, Op: record.Op{Key: "x", Value: record.Int(first)}}, {Kind: assemble.End, N: 1}}
	if !ended {
		all = all[:2]
	}
	var out []source.Message
	for i := range all {
		all[i].Session, all[i].Txn = "s", txn
		out = append(out, source.Message{Pos: record.Position{Source: "t", Kafka: true, Offset: first + int64(i)}, Value: codec.AppendEvent(nil, &all[i])})
	}
	return out
}

// A transaction that is open when its input is replaced by another is told at once, and
// none of the other goes to it.
func TestEventsOfAnotherInput(t *testing.T) {
	for _, c := range []struct {
		name    string
		batches []source.Batch
	}{
		{"offsets begin anew", []source.Batch{{Messages: events(10, "a", false), Next: 12}, {Messages: events(0, "b", true), Next: 3}}},
		{"a gap of unknown size", []source.Batch{{Messages: events(10, "a", false), Next: 12}, {Gaps: []source.Gap{{From: 12, To: 12}}, Messages: events(13, "b", true), Next: 16}}},
		{"a file was rotated", []source.Batch{{Messages: events(10, "a", false), Next: 0}, {Messages: events(0, "b", true), Next: 3}}},
	} {
		var lost []Loss
		var status []record.Status
		for _, b := range readAll(t, &list{batches: c.batches, end: io.EOF}, Options{}) {
			lost = append(lost, b.Losses...)
			for i := range b.Len() {
				status = append(status, b.Block.Copy(i).Status)
			}
			if len(b.Rejected) > 0 {
				t.Errorf("%s: %+v", c.name, b.Rejected)
			}
		}
		if len(lost) != 1 || lost[0].Txn != "a" || !slices.Equal(status, []record.Status{record.Unknown, record.Committed}) {
			t.Errorf("%s: lost %+v, outcomes %v", c.name, lost, status)
		}
	}
}

// What was open at a restart and not stored is a loss, told once; its later events are
// dead letters.
func TestEventsWithoutState(t *testing.T) {
	opts := Options{Offsets: map[int]int64{0: 10}, Seen: map[int]int64{0: 12}}
	out := readAll(t, &list{batches: []source.Batch{{Messages: events(10, "a", true)[:1], Next: 11}, {Messages: events(10, "a", true)[1:], Next: 13}}, end: io.EOF}, opts)
	if len(out) != 1 || len(out[0].Losses) != 1 || out[0].Losses[0].Offset != 10 || out[0].Lost != 1 || out[0].Rejected[0].Err.Pos.Offset != 12 ||
		reject.From(out[0].Rejected[0].Err) == nil || len(out[0].Rejected[0].Value) == 0 {
		t.Errorf("%+v", out)
	}
}

// A state that is damaged is an error that says so.
func TestDamagedState(t *testing.T) {
	s := New(&list{batches: []source.Batch{{Messages: at(0, 14), Next: 15}}, end: io.EOF},
		Options{Offsets: map[int]int64{0: 10}, Seen: map[int]int64{0: 12}, States: map[int][]byte{0: []byte("no state")}})
	defer s.Close()
	if _, err := s.Read(t.Context()); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("the error is %v", err)
	}
}

// What is wrong with an event by itself is a dead letter, once, and harms no other.
func TestBadEvents(t *testing.T) {
	in := events(0, "a", true)
	bad := in[0]
	bad.Pos.Offset, bad.Value = 3, []byte(`{"event":"begin","session":"s","txn":7}`)
	out := readAll(t, &list{batches: []source.Batch{{Messages: append(in, bad), Next: 4}}, end: io.EOF}, Options{})
	if len(out) != 1 || out[0].Len() != 1 || out[0].Lost != 1 || out[0].Rejected[0].Err.Reason != reject.WrongType || out[0].Rejected[0].Err.Pos != bad.Pos {
		t.Errorf("%+v", out[0])
	}
}
