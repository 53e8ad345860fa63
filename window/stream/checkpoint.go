package stream

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/decode"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/record/packed"
	"github.com/isowatch/isowatch/internal/wire"
	"github.com/isowatch/isowatch/window/frontier"
	"github.com/isowatch/isowatch/window/order"
	"github.com/isowatch/isowatch/window/segment"
)

// A checkpoint is
//
//	form                  1 byte
//	sections, one after the other:
//	    header            JSON
//	    order, cutter, frontier    as these packages have it
//	    seeds, rows       packed blocks: what an order of predicates has made of rows is a transaction
//	    fed               their number; for each the difference of its ref from the one before, that of its time, and its flags
//	    adopted           their number; for each the difference of its ref from the one before; a packed block
//	the sections' lengths 8 bytes each
//
// With many keys it is large, so it is written as it is made. Who keeps it has a checksum.
//
// It holds no records but the seeds and those that came long ago: the others are
// named by their entry.

// form is another number whenever anything in a checkpoint is written in another way, be it by order, segment or
// frontier: a history of which the checkpoint has another form is judged anew from its records.
const form = 4

// The sections.
const (
	sectionHeader = iota
	sectionOrder
	sectionCutter
	sectionFrontier
	sectionSeeds
	sectionRows
	sectionFed
	sectionAdopted
	sections
)

// errConfig: a checkpoint was made with another configuration, so that what the
// engine would find is not what it found.
var errConfig = errors.New("stream: the checkpoint was made with another configuration")

var errCheckpoint = errors.New("stream: the checkpoint is damaged")

// header is the part of a checkpoint that is small.
type header struct {
	Config   string // what has to be the same
	Next     uint64
	Missed   int64
	Ahead    []order.Release `json:",omitempty"`
	Sessions []sessionOf     `json:",omitempty"` // of records with one of their own
	Samples  []sampled       `json:",omitempty"`
	Heads    []partitionHead `json:",omitempty"`
	Headed   bool            `json:",omitempty"`

	Complete, Unique, Attempts, Listed, Lazy bool
	Since                                    bool
	BornUnique, BornAttempts                 bool
	ListedSince                              bool               // Listed, but not when the engine was made
	Lost, BornLost                           incremental.Losses `json:",omitempty"`
	Told                                     []toldLoss         `json:",omitempty"`
	Due                                      due
	Number                                   uint64
	Overlap                                  int // of fed, without bases
	Looked                                   int `json:",omitempty"`
	Ticks                                    []tickAfter
	Newest                                   int64
	Stats                                    Stats
	Past                                     []pastResult `json:",omitempty"`
	Before                                   unknown
	Whole                                    stretches
}

type sessionOf struct {
	Ref  ref
	Name []byte // it need not be UTF-8
}

// tickAfter is a tick after so many of fed, without bases.
type tickAfter struct {
	After     int
	Watermark int64
}

type pastResult struct {
	Outcome verdict.Outcome
	Reason  verdict.Reason
	Count   int
	// Unexplained is as in verdict.Result.
	Unexplained int `json:",omitempty"`
}

// identity is what of a Config decides what is found.
func (c Config) identity() string {
	c.Order.Partitions = nil     // the input may get more
	c.MaxKeys, c.MaxBytes = 0, 0 // this decides only what is where
	b, err := json.Marshal(c)
	if err != nil {
		panic("stream: a Config can be marshalled: " + err.Error())
	}
	return string(b)
}

// counted counts what is written.
type counted struct {
	to   io.Writer
	size int
}

func (c *counted) Write(b []byte) (int, error) {
	c.size += len(b)
	return c.to.Write(b)
}

