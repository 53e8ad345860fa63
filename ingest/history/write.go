package history

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/dustin/go-humanize/english"

	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/reject"
)

// WriteOptions say how to write. Format is needed.
type WriteOptions struct {
	Format string // one of WrittenFormats
	// DropAborted leaves aborted transactions out where the format has none. A read
	// of what one wrote becomes a read of a value that nobody wrote: both are
	// violations of every level.
	DropAborted bool
	// DropTimes leaves out when transactions began and ended. Where times are part of
	// what is promised, that gives a history with fewer violations.
	DropTimes bool
}

// spec is what a format can say.
type spec struct {
	write func(*writer) error
	// What a history may have in it.
	aborted, unknown, scalars, lists bool
	times                            timesOf
	// numbers: values are numbers, not above valueMax and, unless signed, not negative.
	numbers, signed bool
	valueMax        uint64
	initial         initialOf
	// overwrites: the value of unwritten keys can be written too.
	overwrites bool
}

// timesOf is what a format knows of times.
type timesOf uint8

const (
	timesNone timesOf = iota
	timesMaybe
	timesAlways
)

// initialOf is how a format says that a key was read that nobody had written.
type initialOf uint8

const (
	initialNone initialOf = iota // not at all
	initialCode                  // by the number 0
	initialNull                  // by something that is no number
	initialMark                  // by something that is no number; and 0 is read as that unless it was written
)

// WrittenFormats lists the names of the formats that can be written.
func WrittenFormats() []string {
	return slices.DeleteFunc(slices.Sorted(slices.Values(Formats())), func(f string) bool { return find(f).write == nil })
}

// Write writes h in a format. Keys, values, sessions and ids that the format can't
// say are numbered, one to one, so that every verdict stays. The notes say what was
// numbered or left out.
//
// What the format can't express, or what would be judged differently there, is a
// *reject.Error that names the transaction and the operation; other errors are
// out's. Memory is a few words per transaction and per distinct key and value, and,
// where the header does not say what keys held first, the operations of transactions
// that read it; output is written as it is made. Cobra's logs are
// written as a tar; for a directory, see WriteDir.
func Write(out io.Writer, h *History, opt WriteOptions) (notes []string, err error) {
	f := find(opt.Format)
	if f == nil || f.write == nil {
		return nil, reject.New(reject.Unsupported, "no format that can be written is called %q: want %s", opt.Format,
			english.WordSeries(WrittenFormats(), "and"))
	}
	if len(h.Header.Tables) > 0 && opt.Format != "isowatch" {
		return nil, reject.New(reject.Unsupported, "tables have a coverage of their own, which only isowatch can say")
	}
	w, err := newWriter(h, f.spec, opt)
	if err != nil {
		return nil, err
	}
	w.out = bufio.NewWriterSize(out, 1<<16)
	if err := f.write(w); err != nil {
		return nil, err
	}
	return w.notes, w.out.Flush()
}

// WriteAll is Write for several histories, of which only isowatch has more than one
// in a file: those of several databases, with the same header.
func WriteAll(out io.Writer, hs []History, opt WriteOptions) (notes []string, err error) {
	if len(hs) == 1 {
		return Write(out, &hs[0], opt)
	}
	if len(hs) == 0 {
		return nil, reject.New(reject.EmptyInput, "there is no history to write")
	}
	seen := map[string]bool{}
	first := string(codec.AppendHeader(nil, &hs[0].Header))
	for i := range hs {
		h := &hs[i]
		switch {
		case opt.Format != isowatchFormat:
			return nil, reject.New(reject.Unsupported, "a file of %s has one history in it, and there are %d: name one of them",
				opt.Format, len(hs)).At(whole(h.File))
		case seen[h.DB]:
			return nil, reject.New(reject.Unsupported, "several histories are called %.80q: convert their files one by one",
				h.DB).At(whole(h.File))
		case string(codec.AppendHeader(nil, &h.Header)) != first:
			return nil, reject.New(reject.Unsupported,
				"the histories are to be judged differently, and a file has one header: name one of them").At(whole(h.File))
		}
		seen[h.DB] = true
	}
	w := &writer{h: &hs[0], out: bufio.NewWriterSize(out, 1<<16), opt: opt}
	for i := range hs {
		w.txns, w.headless = hs[i].Transactions, i > 0
		if err := writeIsowatch(w); err != nil {
			return nil, err
		}
	}
	return nil, w.out.Flush()
}

