package predicate

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/isowatch/isowatch/ingest/record"
)

// History is a history with predicates, and what of it is asked without them. It is for one goroutine.
type History struct {
	// Txns are the transactions as they were read. Their sessions may be changed.
	Txns []record.Transaction
	// Supposed: what some predicate writes hit, or made of it, is not known; it is as if the transactions had run in the
	// order of their ends. If that is satisfied so is the history, else nothing is known.
	Supposed bool
	// Unread: the conditions of some predicate reads are not understood, of which the first is named here. They are left
	// out: what is violated is so with them, and what is satisfied may not be.
	Unread error
	// Most is how much Size may be: AskAll and Explain go no further. OperationsMax.
	Most int

	whole      func(table string) bool // nil: all
	tables     map[string]*table       // those that predicates are about
	within     map[string]bool         // what stands before a colon in their names
	conditions map[string]*condition   // by the text in the record
	columns    map[string]int          // of all tables, numbered
	keys       map[string]*row         // rows by their keys; nil for keys of no such table
	acts       [][]act                 // by transaction
	shapes     map[string]*[]string
	asked      map[question]bool
	questions  []asked
	comes      bool    // by and by: see Running
	supposes   bool    // of all predicate writes what they hit
	size       int     // of what is asked for by now
	rows, seen []int32 // scratch
	unasked    Unasked
	impossible []string // registers of rows that were returned and can't match, whatever they held
	stop       func() bool
	looked     int // how often a part of a condition was looked at in a row
	askAt      int // and when stop is asked again
	isStopped  bool
}

// lookMost is how many parts of conditions are looked at between two looks at stop: some milliseconds.
const lookMost = 1 << 14

// look counts that a condition is looked at in a version of a row; false: it is not, as work is to end.
func (h *History) look(c *condition, v *version) bool {
	if h.looked++; v != nil {
		h.looked += c.parts
	}
	if h.looked >= h.askAt && !h.isStopped {
		h.askAt, h.isStopped = h.looked+lookMost, h.stop()
	}
	return !h.isStopped
}

// Unasked is what is left out of what transactions read: all that some read, and what any read of some keys, a row that
// a statement looked at among them. With fewer reads more is allowed. nil: nothing.
type Unasked struct {
	Txn func(t int) bool
	Key func(key string) bool
}

func (u Unasked) txn(t int) bool { return u.Txn != nil && u.Txn(t) }

func (u Unasked) key(key string) bool { return u.Key != nil && u.Key(key) }

func (u Unasked) is(t int, key string) bool { return u.txn(t) || u.key(key) }

// Any tells whether something may be left out.
func (u Unasked) Any() bool { return u.Txn != nil || u.Key != nil }

// table are the rows that predicates of it are about.
type table struct {
	number   int
	partly   bool     // somebody unseen may have written rows of it, or some are there at first
	isShown  bool     // a row was written or read by its key, so that all columns are known
	rows     []*row   // in the order in which they are met
	signs    []uint64 // of each: tells it from others; 0: what is read of it is left out
	before   row      // stands before the first that a statement found
	columns  map[string]bool
	contents map[string]*version   // that its rows hold or were seen with
	versions []*version            // the same by number; the first is nil, of rows that are not there
	all      map[*condition][]*row // that may match, once it was asked
	ever     map[int]*index        // of all versions, by column, once it was asked
	holders  [][]int32             // by version: the rows that it was ever written to, once it was asked
	kind     map[string][]record.Value
	kinds    int  // of how many versions they are
	known    int  // how many columns there were when questions were compared last
	isNew    bool // there are more columns or kinds than then
	isSet    bool // a predicate write has set columns
}

// row is what a key of a table ever held.
type row struct {
	key       string
	of        *table
	number    int32
	shape     *[]string // the columns of all versions, if these are the same
	mixed     bool
	writes    int  // operations that write it
	isAsked   bool // it is read, or it matters who writes it
	registers []*register
	byName    map[string]*register
	// What the next statement is likely to name: the row that followed it in the last one, and what that returned or
	// made of it, by number.
	after, seen int32
	quoted      string // the key, as a statement names it
}

func (r *row) sign() uint64 { return r.of.signs[r.number] }

// version is one content of a row.
type version struct {
	value  record.Value
	fields map[string]record.Value // once they were asked
	shape  *[]string
	number int32  // within the table
	signed uint64 // tells it from others
	cells  []cell // by the numbers of columns; what is not there is null
}

