package history

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/predicate"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/reject"
	"github.com/isowatch/isowatch/internal/sql"
)

// Transcripts: the statements that sessions sent to a database, in order, and what came of them. A reader of lines
// (threets.go, hermitage.go) makes steps of them; here these become records. A row is a key, TABLE:KEY, and an object
// of its columns; a statement is a predicate operation, and what it wrote are writes of rows.
//
// What a statement saw or made is often not told. It is worked out only if there is one possibility: a row can have
// been seen as it was at first, or as statements made it that were sent before this one was over, whoever sent them and
// however they ended. If all of these answer alike that is the answer; if a sum is told, and one choice of them comes
// to it, these are the rows. A deletion, or an update to constants, of which it is not known says so without the rows
// that it hit; any other statement becomes one whose condition nobody understands, so no level is found to be satisfied.

// step are statements that a session sent at once, and what came of the last of them.
type step struct {
	session      string // none: before the sessions began
	text         string
	line         int64
	from, end    int64 // when it was sent, and when it was over, by the order of what happened
	done, failed bool  // neither: it is not told
	told         *told
}

// told is what is said of the rows that a statement returned or changed.
type told struct {
	rows     [][]string // by the columns that were asked for
	isPairs  bool       // the rows are a key and a value each, whatever was asked for
	whole    bool       // there were no others
	inserted bool       // it was the one row that was inserted
	vague    bool       // what is told is not understood
}

type sqlTable struct {
	name         string
	columns, key []string
	rows         []*sqlRow
	byKey        map[string]*sqlRow
	inserts      []record.Value  // by the sessions
	texts        map[string]bool // columns that hold texts
	isUnclear    bool            // a statement wrote something that is not known
}

type sqlRow struct {
	key      string
	versions []sqlVersion // first, what it was before the sessions began; null is no row
}

// sqlVersion is what a row may have held.
type sqlVersion struct {
	value record.Value
	from  int64
	by    []*sqlAct // of what it depends on
}

// sqlAct is a statement that reads or writes rows.
type sqlAct struct {
	sql.Statement
	*step
	told  *told
	text  string
	table *sqlTable
	where *predicate.Predicate    // nil: it is not understood
	equal map[string]record.Value // what columns hold where it is true
	set   map[string]record.Value // of an update: the columns that are given constants
	asks  []string                // of a select: the columns; nil if it asks for something else
	isSum bool                    // of the first of asks
	// isOpaque: its operation is one that nobody understands.
	isOpaque bool
}

type sqlTxn struct {
	session    string
	start, end int64
	began      bool
	failed     bool
	status     record.Status
	acts       []*sqlAct
}

// outcome is what a statement did with a row.
type outcome struct {
	match bool
	value record.Value // what it showed, or was made
	saw   record.Value // what an update saw there that counts on from it
}

type transcript struct {
	builder
	tables map[string]*sqlTable
	// preset is a table that nothing in the transcript creates; nil: there is none.
	preset *sqlTable
	acts   []*sqlAct
	txns   []*sqlTxn
	open   map[string]*sqlTxn
	looks  int
}

// How much there may be: versions that statements look at, those of one row, and rows in choices that come to a sum.
const looksMax, versionsMax, choicesMax = 1 << 22, 1 << 10, 1 << 16

// preparedKey is written before the sessions begin, and read by all: so what was prepared comes first in every order.
// Of keys with overPrefix each transaction writes one, where a last one is to read what all have left.
const preparedKey, overPrefix = "prepared", "over "

