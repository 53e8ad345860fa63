package script

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// Script is a history in the notation's terms.
type Script struct {
	Header record.Header
	Txns   []record.Transaction
}

// Parse reads a script. Errors name the line.
func Parse(text string) (Script, error) {
	var s Script
	next := map[string]int64{} // the next Seq of each session
	ids := map[string]bool{}
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		head, ops, isTxn := strings.Cut(line, ":")
		if !isTxn {
			if len(s.Txns) > 0 {
				return Script{}, fmt.Errorf("line %d: %q: a transaction needs a colon, and assumptions stand before the first "+
					"transaction", i+1, line)
			}
			if err := s.assume(line); err != nil {
				return Script{}, fmt.Errorf("line %d: %w", i+1, err)
			}
			continue
		}
		t, err := transaction(head, ops)
		if err != nil {
			return Script{}, fmt.Errorf("line %d: %w", i+1, err)
		}
		if ids[t.ID] {
			return Script{}, fmt.Errorf("line %d: a second transaction %s; give it another name", i+1, t.ID)
		}
		ids[t.ID] = true
		t.Seq, t.HasSeq = next[t.Session], true
		next[t.Session]++
		s.Txns = append(s.Txns, t)
	}
	return s, nil
}

// assume takes in one line of the header.
func (s *Script) assume(line string) error {
	name, value, _ := strings.Cut(line, " ")
	value = strings.TrimSpace(value)
	ok := false
	switch name {
	case "initial":
		var v record.Initial
		v, ok = record.ParseInitial(value)
		s.Header.Initial = &v
	case "coverage":
		var v record.Coverage
		v, ok = record.ParseCoverage(value)
		s.Header.Coverage = &v
	case "sessions":
		var v record.Sessions
		v, ok = record.ParseSessions(value)
		s.Header.Sessions = &v
	case "clock":
		var v record.Clock
		v, ok = record.ParseClock(value)
		s.Header.Clock = &v
	case "unique_values":
		v, err := strconv.ParseBool(value)
		ok = err == nil
		s.Header.UniqueValues = &v
	case "max_skew":
		v, err := strconv.ParseInt(value, 10, 64)
		ok = err == nil && v >= 0
		s.Header.MaxSkew = &v
	default:
		return fmt.Errorf("%q: expected a transaction, or one of initial, coverage, sessions, clock, max_skew, unique_values",
			line)
	}
	if !ok {
		return fmt.Errorf("%s can't be %q", name, value)
	}
	return nil
}

func transaction(head, rest string) (record.Transaction, error) {
	t := record.Transaction{DB: record.DefaultDB}
	words := strings.Fields(head)
	if len(words) < 2 || len(words) > 3 {
		return t, fmt.Errorf("%q: expected a session, a name and perhaps an outcome before the colon", head)
	}
	t.Session, t.ID = words[0], words[1]
	if len(words) == 3 {
		status, ok := parseStatus(words[2])
		if !ok {
			return t, fmt.Errorf("outcome can't be %q; use committed, aborted or unknown", words[2])
		}
		t.Status = status
	}
	rest, times, hasTimes := strings.Cut(rest, "@")
	if before, lsn, has := strings.Cut(rest, "lsn="); has {
		var err error
		if t.LSN, err = strconv.ParseInt(strings.TrimSpace(lsn), 10, 64); err != nil {
			return t, fmt.Errorf("lsn=%s: expected an integer", lsn)
		}
		rest = before
	}
	if hasTimes {
		start, end, _ := strings.Cut(strings.TrimSpace(times), "-")
		var err1, err2 error
		t.Start, err1 = strconv.ParseInt(start, 10, 64)
		t.End, err2 = strconv.ParseInt(end, 10, 64)
		if err1 != nil || err2 != nil || t.Start > t.End {
			return t, fmt.Errorf("times %q: expected @start-end with start <= end", times)
		}
		t.HasTimes = true
	}
	for rest = strings.TrimSpace(rest); rest != ""; rest = strings.TrimSpace(rest) {
		text, after, closed := strings.Cut(rest, ")")
		name, args, opened := strings.Cut(text, "(")
		key, value, hasValue := strings.Cut(args, ",")
		kind, known := record.ParseOpKind(name)
		if !closed || !opened || !hasValue || !known || kind > record.Append {
			return t, fmt.Errorf("%q: expected r(key,value), w(key,value) or append(key,value)", rest)
		}
		v, err := parseValue(value)
		if err != nil {
			return t, err
		}
		t.Ops = append(t.Ops, record.Op{Kind: kind, Key: strings.TrimSpace(key), Value: v})
		rest = after
	}
	return t, nil
}