func (v *version) columns() map[string]record.Value {
	if v.fields == nil {
		v.fields = v.value.Fields()
	}
	return v.fields
}

// num is the version's number: 0 of nil.
func (v *version) num() int32 {
	if v == nil {
		return 0
	}
	return v.number
}

// cell is what a column holds, if that is an integer.
type cell struct {
	num  int64
	kind record.ValueKind
}

// at is what a column holds.
func (v *version) at(column int) cell {
	if v == nil || column >= len(v.cells) {
		return cell{}
	}
	return v.cells[column]
}

// condition is a condition on rows whose columns are numbered.
type condition struct {
	*Predicate
	span
	column int    // that the span is about, if it is bounded
	parts  int    // about how many comparisons it has
	text   string // canonical, once it was asked
}

func (c *condition) canonical() string {
	if c.text == "" {
		c.text = c.String()
	}
	return c.text
}

// matched tells whether a version of a row matches; nil is no row.
func (v *version) matched(c *condition) bool {
	if v == nil {
		return false
	}
	if c.isBounded {
		switch held := v.at(c.column); {
		case held.kind == record.KindNull, held.kind == record.KindInt && (held.num < c.low || held.num > c.high):
			return false
		case held.kind == record.KindInt && c.isAll:
			return true
		}
	}
	match, err := c.match(v.columns())
	if err != nil {
		panic(fmt.Sprintf("predicate: %v; can't happen, because the columns of each table were compared", err))
	}
	return match
}

// register says of a row whether it matches a condition and, where it does, what columns hold.
type register struct {
	name    string
	of      *condition
	columns []string // sorted; none: just whether it matches
}

// act is what an operation does to rows: it writes or reads one, or it is a statement with a condition.
type act struct {
	op        int32
	isWrite   bool
	row       *row
	made      *version // nil: deleted
	statement *statement
}

// statement is a predicate operation.
type statement struct {
	op    *record.Op
	txn   int
	of    *table
	where *condition
	rows  []int32 // that were returned, or hit, by number
	// The versions of these: of a predicate read those returned, of a predicate write what it is supposed to have met; 0:
	// whichever matches. None: of all.
	seen []int32
	// Of a predicate write:
	set     *version   // nil: the rows are deleted
	isKnown bool       // which rows were hit
	made    []*version // of the rows; nil: each is what was set
	follows []bool     // an operation of its own that follows writes the row; nil: of none
	reads   []read
	asked   map[*row]bool
	// Where the table holds what the statement found, the signs of the rows that match add up to this, those of a
	// predicate read each times that of its version. That is not all (isPart) where versions are shown in part.
	sum    uint64
	isPart bool
}

// row is the n-th row of a statement.
func (st *statement) row(n int) *row { return st.of.rows[st.rows[n]] }

// saw is what it returned of that, or is supposed to have met; nil: whichever matches.
func (st *statement) saw(n int) *version {
	if st.seen == nil {
		return nil
	}
	return st.of.versions[st.seen[n]]
}

// shown are the columns of what it saw: all of them for a write, which leaves those that it does not set as they are.
func (st *statement) shown(seen *version) []string {
	if st.op.Kind == record.PredicateWrite {
		return slices.Sorted(maps.Keys(st.of.columns))
	}
	return *seen.shape
}

// makes is what it made of that.
func (st *statement) makes(n int) *version {
	if st.made == nil {
		return st.set
	}
	return st.made[n]
}

// signIt finds the sum that the table has to have.
func (st *statement) signIt() {
	if st.op.Kind == record.PredicateRead {
		for n := range st.rows {
			r, seen := st.row(n), st.saw(n)
			st.isPart = st.isPart || r.mixed || r.shape != seen.shape
			st.sum += r.sign() * seen.sign()
		}
		return
	}
	for n := range st.rows {
		st.isPart = st.isPart || st.saw(n) != nil
		st.sum += st.of.signs[st.rows[n]]
	}
}

// sign tells a version from others.
func (v *version) sign() uint64 {
	if v == nil {
		return 1
	}
	return v.signed
}

// sign is an odd number that looks random, as splitmix64 makes them.
func sign(of uint64) uint64 {
	of = (of + 1) * 0x9E3779B97F4A7C15
	of = (of ^ of>>30) * 0xBF58476D1CE4E5B9
	of = (of ^ of>>27) * 0x94D049BB133111EB
	return of ^ of>>31 | 1
}