// writeIsowatch writes the header and the records as they are.
func writeIsowatch(w *writer) error {
	if !w.headless {
		w.line(codec.AppendHeader(w.buf[:0], &w.h.Header))
	}
	for i := range w.txns {
		t := &w.txns[i]
		if w.opt.DropTimes && t.HasTimes {
			bare := *t
			bare.Start, bare.End, bare.HasTimes = 0, 0, false
			t = &bare
		}
		w.line(codec.AppendJSON(w.buf[:0], t))
	}
	return nil
}

// writer holds a history on its way out. Errors of out stay until Flush.
type writer struct {
	h        *History
	spec     spec
	opt      WriteOptions
	out      *bufio.Writer
	buf      []byte
	headless bool
	notes    []string
	skew     int64 // that ends are later by

	txns     []record.Transaction
	own      bool          // every transaction is a session of its own
	session  []int         // of each of txns, its place in sessions
	sessions []sessionPart // in order of appearance

	lists  map[string]bool         // keys that somebody appends to, or empty lists
	counts []bool                  // of txns, whether what it read says anything
	codes  map[record.Value]uint64 // of values that had to be numbered; nil: they are as they were
}

// sessionPart is a session: its name and its transactions.
type sessionPart struct {
	name string
	txns []int
}

func (w *writer) line(b []byte) {
	w.buf = append(b, '\n')
	w.out.Write(w.buf) //nolint:errcheck // stays until Flush
}

func (w *writer) note(format string, args ...any) {
	w.notes = append(w.notes, fmt.Sprintf(format, args...))
}

// cannot refuses an operation, or all of a transaction if op is negative.
func (w *writer) cannot(t, op int, format string, args ...any) error {
	field := fmt.Sprintf("of transaction %.80q", w.txns[t].ID)
	if op >= 0 {
		field = fmt.Sprintf("ops[%d] of transaction %.80q", op, w.txns[t].ID)
	}
	e := reject.In(field, reject.Unsupported, format, args...)
	e.Detail = w.opt.Format + " can't express it: " + e.Detail
	return e.At(whole(w.h.File))
}