func parseValue(s string) (record.Value, error) {
	s = strings.TrimSpace(s)
	switch {
	case s == "null":
		return record.Null, nil
	case s == "true" || s == "false":
		return record.Value{Kind: record.KindBool, Text: s}, nil
	case strings.HasPrefix(s, `"`):
		text, err := strconv.Unquote(s)
		if err != nil {
			return record.Null, fmt.Errorf("value %s is no string", s)
		}
		return record.String(text), nil
	case strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]"):
		var b []byte
		if inner := strings.TrimSpace(s[1 : len(s)-1]); inner != "" {
			for i, part := range strings.Split(inner, ",") {
				v, err := parseValue(part)
				if err != nil {
					return record.Null, err
				}
				if i > 0 {
					b = append(b, ',')
				}
				b = v.AppendJSON(b)
			}
		}
		return record.Value{Kind: record.KindList, Text: "[" + string(b) + "]"}, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return record.Null, fmt.Errorf("value %q: expected an integer, null, true, false, a string or a list", s)
	}
	return record.Int(n), nil
}

// Format writes a script that Parse reads back: for failing tests, which print
// their history to be kept as a case.
func Format(s Script) string {
	var b strings.Builder
	h := s.Header
	if h.Initial != nil {
		fmt.Fprintf(&b, "initial %v\n", *h.Initial)
	}
	if h.Coverage != nil {
		fmt.Fprintf(&b, "coverage %v\n", *h.Coverage)
	}
	if h.Sessions != nil {
		fmt.Fprintf(&b, "sessions %v\n", *h.Sessions)
	}
	if h.Clock != nil {
		fmt.Fprintf(&b, "clock %v\n", *h.Clock)
	}
	if h.MaxSkew != nil {
		fmt.Fprintf(&b, "max_skew %d\n", *h.MaxSkew)
	}
	if h.UniqueValues != nil {
		fmt.Fprintf(&b, "unique_values %v\n", *h.UniqueValues)
	}
	for _, t := range s.Txns {
		fmt.Fprintf(&b, "%s %s", t.Session, t.ID)
		if t.Status != record.Committed {
			fmt.Fprintf(&b, " %v", t.Status)
		}
		b.WriteByte(':')
		for _, op := range t.Ops {
			fmt.Fprintf(&b, " %v(%s,%v)", op.Kind, op.Key, op.Value)
		}
		if t.LSN != 0 {
			fmt.Fprintf(&b, " lsn=%d", t.LSN)
		}
		if t.HasTimes {
			fmt.Fprintf(&b, " @%d-%d", t.Start, t.End)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// parseStatus is the inverse of Status.String.
func parseStatus(s string) (status record.Status, ok bool) {
	for status := range record.Unknown + 1 {
		if status.String() == s {
			return status, true
		}
	}
	return 0, false
}

// Events reads an order: "+A B": the start of A, and the commit of B. "?" is nobody.
func Events(txns []record.Transaction, text string) []verdict.Event {
	var order []verdict.Event
	for _, e := range strings.Fields(text) {
		id, starts := strings.CutPrefix(e, "+")
		event := verdict.Event{Txn: verdict.NoTxn, Commit: !starts}
		for i := range txns {
			if txns[i].ID == id {
				event.Txn = verdict.TxnID(i)
			}
		}
		order = append(order, event)
	}
	return order
}
