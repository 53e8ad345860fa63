package postgres

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/closure"
	"github.com/isowatch/isowatch/internal/sql"
	"github.com/isowatch/isowatch/recorder"
)

// Connection is one connection of an application's. FromClient and FromServer may be called by two goroutines.
type Connection struct {
	capture *Capture

	mu             sync.Mutex
	client, server framer
	application    string
	session, first *recorder.Session // first: of what its items held before all that is recorded
	anew           *recorder.Session // of rows that it made anew
	ignored        bool              // nothing is recorded
	strange        bool              // strings are not those of the standard
	isUTF8         bool
	temporary      map[string]bool // tables of its own
	starting       bool            // the first message is still to come
	heard          int64           // when the client was heard last

	queue      []answer
	statements map[string]*statement
	portals    map[string]*portal
	unnamed    *portal
	status     byte                // as the server said last: I, T, E
	described  map[*sql.Plan]*rows // of the simple protocol

	// Room that is used again.
	room        [32]answer
	runsLeft    []*run
	portalsLeft []*portal
	tokens      []sql.Token
	shape       []byte
	values      pgproto3.DataRow
	key         []record.Value
	name        []byte
	ended       *txn
	asked       []string // of the transaction that was recorded last
	joined      string   // the same

	// What the messages that are sent will have led to when the next one is carried out: whether that stands in a
	// transaction that its own COMMIT ends, and how many statements there were since the last Sync.
	inBlock bool
	batch   int
	sent    int // how many statements were sent
	// committing: something was sent that may commit, and all that was sent is not answered.
	committing bool

	started int64 // when the message that is being answered was sent, or that with which its transaction began
	txn     *txn  // nil: none has begun
	failed  bool  // a statement of the batch failed
	// unresolved are items that this connection wrote and whose value is not known; they are lossy once that is
	// committed. opened are those that it was the first to write.
	unresolved map[string]*sql.Plan
	opened     []string
	deleting   []int // places in items.deleted
	defines    bool  // the transaction changes which tables there are

	// Of the transactions under way, if they write items: what others may have seen, and what of their records is to go
	// out when all of them have ended, and what these did.
	entry, last *closure.Entry // last: of those before
	out         func()
	did         []record.Op
	outs        int // of how many
}

// own is what a transaction gave an item itself.
type own struct {
	value   record.Value
	isKnown bool
	delta   int64 // if not isKnown, and isDelta: it is what was there before, and delta
	isDelta bool
	at      int       // where in its operations what was there, and what it wrote, have their places
	plan    *sql.Plan // of the statement
	isAnew  bool      // another row may be seen under the same key
}

// txn is a transaction in work.
type txn struct {
	start  int64
	xid    string         // PostgreSQL's number of it, if somebody asked for that
	asked  []string       // the texts of its statements
	ops    []record.Op    // one without a key is not recorded
	own    map[string]own // by item
	saves  []save
	undo   []undo // while there is a savepoint
	anew   []int  // those of ops that write rows made anew
	blind  int    // how many of ops there were, and one more, when it last wrote what is not known; 0: it never did
	isLost bool   // what it wrote is not known
}

// save is a savepoint.
type save struct {
	name string
	ops  int
	undo int
}

// undo is what an item's own value was before it changed.
type undo struct {
	key    string
	before own
	there  bool
}

// ask takes the text of a statement that was carried out; the same again in a row, as in a loop, says nothing new.
func (x *txn) ask(text string) {
	switch n := len(x.asked); {
	case n > askedMax, n > 0 && x.asked[n-1] == text:
	case n == askedMax:
		x.asked = append(x.asked, "…")
	default:
		x.asked = append(x.asked, text)
	}
}

// askedMax is how many of these texts are kept.
const askedMax = 8

// readsMax is how many operations a transaction has before its reads are left out.
const readsMax = 10_000

// writesMax is how many operations it may have before it is too large to be told of.
const writesMax = 200_000

// effect is an item that a statement writes.
type effect struct {
	row     string
	item    string // empty: the row is not known yet
	column  int
	value   record.Value
	isKnown bool
	isDelta bool // what was there, and delta
	delta   int64
	skip    bool // it was lossy when the statement was sent
}

// run is a statement that is carried out.
type run struct {
	plan      *sql.Plan
	literals  []sql.Token
	statement *statement // nil: of the simple protocol
	portal    *portal    // likewise
	about     *rows
	next      *run // of the same text
	isShared  bool // it is carried out by several messages
	isBlind   bool // it is not known which rows it writes
	isOld     bool // others were carried out since it began: what it reads is from before them

	catalog   *Catalog
	table     *table // that it writes; nil: none that is recorded
	rows      []string
	effects   []effect
	isLoose   bool // the answer tells which rows it writes
	before    []effect
	returned  []returned
	seen      int // rows
	hasUnseen bool
}

// returned is a row that RETURNING gave, by column.
type returned struct {
	row    string
	values []given
}

// given is what a column was said to hold.
type given struct {
	column int
	value  record.Value
}

// of is what was given of a column.
func (b *returned) of(column int) (record.Value, bool) {
	for _, g := range b.values {
		if g.column == column {
			return g.value, true
		}
	}
	return record.Value{}, false
}

