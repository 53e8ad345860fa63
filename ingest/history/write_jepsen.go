package history

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/isowatch/isowatch/ingest/record"
)

// Writers of Jepsen's histories, all of :f :txn. With times, a transaction is an
// invocation and a completion, in an order of lines that says what was before
// what, no more and no less: of two at the same tick the invocation comes first. Without
// times it is a completion alone.
//
// An operation that did not commit keeps its reads in its invocation, as nothing is
// believed of its completion.

// moment is the begin or the end of a transaction.
type moment struct {
	txn  int
	end  bool
	time int64
}

// moments puts begins and ends in the order of lines. Without times there are
// only ends, in the order of records.
func (w *writer) moments() ([]moment, error) {
	timed := 0
	for t := range w.txns {
		if w.txns[t].HasTimes {
			timed++
		}
	}
	var out []moment
	switch {
	case timed == 0:
		for t := range w.txns {
			out = append(out, moment{txn: t, end: true})
		}
		return out, nil
	case timed < len(w.txns):
		t := slices.IndexFunc(w.txns, func(t record.Transaction) bool { return !t.HasTimes })
		return nil, w.cannot(t, -1, "it has no times, and others have; they may be left out (--drop times)")
	}
	for _, s := range w.sessions {
		for i, t := range s.txns {
			txn := &w.txns[t]
			out = append(out, moment{t, false, txn.Start})
			end := w.end(txn)
			if i+1 < len(s.txns) {
				next := &w.txns[s.txns[i+1]]
				switch {
				case end <= next.Start:
				case txn.Status == record.Unknown:
					continue // its process went on, and never learned
				default:
					return nil, w.cannot(s.txns[i+1], -1,
						"it begins before transaction %.80q, the one before it in its session, has ended: a process does one thing at "+
							"a time", txn.ID)
				}
			}
			out = append(out, moment{t, true, end})
		}
	}
	// Stable, so that a session that ends one and begins the next at one tick stays in order.
	slices.SortStableFunc(out, func(a, b moment) int { return cmp.Compare(a.time, b.time) })
	for from := 0; from < len(out); {
		to := from + 1
		for to < len(out) && out[to].time == out[from].time {
			to++
		}
		if to-from > 1 {
			if err := w.arrangeTick(out[from:to]); err != nil {
				return nil, err
			}
		}
		from = to
	}
	return out, nil
}

// arrangeTick orders what happens at one tick: begins before ends, as nothing
// is before anything. Only where a session ends one transaction and begins
// the next, that end stands before that begin; then the others' begins must stand before
// both, and their ends behind both, which is possible for one session only.
func (w *writer) arrangeTick(ms []moment) error {
	ended := map[int]bool{} // sessions
	linked := -1
	for _, m := range ms {
		s := w.session[m.txn]
		switch {
		case m.end:
			ended[s] = true
		case ended[s] && linked >= 0 && linked != s:
			return w.cannot(m.txn, -1, "it begins at the tick at which the one before it in its session ends, and so do "+
				"others: their lines can't be in an order that says no more than that")
		case ended[s]:
			linked = s
		}
	}
	phase := func(m moment) int {
		switch {
		case w.session[m.txn] == linked:
			return 1
		case m.end:
			return 2
		}
		return 0
	}
	slices.SortStableFunc(ms, func(a, b moment) int { return phase(a) - phase(b) })
	return nil
}

var completions = map[record.Status]string{record.Committed: "ok", record.Aborted: "fail", record.Unknown: "info"}

func writeJepsen(w *writer) error {
	if err := w.planNil(); err != nil {
		return err
	}
	ms, err := w.moments()
	if err != nil {
		return err
	}
	j := newTerms(w, w.opt.Format == jepsenJSON)
	processes := w.numbered(1<<63 - 1)
	for i, m := range ms {
		txn := &w.txns[m.txn]
		kind := "invoke"
		if m.end {
			kind = completions[txn.Status]
		}
		form := "{:index %d, :type :%s, :process %d, :f :txn, :value ["
		if j.json {
			form = either(i == 0, "[", "") + `{"index":%d,"type":"%s","process":%d,"f":"txn","value":[`
		}
		b := fmt.Appendf(w.buf[:0], form, i, kind, processes[w.session[m.txn]])
		for o, op := range txn.Ops {
			if b, err = j.micro(b, m, o, op); err != nil {
				return err
			}
		}
		b = append(b, "]}"...)
		if j.json {
			b = append(b, either(i < len(ms)-1, ",", "]")...)
		}
		w.line(b)
	}
	return nil
}