// readTranscript makes a history of steps. preset is what a table is that nothing creates. isChecked: who begins when
// all others are over looks at what they have left, and comes last in every order.
func readTranscript(in *input, format string, steps []*step, preset *sqlTable, isChecked bool) (History, error) {
	t := transcript{builder: newBuilder(), tables: map[string]*sqlTable{}, preset: preset, open: map[string]*sqlTxn{}}
	var now int64
	for _, s := range steps {
		now = max(now, s.end)
		if err := t.take(s); err != nil {
			return History{}, in.at(err, s.line, 0)
		}
	}
	for _, x := range t.open {
		if x.status = record.Unknown; x.failed {
			x.status = record.Aborted // nobody committed it
		}
		x.end = max(x.end, now)
	}
	if err := t.possible(); err != nil {
		return History{}, err.At(whole(in.name))
	}
	initial := record.InitialAbsent
	seqs := map[string]int{}
	var txns []record.Transaction
	for _, name := range slices.Sorted(maps.Keys(t.tables)) {
		for _, r := range t.tables[name].rows {
			if !r.versions[0].value.IsNull() {
				t.add(record.Write, r.key, r.versions[0].value)
			}
		}
	}
	if len(t.ops) > 0 {
		t.add(record.Write, preparedKey, yes)
		txns = append(txns, timed(t.transaction("prepare", 1, record.Committed), 0, 0))
	}
	prepared := len(txns) > 0
	t.txns = slices.DeleteFunc(t.txns, func(x *sqlTxn) bool { return len(x.acts) == 0 && !x.began })
	last := len(t.txns) - 1
	isChecked = isChecked && last > 0 && !slices.ContainsFunc(t.txns[:last], func(x *sqlTxn) bool {
		return x.status == record.Unknown || x.end >= t.txns[last].start
	})
	for i, x := range t.txns {
		if prepared {
			t.add(record.Read, preparedKey, yes)
		}
		for _, o := range txns[len(txns)-i:] {
			if isChecked && i == last && o.Status == record.Committed {
				t.add(record.Read, overPrefix+o.ID, yes)
			}
		}
		for _, a := range x.acts {
			if had := len(t.ops); !a.done {
				t.left++
			} else if err := t.emit(a); err != nil {
				return History{}, in.at(err, a.line, 0)
			} else if a.isOpaque && a.Verb != sql.Select && x.status == record.Aborted {
				t.ops = t.ops[:had] // whatever it wrote, nobody may read it
				t.left++
			}
		}
		seqs[x.session]++
		if isChecked && i < last && x.status == record.Committed {
			t.add(record.Write, fmt.Sprintf("%s%s#%d", overPrefix, x.session, seqs[x.session]), yes)
		}
		txns = append(txns, timed(t.transaction(x.session, seqs[x.session], x.status), x.start, x.end))
	}
	return t.made(in.name, format, initial, txns, "no session did anything")
}

var yes = record.Value{Kind: record.KindBool, Text: "true"}

func timed(x record.Transaction, start, end int64) record.Transaction {
	x.Start, x.End, x.HasTimes = start, end, true
	return x
}

// take reads the statements of a step.
func (t *transcript) take(s *step) *reject.Error {
	statements, err := sql.Read(s.text)
	if err != nil {
		return reject.New(reject.BadStructure, "the statement %.80q has %v", s.text, err)
	}
	for i, st := range statements {
		if e := t.statement(&sqlAct{Statement: st, step: s, text: s.text}, i == len(statements)-1); e != nil {
			return e
		}
	}
	return nil
}

func notRead(what, text string) *reject.Error {
	return reject.New(reject.Unsupported, "%s is not understood: %.80q", what, text)
}