// rowMap says where in a row what is recorded of a table stands.
type rowMap struct {
	table   *table
	key     []int // fields, by column of the key; nil: the statement's conditions say which row it is
	columns [][2]int
}

// begin begins the session, whose name is known from here on.
func (c *Connection) begin() {
	n := strconv.FormatInt(c.capture.connections.Add(1), 10)
	prefix := c.capture.options.Prefix + cmp.Or(strings.ToValidUTF8(c.application, ""), "client") + "/" + n
	c.session, c.first = c.capture.rec.Session(prefix), c.capture.rec.Session(prefix+"/initial")
	c.anew = c.capture.rec.Session(prefix + "/anew")
}

// value is what a column is given or compared with.
func (c *Connection) value(r *run, o sql.Operand, col *column) (record.Value, bool) {
	if col.class == sql.NoClass || o.Cast != sql.NoClass && o.Cast != col.class || col.class == sql.ClassText && !c.isUTF8 {
		return record.Value{}, false
	}
	switch o.Kind {
	case sql.Constant:
		if o.IsNull {
			return sqlNull, true
		}
		return written(col.class, o.Text, col.most)
	case sql.Default:
		return col.preset, col.hasPreset
	case sql.Literal:
		t := r.literals[o.N]
		switch {
		case t.Kind == sql.TokenSealed, t.Kind == sql.TokenNumber && col.class != sql.ClassInt && col.class != sql.ClassNumeric:
			return record.Value{}, false
		case o.Negative:
			return written(col.class, "-"+t.Text, col.most)
		}
		return written(col.class, t.Text, col.most)
	case sql.Param:
		if r.portal == nil || o.N >= len(r.portal.params) {
			return record.Value{}, false
		}
		if o.N < len(r.statement.oids) {
			if oid := r.statement.oids[o.N]; oid != 0 && oid != unknownOID && classes[oid] != col.class {
				return record.Value{}, false
			}
		}
		v, ok := received(col.class, isBinary(r.portal.formats, o.N), r.portal.params[o.N])
		if ok && col.most > 0 && v.Kind == record.KindString {
			return written(col.class, v.Text, col.most)
		}
		return v, ok
	}
	return record.Value{}, false
}

// unknownOID is the type of a text whose type the server chooses.
const unknownOID = 705

// start works out what a statement may do, before it is sent.
func (c *Connection) start(r *run) *run {
	c.batch, c.sent = c.batch+1, c.sent+1
	p := r.plan
	r.catalog = c.capture.catalog.Load()
	if slices.ContainsFunc(p.Calls, func(f string) bool { return r.catalog.writers[f] }) {
		c.anything(r)
	}
	switch p.Verb {
	case sql.Anything:
		c.anything(r)
		c.willCommit()
	case sql.Begin:
		c.inBlock = c.inBlock || c.batch == 1
	case sql.Commit, sql.Prepare:
		c.willCommit()
		c.inBlock = p.Chain
	case sql.Rollback:
		c.inBlock = p.Chain
	case sql.RollbackTo:
		if x := c.txn; x != nil { // its COMMIT may be sent before it is answered
			from := 0
			if i := x.find(p.Name); i >= 0 && len(c.queue) == 0 && c.batch == 1 {
				from = x.saves[i].undo
			}
			c.unlearn(x.undo[from:])
		}
	case sql.Define:
		for _, n := range p.Writes {
			for _, t := range r.catalog.tables[n] {
				c.loseRows(r, t)
			}
		}
	case sql.WriteTables:
		for _, n := range p.Writes {
			if t, ok := c.find(r, n); ok && !t.risky {
				c.loseRows(r, t)
			} else {
				c.anything(r)
			}
		}
	case sql.Insert, sql.Update, sql.Delete:
		t, ok := c.find(r, p.Target)
		switch {
		case !ok || t.risky:
			c.anything(r)
		case r.portal != nil && r.portal.isLong:
			c.loseRows(r, t)
		default:
			c.effects(r, t)
		}
	}
	for _, t := range p.Temporary {
		c.temporary[t] = true
	}
	return r
}

// loseRows takes a statement that writes rows of a table, it is not known which, or deletes them.
func (c *Connection) loseRows(r *run, t *table) {
	c.lose(r, t, -1)
	c.loseFollowers(r, t, true, nil)
}

// lose says that a statement writes a column of a table, or if it is -1 all of them, in rows that are not known.
func (c *Connection) lose(r *run, t *table, column int) {
	if t.key != nil {
		r.isBlind = true
		c.capture.count(r.plan, ReasonRows)
		c.capture.items.loseTable(t, column)
	}
}

// anything takes a statement that may write anything.
func (c *Connection) anything(r *run) {
	r.isBlind = true
	c.capture.anything(r.plan)
}

// blinds takes the answer to a statement. If rows that it wrote are not known, what the transaction reads from here on
// may be its own, and is not recorded. Where coverage is complete that goes for everybody.
func (c *Connection) blinds(r *run) {
	if r.isBlind && !c.capture.options.Complete {
		x := c.current()
		x.blind = len(x.ops) + 1
	}
}