// WriteCheckpoint writes all that the History knows, records apart, and tells how many bytes that are. What was found
// has to be taken before, by Found.
func (h *History) WriteCheckpoint(to io.Writer) (size int, err error) {
	s := h.segs
	hd := header{Config: h.cfg.identity(), Next: h.next, Missed: h.missed, Ahead: h.ahead[h.first:], Samples: h.samples,
		Heads: h.heads, Headed: h.headed,
		Complete: s.complete, Unique: s.unique, Attempts: s.attempts, Listed: s.listed, Lazy: s.lazy,
		Since: s.since, BornUnique: s.born.unique, BornAttempts: s.born.attempts, ListedSince: s.listed && !s.born.listed,
		Lost: s.lost, BornLost: s.born.lost, Told: s.told, Due: s.due, Number: s.number, Looked: s.looked, Newest: s.newest,
		Stats: s.stats, Before: s.before, Whole: s.whole}
	for r, name := range h.held.sessions {
		hd.Sessions = append(hd.Sessions, sessionOf{r, []byte(name)})
	}
	slices.SortFunc(hd.Sessions, func(a, b sessionOf) int { return int(int64(a.Ref) - int64(b.Ref)) })
	for _, r := range s.past {
		hd.Past = append(hd.Past, pastResult{r.Outcome, r.Reason, r.Count, r.Unexplained})
	}
	own, n, t := make([]fed, 0, len(s.fed)), 0, 0
	for i, f := range s.fed {
		for ; t < len(s.ticks) && s.ticks[t].after <= i; t++ {
			hd.Ticks = append(hd.Ticks, tickAfter{n, s.ticks[t].watermark})
		}
		if i == s.begun {
			hd.Overlap = n
		}
		if f.flags&base == 0 {
			own = append(own, f)
			n++
		}
	}
	for ; t < len(s.ticks); t++ {
		hd.Ticks = append(hd.Ticks, tickAfter{n, s.ticks[t].watermark})
	}
	if s.begun == len(s.fed) {
		hd.Overlap = n
	}
	head, err := json.Marshal(hd)
	if err != nil {
		panic("stream: a header can be marshalled: " + err.Error())
	}
	w := &counted{to: to}
	if _, err := w.Write([]byte{form}); err != nil {
		return 0, err
	}
	var lengths []byte
	for i := range sections {
		var b []byte
		var err error
		from := w.size
		switch i {
		case sectionHeader:
			b = head
		case sectionOrder:
			b = h.order.Snapshot(nil)
		case sectionCutter:
			b = s.cutter.Snapshot(nil)
		case sectionFrontier:
			err = s.front.Snapshot(w)
		case sectionSeeds:
			b = marshalAll(s.seeds)
		case sectionRows:
			if len(s.rows.Ops) > 0 {
				b = marshalAll([]record.Transaction{s.rows})
			}
		case sectionFed:
			c := wire.Coder{}
			codeFed(&c, &own)
			b = c.B
		case sectionAdopted:
			b = h.marshalAdopted()
		}
		if err == nil {
			_, err = w.Write(b)
		}
		if err != nil {
			return 0, err
		}
		lengths = binary.LittleEndian.AppendUint64(lengths, uint64(w.size-from))
	}
	_, err = w.Write(lengths)
	return w.size, err
}

func marshalAll(txns []record.Transaction) []byte {
	if len(txns) == 0 {
		return nil
	}
	var c packed.Chunk
	for i := range txns {
		c.Add(&txns[i])
	}
	return c.Seal().Marshal(nil)
}

func unmarshalAll(b []byte) (out []record.Transaction, err error) {
	if len(b) == 0 {
		return nil, nil
	}
	block, err := packed.Unmarshal(b)
	if err != nil {
		return nil, err
	}
	for i := range block.Len() {
		out = append(out, block.Copy(i))
	}
	return out, nil
}

// refs are those of all records that are referred to in entries below limit, sorted.
func (h *History) refs(fed []fed, limit uint64) []ref {
	var refs []ref
	add := func(r ref) {
		if r.entry() < limit {
			refs = append(refs, r)
		}
	}
	h.order.Refs(func(r uint64) { add(ref(r)) })
	for _, f := range fed {
		if f.flags&base == 0 {
			add(f.ref)
		}
	}
	for _, r := range h.ahead[h.first:] {
		add(ref(r.Ref))
	}
	slices.Sort(refs)
	return refs
}

// marshalAdopted are the records that a checkpoint does not only name.
func (h *History) marshalAdopted() []byte {
	limit := h.adopted()
	if h.held.floor(h.next) >= limit {
		return nil
	}
	refs := h.refs(h.segs.fed, limit)
	if len(refs) == 0 {
		return nil
	}
	out := binary.AppendUvarint(nil, uint64(len(refs)))
	var c packed.Chunk
	last := ref(0)
	for _, r := range refs {
		t, err := h.held.record(r, 0)
		if err != nil {
			panic(fmt.Sprintf("stream: %v: can't happen, because blocks are held until their records have left", err))
		}
		c.Add(t)
		out = binary.AppendUvarint(out, uint64(r-last))
		last = r
	}
	return c.Seal().Marshal(out)
}

// unmarshalAdopted gives them back, by entry.
func unmarshalAdopted(b []byte) (map[uint64]*block, error) {
	out := map[uint64]*block{}
	if len(b) == 0 {
		return out, nil
	}
	r := wire.NewReader(b)
	refs := make([]ref, r.Count(r.Len(), 1))
	last := ref(0)
	for i := range refs {
		d := r.Uint()
		if i > 0 && d == 0 {
			r.Fail()
		}
		last += ref(d)
		refs[i] = last
	}
	if !r.OK() {
		return nil, errCheckpoint
	}
	records, err := packed.Unmarshal(r.Rest())
	if err != nil {
		return nil, err
	}
	if records.Len() != len(refs) {
		return nil, errCheckpoint
	}
	all := &shelf{Block: records}
	for i, r := range refs {
		x := out[r.entry()]
		if x == nil {
			x = &block{shelf: all, first: i}
			out[r.entry()] = x
		}
		x.index = append(x.index, uint16(r.index()))
	}
	return out, nil
}

