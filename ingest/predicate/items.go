package predicate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/isowatch/isowatch/ingest/record"
)

// OperationsMax is how many operations the history without predicates may have.
const OperationsMax = 1 << 22

// Items returns the transactions with reads and writes of registers in place of their predicate operations, as the
// package says. Nobody may have written a row that is not among them, and all rows are absent at first. What the
// clients saw stays what it was: all else of the transactions is shared with those given.
//
// An error says why that can't be done, and of which operation: the condition is not understood, or names a column that
// no row has; a row is no object; it is not known which rows a predicate write hit, or what it made of them; the
// result would have more than OperationsMax operations. O(rows × conditions of each table + result), but of
// conditions that bound a column of integers only the rows that are ever within the bounds count.
func Items(txns []record.Transaction) (*Result, error) {
	x := expansion{txns: txns, tables: map[string]*table{}, conditions: map[string]*Predicate{}, keys: map[string]*row{}}
	for i, pass := range []func(*record.Transaction, int) error{x.collectTable, x.collectRows, x.collectVersions, x.collectReads} {
		if i == 2 {
			x.suppose()
		}
		for t := range txns {
			for i := range txns[t].Ops {
				if err := pass(&txns[t], i); err != nil {
					return nil, fmt.Errorf("transaction %s, operation %d: %w", txns[t].ID, i, err)
				}
			}
		}
	}
	if n := x.size(); n > OperationsMax {
		return nil, fmt.Errorf("the rows and conditions come to %d operations, more than %d", n, OperationsMax)
	}
	return &Result{Transactions: x.result(false), Supposed: x.isSupposed, from: &x}, nil
}

// result are the transactions without predicates; with few, without the reads that Fewer leaves out.
func (x *expansion) result(few bool) []record.Transaction {
	out := slices.Clone(x.txns)
	for t := range out {
		if x.touches(&out[t]) {
			out[t].Ops = x.items(&x.txns[t], few)
		}
	}
	return out
}

// Result is a history without predicates.
type Result struct {
	Transactions []record.Transaction
	// Supposed: what some predicate writes hit, or made of it, is not known; it is as if the transactions had run in the
	// order of their ends. If that is satisfied so is the history, else nothing is known.
	Supposed bool
	from     *expansion
}

// Fewer are the transactions without what statements read that read several registers: a read of a register that nobody
// writes stands in place of each. A statement reads its rows at once, and not one after the other as the registers
// stand in Transactions. Of the levels rc alone depends on the order of reads; what of the registers breaks it is
// certain if it does so in these. Nil: no statement reads several.
func (r *Result) Fewer() []record.Transaction {
	for _, reads := range r.from.reads {
		if len(reads) > 1 {
			return r.from.result(true)
		}
	}
	return nil
}

// expansion is the work of Items.
type expansion struct {
	txns       []record.Transaction
	tables     map[string]*table     // those that predicates are about
	conditions map[string]*Predicate // by the text in the record
	candidates map[question][]*row
	supposed   map[*record.Op]map[string]record.Value // by predicate write and row; see suppose
	isSupposed bool                                   // some of that is part of the result
	keys       map[string]*row                        // rows by their keys; nil for keys of no such table
	reads      map[*record.Op][]record.Op
	writes     map[*record.Op][]record.Op // of predicate writes: what they made of the rows they hit
}

// question is a condition on the rows of a table.
type question struct {
	of *table
	p  *Predicate
}

// table are the rows that predicates of it are about.
type table struct {
	rows    []*row // in the order in which they are met
	columns map[string]bool
	indexes map[string]index // by column, once they were wanted
}

// row is what a key of a table ever held.
type row struct {
	key       string
	versions  []version // each once, in the order in which they are met
	known     map[record.Value]bool
	writes    int // operations that write it
	registers []*register
	byName    map[string]*register
}

// version is one content of a row.
type version struct {
	value   record.Value
	columns map[string]record.Value
}

// register says of a row whether it matches a condition and, where it does, what columns hold.
type register struct {
	name    string
	of      *Predicate
	columns []string                      // sorted; none: just whether it matches
	shows   map[record.Value]record.Value // by the row's value
}

// tableOf is the table that a key is a row of, or nil: keys are TABLE:ROW.
func (x *expansion) tableOf(key string) *table {
	for i := range len(key) {
		if key[i] == ':' {
			if t := x.tables[key[:i]]; t != nil {
				return t
			}
		}
	}
	return nil
}

func isPredicate(op *record.Op) bool {
	return op.Kind == record.PredicateRead || op.Kind == record.PredicateWrite
}