// loseFollowers takes a deletion of rows of a table, or a change of these columns, or of all if they are nil, which
// other tables' rows follow.
func (c *Connection) loseFollowers(r *run, t *table, deleted bool, columns []int) {
	if len(t.follow) == 0 {
		return
	}
	follow := map[*table]bool{}
	t.followers(follow, deleted, columns)
	for f := range follow {
		c.lose(r, f, -1)
	}
}

// find is the table that a statement of this connection names.
func (c *Connection) find(r *run, n sql.Name) (*table, bool) {
	tables := r.catalog.tables[sql.Name{Table: n.Table}]
	if n.Schema == "pg_temp" || n.Schema == "" && c.temporary[n.Table] {
		return &table{}, len(tables) == 0
	}
	if tables = r.catalog.tables[n]; len(tables) != 1 {
		return nil, false
	}
	return tables[0], true
}

// sync takes what commits all that does not stand in a transaction of its own.
func (c *Connection) sync() {
	if !c.inBlock {
		c.willCommit()
	}
	c.batch = 0
}

// willCommit says that what is sent next may commit: whoever reads what was written reads it after that.
func (c *Connection) willCommit() {
	if c.committing = true; c.entry != nil {
		c.capture.order.Commits(c.entry)
	}
	for key, p := range c.unresolved {
		c.capture.count(p, ReasonValue)
		c.capture.items.lose(key)
	}
	clear(c.unresolved)
}

// effects works out what a statement writes to t.
func (c *Connection) effects(r *run, t *table) {
	p := r.plan
	r.isLoose = p.Loose
	columns := make([]int, 0, 8) // that it writes
	unlisted := false
	for _, a := range p.Sets {
		if at := t.column(a.Column); at >= 0 {
			columns = append(columns, at)
		} else {
			unlisted = true
		}
	}
	c.loseFollowers(r, t, p.Verb == sql.Delete, columns)
	if t.key == nil {
		return
	}
	if unlisted || slices.ContainsFunc(columns, t.isKey) || p.Updates && !c.conflictOnKey(p, t) ||
		p.Verb == sql.Insert && p.Columns == nil &&
			slices.ContainsFunc(p.Rows, func(row []sql.Operand) bool { return len(row) > len(t.columns) }) {
		c.lose(r, t, -1)
		return
	}
	r.table = t
	switch p.Verb {
	case sql.Insert:
		c.inserts(r, t)
	default:
		if !r.isLoose {
			row, before, ok := c.conditions(r, t)
			r.isLoose = !ok
			r.rows, r.before = append(r.rows, row), before
		}
		if r.isLoose {
			r.rows = nil
		}
		if p.Verb == sql.Delete {
			c.deletes(c.placeOf(t, first(r.rows)))
		}
		for _, a := range p.Sets {
			at := t.column(a.Column)
			if t.columns[at].class != sql.NoClass {
				r.effects = append(r.effects, c.effect(r, a.Value, at, r.rows))
			}
		}
		if p.Verb == sql.Delete {
			for at := range t.columns {
				if t.columns[at].class != sql.NoClass && !t.isKey(at) {
					r.effects = append(r.effects, effect{row: first(r.rows), column: at, isKnown: true})
				}
			}
		}
	}
	c.declare(r, t)
}

// conflictOnKey tells whether a row that is there is told by the primary key, so that the row that is written is known.
func (c *Connection) conflictOnKey(p *sql.Plan, t *table) bool {
	if len(p.ConflictOn) != len(t.key) {
		return false
	}
	for _, k := range t.key {
		if !slices.Contains(p.ConflictOn, t.columns[k].name) {
			return false
		}
	}
	return true
}

// conditions is the row that a statement's conditions name, and what its other columns have to hold, as far as known.
func (c *Connection) conditions(r *run, t *table) (row string, before []effect, ok bool) {
	key := c.emptyKey(t)
	named := 0
	for _, a := range r.plan.Conditions {
		at := t.column(a.Column)
		if at < 0 { // a column of the system's
			before = append(before, effect{})
			continue
		}
		v, ok := c.value(r, a.Value, &t.columns[at])
		k := slices.Index(t.key, at)
		switch {
		case k >= 0 && (!ok || v == sqlNull):
			return "", nil, false
		case !ok || v == sqlNull:
			before = append(before, effect{})
		case k >= 0:
			if key[k] != (record.Value{}) {
				return "", nil, false
			}
			key[k] = v
			named++
		default:
			before = append(before, effect{column: at, value: v, isKnown: true})
		}
	}
	if named < len(t.key) {
		return "", nil, false
	}
	return c.row(key), before, true
}

// effect is what SET gives a column.
func (c *Connection) effect(r *run, o sql.Operand, at int, rows []string) effect {
	e := effect{row: first(rows), column: at}
	col := &r.table.columns[at]
	if o.Kind == sql.Delta && col.class == sql.ClassInt {
		if by, ok := c.value(r, *o.By, col); ok && by.Kind == record.KindInt {
			e.isDelta, e.delta = true, by.Num
			if o.Negative {
				e.delta = -by.Num
			}
		}
		return e
	}
	e.value, e.isKnown = c.value(r, o, col)
	return e
}

// first is the only row that a statement writes, if it is known.
func first(rows []string) string {
	if len(rows) == 1 {
		return rows[0]
	}
	return ""
}

