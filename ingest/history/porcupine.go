package history

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"regexp"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/reject"
)

// Porcupine's test data: Jepsen's log of an etcd register, an event a line,
//
//	INFO  jepsen.util - 3	:invoke	:cas	[1 2]
//	INFO  jepsen.util - 3	:fail	:cas	[1 2]
//
// and maps of a store of strings, {:process 0, :type :ok, :f :get, :key "7", :value ""}.
// They differ from Jepsen's own in what a failed cas says: that at that moment the
// register did not hold the old value.
//
// That a register does not hold v is no read of any value. But whether it holds v
// is a register of its own, which every write of the first one writes as well,
// in the same transaction: true for a write of v, and nil (which is what it
// holds at first) for any other. A failed cas reads nil there. (For v = nil, which the
// register does hold at first, it is the other way round.) In every serial order, and in every state that a
// transaction can see at a level at which it sees all writes of another or none, the second register then
// is what the first one says, so the records are valid exactly if the log is.

const (
	porcupineLog = "porcupine-etcd-log"
	porcupineKV  = "porcupine-kv-edn"
)

// etcdMark stands before the event in a line of the log.
var etcdMark = []byte("jepsen.util - ")

// etcdEvent is what follows it: process, type, function, value.
var etcdEvent = regexp.MustCompile(`^(:?[\w-]+)\s+(:[\w-]+)\s+(:[\w-]+)\s+(\S.*)$`)

// etcdOther is a line of the log that is of something else.
var etcdOther = regexp.MustCompile(`^(TRACE|DEBUG|INFO|WARN|ERROR)\s`)

var looksEtcdLog = begins(`(?m)^[ \t]*(?:TRACE|DEBUG|INFO|WARN|ERROR)\s[^\n]*jepsen\.util - :?[\w-]+[ \t]+:[\w-]+[ \t]+` +
	`:[\w-]+[ \t]+\S`)

func readEtcdLog(in *input) ([]History, error) {
	events, err := etcdEvents(in)
	if err != nil {
		return nil, err
	}
	all := pairEvents(events)
	all.etcdOutcomes()
	return one(all.history(in, porcupineLog))
}

func etcdEvents(in *input) (events []jepsenEvent, err error) {
	err = in.lines(in.opt.RecordMax, func(line []byte, number, offset int64) *reject.Error {
		e, err := etcdLine(in, line)
		if e.line, e.offset = number, offset; !e.skip {
			events = append(events, e)
		}
		return err
	})
	return events, err
}

func etcdLine(in *input, line []byte) (jepsenEvent, *reject.Error) {
	_, text, found := bytes.Cut(line, etcdMark)
	if !found {
		if !etcdOther.Match(line) {
			return jepsenEvent{}, reject.New(reject.ForeignBytes,
				"want a line of a log, INFO  jepsen.util - 3 :invoke :read nil, not %.60q", line)
		}
		return jepsenEvent{skip: true}, nil
	}
	parts := etcdEvent.FindSubmatch(text)
	if parts == nil {
		return jepsenEvent{}, reject.New(reject.BadStructure, "want process, type, function and value behind %q, not %.60q",
			etcdMark, text)
	}
	process, err := decodeWord(in, parts[1])
	if err != nil {
		return jepsenEvent{}, err
	}
	e := jepsenEvent{hasValue: true}
	if e.session, e.skip, err = sessionOf(process); err != nil || e.skip {
		return e, err
	}
	if e.kind, err = kindOf(mapping{{"type", string(parts[2])}}); err != nil {
		return e, err
	}
	e.f = string(parts[3][1:])
	v, err := decodeWord(in, parts[4])
	e.body = body{value: v}
	return e, err
}

// decodeWord decodes an EDN value of a line.
func decodeWord(in *input, text []byte) (any, *reject.Error) {
	v, err := only(in, text, false)
	if e := reject.From(err); err == nil || e != nil {
		return v, e
	}
	return nil, reject.New(reject.BadStructure, "want one EDN value, not %.60q", text)
}

// only reads a text that is one value.
func only(in *input, text []byte, isJSON bool) (any, error) {
	s := newForms(in, bytes.NewReader(text), isJSON)
	s.single = true
	v, err := s.next()
	if err == nil {
		if _, err = s.next(); errors.Is(err, io.EOF) {
			return v, nil
		}
	}
	return nil, cmp.Or(err, errMore)
}

var errMore = errors.New("something follows the value")

// etcdOutcomes gives completions the meaning that Porcupine's log has for them.
func (all *attempts) etcdOutcomes() {
	for i := range all.list {
		if a := &all.list[i]; a.status == record.Aborted && a.f == "cas" {
			a.status, a.refused = record.Committed, true
		}
	}
}

// comparison names the register that says whether key holds v: a part of the same
// object, by record.Object.
func comparison(key string, v record.Value) string { return key + " = " + v.String() }

// compared is what the register comparison(key, old) holds while key holds old,
// or does not. Nil is what it holds at first, when key holds nil.
func compared(old record.Value, equal bool) record.Value {
	if equal == old.IsNull() {
		return record.Null
	}
	return record.Value{Kind: record.KindBool, Text: "true"}
}

// prepareRefusals collects what failed swaps compared registers with.
func (e *encoder) prepareRefusals(list []attempt) error {
	e.refused = map[string][]record.Value{}
	writes := 0
	seen := map[string]bool{}
	for i := range list {
		a := &list[i]
		if !a.refused {
			writes++
			continue
		}
		old, _, err := e.swap(a, a.value)
		if err != nil {
			return err
		}
		if c := comparison(registerKey, old); !seen[c] {
			seen[c] = true
			e.refused[registerKey] = append(e.refused[registerKey], old)
		}
	}
	if len(seen)*writes > encodedMax {
		return e.in.reject(reject.TooLarge, "the %d values that failed cas compared with and the %d other operations take "+
			"more than %d writes", len(seen), writes, encodedMax)
	}
	return nil
}

// looksPorcupineKV recognises the map of an operation on a key of a store.
var looksPorcupineKV = begins(ednMap+`[^}]*:type`, ednMap+`[^}]*:key`, ednMap+`[^}]*:(?:get|put|append)`)

func readPorcupineKV(in *input) ([]History, error) { return readJepsen(in, porcupineKV) }
