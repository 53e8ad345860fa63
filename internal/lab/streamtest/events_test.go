package streamtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/isowatch/isowatch/ingest/assemble"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/decode"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/source"
	"github.com/isowatch/isowatch/window/stream"
)

// message is one of a partition, and when it was sent.
type message struct {
	at    int64
	value []byte
	of    string // the ID of the transaction
	kind  assemble.Kind
	whole bool // a record, no event
}

// messages has the sessions tell most of their transactions as they go: that they begin, each
// operation, and the end. The last one of a transaction is sent when its record was to be.
func (t *topic) messages(rng *rand.Rand) [][]message {
	out := make([][]message, len(t.logs))
	for p, log := range t.logs {
		last := map[string]int64{} // when a session sent its last one
		for _, s := range log {
			x := &s.txn
			if rng.IntN(5) == 0 {
				out[p] = append(out[p], message{s.at, codec.AppendJSON(nil, x), x.ID, assemble.End, true})
				last[x.Session] = s.at
				continue
			}
			from := last[x.Session]
			if x.HasTimes {
				from = max(from, min(x.Start, s.at))
			}
			last[x.Session] = s.at
			put := func(at int64, e assemble.Event) {
				e.Session, e.Txn = x.Session, x.ID
				out[p] = append(out[p], message{at, codec.AppendEvent(nil, &e), x.ID, e.Kind, false})
			}
			between := make([]int64, 1+len(x.Ops))
			for i := range between {
				between[i] = from + rng.Int64N(s.at-from+1)
			}
			slices.Sort(between)
			put(between[0], assemble.Event{Kind: assemble.Begin, DB: x.DB, ID: x.ID, Seq: x.Seq, HasSeq: x.HasSeq, Time: x.Start, HasTime: x.HasTimes})
			order := rng.Perm(len(x.Ops))
			if rng.IntN(3) > 0 {
				slices.Sort(order)
			}
			for i, n := range order {
				put(between[1+i], assemble.Event{Kind: assemble.Step, N: uint32(n), Op: x.Ops[n]})
			}
			put(s.at, assemble.Event{Kind: assemble.End, N: uint32(len(x.Ops)), Status: x.Status, Time: x.End, HasTime: x.HasTimes})
		}
		slices.SortStableFunc(out[p], func(a, b message) int { return cmp.Compare(a.at, b.at) })
	}
	return out
}

// sentAgain has producers send stretches of what they sent once more.
func sentAgain(rng *rand.Rand, logs [][]message) {
	for p, log := range logs {
		var out []message
		for i, m := range log {
			out = append(out, m)
			if rng.IntN(10) > 0 {
				continue
			}
			for _, again := range log[max(0, i-rng.IntN(12)) : i+1] {
				again.at = m.at
				out = append(out, again)
			}
		}
		logs[p] = out
	}
}

// unsent loses operations and ends, of each transaction but its begin; and transactions of
// which that is known. silent are those without an end.
func unsent(rng *rand.Rand, logs [][]message) (silent int) {
	for p, log := range logs {
		logs[p] = slices.DeleteFunc(slices.Clone(log), func(m message) bool {
			lost := !m.whole && (m.kind == assemble.End && rng.IntN(5) == 0 || m.kind == assemble.Step && rng.IntN(20) == 0)
			if lost && m.kind == assemble.End {
				silent++
			}
			return lost
		})
	}
	return silent
}

// A pipe is a source that reads partitions from some offsets on, in some order and some
// pieces, to their ends.
type pipe struct {
	rng    *rand.Rand
	logs   [][]message
	next   []int
	midst  []bool // it is read from its middle on, which the first batch says
	told   []bool // that all was read
	most   int
	latest int64 // the latest message
}

func (s *pipe) Read(ctx context.Context) (source.Batch, error) {
	var open []int
	for p := range s.logs {
		if s.next[p] < len(s.logs[p]) || !s.told[p] {
			open = append(open, p)
		}
	}
	if len(open) == 0 {
		return source.Batch{}, io.EOF
	}
	p := open[s.rng.IntN(len(open))]
	b := source.Batch{Partition: p, Midst: s.midst[p]}
	s.midst[p] = false
	for range min(1+s.rng.IntN(s.most), len(s.logs[p])-s.next[p]) {
		m := &s.logs[p][s.next[p]]
		b.Messages = append(b.Messages, source.Message{Pos: record.Position{Source: "topic", Kafka: true, Partition: p, Offset: int64(s.next[p])}, Time: m.at, Value: m.value})
		s.latest = max(s.latest, m.at)
		s.next[p]++
	}
	b.Next = int64(s.next[p])
	// All that was sent until the latest that is known was read.
	b.CaughtUp = (s.next[p] == len(s.logs[p]) || s.logs[p][s.next[p]].at > s.latest) && s.rng.IntN(2) == 0
	s.told[p] = s.next[p] == len(s.logs[p]) && (b.CaughtUp || s.rng.IntN(2) == 0)
	return b, ctx.Err()
}