// inserts works out the rows of an INSERT.
func (c *Connection) inserts(r *run, t *table) {
	p := r.plan
	names := p.Columns
	place := func(at int) int { // of a column among a row's values
		if names == nil {
			return at
		}
		return slices.Index(names, t.columns[at].name)
	}
	for _, n := range names {
		if t.column(n) < 0 {
			r.isLoose = true // it fails
		}
	}
	for _, values := range p.Rows {
		given := func(at int) sql.Operand {
			if i := place(at); i >= 0 && i < len(values) {
				return values[i]
			}
			return sql.Operand{Kind: sql.Default}
		}
		var key []record.Value
		for _, k := range t.key {
			v, ok := c.value(r, given(k), &t.columns[k])
			if !ok || v == sqlNull {
				r.isLoose = true
				break
			}
			key = append(key, v)
		}
		row := ""
		if !r.isLoose {
			row = c.row(key)
			r.rows = append(r.rows, row)
		}
		for at := range t.columns {
			if t.columns[at].class == sql.NoClass || t.isKey(at) {
				continue
			}
			e := effect{row: row, column: at}
			e.value, e.isKnown = c.value(r, given(at), &t.columns[at])
			if p.Updates { // known only if it is the same in both cases
				set := slices.IndexFunc(p.Sets, func(a sql.Assignment) bool { return a.Column == t.columns[at].name })
				e.isKnown = e.isKnown && set >= 0 && p.Sets[set].Value.Kind == sql.Excluded
			}
			r.effects = append(r.effects, e)
		}
	}
	for at := range t.columns { // of a query
		if p.Rows == nil && t.columns[at].class != sql.NoClass && !t.isKey(at) {
			r.effects = append(r.effects, effect{column: at})
		}
	}
	if r.isLoose {
		r.rows = nil
		for i := range r.effects {
			r.effects[i].row = ""
		}
		if len(p.Rows) > 1 { // which of the values a row has is not known
			r.effects = r.effects[:len(r.effects)/len(p.Rows)]
			for i := range r.effects {
				r.effects[i].isKnown = false
			}
		}
	}
}

// declare says what is about to be written.
func (c *Connection) declare(r *run, t *table) {
	p := r.plan
	if p.Skips && len(p.Rows) > 1 && !c.returns(p, t, t.key...) {
		c.lose(r, t, -1) // which of the rows are written is not told
		r.table = nil
		return
	}
	if r.isLoose {
		if !c.returns(p, t, t.key...) {
			if p.Verb == sql.Update {
				for _, e := range r.effects {
					c.lose(r, t, e.column)
				}
			} else {
				c.lose(r, t, -1)
			}
			r.table = nil
			return
		}
		for _, e := range r.effects {
			if !e.isKnown && !c.returns(p, t, e.column) {
				c.lose(r, t, e.column)
			}
		}
		if c.capture.options.Complete {
			c.capture.items.await(t, 1)
			c.writes(t.label)
		}
		return
	}
	for i := range r.effects {
		e := &r.effects[i]
		e.item, e.skip = c.claim(c.item(t, e.row, e.column), t, e.column)
		if !e.isKnown && !e.skip && !c.returns(p, t, e.column) {
			c.unresolved[e.item] = p
		}
	}
}

// returns tells whether RETURNING gives these columns.
func (c *Connection) returns(p *sql.Plan, t *table, columns ...int) bool {
	for _, at := range columns {
		if !slices.Contains(p.Returning, "*") && !slices.Contains(p.Returning, t.columns[at].name) {
			return false
		}
	}
	return len(p.Returning) > 0
}

// given takes a row that a statement gave.
func (c *Connection) given(r *run, values [][]byte) {
	r.seen++
	about := r.about
	var results []byte
	if r.portal != nil {
		about, results = r.statement.about, r.portal.results
	}
	if about == nil || len(about.fields) != len(values) || r.plan.Verb == sql.Quiet {
		r.hasUnseen = true
		return
	}
	if at := about.xid; at >= 0 && slices.Contains(r.plan.Calls, numbers) {
		c.current().xid = number(values[at], isBinary(results, at) && about.fields[at].DataTypeOID != pgtype.TextOID)
	}
	if r.plan.Verb == sql.Select && (r.isOld || r.portal != nil && r.portal.isLong) {
		return
	}
	for _, m := range c.mapsOf(r, about) {
		get := func(field, column int) (record.Value, bool) {
			col := &m.table.columns[column]
			if col.class == sql.ClassText && !c.isUTF8 {
				return record.Value{}, false
			}
			return received(col.class, isBinary(results, field), values[field])
		}
		var row string
		if m.key == nil {
			var ok bool
			if row, _, ok = c.conditions(r, m.table); !ok {
				continue
			}
		} else {
			key, ok := c.emptyKey(m.table), true
			for i, field := range m.key {
				v, has := get(field, m.table.key[i])
				key[i], ok = v, ok && has && v != sqlNull
			}
			if !ok {
				continue // an outer join found no row
			}
			row = c.row(key)
		}
		if r.plan.Verb != sql.Select {
			back := returned{row: row}
			for _, fc := range m.columns {
				if v, ok := get(fc[0], fc[1]); ok {
					back.values = append(back.values, given{fc[1], v})
				}
			}
			r.returned = append(r.returned, back)
			continue
		}
		for _, fc := range m.columns {
			if v, ok := get(fc[0], fc[1]); ok {
				c.see(m.table, row, fc[1], v)
			}
		}
	}
}