// read is one of the reads that a statement is asked for.
type read struct {
	row      *row
	register *register // nil: the row itself
	value    record.Value
}

// Read takes transactions apart. Of the tables that whole names, nil for all, nobody may have written a row that is not
// among them, and all rows are absent at first. Of the others it is asked what statements returned, where that is a
// row with all columns, as all rows of a table have the same: that a row was not returned shows nothing. What the
// clients saw stays what it was: all else of the transactions is shared with those given.
//
// An error says what can't be judged, and of which operation: the condition of a write is not understood, or one names
// a column that no row has; a row is no object; it is not known which rows a predicate write hit, or what it made of them; columns
// hold what can't be compared. O(size of the records). stop is asked often, here and by Explain and AskAll; once it
// answers true, which it goes on doing, work ends early, and what comes of it means nothing.
func Read(txns []record.Transaction, whole func(table string) bool, unasked Unasked,
	stop func() bool) (*History, error) {
	h := newHistory(unasked, stop)
	h.whole, h.Txns, h.acts = whole, txns, make([][]act, len(txns))
	for _, pass := range []func(t *record.Transaction, i int, acts *[]act) error{h.findTable, h.findRows} {
		for t := range txns {
			if t%stopEvery == 0 && stop() {
				return nil, fmt.Errorf("the limit was reached as they were read")
			}
			for i := range txns[t].Ops {
				if err := pass(&txns[t], i, &h.acts[t]); err != nil {
					return nil, h.at(t, i, err)
				}
			}
		}
	}
	if err := h.complete(0); err != nil {
		return nil, err
	}
	if stop() {
		return nil, fmt.Errorf("the limit was reached as they were read")
	}
	return h, nil
}

func newHistory(unasked Unasked, stop func() bool) *History {
	return &History{unasked: unasked, stop: stop, Most: OperationsMax, tables: map[string]*table{}, within: map[string]bool{},
		conditions: map[string]*condition{}, columns: map[string]int{}, keys: map[string]*row{},
		shapes: map[string]*[]string{}, asked: map[question]bool{}}
}

// complete finds what statements mean, of the transactions from one on, once all that there are were taken apart.
func (h *History) complete(from int) error {
	for _, pass := range []func(from int) (t int, a *act, err error){h.compare, h.findMade, h.findUnknown} {
		if t, a, err := pass(from); err != nil {
			return h.at(t, int(a.op), err)
		}
	}
	for t, a := range h.statements(from) {
		a.statement.txn = t
		a.statement.signIt()
	}
	return nil
}

// kept is a text that may be kept: a part of a record keeps all of a block in memory.
func (h *History) kept(text string) string {
	if h.comes {
		return strings.Clone(text)
	}
	return text
}

func (h *History) at(t, op int, err error) error {
	return fmt.Errorf("transaction %s, operation %d: %w", h.Txns[t].ID, op, err)
}

// nameMax is how many bytes the name of a table that has predicates has at most: each key is tried for it.
const nameMax = 1000

// tableOf is the table that a key is a row of, or nil: keys are TABLE:ROW. There is one at most, as none is within
// another.
func (h *History) tableOf(key string) *table {
	for i := range min(len(key), nameMax+1) {
		if key[i] == ':' {
			if t := h.tables[key[:i]]; t != nil {
				return t
			}
		}
	}
	return nil
}

func isPredicate(op *record.Op) bool {
	return op.Kind == record.PredicateRead || op.Kind == record.PredicateWrite
}

