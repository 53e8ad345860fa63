package veil

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// Mode is what alerts show of the data.
type Mode uint8

// The modes.
const (
	Full Mode = iota // as it was recorded
	Hash             // a keyed hash: equal stays equal in all alerts
	None             // a pseudonym: equal stays equal in one alert
	Long             // what is longer than LongMin is given by its hash, with the salt nil
)

var modeNames = [...]string{"full", "hash", "none", "long"}

// LongMin is the least length, in bytes, of what is long.
const LongMin = 256

func (m Mode) String() string { return modeNames[m] }

// Veil is how data is hidden. The zero Veil hides nothing. It can be shared by
// goroutines.
type Veil struct {
	mode Mode
	salt []byte
}

// New makes a Veil; the salt matters to Hash alone, which needs one of 16 bytes.
func New(mode Mode, salt []byte) Veil { return Veil{mode: mode, salt: salt} }

// Mode is what alerts show.
func (v Veil) Mode() Mode { return v.mode }

// hashBytes is the length of a hash before it is written in hexadecimal. What two of
// a million keys have in common by chance is one in 30 million.
const hashBytes = 8

// Alert hides the data of one alert, about a history whose keys start so, and whose tables have such a coverage. It is
// for one goroutine.
func (v Veil) Alert(initial record.Initial, tables record.Tables) *Alert {
	return &Alert{veil: v, zero: initial == record.InitialZero, tables: tables,
		keys: map[string]string{}, values: map[record.Value]string{}, records: map[verdict.TxnID]*record.Transaction{}}
}

// Alert is the data of one alert, hidden: whoever asks for the same gets the same.
type Alert struct {
	veil    Veil
	zero    bool // 0 is what keys start as
	tables  record.Tables
	keys    map[string]string
	values  map[record.Value]string
	records map[verdict.TxnID]*record.Transaction
}

// separator stands in keys between an object and what of it is meant; see
// record.Object.
const separator = " = "

// Key is a key hidden: equal keys are equal, and keys of one object are.
func (a *Alert) Key(key string) string {
	if a.veil.mode == Full || key == "" {
		return key
	}
	object := record.Object(key)
	if object != key {
		return a.part(object) + separator + a.part(key)
	}
	out := a.part(key)
	if c, named := a.tables.Of(key); named && out != key {
		return c.String() + ":" + out
	}
	return out
}

// Tables are the tables with another coverage, hidden: what a hidden key's table is called is what coverage that has.
func (a *Alert) Tables() record.Tables {
	if a.veil.mode == Full || len(a.tables) == 0 {
		return a.tables
	}
	out := record.Tables{}
	for name, c := range a.tables {
		if a.short(len(name)) {
			out[name] = c
		}
		out[c.String()] = c
	}
	return out
}

// part hides an object's name, or a whole key.
func (a *Alert) part(s string) string {
	if a.short(len(s)) {
		return s
	}
	out, ok := a.keys[s]
	if !ok {
		out = a.word("key-", "k", []byte(s), len(a.keys))
		a.keys[s] = out
	}
	return out
}

// Value is a value hidden: equal values are equal. What means something by itself
// stays; of a list the elements are hidden, each as the value that it is. Linear in its
// length.
func (a *Alert) Value(v record.Value) record.Value {
	switch {
	case a.veil.mode == Full || v.IsNull() || a.zero && v == record.Int(0) || a.short(len(v.Text)):
		return v
	case v.Kind == record.KindList:
		text := []byte{'['}
		for i, e := range v.Elements() {
			if i > 0 {
				text = append(text, ',')
			}
			text = a.Value(e).AppendJSON(text)
		}
		return record.Value{Kind: record.KindList, Text: string(append(text, ']'))}
	}
	out, ok := a.values[v]
	if !ok {
		out = a.word("value-", "v", v.AppendJSON(nil), len(a.values))
		a.values[v] = out
	}
	return record.String(out)
}

// short tells whether something of that length is shown as it is.
func (a *Alert) short(length int) bool { return a.veil.mode == Long && length < LongMin }