// numbers is the function that says what PostgreSQL calls the transaction, and what its column is called, cast or not.
const numbers = "pg_current_xact_id"

// number is what it says; empty: it is no number.
func number(b []byte, isBinary bool) string {
	if isBinary && len(b) == 8 {
		return strconv.FormatUint(binary.BigEndian.Uint64(b), 10)
	}
	if _, err := strconv.ParseUint(string(b), 10, 64); err != nil {
		return ""
	}
	return string(b)
}

// mapsOf is where in the rows of a statement there is something to be recorded.
func (c *Connection) mapsOf(r *run, about *rows) []rowMap {
	if about.catalog == r.catalog && about.table == r.table && about.isLoose == r.isLoose {
		return about.maps
	}
	about.catalog, about.table, about.isLoose, about.maps = r.catalog, r.table, r.isLoose, nil
	p := r.plan
	if p.Verb == sql.Select && !p.Plain {
		return nil
	}
	for i := range about.fields {
		t := r.catalog.byOID[about.fields[i].TableOID]
		if t == nil || t.key == nil || slices.ContainsFunc(about.maps, func(m rowMap) bool { return m.table == t }) {
			continue
		}
		switch {
		case p.Verb == sql.Select && !p.Single && p.Mentions[t.rel] > 1: // two rows of one table
			continue
		case p.Verb != sql.Select && t != r.table:
			continue
		}
		m := rowMap{table: t, key: make([]int, len(t.key))}
		for k := range m.key {
			m.key[k] = -1
		}
		for field := range about.fields {
			f := &about.fields[field]
			at := slices.IndexFunc(t.columns, func(col column) bool { return col.number == f.TableAttributeNumber })
			if f.TableOID != t.oid || at < 0 || t.columns[at].class == sql.NoClass || classes[f.DataTypeOID] != t.columns[at].class {
				continue
			}
			if k := slices.Index(t.key, at); k >= 0 {
				m.key[k] = field
			} else if !slices.ContainsFunc(m.columns, func(fc [2]int) bool { return fc[1] == at }) {
				m.columns = append(m.columns, [2]int{field, at})
			}
		}
		if slices.Contains(m.key, -1) {
			if p.Verb == sql.Select && !p.Single || p.Verb != sql.Select && r.isLoose || p.Verb == sql.Insert {
				continue
			}
			m.key = nil
		}
		about.maps = append(about.maps, m)
	}
	return about.maps
}

// current is the transaction that is being answered.
func (c *Connection) current() *txn {
	if c.txn == nil {
		if c.txn = c.ended; c.txn == nil {
			c.txn = &txn{own: map[string]own{}}
		}
		c.ended, c.txn.start = nil, c.started
	}
	return c.txn
}

// see takes what an item was read to hold.
func (c *Connection) see(t *table, row string, column int, v record.Value) {
	x := c.current()
	name := c.item(t, row, column)
	mine, isMine := x.own[string(name)]
	isMine = isMine && mine.at+1 >= x.blind
	if mine.isAnew {
		return
	} else if isMine && !mine.isKnown {
		c.learn(t, string(name), column, v)
	} else if len(x.ops) < readsMax {
		if key, held := c.holds(t, name, column, v, !isMine); held {
			x.ops = append(x.ops, record.Op{Kind: record.Read, Key: key, Value: v})
		}
	}
}

// learn takes what the transaction gave an item, which was not known.
func (c *Connection) learn(t *table, key string, column int, v record.Value) {
	x := c.current()
	mine := x.own[key]
	if mine.isDelta && v.Kind == record.KindInt {
		c.name = append(c.name[:0], key...)
		before := record.Int(v.Num - mine.delta)
		if _, held := c.holds(t, c.name, column, before, true); held {
			x.ops[mine.at] = record.Op{Kind: record.Read, Key: key, Value: before}
		}
	}
	x.ops[mine.at+1] = record.Op{Kind: record.Write, Key: key, Value: v}
	mine.value, mine.isKnown = v, true
	x.own[key] = mine // which a savepoint behind the write that is undone leaves true
	delete(c.unresolved, key)
}

// holds tells whether a read may be recorded. before: the transaction has not written the item. What an item is seen
// to have held before all is recorded first.
func (c *Connection) holds(t *table, name []byte, column int, v record.Value, before bool) (key string, held bool) {
	if !c.capture.options.Complete {
		return string(name), !before || c.current().blind == 0
	}
	return c.capture.items.read(name, t, column, c, before, v)
}

// held records what an item held before all.
func (c *Connection) held(key string, v record.Value) {
	if !v.IsNull() {
		_, out := c.first.Record(c.current().start, record.Committed, "", "",
			record.Op{Kind: record.Write, Key: key, Value: v})
		out()
	}
}

// tags are what the ends of statements begin with, where that is known.
var tags = [...]string{sql.Select: "SELECT", sql.Insert: "INSERT", sql.Update: "UPDATE", sql.Delete: "DELETE",
	sql.Savepoint: "SAVEPOINT"}