// findTable finds tables, and reads conditions.
func (h *History) findTable(t *record.Transaction, i int, _ *[]act) error {
	op := &t.Ops[i]
	if !isPredicate(op) {
		return nil
	}
	if h.conditions[op.Where] == nil {
		where := h.kept(op.Where)
		p, err := Parse(where)
		if err != nil {
			err = fmt.Errorf("the condition %.100q: %w", op.Where, err)
		}
		switch {
		case err != nil && op.Kind == record.PredicateWrite:
			return err
		case err != nil && h.Unread == nil:
			h.Unread = fmt.Errorf("transaction %s: %w", t.ID, err)
		}
		if err != nil {
			return nil
		}
		c := &condition{Predicate: p, span: bounds(p.root), parts: len(op.Where) / 8}
		if c.isBounded {
			c.column = h.number(c.of)
		}
		h.conditions[where] = c
	}
	if h.tables[op.Key] != nil {
		return nil
	}
	if len(op.Key) > nameMax {
		return fmt.Errorf("the name of the table %.100q… has %d bytes, and %d are the most", op.Key, len(op.Key), nameMax)
	}
	name := h.kept(op.Key)
	if h.within[name] || h.tableOf(name+":") != nil {
		return fmt.Errorf("the table %.100q is within another one that has predicates, or that within it: whose row a key "+
			"is can't be told", name)
	}
	for i := range len(name) {
		if name[i] == ':' {
			h.within[name[:i]] = true
		}
	}
	h.tables[name] = &table{number: len(h.tables), partly: h.whole != nil && !h.whole(name),
		columns: map[string]bool{}, contents: map[string]*version{}, versions: []*version{nil}, all: map[*condition][]*row{},
		ever: map[int]*index{}}
	return nil
}

// findRows finds the rows of the tables, what is seen and written of them, and the columns.
func (h *History) findRows(t *record.Transaction, i int, acts *[]act) error {
	op := &t.Ops[i]
	if isPredicate(op) {
		if h.conditions[op.Where] == nil { // it is not understood
			return nil
		}
		st, err := h.statement(op)
		if err != nil {
			return err
		}
		// Who reads of what did not commit reads what nobody wrote, whichever row it was.
		st.isKnown = st.isKnown || t.Status == record.Aborted
		*acts = append(*acts, act{op: int32(i), statement: st})
		return nil
	}
	r, known := h.keys[op.Key]
	of := h.tableOf(op.Key)
	switch {
	case IsRegister(op.Key):
		return fmt.Errorf("there is a key %.100q, which is how the register of a condition is called", op.Key)
	case h.comes && of == nil:
		return fmt.Errorf("%q is a row of no table that has predicates", op.Key)
	case known && r == nil, of == nil:
		h.keys[op.Key] = nil
		return nil
	case op.Kind == record.Append:
		return fmt.Errorf("%q is a row of a table that has predicates, and a list", op.Key)
	case !op.Value.IsNull() && op.Value.Kind != record.KindObject:
		return fmt.Errorf("the row %q held %.100s, which is no object with columns", op.Key, op.Value)
	}
	r = h.meet(of, op.Key)
	r.isAsked, of.isShown = r.isAsked || op.Kind == record.Read, of.isShown || !op.Value.IsNull()
	*acts = append(*acts, act{op: int32(i), isWrite: op.Kind == record.Write, row: r, made: h.content(of, op.Value)})
	return nil
}

// statement reads a predicate operation.
func (h *History) statement(op *record.Op) (*statement, error) {
	of := h.tables[op.Key]
	st := &statement{op: op, of: of, where: h.conditions[op.Where]}
	last, rows, seen := &of.before, h.rows[:0], h.seen[:0]
	if op.Kind == record.PredicateRead {
		st.isKnown = true
		before := int32(0)
		for rest := op.Value.Inside(record.KindObject); !rest.Ended(); {
			var key record.Value
			if last, key = h.named(of, last, &rest); last == nil {
				return nil, noRow(op, key)
			}
			switch {
			case last.seen != 0 && rest.Is(of.versions[last.seen].value.Text):
			case before != 0 && rest.Is(of.versions[before].value.Text):
				last.seen = before
			default:
				v := rest.Element()
				if v.Kind != record.KindObject {
					return nil, fmt.Errorf("of the row %q there is %.100s, which is no object with columns", last.key, v)
				}
				last.seen = h.content(of, v).number
			}
			before = last.seen
			rows = append(rows, last.number)
			seen = append(seen, last.seen)
		}
		h.rows, h.seen = rows, seen
		st.rows, st.seen = slices.Clone(rows), slices.Clone(seen)
		return st, nil
	}
	var set, gone, hit record.Value
	for name, v := range op.Value.Members() {
		switch name {
		case "set":
			set = v
		case "delete":
			gone = v
		case record.Hit:
			hit, st.isKnown = v, true
		}
	}
	if set.IsNull() == gone.IsNull() || !set.IsNull() && set.Kind != record.KindObject || !gone.IsNull() &&
		gone != boolean("true") {
		return nil, fmt.Errorf(`want {"set":{…}} or {"delete":true}, found %.100s`, op.Value)
	}
	st.set = h.content(of, set)
	for rest := hit.Inside(record.KindList); !rest.Ended(); {
		var key record.Value
		if last, key = h.named(of, last, &rest); last == nil {
			return nil, noRow(op, key)
		}
		last.seen = st.set.num()
		rows = append(rows, last.number)
	}
	h.rows = rows
	slices.Sort(rows)
	st.rows = slices.Clone(slices.Compact(rows)) // one that is named twice was hit once
	return st, nil
}