// statement puts a statement into its transaction; what is told of a step is told of its last one.
func (t *transcript) statement(a *sqlAct, isLast bool) (err *reject.Error) {
	if a.Verb == sql.Define {
		return t.define(a)
	}
	if a.session == "" {
		switch a.Verb {
		case sql.Insert:
			return t.insert(a)
		case sql.Begin, sql.Commit, sql.Quiet:
			return nil
		}
		return notRead("a statement before the sessions", a.text)
	}
	x := t.open[a.session]
	if x == nil && a.Verb != sql.Commit && a.Verb != sql.Rollback {
		x = &sqlTxn{session: a.session, start: a.from, end: a.end}
		t.open[a.session] = x
		t.txns = append(t.txns, x)
	}
	if x == nil {
		return nil // there is nothing to end
	}
	x.end, x.failed = max(x.end, a.end), x.failed || a.failed && isLast && a.Verb != sql.Commit
	switch a.Verb {
	case sql.Quiet:
		return nil
	case sql.Begin:
		if len(x.acts) > 0 {
			return notRead("a transaction within another", a.text)
		}
		x.began = true
		return nil
	case sql.Commit, sql.Rollback:
		switch {
		case a.Verb == sql.Rollback, a.failed:
			x.status = record.Aborted
		case x.failed, !a.done:
			x.status = record.Unknown // some databases commit the rest, some nothing
		}
		delete(t.open, a.session)
		return nil
	case sql.Select, sql.Insert, sql.Update, sql.Delete:
	default:
		return notRead("the statement", a.text)
	}
	x.acts, t.acts = append(x.acts, a), append(t.acts, a)
	if a.Verb == sql.Insert {
		return t.insert(a)
	}
	if isLast {
		a.told = a.step.told
	}
	if a.Verb == sql.Select && !a.Single && a.Where == (sql.Span{}) {
		return notRead("a select that is not of one table", a.text)
	}
	if a.table, err = t.table(a.Target, a.text); err == nil {
		err = a.read()
	}
	return err
}

// table is a table by its name.
func (t *transcript) table(n sql.Name, text string) (*sqlTable, *reject.Error) {
	name := tableName(n)
	if of := t.tables[name]; of != nil {
		return of, nil
	}
	if t.preset == nil {
		return nil, reject.New(reject.Unsupported, "nothing creates the table %q: %.80q", name, text)
	}
	of := newTable(name, t.preset.columns, t.preset.key)
	t.tables[name] = of
	for _, v := range t.preset.inserts {
		of.row(v.Fields()).versions[0].value = v
	}
	return of, nil
}

func newTable(name string, columns, key []string) *sqlTable {
	return &sqlTable{name: name, columns: columns, key: key, byKey: map[string]*sqlRow{}, texts: map[string]bool{}}
}

func tableName(n sql.Name) string {
	if n.Schema != "" {
		return n.Schema + "." + n.Table
	}
	return n.Table
}

// define creates a table before the sessions. One that is dropped later is met by nobody.
func (t *transcript) define(a *sqlAct) *reject.Error {
	isNew := a.Tokens[0].Is("create") && len(a.Columns) > 0
	switch {
	case isNew && a.session == "":
		t.preset = nil
		t.tables[tableName(a.Target)] = newTable(tableName(a.Target), a.Columns, a.Key)
	case !a.Tokens[0].Is("drop"):
		return notRead("the statement", a.text)
	}
	return nil
}

// row is the row with the columns of the key. Of a table without a key every row is another.
func (of *sqlTable) row(columns map[string]record.Value) *sqlRow {
	parts := []string{}
	for _, c := range of.key {
		v := columns[c]
		text := v.String()
		if v.Kind == record.KindString && (len(of.key) == 1 || !strings.ContainsAny(v.Text, `,"`)) {
			text = v.Text
		}
		parts = append(parts, text)
	}
	if len(of.key) == 0 {
		parts = []string{strconv.Itoa(len(of.rows) + 1)}
	}
	key := of.name + ":" + strings.Join(parts, ",")
	if r := of.byKey[key]; r != nil {
		return r
	}
	r := &sqlRow{key: key, versions: []sqlVersion{{}}}
	of.rows, of.byKey[key] = append(of.rows, r), r
	return r
}

func (t *transcript) insert(a *sqlAct) (err *reject.Error) {
	if a.table, err = t.table(a.Target, a.text); err != nil {
		return err
	}
	columns := a.Columns
	if columns == nil {
		columns = a.table.columns
	}
	a.set = map[string]record.Value{}
	for _, row := range a.Rows {
		made := map[string]record.Value{}
		for i, o := range row {
			v, ok := a.value(o)
			if !ok || i >= len(columns) {
				return notRead("a row that is inserted", a.text)
			}
			if !v.IsNull() {
				made[columns[i]] = v
			}
		}
		v := record.ObjectOf(made)
		r := a.table.row(made)
		a.set[r.key] = v
		if a.session == "" {
			r.versions[0].value = v
			continue
		}
		a.table.inserts = append(a.table.inserts, v)
		r.versions = append(r.versions, sqlVersion{v, a.from, []*sqlAct{a}})
	}
	if a.Updates || a.Skips || len(a.Rows) == 0 {
		return notRead("an insert that may do something else", a.text)
	}
	return nil
}