// complete takes the end of a statement that was carried out.
func (c *Connection) complete(r *run, tag []byte) bool {
	p := r.plan
	word, rest, _ := bytes.Cut(tag, []byte{' '})
	count := 0
	if at := bytes.LastIndexByte(rest, ' '); len(rest) > 0 {
		count, _ = strconv.Atoi(string(rest[at+1:]))
	}
	if int(p.Verb) < len(tags) && tags[p.Verb] != "" && string(word) != tags[p.Verb] {
		return false
	}
	switch p.Verb {
	case sql.Begin, sql.Commit, sql.Rollback, sql.Prepare:
	default:
		c.current().ask(p.Text)
		c.blinds(r)
	}
	switch p.Verb {
	case sql.Begin:
		c.current()
	case sql.Commit:
		switch string(tag) {
		case "COMMIT":
			c.end(record.Committed)
		case "ROLLBACK":
			c.end(record.Aborted)
		}
	case sql.Rollback:
		c.end(record.Aborted)
	case sql.Prepare:
		if string(word) == "ROLLBACK" {
			c.end(record.Aborted)
		} else {
			c.end(record.Unknown)
		}
	case sql.Savepoint:
		x := c.current()
		x.saves = append(x.saves, save{name: p.Name, ops: len(x.ops), undo: len(x.undo)})
	case sql.RollbackTo:
		c.rollBackTo(p.Name)
	case sql.Release:
		x := c.current()
		if i := x.find(p.Name); i >= 0 {
			x.saves = x.saves[:i]
		}
	case sql.Define:
		c.defines = true
	case sql.Select:
		c.selected(r)
	case sql.Insert, sql.Update, sql.Delete:
		c.wrote(r, count)
	}
	return true
}

// find is the place of the last savepoint of a name; -1: there is none.
func (x *txn) find(name string) int {
	for i := len(x.saves) - 1; i >= 0; i-- {
		if x.saves[i].name == name {
			return i
		}
	}
	return -1
}

// unlearn says that what was written before a savepoint is not known, if it was learned only from what came after.
func (c *Connection) unlearn(undone []undo) {
	for _, u := range undone {
		if u.there && !u.before.isKnown {
			c.unresolved[u.key] = u.before.plan
		}
	}
}

// rollBackTo undoes what was written since a savepoint. What was read is kept but for what was written since.
func (c *Connection) rollBackTo(name string) {
	x := c.current()
	i := x.find(name)
	if i < 0 {
		return
	}
	c.unlearn(x.undo[x.saves[i].undo:])
	s := x.saves[i]
	changed := map[string]bool{}
	for j := len(x.undo) - 1; j >= s.undo; j-- {
		u := x.undo[j]
		changed[u.key] = true
		if u.there {
			x.own[u.key] = u.before
		} else {
			delete(x.own, u.key)
		}
	}
	x.undo = x.undo[:s.undo]
	for j := s.ops; j < len(x.ops); j++ {
		if x.ops[j].Kind == record.Write || changed[x.ops[j].Key] {
			x.ops[j].Key = ""
		}
	}
	x.saves = x.saves[:i+1]
}

// set says what the transaction gave an item.
func (x *txn) set(key string, o own) {
	if len(x.saves) > 0 {
		before, there := x.own[key]
		x.undo = append(x.undo, undo{key, before, there})
	}
	x.own[key] = o
}

// selected takes the end of a SELECT. A row that was asked for by its key and is not there is one that holds nothing.
func (c *Connection) selected(r *run) {
	p := r.plan
	about := r.about
	if r.portal != nil {
		about = r.statement.about
	}
	if r.seen > 0 || r.isOld || !p.Plain || !p.Single || !p.Only || about == nil {
		return
	}
	for _, m := range c.mapsOf(r, about) {
		row, before, ok := c.conditions(r, m.table)
		if !ok || len(before) > 0 {
			continue
		}
		for _, fc := range m.columns {
			c.see(m.table, row, fc[1], record.Null)
		}
	}
}

// wrote takes the end of a statement that writes count rows.
func (c *Connection) wrote(r *run, count int) {
	t, x := r.table, c.current()
	if t == nil {
		return
	}
	c.finished(r)
	p := r.plan
	if r.isLoose {
		if r.hasUnseen || len(r.returned) != count {
			x.isLost = true
			return
		}
		for _, back := range r.returned {
			r.rows = append(r.rows, back.row)
			for _, e := range r.effects {
				e.row = back.row
				e.item, _ = c.claim(c.item(t, e.row, e.column), t, e.column)
				c.write(r, t, e, &back)
			}
			c.others(r, t, back)
		}
		return
	}
	switch {
	case count == 0:
		return
	case count != len(r.rows):
		if !p.Skips || len(r.returned) != count || r.hasUnseen {
			x.isLost = true
			return
		}
	}
	for _, e := range r.before {
		if e.isKnown {
			c.see(t, r.rows[0], e.column, e.value)
		}
	}
	for _, e := range r.effects {
		back, at := &returned{}, len(r.returned)-1
		for at >= 0 && r.returned[at].row != e.row {
			at--
		}
		switch {
		case at >= 0:
			back = &r.returned[at]
		case p.Skips && len(r.rows) > 1:
			continue
		case len(r.rows) == 1 && len(r.returned) == 1:
			back = &r.returned[0]
		}
		c.write(r, t, e, back)
	}
	for _, back := range r.returned {
		c.others(r, t, back)
	}
}