func noRow(op *record.Op, key record.Value) error {
	if key.Kind != record.KindString {
		return fmt.Errorf("the rows that were hit are named by texts, not by %.100s", key)
	}
	return fmt.Errorf("the row %q is none of table %q: their keys begin with %q", key.Text, op.Key, op.Key+":")
}

// skipMost is how many rows a statement is likely to leave out at once of those that the one before named.
const skipMost = 3

// named takes the row that a statement names after another one, or nil and what stands there.
func (h *History) named(of *table, last *row, rest *record.Rest) (*row, record.Value) {
	r := last
	for i := 0; i <= skipMost && len(of.rows) > 0; i++ {
		if r = of.rows[r.after]; rest.Is(r.quoted) {
			return r, record.Value{}
		}
	}
	key := rest.Element()
	if key.Kind != record.KindString {
		return nil, key
	}
	if r = h.keys[key.Text]; r == nil && h.tableOf(key.Text) == of {
		r = h.meet(of, key.Text)
	}
	if r == nil || r.of != of {
		return nil, key
	}
	last.after = r.number
	return r, key
}

// content is a row's version; nil of null.
func (h *History) content(of *table, value record.Value) *version {
	if value.IsNull() {
		return nil
	}
	v := of.contents[value.Text]
	if v == nil {
		value.Text = h.kept(value.Text)
		v = &version{value: value, number: int32(len(of.versions))}
		v.signed = sign(^uint64(v.number))
		of.versions = append(of.versions, v)
		var names []string
		for c, held := range value.Members() {
			names, of.columns[c] = append(names, c), true
			n := h.number(c)
			for n >= len(v.cells) {
				v.cells = append(v.cells, cell{})
			}
			v.cells[n] = cell{num: held.Num, kind: held.Kind}
		}
		shape := fmt.Sprintf("%q", names)
		if h.shapes[shape] == nil {
			h.shapes[shape] = &names
		}
		v.shape = h.shapes[shape]
		of.contents[value.Text] = v
	}
	return v
}

// number is that of a column.
func (h *History) number(column string) int {
	n, known := h.columns[column]
	if !known {
		n = len(h.columns)
		h.columns[column] = n
	}
	return n
}

func (h *History) meet(of *table, key string) *row {
	r := h.keys[key]
	if r == nil {
		quoted := string(record.AppendJSONString(nil, key))
		r = &row{key: quoted[1 : len(quoted)-1], of: of, number: int32(len(of.rows)), quoted: quoted}
		if r.key != key {
			r.key = h.kept(key)
		}
		signed := sign(uint64(of.number)<<32 + uint64(r.number))
		if h.unasked.key(key) {
			signed = 0
		}
		h.keys[r.key] = r
		of.rows, of.signs = append(of.rows, r), append(of.signs, signed)
	}
	return r
}

// statements are those of the transactions from one on.
func (h *History) statements(from int) iter.Seq2[int, *act] {
	return func(yield func(int, *act) bool) {
		for t := from; t < len(h.acts); t++ {
			for i := range h.acts[t] {
				if a := &h.acts[t][i]; a.statement != nil && !yield(t, a) {
					return
				}
			}
		}
	}
}

// compare tells whether each condition names columns that there are, if the table ever has a row (a name that is
// spelled differently would be null everywhere), and compares what can be compared.
func (h *History) compare(from int) (int, *act, error) {
	known := len(h.questions)
	for t, a := range h.statements(from) {
		q := question{a.statement.of, a.statement.where}
		if !h.asked[q] {
			h.asked[q], h.questions = true, append(h.questions, asked{q, t, a.op})
		}
	}
	for _, t := range h.tables {
		t.addKinds()
	}
	for i, q := range h.questions {
		if len(q.of.columns) == 0 || i < known && !q.of.isNew || q.of.partly { // of others nothing is compared
			continue
		}
		for _, c := range slices.Sorted(maps.Keys(q.where.Predicate.columns())) {
			if !q.of.columns[c] {
				return q.txn, &act{op: q.op}, fmt.Errorf("the condition %.100q names the column %q, which no row has",
					q.where.Predicate, c)
			}
		}
		if err := q.where.root.compares(q.of.kind); err != nil {
			return q.txn, &act{op: q.op}, err
		}
	}
	return 0, nil, nil
}