// code lists fed: each is as its difference from the one before.
func codeFed(c *wire.Coder, all *[]fed) {
	var last fed
	wire.List(c, all, math.MaxInt, 3, func(f *fed) {
		r, at := int64(f.ref-last.ref), f.at-last.at
		c.Ints(&r, &at)
		wire.Number(c, &f.flags)
		if c.Reading {
			f.ref, f.at = last.ref+ref(r), last.at+at
		}
		if last = *f; f.flags&^(timesDropped|detached|toldOf|ordered|started) != 0 {
			c.Fail()
		}
	})
}

// split takes a checkpoint apart.
func split(b []byte) (out [sections][]byte, err error) {
	body := len(b) - 8*sections
	if body < 1 || !Current(b) {
		return out, errCheckpoint
	}
	r, lengths := wire.NewReader(b[1:body]), wire.NewReader(b[body:])
	for i := range out {
		out[i] = r.Take(lengths.Fixed())
	}
	if !r.Done() {
		return out, errCheckpoint
	}
	return out, nil
}

// Current tells whether a checkpoint has the form that this program gives it; one that has not is another version's,
// and Restore can't read it.
func Current(checkpoint []byte) bool { return len(checkpoint) > 0 && checkpoint[0] == form }

// Restore makes the History that gave the checkpoint. load gives the batch of an
// entry again, or an error if it is not there any more. The error wraps errConfig
// if cfg would find something else. O(the segment): its records are judged again.
func Restore(cfg Config, checkpoint []byte, load func(entry uint64) (*decode.Batch, error)) (*History, error) {
	h := newHistory(cfg.WithDefaults())
	parts, err := split(checkpoint)
	if err != nil {
		return nil, err
	}
	var hd header
	if err := json.Unmarshal(parts[sectionHeader], &hd); err != nil {
		return nil, fmt.Errorf("%w: %w", errCheckpoint, err)
	}
	if hd.Config != h.cfg.identity() {
		return nil, errConfig
	}
	h.next, h.missed, h.ahead, h.samples, h.heads, h.headed = hd.Next, hd.Missed, hd.Ahead, hd.Samples, hd.Heads, hd.Headed
	for _, p := range h.heads {
		if p&open != 0 {
			h.open++
		}
	}
	l := loader{load: load, batches: map[uint64]*decode.Batch{}}
	if l.adopted, err = unmarshalAdopted(parts[sectionAdopted]); err != nil {
		return nil, err
	}
	if h.order, err = order.Restore(h.cfg.Order, parts[sectionOrder], l.head); err != nil {
		return nil, err
	}
	var fed []fed
	c := wire.Reads(parts[sectionFed])
	if codeFed(&c, &fed); !c.Done() {
		return nil, errCheckpoint
	}
	for _, x := range hd.Sessions {
		h.held.sessions[x.Ref] = string(x.Name)
	}
	if err := h.reload(fed, &l); err != nil {
		return nil, err
	}
	h.remember(&l)
	if h.segs, err = restoreSegments(h.cfg, &h.held, &hd, parts); err != nil {
		return nil, err
	}
	return h, h.segs.replay(fed, &hd)
}

// loader remembers what it has loaded.
type loader struct {
	load    func(entry uint64) (*decode.Batch, error)
	batches map[uint64]*decode.Batch
	adopted map[uint64]*block
}

// batch is the one that holds the record of a ref.
func (l *loader) batch(r ref) (*decode.Batch, error) {
	b := l.batches[r.entry()]
	if b == nil {
		var err error
		if b, err = l.load(r.entry()); err != nil {
			return nil, fmt.Errorf("stream: entry %d, which the checkpoint needs: %w", r.entry(), err)
		}
		l.batches[r.entry()] = b
	}
	if r.index() >= b.Len() {
		return nil, fmt.Errorf("%w: it names record %d of entry %d, which has %d", errCheckpoint, r.index(), r.entry(),
			b.Len())
	}
	return b, nil
}

func (l *loader) head(r uint64) (record.Head, error) {
	if a := l.adopted[ref(r).entry()]; a != nil {
		return a.head(ref(r))
	}
	b, err := l.batch(ref(r))
	if err != nil {
		return record.Head{}, err
	}
	return b.Head(ref(r).index()), nil
}