// micro appends one micro-operation.
func (j *terms) micro(b []byte, m moment, o int, op record.Op) ([]byte, error) {
	blank, colon, quote := byte(' '), ":", ""
	if j.json {
		blank, colon, quote = ',', "", `"`
	}
	if o > 0 {
		b = append(b, blank)
	}
	b = fmt.Appendf(b, "[%s%s%s%s%c", quote, colon, op.Kind, quote, blank)
	var err error
	if b, err = j.key(b, m.txn, o, op.Key); err != nil {
		return b, err
	}
	b = append(b, blank)
	if op.Kind == record.Read && !m.end && j.w.txns[m.txn].Status == record.Committed {
		return append(b, either(j.json, "null]", "nil]")...), nil
	}
	if b, err = j.value(b, m.txn, o, op); err != nil {
		return b, err
	}
	return append(b, ']'), nil
}

// terms writes keys and values as EDN or JSON, so that reading gives them back: as
// they were, or, where the notation has another word for the text of one, one for one.
type terms struct {
	w      *writer
	json   bool
	keys   map[string]string       // how each is written
	read   map[string]string       // what of keys will be read, and which it is
	values map[string]string       // the same for strings that look like something else
	reread map[record.Value]string // the same
}

func newTerms(w *writer, json bool) *terms {
	return &terms{w: w, json: json, keys: map[string]string{}, read: map[string]string{}, values: map[string]string{},
		reread: map[record.Value]string{}}
}

func (j *terms) decode(text string) (any, bool) {
	v, err := only(&input{opt: Options{RecordMax: 1 << 30}}, []byte(text), j.json)
	return v, err == nil
}

func (j *terms) key(b []byte, t, o int, key string) ([]byte, error) {
	if text, known := j.keys[key]; known {
		return append(b, text...), nil
	}
	text := key
	v, ok := j.decode(text)
	if _, symbol := v.(string); !ok || symbol && !strings.HasPrefix(text, `"`) || nameOf(v) != key {
		text = string(record.AppendJSONString(nil, key))
		if v, ok = j.decode(text); !ok {
			return b, j.w.cannot(t, o, "the key %.80q has characters that the notation has no word for", key)
		}
	}
	if other, taken := j.read[nameOf(v)]; taken {
		return b, j.w.cannot(t, o, "the keys %.80q and %.80q would be the same", key, other)
	}
	j.keys[key], j.read[nameOf(v)] = text, key
	return append(b, text...), nil
}

// value appends what op reads or writes.
func (j *terms) value(b []byte, t, o int, op record.Op) ([]byte, error) {
	empty := op.Value.IsNull() || op.Value.Kind == record.KindList && op.Value.Text == "[]"
	switch {
	case op.Kind == record.Append && empty:
		return b, j.w.cannot(t, o, "it appends %s, which a list that is read can't show", op.Value)
	case j.w.isInitialOp(op):
		return append(b, either(j.json, "null", "nil")...), nil
	case empty && op.Kind == record.Read:
		return b, j.w.cannot(t, o, "it reads %s, which is not what key %.80q held at first; nil means that it is", op.Value,
			op.Key)
	case empty && op.Value.IsNull():
		return b, j.w.cannot(t, o, "it writes null, which is not what key %.80q held at first; nil means that it is", op.Key)
	}
	return j.term(b, t, o, op.Value)
}

func (j *terms) term(b []byte, t, o int, v record.Value) ([]byte, error) {
	switch v.Kind {
	case record.KindNull:
		return append(b, either(j.json, "null", "nil")...), nil
	case record.KindString:
		return j.text(b, t, o, v)
	case record.KindObject:
		return b, j.w.cannot(t, o, "the value %.80s is an object, which the notation's readers take for a text", v)
	case record.KindList:
		b = append(b, '[')
		for i, item := range v.Elements() {
			if i > 0 {
				b = append(b, either[byte](j.json, ',', ' '))
			}
			var err error
			if b, err = j.term(b, t, o, item); err != nil {
				return b, err
			}
		}
		return append(b, ']'), nil
	}
	return v.AppendJSON(b), nil
}

// text appends a string. One that begins as another kind of value does may be
// the text of that value.
func (j *terms) text(b []byte, t, o int, v record.Value) ([]byte, error) {
	quoted := record.AppendJSONString(nil, v.Text)
	plain := v.Text == "" || !strings.ContainsAny(v.Text[:1], special)
	if plain && !slices.ContainsFunc(quoted, func(c byte) bool { return c == '\\' }) {
		return append(b, quoted...), nil
	}
	if text, known := j.values[v.Text]; known {
		return append(b, text...), nil
	}
	text := v.Text
	got, ok := j.decode(text)
	if !ok || plain || valueOf(got) != v {
		text = string(quoted)
		if got, ok = j.decode(text); !ok {
			return b, j.w.cannot(t, o, "the string %.80s has characters that the notation has no word for", quoted)
		}
	}
	if other, taken := j.reread[valueOf(got)]; taken {
		return b, j.w.cannot(t, o, "the strings %.80q and %.80q would be the same", v.Text, other)
	}
	j.values[v.Text], j.reread[valueOf(got)] = text, v.Text
	return append(b, text...), nil
}