// question is a condition that is asked of a table.
type question struct {
	of    *table
	where *condition
}

// asked is a question, and who asked it first.
type asked struct {
	question
	txn int
	op  int32
}

// addKinds adds values of each kind that is compared in another way, by column, and notes whether there are some, or
// columns, that there were not.
func (t *table) addKinds() {
	t.isNew = t.kind == nil || len(t.columns) > t.known
	t.known = len(t.columns)
	if t.kind == nil {
		t.kind = map[string][]record.Value{}
	}
	for ; t.kinds < len(t.versions); t.kinds++ {
		if t.versions[t.kinds] == nil {
			continue
		}
		for c, v := range t.versions[t.kinds].value.Members() {
			same := func(o record.Value) bool { _, err := compare(v, o); return err == nil }
			if v.IsNull() || len(t.kind[c]) >= kindsMax {
				continue
			}
			if _, err := compare(v, v); err != nil || !slices.ContainsFunc(t.kind[c], same) {
				t.kind[c], t.isNew = append(t.kind[c], v), true
			}
		}
	}
}

// kindsMax is how many kinds of a column's values are told apart: texts, numbers, numbers that are too large, and so
// on.
const kindsMax = 8

// findMade finds what predicate writes made of rows, and counts writes.
func (h *History) findMade(from int) (int, *act, error) {
	for t, a := range h.statements(from) {
		if st := a.statement; st.of.partly && !st.isKnown {
			return t, a, fmt.Errorf("it is not known which rows of %q the predicate write hit, nor who else wrote any", st.op.Key)
		}
	}
	if !h.comes {
		h.suppose()
	}
	for t := from; t < len(h.acts); t++ {
		acts := h.acts[t]
		if t%stopEvery == 0 && h.stop() {
			break
		}
		var own map[*row]*version
		if len(acts) > 1 {
			own = map[*row]*version{}
		}
		for i := range acts {
			if st := acts[i].statement; st != nil && st.op.Kind == record.PredicateWrite {
				if err := h.make(st, acts[i+1:], own); err != nil {
					return t, &acts[i], err
				}
			}
			for r, v := range writes(acts[i : i+1]) {
				if r.wrote(v); own != nil {
					own[r] = v
				}
			}
		}
	}
	return 0, nil, nil
}

// make finds what a predicate write made of the rows it hit. What it does not write is written by the transaction
// itself next, which says it too.
func (h *History) make(st *statement, next []act, own map[*row]*version) error {
	if st.of.isSet = st.of.isSet || st.set != nil; st.set == nil || st.of.isWhole(st.set) {
		st.made, st.seen = nil, nil
		return nil
	}
	follows := map[*row]bool{} // by a write, before anything else is done with the row
	for i := 0; i < len(next) && next[i].statement == nil; i++ {
		if _, met := follows[next[i].row]; !met {
			follows[next[i].row] = next[i].isWrite
		}
	}
	if st.made == nil {
		st.made, st.seen = make([]*version, len(st.rows)), make([]int32, len(st.rows))
	} // else as it is supposed
	st.follows = make([]bool, len(st.rows))
	for n := range st.rows {
		r := st.row(n)
		before, isOwn := own[r]
		switch {
		case follows[r]:
			st.follows[n], st.seen[n] = true, 0
		case isOwn:
			st.seen[n] = 0
			st.made[n] = h.merged(st.of, before, st.set)
		case st.of.partly:
			return fmt.Errorf("what else the row %q held is not known, nor who else wrote it: a predicate write sets all columns, "+
				"or is followed by a write of the row as it is then", r.key)
		case st.made[n] == nil:
			return fmt.Errorf("what else the row %q held is not known: a predicate write sets all columns, or is followed by "+
				"a write of the row as it is then", r.key)
		default:
			h.Supposed = true
		}
	}
	return nil
}

