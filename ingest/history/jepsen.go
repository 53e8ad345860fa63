package history

import (
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/reject"
)

// Jepsen's histories: a map for each invocation and completion of an operation, in
// the order in which Jepsen saw them, as EDN or JSON (whose keywords are strings):
//
//	{:process 3, :type :invoke, :f :txn, :value [[:r :x nil] [:append :y 1]]}
//	{:process 3, :type :ok,     :f :txn, :value [[:r :x [4]] [:append :y 1]]}
//
// forms → an event each (here) → pairs of invocation and completion, which are the
// transactions (jepsen_pair.go) → records, by the workload (jepsen_workload.go).

const (
	jepsenEDN  = "jepsen-edn"
	jepsenJSON = "jepsen-json"
)

// ednMap is how the map of an operation begins, alone, in a list, or tagged.
const ednMap = `^(?:[\s,]|;[^\n]*\n)*[\[(]?(?:[\s,]|;[^\n]*\n)*(?:#[^{_(\["][^{(\["]*)?\{`

var (
	looksJepsenEDN = begins(ednMap + `(?s:.*):type`)
	// with the type of an operation's
	looksJepsenJSON = begins(`^\s*\[?\s*\{(?s:.*?)"type"\s*:\s*":?(?:invoke|ok|fail|info)`)
)

// eventKind is an event's :type.
type eventKind uint8

const (
	typeInvoke eventKind = iota
	typeOK
	typeFail
	typeInfo
)

var eventKinds = [...]string{"invoke", "ok", "fail", "info"}

// jepsenEvent is one form: an invocation, or a completion.
type jepsenEvent struct {
	kind     eventKind
	session  string // of its process; "" if it names none
	skip     bool   // it is of no client: the nemesis
	f        string
	key      string // Porcupine's :key
	hasValue bool
	body
	line   int64
	offset int64
}

// body is what an event says was done: micro-operations, or else a value.
type body struct {
	isTxn  bool
	micros []micro
	value  any
}

// micro is a micro-operation: [:r k v], [:w k v] or [:append k v].
type micro struct {
	kind  record.OpKind
	key   string
	value record.Value // Null also for an empty list
}

func readJepsenEDN(in *input) ([]History, error)  { return readJepsen(in, jepsenEDN) }
func readJepsenJSON(in *input) ([]History, error) { return readJepsen(in, jepsenJSON) }

func readJepsen(in *input, format string) ([]History, error) {
	events, err := readEvents(in, format == jepsenJSON)
	if err != nil {
		return nil, err
	}
	return one(pairEvents(events).history(in, format))
}

// readEvents reads all events in order.
func readEvents(in *input, isJSON bool) ([]jepsenEvent, error) {
	s := newForms(in, in.r, isJSON)
	var events []jepsenEvent
	for {
		v, err := s.next()
		if errors.Is(err, io.EOF) {
			return events, nil
		}
		if err != nil {
			return nil, err
		}
		e, bad := newEvent(v)
		if bad != nil {
			return nil, in.at(bad, s.form.line, s.form.offset)
		}
		e.line, e.offset = s.form.line, s.form.offset
		events = append(events, e)
	}
}

func newEvent(v any) (e jepsenEvent, err *reject.Error) {
	m := untagged(v)
	if _, isMap := m.(mapping); !isMap {
		return jepsenEvent{}, reject.New(reject.WrongType, "want the map of an operation, {:type :invoke, …}, not %.60s",
			appendText(nil, m))
	}
	process, _ := fieldOf(m, "process")
	if e.session, e.skip, err = sessionOf(untagged(process)); err != nil || e.skip {
		return e, err
	}
	if e.kind, err = kindOf(m); err != nil {
		return e, err
	}
	if f, present := fieldOf(m, "f"); present && f != nil {
		name, isWord := wordOf(untagged(f))
		if !isWord {
			return e, reject.In(":f", reject.WrongType, "want a keyword, not %.60s", appendText(nil, f))
		}
		e.f = strings.TrimPrefix(name, ":")
	}
	if k, present := fieldOf(m, "key"); present {
		e.key, _ = k.(string)
	}
	v, e.hasValue = fieldOf(m, "value")
	e.body, err = newBody(e.f, v)
	return e, err
}

