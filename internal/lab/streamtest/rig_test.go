package streamtest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/cmd/monitor/judge"
	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/decode"
	"github.com/isowatch/isowatch/ingest/predicate"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/record/packed"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
	"github.com/isowatch/isowatch/window/stream"
)

// A topic is a history as a broker has it: in partitions, each in the order in
// which its records were sent.
type topic struct {
	logs   [][]sent
	assume record.Assumptions
	levels []verdict.Level
	unique bool // no value is written to a key twice
	shown  bool // that it is not so, at once; until then it is believed
	spaced bool // most ticks leave what is open to later ones
	// longest bounds the transactions, lateness the time between end and sending.
	longest, lateness int64
	// from is how many records of each partition are not read: they were there before. Nil is none.
	from []int
}

// sent is a record and when it was sent.
type sent struct {
	txn record.Transaction
	at  int64
}

// publish has the sessions' producers send their records, each within lateness.
func publish(rng *rand.Rand, txns []record.Transaction, partitions int, lateness int64) [][]sent {
	logs := make([][]sent, partitions)
	last := map[string]int64{}
	for i, x := range txns {
		at := x.End + 1 // 0 is no time
		if !x.HasTimes {
			at = int64(i) + 1 // the broker's time is all there is
		} else if lateness > 0 {
			at += rng.Int64N(lateness + 1)
		}
		at = max(at, last[x.Session])
		last[x.Session] = at
		h := fnv.New32a()
		_, _ = h.Write([]byte(x.Session))
		n := h.Sum32() % uint32(partitions)
		logs[n] = append(logs[n], sent{x, at})
	}
	for _, log := range logs {
		slices.SortStableFunc(log, func(a, b sent) int { return cmp.Compare(a.at, b.at) })
	}
	return logs
}

// all are the records, as they stand in the partitions.
func (t *topic) all() []record.Transaction {
	var out []record.Transaction
	for _, log := range t.logs {
		for _, s := range log {
			out = append(out, s.txn)
		}
	}
	return out
}

func (t *topic) String() string {
	h := t.assume.Header()
	var b strings.Builder
	fmt.Fprintf(&b, "levels %v, unique %v, shown %v, longest %d, lateness %d\n", t.levels, t.unique, t.shown, t.longest, t.lateness)
	for i, log := range t.logs {
		var txns []record.Transaction
		var at []int64
		for _, s := range log {
			txns, at = append(txns, s.txn), append(at, s.at)
		}
		fmt.Fprintf(&b, "partition %d, sent at %v\n%s", i, at, script.Format(script.Script{Header: h, Txns: txns}))
	}
	return b.String()
}

// entries are the topic read in some order, in batches of at most so many records.
func (t *topic) entries(rng *rand.Rand, most int) []*stream.Entry {
	var out []*stream.Entry
	read := make([]int, len(t.logs))
	copy(read, t.from)
	said, begun := make([]bool, len(t.logs)), make([]bool, len(t.logs))
	now := int64(0)
	for {
		var open []int
		for i := range t.logs {
			if read[i] < len(t.logs[i]) || !said[i] {
				open = append(open, i)
			}
		}
		if len(open) == 0 {
			return out
		}
		i := open[rng.IntN(len(open))]
		n := min(len(t.logs[i])-read[i], 1+rng.IntN(most))
		b := batch(i, read[i], t.logs[i][read[i]:read[i]+n])
		b.Midst, begun[i] = !begun[i] && read[i] > 0, true
		read[i] += n
		if read[i] == len(t.logs[i]) && rng.IntN(2) == 0 {
			b.CaughtUp, said[i] = true, true
		}
		for _, s := range t.logs[i][read[i]-n : read[i]] {
			now = max(now, s.at)
		}
		out = append(out, &stream.Entry{Number: uint64(len(out)) + 1, Time: now, Partitions: len(t.logs), Batch: b})
	}
}

// silence has time pass between entries, more than idle at times.
func silence(rng *rand.Rand, entries []*stream.Entry, idle int64) []*stream.Entry {
	var out []*stream.Entry
	passed := int64(0)
	add := func(e stream.Entry) {
		e.Number, e.Time = uint64(len(out))+1, e.Time+passed
		out = append(out, &e)
	}
	for _, e := range entries {
		add(*e)
		for n := max(0, rng.IntN(8)-4); n > 0; n-- {
			passed += 1 + rng.Int64N(idle)
			add(stream.Entry{Time: e.Time, Partitions: e.Partitions})
		}
	}
	return out
}

// sample has sessions left out from some entries on, fewer or more, and none at times.
func sample(rng *rand.Rand, entries []*stream.Entry) {
	level := uint8(0)
	for _, e := range entries {
		if rng.IntN(3) == 0 {
			level = uint8(rng.IntN(4))
		}
		e.Sample = level
	}
}