// suspended takes a statement that has given as many rows as were asked for. If it writes, it has written all of them.
func (c *Connection) suspended(r *run) {
	t := r.table
	switch {
	case t == nil:
	case !r.isLoose && len(r.returned) == len(r.rows):
		c.wrote(r, len(r.rows))
	case c.committing:
		c.current().isLost = true
		c.finished(r)
	default:
		for _, e := range r.effects {
			c.lose(r, t, e.column)
		}
		c.finished(r)
	}
	c.blinds(r)
}

// claim declares an item that is written, and tells whether it is lossy.
func (c *Connection) claim(name []byte, t *table, column int) (key string, skip bool) {
	if !c.capture.options.Complete {
		return string(name), false
	}
	key, opens, skip := c.capture.items.write(name, t, column, c)
	if opens {
		c.opened = append(c.opened, key)
	}
	if !skip {
		c.writes(key)
	}
	return key, skip
}

// writes says that an item, or some of a table's, are about to be written.
func (c *Connection) writes(what string) {
	if c.entry == nil {
		c.entry = &closure.Entry{Last: c.last, Unseen: !c.committing}
	}
	c.capture.order.Writes(c.entry, what)
}

// goes lets the record of a transaction that has ended out when those are out that it may have read from. Of several
// that were sent one behind the other as many go together as messages are under way: whose write is whose is not known
// before the answers are there.
func (c *Connection) goes(did []record.Op, out func()) {
	if !c.capture.options.Complete {
		out()
		return
	}
	if before, last := c.out, out; before != nil {
		did, out = append(c.did, did...), func() { before(); last() }
	}
	c.outs++
	if n := len(c.queue); n > c.outs || n > 0 && c.queue[0].isBegun && c.queue[0].run != nil {
		c.out, c.did = out, did
		return
	}
	e := c.entry
	if e == nil {
		e = &closure.Entry{Last: c.last}
	}
	c.last, c.entry, c.out, c.did, c.outs = e, nil, nil, nil, 0
	for _, a := range c.queue {
		for r := a.run; r != nil; r = r.next {
			c.writesAgain(r)
		}
	}
	c.capture.order.End(e, did, out)
}

// writesAgain says of a statement under way what it is about to write, where that was said of the transactions before.
func (c *Connection) writesAgain(r *run) {
	switch {
	case r.table == nil:
	case r.isLoose:
		c.writes(r.table.label)
	default:
		for i := range r.effects {
			if e := &r.effects[i]; e.item != "" && !e.skip {
				c.writes(e.item)
			}
		}
	}
}

// finished says that a statement writes no more.
func (c *Connection) finished(r *run) {
	if r.isLoose && r.table != nil && c.capture.options.Complete {
		c.capture.items.await(r.table, -1)
	}
	r.table = nil
}

// abandon takes a statement that failed or was not carried out.
func (c *Connection) abandon(r *run) {
	if t := r.table; t != nil {
		for _, e := range r.effects {
			if e.item == "" { // of a row that only the answer would have told
				continue
			}
			if mine, isMine := c.current().own[e.item]; !isMine || mine.isKnown {
				delete(c.unresolved, e.item)
			}
		}
	}
	c.finished(r)
}

// others takes what RETURNING gave of columns that the statement left as they were, or of the row that it deleted.
func (c *Connection) others(r *run, t *table, back returned) {
	if r.plan.Verb == sql.Insert {
		return
	}
	for _, g := range back.values {
		if r.plan.Verb != sql.Delete && !slices.ContainsFunc(r.effects, func(e effect) bool { return e.column == g.column }) {
			c.see(t, back.row, g.column, g.value)
		}
	}
}

// write takes an item that was written. back is what RETURNING gave of its row.
func (c *Connection) write(r *run, t *table, e effect, back *returned) {
	x, key := c.current(), e.item
	before, isMine := x.own[key]
	isMine = isMine && before.at+1 >= x.blind
	isAnew := before.isAnew || r.plan.Verb == sql.Insert && c.isAnew(t, e.row)
	if isAnew {
		x.anew = append(x.anew, len(x.ops)+1)
	}
	if v, ok := back.of(e.column); ok {
		if r.plan.Verb == sql.Delete { // what it held
			c.see(t, e.row, e.column, v)
			before, isMine = x.own[key]
		} else if e.isKnown {
			e.value = v
		} else {
			e.value, e.isKnown = v, !e.isDelta
			if e.isDelta { // learned at once
				x.set(key, own{isDelta: !isMine, delta: e.delta, at: len(x.ops), plan: r.plan, isAnew: isAnew})
				x.ops = append(x.ops, record.Op{}, record.Op{})
				c.learn(t, key, e.column, v)
				return
			}
		}
	}
	if r.plan.Verb == sql.Insert && !r.plan.Updates && c.capture.options.Complete && !isMine {
		c.capture.items.absent(key, t, c)
	}
	if len(x.ops) > writesMax {
		x.isLost = true
		return
	}
	o := own{at: len(x.ops), plan: r.plan, isAnew: isAnew}
	switch {
	case e.isKnown:
		o.value, o.isKnown = e.value, true
	case e.isDelta && isMine && before.isKnown && before.value.Kind == record.KindInt:
		o.value, o.isKnown = record.Int(before.value.Num+e.delta), true
		delete(c.unresolved, key)
	case e.isDelta && isMine && before.isDelta:
		o.isDelta, o.delta = true, before.delta+e.delta
	case e.isDelta && !isMine:
		o.isDelta, o.delta = true, e.delta
	}
	write := record.Op{Kind: record.Write, Value: o.value}
	if o.isKnown && !e.skip {
		write.Key = key
	}
	x.ops = append(x.ops, record.Op{}, write)
	x.set(key, o)
}