// head is that of an adopted record.
func (b *block) head(r ref) (record.Head, error) {
	at, ok := b.place(r)
	if !ok {
		return record.Head{}, fmt.Errorf("%w: it names record %d of entry %d, which it does not have", errCheckpoint,
			r.index(), r.entry())
	}
	t := b.Copy(at)
	return record.HeadOf(&t), nil
}

// reload takes in the blocks that are referred to.
func (h *History) reload(fed []fed, l *loader) error {
	for i, r := range h.refs(fed, math.MaxUint64) {
		if i == 0 {
			h.held.oldest = r.entry()
		}
		if h.held.blocks[r.entry()] == nil {
			if a := l.adopted[r.entry()]; a != nil {
				h.held.blocks[r.entry()] = a
			} else {
				b, err := l.batch(r)
				if err != nil {
					return err
				}
				h.held.add(r.entry(), b, h.cfg.DB)
			}
		}
		if _, _, err := h.held.find(r); err != nil {
			return fmt.Errorf("%w: %w", errCheckpoint, err)
		}
		h.held.keep(r)
	}
	return nil
}

// remember tells the order of the records that it had, as one that is delivered
// again would otherwise be taken for one that is lost. What was left out it never had:
// when it comes again it may be in the sample.
func (h *History) remember(l *loader) {
	for _, entry := range slices.Sorted(maps.Keys(l.adopted)) { // all before those that are loaded
		a := l.adopted[entry]
		for _, i := range a.index {
			r := newRef(entry, int(i))
			if head, err := a.head(r); err == nil && uint64(r) >= h.order.RememberedFrom() {
				h.order.Remember(uint64(r), &head)
			}
		}
	}
	for _, entry := range slices.Sorted(maps.Keys(l.batches)) {
		b := l.batches[entry]
		for i := range b.Len() {
			r := newRef(entry, i)
			if uint64(r) < h.order.RememberedFrom() {
				continue
			}
			if head := b.Head(i); head.DB == h.cfg.DB && !h.leftOut(head.Session, entry) {
				h.order.Remember(uint64(r), &head)
			}
		}
	}
}

// restoreSegments makes segments without an engine.
func restoreSegments(cfg Config, src source, hd *header, parts [sections][]byte) (*segments, error) {
	s := &segments{cfg: cfg, source: src, complete: hd.Complete, unique: hd.BornUnique, attempts: hd.BornAttempts,
		listed: hd.Listed && !hd.ListedSince, lazy: hd.Lazy,
		since: hd.Since, number: hd.Number, newest: hd.Newest, before: hd.Before, lost: slices.Clone(hd.BornLost)}
	var err error
	if s.cutter, err = segment.Restore(cfg.cutter(), parts[sectionCutter]); err != nil {
		return nil, err
	}
	if s.front, err = frontier.Restore(cfg.frontier(), parts[sectionFrontier]); err != nil {
		return nil, err
	}
	if s.seeds, err = unmarshalAll(parts[sectionSeeds]); err != nil {
		return nil, err
	}
	rows, err := unmarshalAll(parts[sectionRows])
	if err != nil {
		return nil, err
	}
	if len(rows) > 0 {
		s.rows = rows[0]
	}
	for i, r := range hd.Past {
		if i < len(cfg.Levels) {
			s.past = append(s.past, verdict.Result{Level: cfg.Levels[i], Outcome: r.Outcome, Reason: r.Reason, Count: r.Count,
				Unexplained: r.Unexplained})
		}
	}
	return s, nil
}

// replay lets the engine judge again what it had.
func (s *segments) replay(all []fed, hd *header) error {
	if hd.Overlap > len(all) {
		return errCheckpoint
	}
	s.begin(s.seeds, all[:hd.Overlap])
	ticks, told := hd.Ticks, hd.Told
	tell := func() {
		for ; len(told) > 0 && told[0].After <= len(s.ticks); told = told[1:] {
			s.missing(told[0].From, told[0].To)
		}
	}
	for i := hd.Overlap; ; i++ {
		for ; len(ticks) > 0 && ticks[0].After <= i; ticks = ticks[1:] {
			tell()
			s.solve(ticks[0].Watermark)
		}
		if i == len(all) {
			break
		}
		if s.stopped() {
			return nil
		}
		t, err := s.source.record(all[i].ref, all[i].flags)
		if err != nil {
			return err
		}
		s.again(t, all[i])
	}
	tell()
	s.lost, s.told = hd.Lost, hd.Told
	s.engine.LoseTimes(s.lost)
	if len(ticks) > 0 || len(told) > 0 {
		return errCheckpoint
	}
	s.found, s.due, s.looked, s.stats, s.whole = nil, hd.Due, hd.Looked, hd.Stats, hd.Whole
	s.complete, s.unique, s.attempts, s.listed = hd.Complete, hd.Unique, hd.Attempts, hd.Listed
	return nil
}