func (s *pipe) Partitions() int { return len(s.logs) }
func (s *pipe) Close() error    { return nil }

// An intake reads messages, decodes and assembles them, and has a history judge what they
// make.
type intake struct {
	run
	logs     [][]message
	from     map[int]int64 // where partitions are read from; nil: from their first messages
	assembly assemble.Options
}

// stored is what survives: the entries, and how far each partition was read.
type stored struct {
	entries       []*stream.Entry
	offsets, seen map[int]int64
	states        map[int][]byte
	now           int64
}

func (s *stored) clone() stored {
	return stored{slices.Clone(s.entries), maps.Clone(s.offsets), maps.Clone(s.seen), maps.Clone(s.states), s.now}
}

// take stores a batch in an entry.
func (s *stored) take(b *decode.Batch, logs [][]message) *stream.Entry {
	for _, m := range logs[b.Partition][:b.Next] {
		s.now = max(s.now, m.at)
	}
	s.offsets[b.Partition], s.seen[b.Partition], s.states[b.Partition] = b.Resume, b.Next, b.State
	s.entries = append(s.entries, &stream.Entry{Number: uint64(len(s.entries)) + 1, Time: s.now, Partitions: len(logs), Batch: b})
	return s.entries[len(s.entries)-1]
}

// stage decodes what comes behind what is stored.
func (in *intake) stage(rng *rand.Rand, s *stored) *decode.Stage {
	src := &pipe{rng: rand.New(rand.NewPCG(rng.Uint64(), 54)), logs: in.logs, next: make([]int, len(in.logs)), midst: make([]bool, len(in.logs)), told: make([]bool, len(in.logs)), most: in.batch, latest: s.now}
	for p, at := range s.offsets {
		src.next[p] = int(at)
	}
	for p, at := range in.from {
		src.midst[p] = at > 0 && !slices.ContainsFunc(s.entries, func(e *stream.Entry) bool { return e.Batch.Partition == p })
	}
	return decode.New(src, decode.Options{Workers: 1, RecordsMax: 1 + rng.IntN(in.batch+1), Assembly: in.assembly,
		Offsets: maps.Clone(s.offsets), Seen: maps.Clone(s.seen), States: maps.Clone(s.states)})
}

// read reads the messages to their end. The records are those that came of them, in the order
// in which they were read.
func (in *intake) read() (out *outcome, got []record.Transaction, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	rng := rand.New(rand.NewPCG(in.seed^in.luck<<32, 55))
	out = &outcome{found: map[string]told{}}
	in.disk = map[string][]byte{}
	kept := stored{offsets: map[int]int64{}, seen: map[int]int64{}, states: map[int][]byte{}}
	maps.Copy(kept.offsets, in.from)
	maps.Copy(kept.seen, in.from)
	durable := kept.clone()
	var checkpoints []saved
	h := stream.New(in.cfg)
	stage := in.stage(rng, &kept)
	defer func() { stage.Close() }()
	for {
		b, err := stage.Read(context.Background())
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, nil, err
		}
		h.Take(kept.take(b, in.logs))
		in.work(h, rng, out)
		if rng.IntN(3) == 0 {
			durable = kept.clone()
			if rng.IntN(2) == 0 {
				checkpoints = append(checkpoints, saved{checkpointOf(h), h.Next(), h.Floor(), maps.Clone(in.disk)})
			}
		}
		if rng.IntN(100) >= in.kill {
			continue
		}
		out.kills++
		stage.Close()
		kept = durable.clone()
		from := uint64(1)
		if n := len(checkpoints); n > 0 && rng.IntN(8) > 0 {
			c := checkpoints[n-1-rng.IntN(min(n, 3))]
			if h, err = c.restore(in.cfg, kept.entries); err != nil {
				return nil, nil, err
			}
			in.disk, from = maps.Clone(c.disk), c.next
		} else {
			h, in.disk = stream.New(in.cfg), map[string][]byte{}
		}
		for _, e := range kept.entries[from-1:] {
			h.Take(e)
			in.work(h, rng, out)
		}
		stage = in.stage(rng, &kept)
	}
	h.Flush()
	in.work(h, rng, out)
	out.results = h.Close()
	in.take(h, out)
	out.stats = h.Stats()
	out.stretches, _ = h.Standing()
	for _, n := range out.stats.Losses {
		out.lost = out.lost || n > 0
	}
	for _, e := range kept.entries {
		for i := range e.Batch.Len() {
			got = append(got, e.Batch.Block.Copy(i))
		}
	}
	return out, got, nil
}

// eventful is a topic whose transactions may last as long as they may take to be told.
func (t *topic) eventful() *topic {
	s := *t
	s.longest += s.lateness + 1
	return &s
}

func (in *intake) String() string {
	s := fmt.Sprintf("segment %d, overlap %d, batch %d, kill %d, %+v\n", in.cfg.Segment, in.cfg.Overlap, in.batch, in.kill, in.assembly)
	for p, log := range in.logs {
		s += fmt.Sprintf("partition %d\n", p)
		for _, m := range log {
			s += fmt.Sprintf("  %d %s\n", m.at, m.value)
		}
	}
	return s
}

