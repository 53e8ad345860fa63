package history

import (
	"cmp"
	"strconv"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/reject"
)

// attempt is one operation, from its invocation to its completion: a transaction.
type attempt struct {
	jepsenEvent // the invocation; the body is the completion's if it committed
	// start and end are the places in the file of invocation and completion,
	// counted in events from 1; the place behind the last if it never came. The
	// order of a Jepsen log's lines is its clock.
	start, end int64
	status     record.Status
	// silent is set where what was read is not known, though it committed: the
	// completion has no value of its own.
	silent bool
	// refused is set where the operation completed with the answer that its
	// condition did not hold (Porcupine's failed cas).
	refused bool
	// void is set where it says nothing, as another attempt says it.
	void bool
}

// attempts are a history's operations in order of invocation.
type attempts struct {
	list []attempt
	// timed: there are invocations, so places are times. Without, a history
	// holds completions only, and has no times.
	timed bool
	// anonymous: there are operations that name no process. Which invocation a
	// completion belongs to is then a guess, and what follows what is unknown.
	anonymous bool
}

// pairEvents gives each invocation its completion: the next event of its process,
// which does one thing at a time. An invocation that is followed by another
// stays without an outcome. A completion without an invocation is an
// operation by itself.
func pairEvents(events []jepsenEvent) attempts {
	var all attempts
	var strays strays
	behind := int64(len(events)) + 1
	open := map[string]int{}    // the operation that is running, by session
	freed := map[string]int64{} // the place where the last one ended
	for i := range events {
		e := &events[i]
		if e.skip {
			continue
		}
		place := int64(i) + 1
		if e.session == "" {
			e.session, all.anonymous = nobody, true
		}
		if e.kind == typeInvoke {
			all.timed = true
			open[e.session] = len(all.list)
			all.list = append(all.list, attempt{jepsenEvent: *e, start: place, end: behind, status: record.Unknown})
			continue
		}
		at, running := open[e.session]
		if !running {
			at = len(all.list)
			all.list = append(all.list, attempt{jepsenEvent: *e, start: freed[e.session]})
		}
		if a := &all.list[at]; e.session == nobody && (!running || e.hasValue && a.shape() != e.shape()) {
			a.start, a.body = 0, e.body // it may have begun long before
			strays.add(e.shape())
		}
		delete(open, e.session)
		freed[e.session] = place
		all.list[at].complete(e, place)
	}
	strays.claim(all.list, behind)
	return all
}

// nobody is the session of operations that name no process.
const nobody = "process"

// strays are completions of nobody's that do not fit the invocation before them,
// or have none, by their shapes, and how many: theirs is another one, which
// has stayed without completion.
type strays map[string]int

func (s *strays) add(shape string) {
	if *s == nil {
		*s = strays{}
	}
	(*s)[shape]++
}

// claim finds the invocations that belong to strays. They say nothing more, or what
// was done once would be done twice.
func (s strays) claim(list []attempt, behind int64) {
	for i := range list {
		a := &list[i]
		if len(s) == 0 || a.session != nobody || a.end != behind {
			continue
		}
		if shape := a.shape(); s[shape] > 0 {
			s[shape]--
			a.void = true
		}
	}
}

// shape is what an invocation has in common with its completion: all but what is read.
func (e *jepsenEvent) shape() string {
	b := append([]byte(e.f), ' ')
	switch {
	case e.isTxn:
		for _, m := range e.micros {
			b = record.AppendJSONString(append(b, byte('0'+m.kind)), m.key)
			if m.kind != record.Read {
				b = m.value.AppendJSON(b)
			}
		}
	case e.f != "read" && e.f != "get":
		b = appendText(b, e.value)
	}
	return string(b)
}

func (a *attempt) complete(e *jepsenEvent, place int64) {
	a.end = place
	a.f = cmp.Or(a.f, e.f)
	switch e.kind {
	case typeOK:
		a.status = record.Committed
		if a.silent = !e.hasValue; !a.silent {
			a.body = e.body
		}
	case typeFail:
		a.status = record.Aborted
	default:
		a.status = record.Unknown
	}
}

// says tells whether a nil that was read is what was read. In an operation
// that did not complete it is only what stands in the place of an answer.
func (a *attempt) says() bool { return a.status == record.Committed && !a.silent }

// bad is an error about the operation.
func (a *attempt) bad(in *input, r reject.Reason, format string, args ...any) error {
	return in.at(reject.New(r, format, args...), a.line, a.offset)
}

// history makes the records.
func (all attempts) history(in *input, format string) (History, error) {
	if len(all.list) == 0 {
		return History{}, in.reject(reject.EmptyInput, "there is no operation in the file")
	}
	e := encoder{in: in, workload: all.workload()}
	if format == porcupineKV {
		e.workload = workStrings
	}
	if err := e.prepare(all.list, all.timed); err != nil {
		return History{}, err
	}
	txns := make([]record.Transaction, 0, len(all.list))
	seqs := map[string]int64{}
	for i := range all.list {
		a := &all.list[i]
		if err := e.encode(a); err != nil {
			return History{}, err
		}
		seqs[a.session]++
		t := record.Transaction{DB: record.DefaultDB, Session: e.intern(a.session), Seq: seqs[a.session], HasSeq: true,
			ID: a.session + "#" + strconv.FormatInt(seqs[a.session], 10), Status: a.status, Ops: e.take()}
		if all.timed {
			t.Start, t.End, t.HasTimes = a.start, a.end, true
		}
		txns = append(txns, t)
	}
	h := History{File: in.name, Format: format, DB: record.DefaultDB, Transactions: txns, FailedOps: e.left}
	h.Header.Initial = &e.initial
	if all.timed {
		h.Header.MaxSkew = new(int64) // one clock
	}
	if e.byTime {
		h.Header.Clock = new(record.ClockEnforce)
	}
	if all.anonymous {
		h.Header.Sessions = new(record.SessionsIgnore)
	}
	return h, nil
}