func newWriter(h *History, s spec, opt WriteOptions) (*writer, error) {
	w := &writer{h: h, spec: s, opt: opt, txns: h.Transactions}
	if opt.Format == isowatchFormat {
		return w, nil
	}
	for _, step := range []func() error{w.planOps, w.planInitial, w.planStatus, w.planTimes, w.planSessions,
		w.planValues} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// planStatus checks the outcomes.
func (w *writer) planStatus() error {
	dropped := 0
	for i := range w.txns {
		switch st := w.txns[i].Status; {
		case st == record.Unknown && !w.spec.unknown:
			return w.cannot(i, -1, "its outcome is unknown, and the format knows none but committed ones%s",
				either(w.spec.aborted, " and aborted ones", ""))
		case st == record.Aborted && !w.spec.aborted && !w.opt.DropAborted:
			return w.cannot(i, -1, "it aborted, and the format has only committed ones; they may be left out (--drop aborted)")
		case st == record.Aborted && !w.spec.aborted:
			dropped++
		}
	}
	if dropped == 0 {
		return nil
	}
	kept, counts := make([]record.Transaction, 0, len(w.txns)-dropped), make([]bool, 0, len(w.txns)-dropped)
	for i := range w.txns {
		if w.txns[i].Status != record.Aborted {
			kept, counts = append(kept, w.txns[i]), append(counts, w.counts[i])
		}
	}
	w.txns, w.counts = kept, counts
	w.note("%d aborted transactions are left out; what they wrote is a value that nobody wrote, where it was read",
		dropped)
	if len(kept) == 0 {
		return reject.New(reject.EmptyInput, "no transaction is left to be written").At(whole(w.h.File))
	}
	return nil
}

func either[T any](which bool, a, b T) T {
	if which {
		return a
	}
	return b
}

// planOps checks the kinds of operations.
func (w *writer) planOps() error {
	for t := range w.txns {
		if w.txns[t].LSN != 0 {
			return w.cannot(t, -1, "it has a place in the database's log (lsn), which the format has no word for")
		}
		for i, op := range w.txns[t].Ops {
			switch {
			case op.Kind == record.PredicateRead || op.Kind == record.PredicateWrite:
				return w.cannot(t, i, "operation %s has a predicate", op.Kind)
			case op.Kind == record.Append && !w.spec.lists:
				return w.cannot(t, i, "it appends to a list, and the format has only reads and writes of single values")
			case op.Kind == record.Write && !w.spec.scalars:
				return w.cannot(t, i, "it writes a key, and the format has only appends and reads of lists")
			}
		}
	}
	return nil
}

// planTimes checks times, and says if they get lost.
func (w *writer) planTimes() error {
	if w.opt.DropTimes && w.spec.times == timesMaybe {
		w.txns = slices.Clone(w.txns)
		for i := range w.txns {
			w.txns[i].HasTimes = false
		}
		return nil
	}
	with := 0
	for i := range w.txns {
		if w.txns[i].HasTimes {
			with++
		}
	}
	instants := w.h.Header.Clock != nil && *w.h.Header.Clock == record.ClockDatabase
	enforced := w.h.Header.Clock != nil && w.h.Header.Clock.Enforces()
	switch {
	case w.spec.times == timesAlways && (with < len(w.txns) || w.opt.DropTimes):
		t := slices.IndexFunc(w.txns, func(t record.Transaction) bool { return !t.HasTimes || w.opt.DropTimes })
		return w.cannot(t, -1, "it has no times, which the format needs")
	case w.spec.times == timesAlways && !instants:
		return w.cannot(0, -1, "its times are the clients', and the format's are the database's own: if these are, the "+
			"header says so (\"clock\":\"database\")")
	case w.spec.times == timesMaybe && with > 0 && instants:
		t := slices.IndexFunc(w.txns, func(t record.Transaction) bool { return t.HasTimes })
		return w.cannot(t, -1, "its times are the database's own, and the format's are the clients'; they may be left out "+
			"(--drop times)")
	case w.spec.times == timesNone && with > 0 && enforced && !w.opt.DropTimes:
		t := slices.IndexFunc(w.txns, func(t record.Transaction) bool { return t.HasTimes })
		return w.cannot(t, -1, "it has times, and the history's header makes them part of its levels; they may be left out "+
			"(--drop times)")
	case w.spec.times == timesNone && with > 0 && !w.opt.DropTimes:
		w.note("times are left out: sser and strong-si are no more than ser and si for it")
	}
	if w.spec.times == timesNone || with == 0 {
		return nil
	}
	if c := w.h.Header.Clock; c != nil && *c != record.ClockPrune && !instants {
		w.note("the header's clock: %s is left out, as the format has no word for it: %s", *c, either(enforced,
			"its si and ser are strong-si and sser here", "strong-si and sser hold the history to its times here"))
	}
	if w.h.Header.MaxSkew != nil && *w.h.Header.MaxSkew > 0 {
		w.skew = *w.h.Header.MaxSkew
		w.note("ends are later by max_skew, as the format has no word for it: what it orders stays the same")
	}
	return nil
}

// end is when t ended, as far as other clocks can tell.
func (w *writer) end(t *record.Transaction) int64 {
	return t.End + min(w.skew, 1<<63-1-t.End)
}

// planSessions gathers sessions.
func (w *writer) planSessions() error {
	w.own = w.h.Header.Sessions != nil && *w.h.Header.Sessions == record.SessionsIgnore
	if w.own {
		w.note("every transaction is a session of its own, as session order is to be ignored and the format's readers keep it")
		if err := w.planSteps(); err != nil {
			return err
		}
	}
	places := map[string]int{}
	w.session = make([]int, len(w.txns))
	for t := range w.txns {
		name := w.txns[t].Session
		place, known := places[name]
		if !known || w.own {
			place = len(w.sessions)
			places[name] = place
			w.sessions = append(w.sessions, sessionPart{name: name})
		}
		w.session[t] = place
		w.sessions[place].txns = append(w.sessions[place].txns, t)
	}
	return nil
}

// planSteps refuses times that count for nothing, as the clock of their session
// stepped back, where they would count, as they are of a session of their own.
func (w *writer) planSteps() error {
	type clock struct{ start, end int64 }
	last := map[string]clock{}
	for t := range w.txns {
		txn := &w.txns[t]
		if w.spec.times == timesNone || !txn.HasTimes || txn.Status == record.Aborted {
			continue
		}
		before, known := last[txn.Session]
		switch {
		case known && (txn.Start < before.start || txn.End < before.end && txn.Status == record.Committed):
			return w.cannot(t, -1, "the clock of its session stepped back, so that its times count for nothing, and as a "+
				"session of its own they would count%s",
				either(w.spec.times == timesMaybe, "; times may be left out (--drop times)", ""))
		case txn.Status == record.Committed:
			last[txn.Session] = clock{txn.Start, txn.End}
		}
	}
	return nil
}

// numbered gives every session a number: the one in its name, s3, p3 or 3, if all
// have one, else its place.
func (w *writer) numbered(most uint64) []uint64 {
	numbers := make([]uint64, len(w.sessions))
	if !w.own && w.numberedByName(numbers, most) {
		return numbers
	}
	for i := range numbers {
		numbers[i] = uint64(i)
	}
	if !w.own {
		w.note("sessions are numbered in the order of their first transactions: 0 is %.40q", w.sessions[0].name)
	}
	return numbers
}

func (w *writer) numberedByName(numbers []uint64, most uint64) bool {
	taken := make(map[uint64]bool, len(numbers))
	for i, s := range w.sessions {
		name := s.name
		if len(name) > 1 && (name[0] == 's' || name[0] == 'p') {
			name = name[1:]
		}
		n, ok := canonical(name)
		if !ok || n > most || taken[n] {
			return false
		}
		numbers[i], taken[n] = n, true
	}
	return true
}

// positions puts the sessions in the order of their numbers, with empty ones
// between, if there are not too many, so that each stands at its number.
func (w *writer) positions(gaps bool) []sessionPart {
	numbers := make([]uint64, len(w.sessions))
	if w.own || !w.numberedByName(numbers, 1<<31) {
		return w.sessions
	}
	order := make([]int, len(numbers))
	largest := uint64(0)
	for i, n := range numbers {
		order[i] = i
		largest = max(largest, n)
	}
	slices.SortFunc(order, func(a, b int) int { return int(numbers[a]) - int(numbers[b]) })
	var out []sessionPart
	for _, i := range order {
		for gaps && largest < 4*uint64(len(numbers))+16 && uint64(len(out)) < numbers[i] {
			out = append(out, sessionPart{})
		}
		out = append(out, w.sessions[i])
	}
	return out
}

// canonical takes a decimal number as strconv writes it.
func canonical(s string) (uint64, bool) {
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil && strconv.FormatUint(n, 10) == s
}

// numberedKeys gives every key a number: its own name, if all are numbers of at
// most that size, else its place in the order of appearance.
func (w *writer) numberedKeys(most uint64) map[string]uint64 {
	keys := map[string]uint64{}
	var order []string
	own := true
	for t := range w.txns {
		for _, op := range w.txns[t].Ops {
			if _, known := keys[op.Key]; known {
				continue
			}
			n, ok := canonical(op.Key)
			own = own && ok && n <= most
			keys[op.Key] = n
			order = append(order, op.Key)
		}
	}
	if own {
		return keys
	}
	for i, k := range order {
		keys[k] = uint64(i)
	}
	w.note("keys are numbered in the order in which they appear: 0 is %.40q", order[0])
	return keys
}