// value is a constant of the statement.
func (a *sqlAct) value(o sql.Operand) (record.Value, bool) {
	switch {
	case o.Kind == sql.Constant && o.IsNull:
		return record.Null, true
	case o.Kind == sql.Constant:
		return record.Value{Kind: record.KindBool, Text: o.Text}, true
	case o.Kind != sql.Literal || o.Cast != sql.NoClass:
		return record.Null, false
	}
	switch l := a.Literals[o.N]; {
	case l.Kind == sql.TokenString && !o.Negative:
		return record.String(l.Text), true
	case l.Kind == sql.TokenNumber && o.Negative:
		return numberIn("-" + l.Text)
	case l.Kind == sql.TokenNumber:
		return numberIn(l.Text)
	}
	return record.Null, false
}

func numberIn(text string) (record.Value, bool) {
	v, err := codec.ParseValue([]byte(text))
	return v, err == nil && (v.Kind == record.KindInt || v.Kind == record.KindNumber)
}

// read finds what a select asks for, what an update sets, and the condition.
func (a *sqlAct) read() *reject.Error {
	condition := "true"
	if a.Where != (sql.Span{}) {
		condition = conditionOf(a.Tokens[a.Where.From:a.Where.To])
	}
	a.where, _ = predicate.Parse(condition)
	a.equal = map[string]record.Value{}
	if a.Single || a.Verb != sql.Select && !a.Loose { // else other rows may match, too
		for _, c := range a.Conditions {
			if v, ok := a.value(c.Value); ok {
				a.equal[c.Column] = v
			}
		}
	}
	a.set = map[string]record.Value{}
	for _, s := range a.Sets {
		if slices.Contains(a.table.key, s.Column) {
			return notRead("an update of a key", a.text)
		}
		if v, ok := a.value(s.Value); ok {
			a.set[s.Column] = v
		}
	}
	if a.Joined {
		return notRead("a write with other tables", a.text)
	}
	if a.Verb != sql.Select {
		return nil
	}
	list := a.Tokens[a.List.From:a.List.To]
	if a.isSum = len(list) == 4 && list[0].Is("sum") && list[1].Is("(") && list[3].Is(")"); a.isSum {
		list = list[2:3]
	}
	for i, c := range list {
		if i%2 == 1 && !c.Is(",") || i%2 == 0 && !c.Is("*") && c.Kind != sql.TokenWord && c.Kind != sql.TokenName {
			a.asks, list = nil, nil
			break
		}
		if i%2 == 0 {
			a.asks = append(a.asks, c.Text)
		}
	}
	if len(list) == 1 && list[0].Is("*") {
		a.asks = a.table.columns
	}
	for _, c := range a.Tokens[a.List.To:] {
		if c.Is("limit") || c.Is("offset") || c.Is("fetch") || c.Is("skip") {
			a.asks = nil
		}
	}
	if !a.Plain || slices.ContainsFunc(a.asks, func(c string) bool { return !slices.Contains(a.table.columns, c) }) {
		a.asks = nil
	}
	if a.asks == nil {
		a.where = nil
	}
	return nil
}