// What sessions tell as they go, in events side by side over several partitions, some of it sent
// more than once, read in any pieces and with kills between, makes the records that
// they would have told as a whole: each once, nothing is missing, and the verdicts and alerts are
// theirs.
func TestEventsAreJudgedAsRecords(t *testing.T) {
	each(t, func(seed uint64, tp *topic, y *tally) *wrong {
		tp = tp.eventful()
		rng := rand.New(rand.NewPCG(seed, 81))
		whole := tp.whole()
		cfg := tp.config()
		forgetting := rng.IntN(3) == 0
		if forgetting {
			cfg = tp.tight(rng)
		}
		plain := run{topic: tp, cfg: cfg, batch: 1 + rng.IntN(9), seed: seed}
		want, err := plain.play()
		if err != nil {
			return is("broken", "%v", err)
		}
		once := tp.messages(rng)
		again := slices.Clone(once)
		sentAgain(rng, again)
		for way := range uint64(3) {
			in := intake{run: run{topic: tp, cfg: cfg, batch: 1 + rng.IntN(12), seed: seed + way, kill: 25 * int(min(way, 1))}, logs: again,
				assembly: assemble.Options{MaxTransaction: tp.longest}}
			if way == 1 {
				in.logs = once
			}
			o, got, err := in.read()
			if err != nil {
				return is("broken", "%v\n%v", err, &in)
			}
			y.add(o)
			if o.lost && way == 2 {
				// What had ended before a restart is not remembered, so that what is sent again of it
				// afterwards is refused.
				if w := sound(o, whole); w != nil && tp.unique {
					return w
				}
				continue
			}
			if o.lost {
				return is("lost", "%v\n%v", o.stats.Losses, &in)
			}
			if diff := gocmp.Diff(byID(tp.all()), byID(got)); diff != "" {
				return is("other records", "%s\n%v", diff, &in)
			}
			if !slices.Equal(want.ids(), o.ids()) {
				return is("other anomalies", "kills %d: %v, as records %v\n%v", o.kills, o.ids(), want.ids(), &in)
			}
			if w := sound(o, whole); w != nil {
				return w
			}
			if w := equal(o, tp, whole); w != nil && !forgetting {
				return w
			}
		}
		return nil
	})
}

// byID are the transactions, of those that came twice only one, if they are the same.
func byID(txns []record.Transaction) map[string]record.Transaction {
	out := map[string]record.Transaction{}
	for _, x := range txns {
		if old, ok := out[x.ID]; ok && !gocmp.Equal(old, x) {
			x.ID += " again"
		}
		out[x.ID] = x
	}
	return out
}

// Sessions that never end what they began, operations that are lost, assemblers with too little
// memory: what is missing is said to be, and nothing is told that the whole history has not done.
func TestUnendedTransactionsAccuseNobody(t *testing.T) {
	var mu sync.Mutex
	silences, lost := 0, 0
	t.Cleanup(func() {
		if t.Logf("%d ends did not come, %d streams lost something", silences, lost); silences == 0 || lost == 0 {
			t.Error("nothing was lost")
		}
	})
	each(t, func(seed uint64, tp *topic, y *tally) *wrong {
		if !tp.unique {
			return nil // unseen writers are taken not to repeat values
		}
		tp = tp.eventful()
		rng := rand.New(rand.NewPCG(seed, 82))
		logs := tp.messages(rng)
		silent := unsent(rng, logs)
		if rng.IntN(2) == 0 {
			sentAgain(rng, logs)
		}
		cfg := tp.config()
		if rng.IntN(2) == 0 {
			cfg = tp.tight(rng)
		}
		in := intake{run: run{topic: tp, cfg: cfg, batch: 1 + rng.IntN(12), seed: seed, kill: 20 * rng.IntN(2)}, logs: logs, assembly: assemble.Options{MaxTransaction: tp.longest}}
		switch rng.IntN(5) {
		case 0:
			in.assembly.OpenMax = 1 + rng.IntN(2)
		case 1:
			in.assembly.OpsMax = 1 + rng.IntN(3)
		case 2:
			in.assembly.BytesMax = 600 + rng.Int64N(2000)
		case 3:
			in.assembly.RecentMax = 1
		}
		o, _, err := in.read()
		if err != nil {
			return is("broken", "%v\n%v", err, &in)
		}
		y.add(o)
		mu.Lock()
		silences += silent
		if o.lost {
			lost++
		}
		mu.Unlock()
		if silent > 0 && !o.lost {
			return is("not said", "%d transactions have no end, and nothing is said to be missing\n%v", silent, &in)
		}
		if w := sound(o, tp.whole()); w != nil {
			w.says += fmt.Sprintf("\nread was\n%v", &in)
			return w
		}
		return nil
	})
}