func batch(partition, from int, records []sent) *decode.Batch {
	var c packed.Chunk
	b := &decode.Batch{Partition: partition, First: int64(from), Next: int64(from + len(records))}
	for i := range records {
		c.Add(&records[i].txn)
		b.Offsets, b.Arrivals = append(b.Offsets, int64(from+i)), append(b.Arrivals, records[i].at)
	}
	b.Block = c.Seal()
	b.Sums, b.DBs = b.Block.Sums(), b.Block.DBs()
	return b
}

// told is an anomaly as people get it; err says that it is not proved, withheld that it is
// not told therefore.
type told struct {
	alert    alerts.Alert
	err      error
	withheld bool
}

// An outcome is what came of a stream.
type outcome struct {
	found   map[string]told // by id
	results []verdict.Result
	stats   stream.Stats
	// stretches are what the stream consists of.
	stretches []stream.Stretch
	kills     int
	lost      bool // something was noted as missing
	// spilled and read are keys that went to disk and came back.
	spilled, read uint64
}

// compare tells how the outcome of a run differs from that of the first.
func (r *run) compare(first, o *outcome) *wrong {
	if !slices.Equal(first.ids(), o.ids()) {
		return is("other anomalies", "kills %d, segment %d, overlap %d, seeds %d: %v; at first %v", r.kill, r.cfg.Segment, r.cfg.Overlap, r.cfg.MaxSeeds, o.ids(), first.ids())
	}
	for i := range o.results {
		if o.results[i].Outcome != first.results[i].Outcome {
			return is("other verdicts", "kills %d: %v: %v, at first %v", r.kill, o.results[i].Level, o.results[i].Outcome, first.results[i].Outcome)
		}
	}
	return nil
}

// ids are the found anomalies.
func (o *outcome) ids() []string {
	var out []string
	for id, t := range o.found {
		who := slices.Sorted(slices.Values(t.alert.Transactions))
		out = append(out, fmt.Sprintf("%s %s at %s: %v", id, t.alert.Name, t.alert.Level, who))
	}
	slices.Sort(out)
	return out
}

// A run is how a topic is read.
type run struct {
	topic *topic
	cfg   stream.Config
	batch int    // records to an entry, at most
	seed  uint64 // of what is left to chance: the entries, and
	luck  uint64 // the rest
	// sampling: sessions are left out at times.
	sampling bool
	// silences: at times nothing comes for longer than is waited for, of all partitions or of one
	// while others go on.
	silences bool
	// without: there is no broker that says when records came.
	without bool
	// kill is the chance in percent that something happens to the monitor after an
	// entry: that it makes a checkpoint, or is killed, or both.
	kill int
	disk map[string][]byte // what was spilled
}

// play reads the topic to its end and beyond.
func (r *run) play() (out *outcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	entries := r.topic.entries(rand.New(rand.NewPCG(r.seed, 51)), r.batch)
	if r.sampling {
		sample(rand.New(rand.NewPCG(r.seed, 53)), entries)
	}
	if r.without {
		for _, e := range entries {
			clear(e.Batch.Arrivals)
			e.Time += 1 << 40 // times of the records are their own
		}
	}
	if r.silences {
		entries = silence(rand.New(rand.NewPCG(r.seed, 54)), entries, int64(r.cfg.Order.IdleAfter))
	}
	rng := rand.New(rand.NewPCG(r.seed^r.luck<<32, 52))
	out = &outcome{found: map[string]told{}}
	h := stream.New(r.cfg)
	r.disk = map[string][]byte{}
	var checkpoints []saved
	for i := 0; i < len(entries); i++ {
		h.Take(entries[i])
		r.work(h, rng, out)
		if rng.IntN(100) >= r.kill {
			continue
		}
		if rng.IntN(2) == 0 {
			checkpoints = append(checkpoints, saved{checkpointOf(h), h.Next(), h.Floor(), maps.Clone(r.disk)})
		}
		if rng.IntN(2) == 0 || len(checkpoints) == 0 {
			continue
		}
		c := checkpoints[rng.IntN(len(checkpoints))]
		if h, err = c.restore(r.cfg, entries); err != nil {
			return nil, err
		}
		out.kills++
		r.disk = maps.Clone(c.disk)
		i = int(c.next) - 2 // entry n is entries[n-1]
	}
	h.Flush()
	r.work(h, rng, out)
	out.results = h.Close()
	r.take(h, out)
	out.stats = h.Stats()
	out.stretches, _ = h.Standing()
	for _, n := range out.stats.Losses {
		out.lost = out.lost || n > 0
	}
	return out, nil
}