// conditionOf is the text of a condition, as package predicate reads it.
func conditionOf(tokens []sql.Token) string {
	var b strings.Builder
	for i, t := range tokens {
		isName := func(i int) bool {
			return i >= 0 && i < len(tokens) && (tokens[i].Kind == sql.TokenWord || tokens[i].Kind == sql.TokenName)
		}
		if t.Is(".") || isName(i) && i+1 < len(tokens) && tokens[i+1].Is(".") && isName(i+2) {
			continue // a table's name
		}
		switch t.Kind {
		case sql.TokenString:
			b.WriteString(record.String(t.Text).String())
		case sql.TokenName:
			b.WriteString("`" + t.Text + "`")
		default:
			b.WriteString(t.Text)
		}
		if !t.Is("-") || i > 0 && (isName(i-1) || tokens[i-1].IsLiteral() || tokens[i-1].Is(")")) {
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// possible finds all that rows may have held.
func (t *transcript) possible() *reject.Error {
	for grows := true; grows; {
		grows = false
		for _, a := range t.acts {
			if a.Verb != sql.Update && a.Verb != sql.Delete {
				continue
			}
			for _, r := range a.table.rows {
				for i := 0; i < len(r.versions); i++ {
					v := r.versions[i]
					if t.looks++; t.looks > looksMax {
						return tooMuch()
					}
					if !a.sees(&v) {
						continue
					}
					o, known := a.does(v.value)
					if known = known && len(r.versions) < versionsMax; !known {
						a.table.isUnclear = true
					}
					if !known || !o.match {
						continue
					}
					made := sqlVersion{o.value, a.from, []*sqlAct{a}}
					for _, b := range v.by { // of what counts on from what it met the value depends
						if a.Verb == sql.Update && len(b.set) < len(b.Sets) {
							made.by = append(made.by, b)
						}
					}
					t.looks += len(r.versions)
					same := func(w sqlVersion) bool { return w.value == made.value && sameActs(w.by, made.by) }
					if !slices.ContainsFunc(r.versions, same) {
						r.versions = append(r.versions, made)
						grows = true
					}
				}
			}
		}
	}
	looks := 0
	for _, of := range t.tables {
		for _, r := range of.rows {
			looks += len(r.versions)
			for _, v := range r.versions {
				for c, held := range v.value.Members() {
					of.texts[c] = of.texts[c] || held.Kind == record.KindString
				}
			}
		}
	}
	if looks*len(t.acts) > looksMax {
		return tooMuch()
	}
	return nil
}

func tooMuch() *reject.Error {
	return reject.New(reject.TooLarge, "there are too many statements and rows to look at")
}

func sameActs(a, b []*sqlAct) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(x *sqlAct) bool { return !slices.Contains(b, x) })
}

// sees tells whether a statement may have met a version: one that was written before it was over, and not by itself.
func (a *sqlAct) sees(v *sqlVersion) bool { return v.from <= a.end && !slices.Contains(v.by, a) }

// does is what a statement does with a row as it is; false: that is not known.
func (a *sqlAct) does(row record.Value) (outcome, bool) {
	if a.where == nil {
		return outcome{}, false
	}
	match, err := a.where.Match(row)
	if err != nil || !match {
		return outcome{}, err == nil
	}
	switch a.Verb {
	case sql.Delete:
		return outcome{match: true}, true
	case sql.Select:
		return outcome{match: true, value: a.shows(row.Fields())}, true
	}
	out, made := outcome{match: true}, row.Fields()
	for _, s := range a.Sets {
		v, ok := a.set[s.Column]
		if before := made[s.Column]; !ok && s.Value.Kind == sql.Delta && before.Kind == record.KindInt {
			var by record.Value
			by, ok = a.value(*s.Value.By)
			ok = ok && by.Kind == record.KindInt
			if s.Value.Negative {
				by.Num = -by.Num
			}
			out.saw = row
			v = record.Int(before.Num + by.Num)
			ok = ok && (v.Num > before.Num) == (by.Num > 0)
		}
		if !ok {
			return outcome{}, false
		}
		if delete(made, s.Column); !v.IsNull() {
			made[s.Column] = v
		}
	}
	out.value = record.ObjectOf(made)
	return out, true
}

// shows is what a select shows of a row: the columns that it asks for, and those that its condition gives.
func (a *sqlAct) shows(row map[string]record.Value) record.Value {
	out := maps.Clone(a.equal)
	for _, c := range a.asks {
		if v := row[c]; !v.IsNull() {
			out[c] = v
		}
	}
	return record.ObjectOf(out)
}

// outcomes are what a statement may have done with a row; none: that is not known.
func (a *sqlAct) outcomes(r *sqlRow) (out []outcome) {
	for i := range r.versions {
		if v := &r.versions[i]; a.sees(v) {
			o, known := a.does(v.value)
			if !known || a.table.isUnclear {
				return nil
			}
			if !slices.Contains(out, o) {
				out = append(out, o)
			}
		}
	}
	return out
}

// emit adds what a statement did.
func (t *transcript) emit(a *sqlAct) *reject.Error {
	if a.Verb == sql.Insert {
		for _, r := range a.table.rows {
			if v, is := a.set[r.key]; is {
				if len(a.table.key) > 0 {
					t.add(record.Read, r.key, record.Null) // else the key would have been refused
				}
				t.add(record.Write, r.key, v)
			}
		}
		return nil
	}
	opts, err := t.options(a)
	switch known := !slices.ContainsFunc(opts, func(os []outcome) bool { return len(os) != 1 }); {
	case err != nil:
	case a.where == nil:
		t.unclear(a)
	case a.Verb == sql.Select:
		t.returned(a, opts, known)
	case known:
		t.changed(a, opts)
	case a.Verb == sql.Delete || len(a.set) == len(a.Sets):
		t.predicate(record.PredicateWrite, a, a.where.String(), a.effect())
	default:
		t.unclear(a)
	}
	return err
}

// options are what a statement may have done with each row of its table, by what is told and by what is possible; more
// than one, or none, if it is not known.
func (t *transcript) options(a *sqlAct) ([][]outcome, *reject.Error) {
	pinned := map[*sqlRow]outcome{}
	said, isClear := a.told, a.where != nil
	pin := func(columns map[string]record.Value) {
		if slices.ContainsFunc(a.table.key, func(c string) bool { return columns[c].IsNull() }) {
			isClear = false // it is not told which row it is
			return
		}
		pinned[a.table.row(columns)] = outcome{match: true, value: record.ObjectOf(columns)}
	}
	if said == nil {
		said = &told{}
	}
	switch isRows := len(a.table.key) > 0 && !a.isSum; {
	case a.Verb != sql.Select:
		isClear = isClear && len(said.rows) == 0
	case said.inserted:
		if isClear = isRows && isClear && len(a.table.inserts) == 1; isClear {
			pin(a.shows(a.table.inserts[0].Fields()).Fields())
		}
	case said.isPairs && (!isRows || len(a.table.columns) != 2 || a.table.key[0] != a.table.columns[0]):
		isClear = false
	case isClear && !a.isSum:
		for _, cells := range said.rows {
			columns, err := a.columns(cells)
			if err != nil {
				return nil, err
			}
			if isClear = isClear && isRows && columns != nil; isClear {
				maps.Copy(columns, a.equal)
				pin(columns)
			}
		}
	}
	opts := make([][]outcome, len(a.table.rows)) // with those that were told
	if said.vague || !isClear {
		return opts, nil
	}
	for i, r := range a.table.rows {
		switch o, is := pinned[r]; {
		case is:
			opts[i] = []outcome{o}
		case said.whole && !a.isSum:
			opts[i] = []outcome{{}}
		default:
			opts[i] = a.outcomes(r)
		}
	}
	if a.isSum && said.whole {
		opts = fitting(opts, func(os []outcome) bool {
			return len(said.rows) == 1 && a.sums(os) == a.cell(said.rows[0][0], a.asks[0])
		})
	}
	return opts, nil
}

// columns are the cells of a row that is told; nil if nothing stands where a text may, or null.
func (a *sqlAct) columns(cells []string) (map[string]record.Value, *reject.Error) {
	names := a.asks
	if a.told.isPairs {
		names = a.table.columns
	}
	if len(cells) < len(names) || strings.Join(cells[len(names):], "") != "" {
		return nil, reject.New(reject.WrongLength, "the row (%.80s) has not the columns %q", strings.Join(cells, ","), names)
	}
	out := map[string]record.Value{}
	for i, c := range names {
		if cells[i] == "" && a.table.texts[c] {
			return nil, nil
		}
		if v := a.cell(cells[i], c); !v.IsNull() {
			out[c] = v
		}
	}
	return out, nil
}

// cell is what a column holds by a text: a text itself, if that is what the column is known to hold.
func (a *sqlAct) cell(text, column string) record.Value {
	if a.table.texts[column] && !a.isSum {
		return record.String(text)
	}
	if text == "" || strings.EqualFold(text, "null") {
		return record.Null
	}
	if v, ok := numberIn(text); ok {
		return v
	}
	return record.String(text)
}

// sums is the sum of rows.
func (a *sqlAct) sums(rows []outcome) record.Value {
	total := record.Null
	for _, o := range rows {
		v := o.value.Fields()[a.asks[0]]
		if !o.match || v.IsNull() {
			continue
		}
		next := record.Int(total.Num + v.Num)
		if v.Kind != record.KindInt || (next.Num > total.Num) != (v.Num > 0) {
			return yes // it is not worked out, and is no sum
		}
		total = next
	}
	return total
}

// fitting leaves of the outcomes of each row those that are part of a choice that fits. If that is too much, or none
// fits, nothing is known of any row.
func fitting(opts [][]outcome, fits func([]outcome) bool) [][]outcome {
	out := make([][]outcome, len(opts))
	ways := 1
	for _, os := range opts {
		if ways *= len(os); ways == 0 || ways > choicesMax/len(opts) {
			return out
		}
	}
	choice := make([]outcome, len(opts))
	for way := range ways {
		for i, os := range opts {
			choice[i], way = os[way%len(os)], way/len(os)
		}
		if !fits(choice) {
			continue
		}
		for i, o := range choice {
			if !slices.Contains(out[i], o) {
				out[i] = append(out[i], o)
			}
		}
	}
	return out
}

// predicate adds a predicate operation.
func (t *transcript) predicate(kind record.OpKind, a *sqlAct, where string, v map[string]record.Value) {
	if p, err := predicate.Parse(where); err == nil {
		where = p.String()
	}
	t.ops = append(t.ops, record.Op{Kind: kind, Key: a.table.name, Where: where, Value: record.ObjectOf(v)})
}

// unclear adds an operation that nobody understands.
func (t *transcript) unclear(a *sqlAct) {
	if a.isOpaque = true; a.Verb == sql.Select {
		t.predicate(record.PredicateRead, a, a.text, nil)
	} else {
		t.predicate(record.PredicateWrite, a, a.text, map[string]record.Value{"delete": yes})
	}
}

// returned adds what a select returned.
func (t *transcript) returned(a *sqlAct, opts [][]outcome, known bool) {
	if !known {
		t.unclear(a)
		return
	}
	rows := map[string]record.Value{}
	for i, r := range a.table.rows {
		if opts[i][0].match {
			rows[r.key] = opts[i][0].value
		}
	}
	t.predicate(record.PredicateRead, a, a.where.String(), rows)
}

// changed adds what an update or delete did, of which that is known for every row: what an update saw of what it
// counts on from, which rows were hit, and what they are then.
func (t *transcript) changed(a *sqlAct, opts [][]outcome) {
	effect := a.effect()
	hit := []byte{'['}
	for i, r := range a.table.rows {
		if o := opts[i][0]; o.match {
			if len(hit) > 1 {
				hit = append(hit, ',')
			}
			hit = record.AppendJSONString(hit, r.key)
			if !o.saw.IsNull() {
				t.add(record.Read, r.key, o.saw)
			}
		}
	}
	effect[record.Hit] = record.Value{Kind: record.KindList, Text: string(append(hit, ']'))}
	t.predicate(record.PredicateWrite, a, a.where.String(), effect)
	for i, r := range a.table.rows {
		if o := opts[i][0]; o.match && a.Verb == sql.Update {
			t.add(record.Write, r.key, o.value)
		}
	}
}

// effect is what a predicate write does, as far as that is the same for all rows.
func (a *sqlAct) effect() map[string]record.Value {
	if a.Verb == sql.Delete {
		return map[string]record.Value{"delete": yes}
	}
	return map[string]record.Value{"set": record.ObjectOf(a.set)}
}