// word is what stands for some data: a hash of it, or the next pseudonym.
func (a *Alert) word(hash, pseudonym string, data []byte, before int) string {
	if a.veil.mode == None {
		return pseudonym + strconv.Itoa(before+1)
	}
	h := hmac.New(sha256.New, a.veil.salt)
	h.Write([]byte(hash)) // keys and values apart
	h.Write(data)
	return hash + hex.EncodeToString(h.Sum(nil)[:hashBytes])
}

// Transaction is a record hidden. The record itself stays as it is.
func (a *Alert) Transaction(t *record.Transaction) *record.Transaction {
	if a.veil.mode == Full {
		return t
	}
	out := *t
	out.Ops = make([]record.Op, len(t.Ops))
	for i, op := range t.Ops {
		out.Ops[i] = a.op(op)
	}
	if !a.short(len(t.Statements)) {
		out.Statements = ""
	}
	return &out
}

// op is an operation hidden. The rows and the text of a predicate are opaque: its
// columns and constants are data as well.
func (a *Alert) op(op record.Op) record.Op {
	out := record.Op{Kind: op.Kind, Key: a.Key(op.Key), Value: a.Value(op.Value)}
	if op.Kind == record.PredicateRead || op.Kind == record.PredicateWrite {
		if op.Value.Kind == record.KindObject && out.Value != op.Value {
			out.Value = record.Value{Kind: record.KindObject, Text: "{" + out.Value.String() + ":null}"}
		}
		out.Where = a.Value(record.String(op.Where)).Text
	}
	return out
}

// Lookup finds records, hidden. Each is hidden once.
func (a *Alert) Lookup(lookup name.Lookup) name.Lookup {
	if a.veil.mode == Full {
		return lookup
	}
	return func(id verdict.TxnID) (*record.Transaction, bool) {
		if t, ok := a.records[id]; ok {
			return t, true
		}
		t, ok := lookup.Find(id)
		if !ok {
			return nil, false
		}
		a.records[id] = a.Transaction(t)
		return a.records[id], true
	}
}

// Violation is a violation with its keys hidden. Reasons that share parts still do, so
// that the work is linear in what there is and not in how often it is told.
func (a *Alert) Violation(v verdict.Violation) verdict.Violation {
	if a.veil.mode == Full {
		return v
	}
	e := edges{a: a, done: map[cycle][]verdict.Edge{}}
	v.Key = a.Key(v.Key)
	v.Cycle = e.hide(v.Cycle)
	v.Cases = e.all(v.Cases)
	exhibits := make([]verdict.Exhibit, len(v.Exhibits))
	for i, x := range v.Exhibits {
		exhibits[i] = verdict.Exhibit{Txn: x.Txn, Open: x.Open, Reads: a.all(x.Reads), Writes: a.all(x.Writes),
			All: a.all(x.All)}
	}
	v.Exhibits = exhibits
	return v
}

func (a *Alert) all(keys []string) []string {
	out := make([]string, len(keys))
	for i, k := range keys {
		out[i] = a.Key(k)
	}
	return out
}

// cycle is a slice of edges, by where it is.
type cycle struct {
	first  *verdict.Edge
	length int
}

type edges struct {
	a    *Alert
	done map[cycle][]verdict.Edge
}

func (e edges) hide(c []verdict.Edge) []verdict.Edge {
	if len(c) == 0 {
		return c
	}
	at := cycle{&c[0], len(c)}
	if out, ok := e.done[at]; ok {
		return out
	}
	out := make([]verdict.Edge, len(c))
	e.done[at] = out
	for i, edge := range c {
		edge.Key = e.a.Key(edge.Key)
		edge.Because = e.hide(edge.Because)
		edge.Others = e.all(edge.Others)
		out[i] = edge
	}
	return out
}

func (e edges) all(cs [][]verdict.Edge) [][]verdict.Edge {
	if cs == nil {
		return nil
	}
	out := make([][]verdict.Edge, len(cs))
	for i, c := range cs {
		out[i] = e.hide(c)
	}
	return out
}