// saved is a checkpoint, the number of the entry that came next, that of the first
// one which it may refer to, and what was on disk.
type saved struct {
	state       []byte
	next, floor uint64
	disk        map[string][]byte
}

// restore makes a history of a checkpoint, given the entries that it may ask for.
func (c *saved) restore(cfg stream.Config, entries []*stream.Entry) (*stream.History, error) {
	h, err := stream.Restore(cfg, c.state, func(n uint64) (*decode.Batch, error) {
		if n < c.floor || n >= c.next {
			return nil, fmt.Errorf("entry %d is not among %d to %d", n, c.floor, c.next)
		}
		return entries[n-1].Batch, nil
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("restoring: %w", err)
	case h.Next() != c.next || h.Floor() != c.floor:
		return nil, fmt.Errorf("restored with next %d and floor %d, not %d and %d", h.Next(), h.Floor(), c.next, c.floor)
	}
	return h, nil
}

// work has the history work off what is due, in pieces.
func (r *run) work(h *stream.History, rng *rand.Rand, out *outcome) {
	for more := true; more; {
		more = h.Run(1 + rng.IntN(5))
		r.take(h, out)
		if needs := h.Needs(); len(needs) > 0 {
			values := make([][]byte, len(needs))
			for i, key := range needs {
				values[i] = r.disk[key]
			}
			if err := h.Answer(values); err != nil {
				panic(err)
			}
			continue
		}
		r.spill(h, rng)
	}
	s := h.Frontier()
	out.spilled, out.read = s.Spilled, s.Read
}

// spill stores what has to leave memory, or leaves it for later, as if the disk were
// full at times.
func (r *run) spill(h *stream.History, rng *rand.Rand) {
	for rng.IntN(5) > 0 {
		kvs := h.Spill(1 + rng.IntN(4))
		if len(kvs) == 0 {
			return
		}
		for _, kv := range kvs {
			r.disk[kv.Key] = kv.Value
		}
		if rng.IntN(5) > 0 {
			h.Spilled()
		}
	}
}

// take makes alerts of what was found.
func (r *run) take(h *stream.History, out *outcome) {
	for _, v := range h.Found() {
		under := v.Under
		under.Tables = judge.Tables(v.Violation, under.Tables)
		p := judge.NewProver(nil, 1<<40)
		ctx := alerts.Context{DB: record.DefaultDB, Levels: r.topic.levels, Assumptions: under, OneKey: h.State().SingleObjects, Lookup: v.Find, Judge: p.Judge, Find: p.Find}
		var t told
		if t.alert, t.err = alerts.New(v.Violation, ctx); t.err != nil {
			if t.withheld = v.Torn && errors.Is(t.err, alerts.ErrUnproved); t.withheld {
				h.Withheld()
			}
			t.err = fmt.Errorf("%w\n%+v", t.err, v)
		}
		if old, ok := out.found[t.alert.ID]; !ok || t.err != nil && (old.err == nil || old.withheld) {
			out.found[t.alert.ID] = t
		}
	}
}

// whole judges the topic in batch: what is not violated there is not violated.
func (t *topic) whole() map[verdict.Level]verdict.Result {
	opt := incremental.Options{Levels: t.levels, Assumptions: t.assume}
	if !t.unique {
		opt.UnseenUnique = new(bool)
	}
	e := incremental.New(opt)
	txns := t.all()
	for i := range txns {
		e.Step(&txns[i], 0)
	}
	out := map[verdict.Level]verdict.Result{}
	for _, r := range e.Close() {
		out[r.Level] = r
	}
	return out
}

// config is how a topic is read where nothing is forgotten.
func (t *topic) config() stream.Config {
	c := stream.Config{DB: record.DefaultDB, Levels: t.levels, Assumptions: t.assume, MaxTransaction: time.Duration(t.longest), UniqueValues: t.unique || t.shown,
		Every: 5, Segment: math.MaxInt32}
	c.Order.Lateness = time.Duration(t.lateness)
	c.Predicates = func(records *packed.Records, levels []verdict.Level, under record.Assumptions, unasked predicate.Unasked) ([]verdict.Result, func(int) stream.Find, stream.Found) {
		if !under.UnseenRepeat() {
			under.UnseenUnique = nil
		}
		return judge.Question{Records: records, Levels: levels, Assume: under, Unasked: unasked}.Part()
	}
	if t.spaced {
		c.Spacing = 1 << 20
	}
	return c
}

// checkpointOf is what h writes.
func checkpointOf(h *stream.History) []byte {
	var b bytes.Buffer
	_, _ = h.WriteCheckpoint(&b) // a buffer takes all
	return b.Bytes()
}