// collectTable finds tables, and reads conditions.
func (x *expansion) collectTable(t *record.Transaction, i int) error {
	op := &t.Ops[i]
	if !isPredicate(op) {
		return nil
	}
	if x.tables[op.Key] == nil {
		x.tables[op.Key] = &table{columns: map[string]bool{}}
	}
	if x.conditions[op.Where] != nil {
		return nil
	}
	p, err := Parse(op.Where)
	if err != nil {
		return fmt.Errorf("the condition %.100q: %w", op.Where, err)
	}
	x.conditions[op.Where] = p
	return nil
}

// collectRows finds the rows of the tables, and the columns that are ever seen or written.
func (x *expansion) collectRows(t *record.Transaction, i int) error {
	op := &t.Ops[i]
	if !isPredicate(op) {
		r, known := x.keys[op.Key]
		of := x.tableOf(op.Key)
		switch {
		case known && r == nil, of == nil:
			x.keys[op.Key] = nil
			return nil
		case op.Kind == record.Append:
			return fmt.Errorf("%q is a row of a table that has predicates, and a list", op.Key)
		}
		x.meet(of, op.Key)
		if !op.Value.IsNull() && op.Value.Kind != record.KindObject {
			return fmt.Errorf("the row %q held %.100s, which is no object with columns", op.Key, op.Value)
		}
		of.add(op.Value)
		return nil
	}
	of := x.tables[op.Key]
	if op.Kind == record.PredicateWrite {
		change, err := changeOf(op)
		if err != nil {
			return err
		}
		of.add(change.set)
		for _, key := range change.hit {
			if x.tableOf(key) != of {
				return notOfTable(key, op.Key)
			}
			x.meet(of, key)
		}
		return nil
	}
	rows := op.Value.Fields()
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		if x.tableOf(key) != of {
			return notOfTable(key, op.Key)
		}
		if rows[key].Kind != record.KindObject {
			return fmt.Errorf("of the row %q there is %.100s, which is no object with columns", key, rows[key])
		}
		x.meet(of, key)
		of.add(rows[key])
	}
	return nil
}

func notOfTable(key, table string) error {
	return fmt.Errorf("the row %q is none of table %q: their keys begin with %q", key, table, table+":")
}

func (t *table) add(v record.Value) {
	for c := range v.Fields() {
		t.columns[c] = true
	}
}

func (x *expansion) meet(of *table, key string) *row {
	r := x.keys[key]
	if r == nil {
		r = &row{key: key, known: map[record.Value]bool{}, byName: map[string]*register{}}
		x.keys[key] = r
		of.rows = append(of.rows, r)
	}
	return r
}

// change is what a predicate write says of itself.
type change struct {
	set     record.Value // an object, or null: the rows are deleted
	hit     []string
	isKnown bool // hit says which rows
}

// changeOf reads {"set":{…}} or {"delete":true}, with "hit":[KEY,…] where that is known.
func changeOf(op *record.Op) (change, error) {
	var c change
	fields := op.Value.Fields()
	set, isSet := fields["set"]
	gone, isDelete := fields["delete"]
	if isSet == isDelete || isSet && set.Kind != record.KindObject || isDelete && (gone.Kind != record.KindBool || gone.Text != "true") {
		return c, fmt.Errorf(`want {"set":{…}} or {"delete":true}, found %.100s`, op.Value)
	}
	c.set = set
	hit, isKnown := fields[record.Hit]
	c.isKnown = isKnown
	for _, e := range hit.Elements() {
		if e.Kind != record.KindString {
			return c, fmt.Errorf("the rows that were hit are named by texts, not by %.100s", e)
		}
		c.hit = append(c.hit, e.Text)
	}
	return c, nil
}

// collectVersions finds what the rows ever held.
func (x *expansion) collectVersions(t *record.Transaction, i int) error {
	op := &t.Ops[i]
	switch op.Kind {
	case record.Write:
		if r := x.keys[op.Key]; r != nil {
			r.hold(op.Value)
		}
	case record.PredicateWrite:
		c, err := changeOf(op)
		if err != nil {
			return err
		}
		if x.writes == nil {
			x.writes = map[*record.Op][]record.Op{}
		}
		for _, key := range x.hit(op, c) {
			v, written, err := x.made(t, i, key, c)
			if err != nil {
				return err
			}
			if written {
				x.keys[key].hold(v)
				x.writes[op] = append(x.writes[op], record.Op{Kind: record.Write, Key: key, Value: v})
			}
		}
	}
	return nil
}