// sessionOf names the session of a process: p3. The nemesis is no client.
func sessionOf(process any) (name string, skip bool, err *reject.Error) {
	if process == nil {
		return "", false, nil
	}
	if n, isNumber := numberOf(process); isNumber && n.Kind == record.KindInt {
		return "p" + strconv.FormatInt(n.Num, 10), false, nil
	}
	if w, isWord := wordOf(process); isWord && strings.TrimPrefix(w, ":") == "nemesis" {
		return "", true, nil
	}
	return "", false, reject.In(":process", reject.WrongType, "want an integer or :nemesis, not %.60s",
		appendText(nil, process))
}

func kindOf(m any) (eventKind, *reject.Error) {
	t, present := fieldOf(m, "type")
	if !present {
		return 0, reject.In(":type", reject.MissingField, "an operation needs a :type: :invoke, :ok, :fail or :info")
	}
	w, _ := wordOf(untagged(t))
	w = strings.TrimPrefix(w, ":")
	if k := slices.Index(eventKinds[:], w); k >= 0 {
		return eventKind(k), nil
	}
	return 0, reject.In(":type", reject.UnknownStatus, "want :invoke, :ok, :fail or :info, not %.60s", appendText(nil, t))
}

// newBody takes micro-operations apart, of :f :txn or where a list can be nothing
// else, as with long-fork's :read [[:r k v] …].
func newBody(f string, v any) (body, *reject.Error) {
	v = untagged(v)
	list, isList := v.([]any)
	isTxn := f == "txn"
	if !isTxn && isList && len(list) > 0 {
		isTxn = true
		for _, e := range list {
			isTxn = isTxn && isMicro(e)
		}
	}
	if !isTxn {
		return body{value: v}, nil
	}
	if v != nil && !isList {
		return body{}, reject.In(":value", reject.WrongType, "want a vector of micro-operations, [[:r k v] …], not %.60s",
			appendText(nil, v))
	}
	b := body{isTxn: true, micros: make([]micro, len(list))}
	for i, e := range list {
		var err *reject.Error
		if b.micros[i], err = newMicro(e); err != nil {
			return b, err.UnderIndex(i).Under(":value")
		}
	}
	return b, nil
}

var microKinds = map[string]record.OpKind{
	"r": record.Read, "read": record.Read,
	"w": record.Write, "write": record.Write,
	"append": record.Append,
}

func isMicro(v any) bool {
	list, isList := untagged(v).([]any)
	if !isList || len(list) != 3 {
		return false
	}
	w, isWord := wordOf(list[0])
	_, known := microKinds[strings.TrimPrefix(w, ":")]
	return isWord && known
}

func newMicro(v any) (micro, *reject.Error) {
	list, isList := untagged(v).([]any)
	if !isList || len(list) == 0 {
		return micro{}, reject.New(reject.WrongType, "want a micro-operation, [:r k v], [:w k v] or [:append k v], not %.60s",
			appendText(nil, v))
	}
	w, _ := wordOf(untagged(list[0]))
	kind, known := microKinds[strings.TrimPrefix(w, ":")]
	if !known {
		return micro{}, reject.New(reject.UnknownOp,
			"no record can say what the micro-operation %.60s does: want [:r k v], [:w k v] or [:append k v]",
			appendText(nil, v))
	}
	if len(list) == 2 && kind == record.Read {
		list = append(list[:2:2], nil)
	}
	if len(list) != 3 {
		return micro{}, reject.New(reject.WrongLength, "a micro-operation has three elements, not %d: %.60s", len(list),
			appendText(nil, v))
	}
	m := micro{kind: kind, key: nameOf(list[1]), value: valueOf(untagged(list[2]))}
	if kind == record.Read && m.value.Kind == record.KindList && m.value.Text == "[]" {
		m.value = record.Null // an empty list is one that nobody has appended to
	}
	if kind == record.Append && m.value.IsNull() {
		return m, reject.New(reject.WrongType, "nil is appended, which a list that is read could not show")
	}
	return m, nil
}