// end ends the transaction that is being answered.
func (c *Connection) end(status record.Status) {
	x := c.txn
	c.txn, c.started = nil, 0
	if x == nil {
		return
	}
	c.capture.ended(status)
	if status == record.Unknown {
		c.deleting = nil // it may be deleted at any time
	}
	isOver := status == record.Aborted && len(c.queue) <= 1 // and nothing else is under way
	for _, key := range c.opened {
		c.capture.items.close(key, c, isOver)
	}
	c.opened = c.opened[:0]
	if isOver {
		clear(c.unresolved)
	}
	if x.isLost && status != record.Aborted {
		c.session.Lose()
		c.goes(nil, func() {})
		return
	}
	if slices.ContainsFunc(x.ops, func(o record.Op) bool { return o.Key != "" }) {
		if !slices.Equal(x.asked, c.asked) {
			c.asked = slices.Clone(x.asked)
			c.joined = strings.Join(c.asked, "; ")
		}
		var anew []record.Op
		for _, i := range x.anew {
			if x.ops[i].Key != "" {
				anew = append(anew, x.ops[i])
				x.ops[i].Key = ""
			}
		}
		did, out := c.session.Record(x.start, status, x.xid, c.joined, x.ops...)
		if len(anew) > 0 {
			made, first := c.anew.Record(x.start, status, "", c.joined, anew...)
			rest := out
			did, out = append(made, did...), func() { first(); rest() }
		}
		c.goes(did, out)
	}
	if cap(x.ops) <= keptMax { // its room is for the next one
		clear(x.own)
		clear(x.undo)
		*x = txn{asked: x.asked[:0], ops: x.ops[:0], own: x.own, saves: x.saves[:0], undo: x.undo[:0]}
		c.ended = x
	}
}

// keptMax is how many operations there is room for in a transaction that is kept.
const keptMax = 1000

// settle takes what ReadyForQuery says.
func (c *Connection) settle(status byte) {
	switch {
	case status == 'I' && c.txn != nil && c.failed:
		c.end(record.Aborted)
	case status == 'I' && c.txn != nil:
		c.end(record.Committed)
	case status != 'I':
		c.current()
	}
	if status == 'I' {
		c.started = 0
	}
	c.status, c.failed = status, false
	if len(c.queue) == 0 {
		c.committing = false
	}
	if len(c.queue) == 0 && status == 'I' {
		c.deleted()
		if c.entry != nil || c.out != nil {
			c.goes(nil, func() {})
		}
	}
	if status == 'I' && c.defines {
		c.defines = false
		c.capture.Reload()
	}
}

// Close ends it. What was not answered may have happened or not.
func (c *Connection) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ignored || c.session == nil {
		return
	}
	c.ignored = true
	c.leave()
}

// leave ends what is under way when no more of the connection is seen.
func (c *Connection) leave() {
	var under []*run // statements that may have written
	for _, a := range c.queue {
		for r := a.run; r != nil; r = r.next {
			if r.table != nil {
				under = append(under, r)
			}
		}
	}
	switch {
	case len(c.queue) == 0 || !c.committing: // the server gives up what was not committed
		c.queue = nil
		c.end(record.Aborted)
		c.deleted()
	case len(under) == 0 && c.txn == nil: // nothing was written
	case len(under) == 0:
		c.end(record.Unknown)
	case len(under) == 1 && c.txn == nil && !under[0].isLoose && len(under[0].returned) == 0 && !under[0].awaits(c):
		// The statement wrote what it says, or nothing; then nobody reads that.
		c.started = c.queue[0].sent
		c.wrote(under[0], len(under[0].rows))
		c.end(record.Unknown)
	default:
		c.current().isLost = true
		c.end(record.Unknown)
	}
	for _, r := range under {
		c.finished(r)
	}
	for _, key := range c.opened {
		c.capture.items.close(key, c, false)
	}
	c.queue, c.opened = nil, nil
	c.goes(nil, func() {})
}

// awaits tells whether only the answer would have told a value.
func (r *run) awaits(c *Connection) bool {
	return slices.ContainsFunc(r.effects, func(e effect) bool {
		return !e.isKnown && c.returns(r.plan, r.table, e.column)
	})
}

// giveUp passes over the rest of a connection that is not understood.
func (c *Connection) giveUp(why string) {
	if c.ignored {
		return
	}
	c.capture.anything(&sql.Plan{Text: "(" + why + ")"})
	c.committing = true
	if c.session != nil {
		c.current().isLost = true
		c.leave()
	}
	c.ignored = true
}