func (r *row) hold(v record.Value) {
	r.writes++
	if !r.known[v] && !v.IsNull() {
		r.known[v] = true
		r.versions = append(r.versions, version{v, v.Fields()})
	}
}

// hit are the rows that a predicate write hit, by the record or as it is supposed.
func (x *expansion) hit(op *record.Op, c change) []string {
	if c.isKnown {
		return c.hit
	}
	return slices.Sorted(maps.Keys(x.supposed[op]))
}

// made is what operation i of t made of a row that it hit. written is false where the transaction writes the row by
// itself next, which says it too.
func (x *expansion) made(t *record.Transaction, i int, key string, c change) (v record.Value, written bool, err error) {
	if c.set.IsNull() {
		return record.Null, true, nil
	}
	set := c.set.Fields()
	if len(set) == len(x.tables[t.Ops[i].Key].columns) { // all columns there are
		return c.set, true, nil
	}
	for j := i + 1; j < len(t.Ops); j++ {
		if t.Ops[j].Kind == record.Write && t.Ops[j].Key == key {
			return record.Null, false, nil
		}
		if t.Ops[j].Key == key || isPredicate(&t.Ops[j]) {
			break
		}
	}
	for j := i - 1; j >= 0; j-- {
		before := t.Ops[j].Value
		if t.Ops[j].Key != key || t.Ops[j].Kind != record.Write {
			if !slices.ContainsFunc(x.writes[&t.Ops[j]], func(w record.Op) bool { before = w.Value; return w.Key == key }) {
				continue
			}
		}
		return merged(before, c.set), true, nil
	}
	v, is := x.supposed[&t.Ops[i]][key]
	if !is {
		return v, false, fmt.Errorf("what else the row %q held is not known: a predicate write sets all columns, or is followed by a write of the row as it is then", key)
	}
	x.isSupposed = true
	return v, true, nil
}