// isWhole tells whether a version has all columns of its table. Where rows may have been written that nobody recorded,
// statements may have named only some of them, and all are known once a row was written or read by its key.
func (t *table) isWhole(v *version) bool {
	return len(*v.shape) == len(t.columns) && (t.isShown || !t.partly)
}

// findUnknown finds predicate writes of which it matters that it is not known what they hit.
func (h *History) findUnknown(from int) (int, *act, error) {
	for t, a := range h.statements(from) {
		if st := a.statement; !st.isKnown && len(h.mayMatch(st.of, st.where)) > 0 {
			if h.Supposed = true; !h.supposes {
				return t, a, fmt.Errorf("it is not known which rows the predicate write hit: a fourth element of the operation " +
					"names them")
			}
		}
	}
	return 0, nil, nil
}

func (r *row) wrote(v *version) {
	if r.writes++; v != nil {
		r.mixed = r.mixed || r.shape != nil && r.shape != v.shape
		r.shape = v.shape
	}
}

// hold finds which rows ever held what.
func (h *History) hold(t *table) {
	t.holders = make([][]int32, len(t.versions))
	for _, acts := range h.acts {
		for r, v := range writes(acts) {
			if r.of == t && v != nil {
				t.holders[v.number] = append(t.holders[v.number], r.number)
			}
		}
	}
}

// merged is a row of which some columns are set; nil is deleted.
func (h *History) merged(of *table, v, set *version) *version {
	if v == nil || set == nil {
		return set
	}
	columns := maps.Clone(v.columns())
	maps.Copy(columns, set.columns())
	return h.content(of, record.ObjectOf(columns))
}

// mayMatch are the rows of which some version matches, in the order of the table.
func (h *History) mayMatch(t *table, p *condition) []*row {
	if rows, known := t.all[p]; known {
		return rows
	}
	if t.holders == nil {
		h.hold(t)
	}
	var rows []int32
	add := func(version int32) bool {
		v := t.versions[version]
		if !h.look(p, v) {
			return false
		}
		if len(t.holders[version]) > 0 && v.matched(p) {
			rows = append(rows, t.holders[version]...)
		}
		return true
	}
	if p.isBounded {
		for version := range t.everIn(p.column).within(p.low, p.high) {
			if !add(version) {
				break
			}
		}
	} else {
		for version := range t.versions {
			if !add(int32(version)) {
				break
			}
		}
	}
	slices.Sort(rows)
	var out []*row
	for _, r := range slices.Compact(rows) {
		out = append(out, t.rows[r])
	}
	t.all[p] = out
	return out
}

// everIn is an index of all versions by a column.
func (t *table) everIn(column int) *index {
	x := t.ever[column]
	if x == nil {
		x = t.index(column)
		for version := range t.versions {
			x.add(int32(version))
		}
		t.ever[column] = x
	}
	return x
}

// Register tells whether a key is a register that a History made, as its name says: of which row, perhaps with
// columns, and for which condition.
func Register(key string) (row, where string, is bool) {
	row, where, is = strings.Cut(key, " where ")
	if is {
		_, err := Parse(where)
		is = err == nil
	}
	return row, where, is
}

// IsRegister tells whether a key is a register.
func IsRegister(key string) bool {
	_, _, is := Register(key)
	return is
}

// register returns the register of a row for a statement's condition and columns, which is made when it is first asked
// for.
func (r *row) register(st *statement, columns []string) *register {
	name := r.key + " where " + st.where.canonical()
	if len(columns) > 0 {
		name = r.key + " (" + strings.Join(columns, ", ") + ") where " + st.where.canonical()
	}
	g := r.byName[name]
	if g == nil {
		g = &register{name: name, of: st.where, columns: columns}
		if r.byName == nil {
			r.byName = map[string]*register{}
		}
		r.byName[name] = g
		r.registers = append(r.registers, g)
	}
	return g
}

// shows is what the register holds of a version of its row. Columns that are null show nothing.
func (g *register) shows(v *version) record.Value {
	if !v.matched(g.of) {
		return record.Null
	}
	return g.show(v)
}

func (g *register) show(v *version) record.Value {
	if len(g.columns) == 0 {
		return boolean("true")
	}
	seen := make(map[string]record.Value, len(g.columns))
	for _, c := range g.columns {
		if v := v.columns()[c]; !v.IsNull() {
			seen[c] = v
		}
	}
	return record.ObjectOf(seen)
}