// collectReads finds the registers that predicates read, and what they read of them.
func (x *expansion) collectReads(t *record.Transaction, i int) error {
	op := &t.Ops[i]
	if !isPredicate(op) {
		return nil
	}
	if x.reads == nil {
		x.reads = map[*record.Op][]record.Op{}
	}
	p, of := x.conditions[op.Where], x.tables[op.Key]
	if err := of.has(p); err != nil {
		return err
	}
	matched, isKnown, c := map[string]record.Value{}, true, change{}
	if op.Kind == record.PredicateRead {
		matched = op.Value.Fields()
	} else {
		var err error
		if c, err = changeOf(op); err != nil {
			return err
		}
		_, isSupposed := x.supposed[op]
		isKnown = c.isKnown || isSupposed
		for _, key := range x.hit(op, c) {
			matched[key] = record.Null
		}
	}
	rows, err := x.mayMatch(question{of, p})
	if err != nil {
		return err
	}
	x.isSupposed = x.isSupposed || len(rows) > 0 && op.Kind == record.PredicateWrite && !c.isKnown
	if len(rows) > 0 && !isKnown {
		return fmt.Errorf("it is not known which rows the predicate write hit: a fourth element of the operation names them")
	}
	for _, r := range rows {
		if _, match := matched[r.key]; !match {
			if err := x.read(op, r, p, nil, false); err != nil {
				return err
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(matched)) {
		if err := x.read(op, x.keys[key], p, matched[key].Fields(), true); err != nil {
			return err
		}
	}
	return nil
}

// read adds that a predicate operation read a row, of which it saw the columns if it matched.
func (x *expansion) read(op *record.Op, r *row, p *Predicate, columns map[string]record.Value, match bool) error {
	if match && op.Kind == record.PredicateRead {
		whole, err := r.whole(columns, p)
		if err != nil {
			return err
		}
		if whole {
			x.reads[op] = append(x.reads[op], record.Op{Kind: record.Read, Key: r.key, Value: record.ObjectOf(columns)})
			return nil
		}
	}
	reg, err := x.register(r, p, slices.Sorted(maps.Keys(columns)))
	if err != nil {
		return err
	}
	value := record.Null
	if match {
		value = reg.show(columns)
	}
	x.reads[op] = append(x.reads[op], record.Op{Kind: record.Read, Key: reg.name, Value: value})
	return nil
}

// has tells whether the columns that a condition names are columns of the table, if that ever has a row: a name that is
// spelled differently would be null everywhere.
func (t *table) has(p *Predicate) error {
	if len(t.columns) == 0 {
		return nil
	}
	for c := range p.columns() {
		if !t.columns[c] {
			return fmt.Errorf("the condition %.100q names the column %q, which no row has", p, c)
		}
	}
	return nil
}

// mayMatch are the rows of which some version matches, in the order of the table.
func (x *expansion) mayMatch(q question) ([]*row, error) {
	if rows, known := x.candidates[q]; known {
		return rows, nil
	}
	var out []*row
	for _, r := range q.of.within(q.p) {
		for _, v := range r.versions {
			match, err := q.p.match(v.columns)
			if err != nil {
				return nil, fmt.Errorf("row %q: %w", r.key, err)
			}
			if match {
				out = append(out, r)
				break
			}
		}
	}
	if x.candidates == nil {
		x.candidates = map[question][]*row{}
	}
	x.candidates[q] = out
	return out, nil
}

// whole tells whether a row that was seen with those columns, and matches, is one that was seen with all there are: then
// who reads it has read the row itself.
func (r *row) whole(columns map[string]record.Value, p *Predicate) (bool, error) {
	for _, v := range r.versions {
		if len(v.columns) != len(columns) {
			return false, nil
		}
		for c := range columns {
			if _, is := v.columns[c]; !is {
				return false, nil
			}
		}
	}
	return p.match(columns)
}

// IsRegister tells whether a key is a register that Items made, as its name says.
func IsRegister(key string) bool {
	_, condition, found := strings.Cut(key, " where ")
	if !found {
		return false
	}
	_, err := Parse(condition)
	return err == nil
}

// register returns the register of a row for a condition and columns, which is made when it is first asked for.
func (x *expansion) register(r *row, p *Predicate, columns []string) (*register, error) {
	name := r.key + " where " + p.String()
	if len(columns) > 0 {
		name = r.key + " (" + strings.Join(columns, ", ") + ") where " + p.String()
	}
	if reg := r.byName[name]; reg != nil {
		return reg, nil
	}
	if _, taken := x.keys[name]; taken {
		return nil, fmt.Errorf("there is a key %.100q, which is how the register of a condition is called", name)
	}
	reg := &register{name: name, of: p, columns: columns, shows: map[record.Value]record.Value{}}
	for _, v := range r.versions {
		match, err := p.match(v.columns)
		if err != nil {
			return nil, err
		}
		if match {
			reg.shows[v.value] = reg.show(v.columns)
		}
	}
	r.byName[name] = reg
	r.registers = append(r.registers, reg)
	return reg, nil
}

// show is what the register holds of a row that matches. Columns that are null show nothing.
func (g *register) show(columns map[string]record.Value) record.Value {
	if len(g.columns) == 0 {
		return boolean("true")
	}
	seen := make(map[string]record.Value, len(g.columns))
	for _, c := range g.columns {
		if v := columns[c]; !v.IsNull() {
			seen[c] = v
		}
	}
	return record.ObjectOf(seen)
}

// size is how many operations the result has.
func (x *expansion) size() (n int) {
	for _, r := range x.keys {
		if r != nil {
			n += r.writes * len(r.registers)
		}
	}
	for _, reads := range x.reads {
		n += len(reads)
	}
	for i := range x.txns {
		n += len(x.txns[i].Ops)
	}
	return n
}

// touches tells whether a transaction has predicates, or writes rows that have registers.
func (x *expansion) touches(t *record.Transaction) bool {
	return slices.ContainsFunc(t.Ops, func(op record.Op) bool {
		return isPredicate(&op) || op.Kind == record.Write && x.keys[op.Key] != nil && len(x.keys[op.Key].registers) > 0
	})
}

// items are the operations of a transaction without predicates; with few, without the reads that are not in Fewer.
func (x *expansion) items(t *record.Transaction, few bool) []record.Op {
	var out []record.Op
	for i := range t.Ops {
		op := &t.Ops[i]
		switch {
		case isPredicate(op):
			for _, read := range x.reads[op] {
				if few && len(x.reads[op]) > 1 {
					read = record.Op{Kind: record.Read, Key: op.Key + " where " + op.Where}
				}
				out = append(out, read)
			}
			for _, w := range x.writes[op] {
				out = x.write(out, w)
			}
		case op.Kind == record.Write:
			out = x.write(out, *op)
		default:
			out = append(out, *op)
		}
	}
	return out
}

// write adds a write and, if it is of a row, what it makes of the row's registers.
func (x *expansion) write(out []record.Op, w record.Op) []record.Op {
	out = append(out, w)
	if r := x.keys[w.Key]; r != nil {
		for _, g := range r.registers {
			out = append(out, record.Op{Kind: record.Write, Key: g.name, Value: g.shows[w.Value]})
		}
	}
	return out
}
