package sql

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Verb is what a statement does.
type Verb uint8

const (
	Quiet       Verb = iota // nothing to the tables that are recorded
	Select                  // reads
	Insert                  // writes, as rows, sets and returning say
	Update                  // likewise
	Delete                  // likewise
	WriteTables             // writes the tables in writes, it is not known what
	Define                  // changes which tables there are; may write those in writes
	Anything                // may write anything
	Begin                   // begins a transaction
	Commit                  // ends it
	Rollback                // likewise
	Savepoint               // name
	RollbackTo              // name
	Release                 // name
	Prepare                 // prepares the transaction to be committed by another session
)

// Name is a table's as a statement has it; Schema may be empty, or have a database and a point in front.
type Name struct{ Schema, Table string }

// OperandKind is what a value in a statement is.
type OperandKind uint8

const (
	Opaque   OperandKind = iota // not worked out
	Constant                    // text, or null
	Literal                     // the literal with this number
	Param                       // the parameter with this number, from 0 on
	Default                     // the column's default
	Delta                       // the column's own value, and what by says, added or taken away
	Excluded                    // what was to be inserted into the column
)

// Class is a kind of types whose values have one form here, whether they were sent as text or binary, or stand in a
// statement. Columns of other types are not recorded.
type Class uint8

const (
	NoClass      Class = iota
	ClassInt           // smallint, integer, bigint
	ClassText          // text, varchar
	ClassBool          //
	ClassUUID          //
	ClassNumeric       // in text alone
)

// Operand is a value in a statement.
type Operand struct {
	Kind     OperandKind
	N        int // of oLiteral and oParam
	Text     string
	IsNull   bool
	Negative bool // of a number: a minus in front of it; of oDelta: taken away
	By       *Operand
	Cast     Class // that it is cast to; notHeld: to none
}

// Assignment is a column and what it is given, or has to equal.
type Assignment struct {
	Column string
	Value  Operand
}

// Plan is what a statement does, worked out from its text alone. Its literals are those of one execution, by number.
type Plan struct {
	Verb Verb
	Text string // as counted: without its literals
	Name string // of a savepoint
	// chain: another transaction begins where this one ends.
	Chain bool

	Target Name // of vInsert, vUpdate, vDelete, and vDefine; of a vSelect from one table
	Single bool // a vSelect is from target alone
	// conditions are columns that have to equal a value, all of them; only says that there is no other condition, and
	// nothing else that leaves out rows.
	Conditions []Assignment
	Only       bool
	Columns    []string       // of vInsert; nil: all of the table
	Rows       [][]Operand    // of vInsert; nil: a query has them
	Joined     bool           // other tables say which rows vUpdate and vDelete write
	Loose      bool           // it is not known which rows vInsert, vUpdate and vDelete write
	Sets       []Assignment   // of vUpdate, and of vInsert for a row that is there
	Updates    bool           // vInsert updates a row that is there, else it fails
	Skips      bool           // vInsert leaves some rows that are there as they are
	ConflictOn []string       // what tells that a row is there; nil: not given
	Returning  []string       // names of columns; * for all
	Where      Span           // the condition of a Select, Update or Delete
	List       Span           // what a Select asks for
	Key        []string       // the primary key of the Columns of a table that a Define creates
	Plain      bool           // a vSelect whose output columns, where they are a table's, are of one row of it
	Mentions   map[string]int // how often a vSelect has a word that may be a table's name
	Writes     []Name         // of vTables, and of vDefine if it changes or drops them
	Temporary  []string       // tables that are the connection's own from here on
	Calls      []string       // what may be functions
}

// Span is a part of a statement's tokens, from one to before another.
type Span struct{ From, To int }

// Statement is a statement of a text.
type Statement struct {
	*Plan
	Tokens   []Token
	Literals []Token // of the text
}

// Read reads the statements of a text.
func Read(text string) ([]Statement, error) {
	tokens, err := Lex(nil, text)
	if err != nil {
		return nil, err
	}
	var out []Statement
	literals := Literals(tokens)
	for _, part := range split(tokens) {
		out = append(out, Statement{planOf(part), part, literals})
	}
	return out, nil
}

// Literals numbers the literals among tokens, and gives them.
func Literals(tokens []Token) (literals []Token) {
	for i := range tokens {
		if tokens[i].IsLiteral() {
			tokens[i].N = len(literals)
			literals = append(literals, tokens[i])
		}
	}
	return literals
}

// planner reads the tokens of a statement.
type planner struct {
	tokens []Token
	at     int
	bad    bool // something else stands there than precise can read
}

// Plans are the statements of a text whose tokens these are, as Scan has them. A statement without tokens is none.
func Plans(tokens []Token) []*Plan {
	lower(tokens)
	if hasBody(tokens) {
		return []*Plan{{Verb: Anything, Text: textOf(tokens)}}
	}
	var out []*Plan
	for _, statement := range split(tokens) {
		out = append(out, planOf(statement))
	}
	return out
}

// split parts tokens where statements end.
func split(tokens []Token) (out [][]Token) {
	for p := (planner{tokens: tokens}); p.at < len(tokens); p.at++ {
		if part := p.until(";"); len(part) > 0 {
			out = append(out, part)
		}
	}
	return out
}

// hasBody tells whether a function's body, with semicolons in it, may stand in the text.
func hasBody(tokens []Token) bool {
	for i := 1; i < len(tokens); i++ {
		if tokens[i].Is("atomic") && tokens[i-1].Is("begin") {
			return true
		}
	}
	return false
}

// textMax is how much of a statement's text is kept to count it by.
const textMax = 400

// textOf is a statement without its literals.
func textOf(tokens []Token) string {
	var b strings.Builder
	for i, t := range tokens {
		if b.Len() > textMax {
			return b.String()[:textMax] + " …"
		}
		if i > 0 && !t.Is(")") && !t.Is(",") && !t.Is(".") && !tokens[i-1].Is("(") && !tokens[i-1].Is(".") {
			b.WriteByte(' ')
		}
		switch t.Kind {
		case TokenNumber, TokenString, TokenSealed:
			b.WriteByte('?')
		case TokenParam:
			b.WriteString("$" + t.Text)
		case TokenName:
			b.WriteString(`"` + t.Text + `"`)
		default:
			b.WriteString(t.Text)
		}
	}
	return b.String()
}

// planOf works out one statement.
func planOf(tokens []Token) *Plan {
	p := &planner{tokens: tokens}
	out := p.statement()
	out.Text = textOf(tokens)
	p.survey(out)
	return out
}

// The words with which statements begin that do nothing to tables, or for which survey says what they write.
var quiet = map[string]bool{"set": true, "show": true, "reset": true, "discard": true, "listen": true, "notify": true,
	"unlisten": true,
	"analyze":  true, "vacuum": true, "checkpoint": true, "lock": true, "deallocate": true, "close": true, "fetch": true,
	"move":    true,
	"declare": true, "explain": true, "comment": true, "grant": true, "revoke": true, "cluster": true, "reindex": true,
	"prepare": true,
	"refresh": true, "copy": true, "truncate": true, "with": true, "values": true, "table": true, "merge": true, "(": true, "load": true}

// statement reads a statement; what it can't read in full is left to survey.
func (p *planner) statement() *Plan {
	first := p.peek()
	switch {
	case first.Is("select"):
		return p.query()
	case first.Is("insert"):
		return p.precise(p.insert, Insert)
	case first.Is("update"):
		return p.precise(p.update, Update)
	case first.Is("delete"):
		return p.precise(p.delete, Delete)
	case first.Is("begin"), first.Is("start"):
		return &Plan{Verb: Begin}
	case first.Is("commit"), first.Is("end"), first.Is("rollback"), first.Is("abort"):
		return p.end()
	case first.Is("savepoint"):
		p.at++
		return &Plan{Verb: Savepoint, Name: p.next().Text}
	case first.Is("release"):
		p.at++
		p.take("savepoint")
		return &Plan{Verb: Release, Name: p.next().Text}
	case first.Is("prepare") && p.tokens[min(1, len(p.tokens)-1)].Is("transaction"):
		return &Plan{Verb: Prepare}
	case first.Is("create"), first.Is("alter"), first.Is("drop"):
		return p.define()
	case first.Kind != TokenName && quiet[first.Text]:
		return &Plan{Verb: Quiet}
	}
	return &Plan{Verb: Anything}
}

func (p *planner) end() *Plan {
	word := p.next()
	for p.take("work") || p.take("transaction") {
	}
	if p.take("prepared") {
		return &Plan{Verb: Quiet} // of another transaction, whose outcome is not known here
	}
	if p.take("to") {
		p.take("savepoint")
		return &Plan{Verb: RollbackTo, Name: p.next().Text}
	}
	v := Commit
	if word.Is("rollback") || word.Is("abort") {
		v = Rollback
	}
	return &Plan{Verb: v, Chain: p.take("and") && p.take("chain")}
}

// define reads what changes which tables there are.
func (p *planner) define() *Plan {
	out := &Plan{Verb: Define}
	word := p.next()
	for p.take("unlogged") || p.take("global") || p.take("local") || p.take("unique") {
	}
	temporary := word.Is("create") && (p.take("temp") || p.take("temporary"))
	what := p.next()
	if what.Is("index") || what.Is("sequence") || what.Is("schema") || what.Is("extension") || what.Is("type") ||
		what.Is("database") ||
		what.Is("role") || what.Is("user") {
		if word.Is("create") || what.Is("index") || what.Is("sequence") {
			return out
		}
	}
	if !what.Is("table") {
		return &Plan{Verb: Anything}
	}
	for p.take("if") || p.take("not") || p.take("exists") || p.take("only") {
	}
	for {
		n, ok := p.name()
		if !ok {
			return &Plan{Verb: Anything}
		}
		p.take("*")
		switch isOwn := temporary || n.Schema == "pg_temp"; {
		case isOwn:
			out.Temporary = append(out.Temporary, n.Table)
		case !word.Is("create"):
			out.Writes = append(out.Writes, n)
		}
		if out.Target = n; word.Is("create") && p.peek().Is("(") {
			p.definition(out)
		}
		if !word.Is("drop") || !p.take(",") {
			return out
		}
	}
}

// definition reads the columns of a table that is created, and its primary key.
func (p *planner) definition(out *Plan) {
	p.list(func() {
		from := p.at
		part := p.until(",", ")")
		key := slices.IndexFunc(part, func(t Token) bool { return t.Is("primary") })
		switch {
		case key >= 0 && key+2 < len(part) && part[key+2].Is("("):
			q := planner{tokens: part, at: key + 2}
			out.Key = q.columns()
		case key > 0:
			out.Key = []string{part[0].Text}
		}
		if len(part) > 1 && isName(part[0]) && !slices.ContainsFunc([]string{"primary", "constraint", "unique", "check",
			"foreign", "exclude", "like", "key", "index"}, part[0].Is) {
			out.Columns = append(out.Columns, p.tokens[from].Text)
		}
	})
}

// precise reads a statement that writes. If it can't be read in full, what is written is the table that it names.
func (p *planner) precise(read func(*Plan), v Verb) *Plan {
	out := &Plan{Verb: v}
	if read(out); !p.bad && p.at == len(p.tokens) {
		return out
	}
	return &Plan{Verb: Quiet} // survey finds its table
}

// query reads a SELECT.
func (p *planner) query() *Plan {
	out := &Plan{Verb: Select, Plain: true, Mentions: map[string]int{}}
	selects := 0
	for i, t := range p.tokens {
		switch {
		case t.Is("select"):
			selects++
		case t.Is("union"), t.Is("intersect"), t.Is("except"), t.Is("group"), t.Is("having"), t.Is("distinct"),
			t.Is("window"), t.Is("with"),
			t.Is("values"), t.Is("returning"), t.Is("tablesample"):
			out.Plain = false
		}
		if (t.Kind == TokenWord || t.Kind == TokenName) && !(i+1 < len(p.tokens) && p.tokens[i+1].Is(".")) {
			out.Mentions[t.Text]++
		}
	}
	if out.Plain = out.Plain && selects == 1; !out.Plain {
		return out
	}
	p.at++
	p.until("from")
	list := Span{1, p.at}
	if !p.take("from") {
		return out
	}
	out.List = list
	p.take("only")
	n, ok := p.name()
	if !ok {
		return out
	}
	out.Target = n
	alias, ok := p.alias("where", "order", "limit", "offset", "for", "fetch")
	if !ok {
		return out
	}
	if p.take("where") {
		ok = p.conditions(out, n.Table, alias, "order", "limit", "offset", "for", "fetch")
	} else {
		ok = len(p.until("order", "limit", "offset", "for", "fetch")) == 0 // no more tables
	}
	if !ok {
		return out
	}
	out.Single = true
	for i, t := range p.tokens {
		isCall := t.Is("(") && isName(p.tokens[i-1]) && (i < out.Where.From || i >= out.Where.To) // may give no row
		if isCall || i >= p.at && (t.Is("limit") || t.Is("offset") || t.Is("fetch") || t.Is("skip") || t.Is("locked")) {
			out.Only = false
		}
	}
	return out
}

func (p *planner) insert(out *Plan) {
	p.at++
	p.need("into")
	out.Target = p.table()
	if p.take("as") {
		p.one()
	}
	if p.peek().Is("(") {
		out.Columns = p.columns()
	}
	if out.Loose = p.peek().Is("select"); out.Loose {
		for p.until("on", "returning"); p.peek().Is("on") && !p.tokens[min(p.at+1, len(p.tokens)-1)].Is("conflict"); {
			p.at++
			p.until("on", "returning")
		}
	} else {
		p.need("values")
		for more := true; more; more = p.take(",") {
			out.Rows = append(out.Rows, p.row(out.Columns))
		}
	}
	if p.take("on") {
		p.conflict(out)
	}
	p.returned(out, "")
}

// conflict reads what stands behind ON.
func (p *planner) conflict(out *Plan) {
	p.need("conflict")
	switch {
	case p.peek().Is("("):
		out.ConflictOn = p.columns()
	case p.peek().Is("on"):
		p.bad = true // a constraint's name
	}
	p.need("do")
	switch {
	case p.take("nothing"):
		out.Skips = true
	case p.take("update") && p.take("set"):
		out.Updates = true
		p.assignments(out, "where", "returning")
		out.Skips = p.take("where") && len(p.until("returning")) > 0
	default:
		p.bad = true
	}
}

func (p *planner) update(out *Plan) {
	p.at++
	p.take("only")
	out.Target = p.table()
	alias, ok := p.alias("set")
	p.need("set")
	p.assignments(out, "where", "returning", "from")
	p.bad = p.bad || !ok
	p.rest(out, alias, "from")
}

func (p *planner) delete(out *Plan) {
	p.at++
	p.need("from")
	p.take("only")
	out.Target = p.table()
	alias, ok := p.alias("where", "returning", "using")
	p.bad = p.bad || !ok
	p.rest(out, alias, "using")
}

// rest reads other tables, WHERE and RETURNING of what changes rows.
func (p *planner) rest(out *Plan, alias, others string) {
	if out.Joined = p.take(others); out.Joined {
		again := func(t Token) bool { return isName(t) && t.Text == out.Target.Table } // then RETURNING may be of either
		p.bad = p.bad || slices.ContainsFunc(p.until("where", "returning"), again)
	}
	out.Loose = !p.take("where") || !p.conditions(out, out.Target.Table, alias, "returning")
	p.returned(out, alias)
}

// returned reads RETURNING, if there is one. What is no column of the table alone is passed over.
func (p *planner) returned(out *Plan, alias string) {
	for more := p.take("returning"); more; more = p.take(",") {
		item := p.until(",")
		if n := len(item); n > 2 && item[n-2].Is("as") {
			item = item[:n-2]
		}
		switch {
		case len(item) == 0, slices.ContainsFunc(item, func(t Token) bool {
			return t.Is("old") || t.Is("new") || t.Is("select") // old.x and new.x say which of the two is returned
		}):
			p.bad = true
		case len(item) == 1 && (item[0].Kind == TokenWord || item[0].Kind == TokenName) || len(item) == 1 && item[0].Is("*"):
			out.Returning = append(out.Returning, item[0].Text)
		case len(item) == 3 && item[1].Is(".") && item[0].Text == cmp.Or(alias, out.Target.Table):
			out.Returning = append(out.Returning, item[2].Text)
		case len(item) == 5 && item[1].Is(".") && item[3].Is(".") && item[2].Text == out.Target.Table:
			out.Returning = append(out.Returning, item[4].Text)
		}
	}
}

// row reads the values of a row that is inserted.
func (p *planner) row(columns []string) (out []Operand) {
	p.list(func() {
		v := p.operand(p.until(",", ")"), "")
		if v.Kind == Delta || v.Kind == Excluded {
			v = Operand{}
		}
		out = append(out, v)
	})
	p.bad = p.bad || columns != nil && len(columns) != len(out)
	return out
}

// list reads what stands in parentheses, one after the other.
func (p *planner) list(one func()) {
	p.need("(")
	one()
	for p.take(",") {
		one()
	}
	p.need(")")
}

// assignments reads what SET says, up to one of the words.
func (p *planner) assignments(out *Plan, ends ...string) {
	for more := true; more; more = p.take(",") {
		column := p.one()
		p.need("=")
		out.Sets = append(out.Sets, Assignment{column, p.operand(p.until(append([]string{","}, ends...)...), column)})
	}
}

// conditions reads a WHERE up to one of the words. It is false if rows can't be told by what has to be equal, as it
// may be otherwise.
func (p *planner) conditions(out *Plan, table, alias string, ends ...string) bool {
	from := p.at
	q := planner{tokens: p.until(ends...)}
	out.Only, out.Where = true, Span{from, p.at}
	for more := true; more; more = q.take("and") {
		a, ok := p.equal(q.until("and", "or", "between", "case", "current"), table, alias)
		switch {
		case q.at < len(q.tokens) && !q.peek().Is("and"):
			return false
		case ok:
			out.Conditions = append(out.Conditions, a)
		default:
			out.Only = false
		}
	}
	return true
}

// equal reads column = value, either way round.
func (p *planner) equal(tokens []Token, table, alias string) (Assignment, bool) {
	if len(tokens) > operandMax {
		return Assignment{}, false
	}
	for len(tokens) > 2 && tokens[0].Is("(") && closes(tokens) {
		tokens = tokens[1 : len(tokens)-1]
	}
	at := slices.IndexFunc(tokens, func(t Token) bool { return t.Is("=") })
	if at < 0 {
		return Assignment{}, false
	}
	left, right := tokens[:at], tokens[at+1:]
	for range 2 {
		if column, ok := columnOf(left, table, alias); ok {
			if v := p.operand(right, ""); v.Kind == Constant && !v.IsNull || v.Kind == Literal || v.Kind == Param {
				return Assignment{column, v}, true
			}
		}
		left, right = right, left
	}
	return Assignment{}, false
}

// closes tells whether the first parenthesis is closed by the last token.
func closes(tokens []Token) bool {
	p := planner{tokens: tokens, at: 1}
	p.until(")")
	return p.at == len(tokens)-1
}

// columnOf is the column that tokens name, of this table or any.
func columnOf(tokens []Token, table, alias string) (string, bool) {
	if len(tokens) == 3 && tokens[1].Is(".") && isName(tokens[0]) && tokens[0].Text == cmp.Or(alias, table) {
		tokens = tokens[2:]
	}
	if len(tokens) == 1 && isName(tokens[0]) {
		return tokens[0].Text, true
	}
	return "", false
}

// values are words that are no columns.
var values = map[string]bool{"true": true, "false": true, "null": true, "default": true, "current_date": true,
	"current_time":      true,
	"current_timestamp": true, "localtime": true, "localtimestamp": true, "current_user": true, "session_user": true,
	"user":         true,
	"current_role": true, "current_catalog": true, "current_schema": true, "not": true}

func isName(t Token) bool { return t.Kind == TokenName || t.Kind == TokenWord && !values[t.Text] }

// operandMax is how many tokens a value may have to be looked into.
const operandMax = 32

// casts are types to which a constant may be cast without becoming another one.
var casts = map[string]Class{"int": ClassInt, "integer": ClassInt, "int2": ClassInt, "int4": ClassInt, "int8": ClassInt,
	"bigint": ClassInt, "smallint": ClassInt, "text": ClassText, "uuid": ClassUUID, "bool": ClassBool, "boolean": ClassBool, "numeric": ClassNumeric}

// operand works out a value. column is what it is given to, or empty.
func (p *planner) operand(tokens []Token, column string) Operand {
	if len(tokens) > operandMax {
		return Operand{}
	}
	for len(tokens) > 2 && tokens[0].Is("(") && closes(tokens) {
		tokens = tokens[1 : len(tokens)-1]
	}
	if n := len(tokens); n > 2 && tokens[n-2].Is("::") && tokens[n-1].Kind == TokenWord &&
		casts[tokens[n-1].Text] != NoClass {
		v := p.operand(tokens[:n-2], "")
		if v.Kind == Delta || v.Kind == Default || v.Kind == Excluded || v.Cast != NoClass {
			return Operand{}
		}
		v.Cast = casts[tokens[n-1].Text]
		return v
	}
	switch {
	case len(tokens) == 1:
		t := tokens[0]
		switch {
		case t.Kind == TokenNumber || t.Kind == TokenString:
			return Operand{Kind: Literal, N: t.N}
		case t.Kind == TokenParam:
			n, err := strconv.Atoi(t.Text)
			if err != nil || n < 1 {
				return Operand{}
			}
			return Operand{Kind: Param, N: n - 1}
		case t.Is("null"):
			return Operand{Kind: Constant, IsNull: true}
		case t.Is("true"), t.Is("false"):
			return Operand{Kind: Constant, Text: t.Text}
		case t.Is("default"):
			return Operand{Kind: Default}
		}
	case len(tokens) == 2 && (tokens[0].Is("-") || tokens[0].Is("+")) && tokens[1].Kind == TokenNumber:
		return Operand{Kind: Literal, N: tokens[1].N, Negative: tokens[0].Is("-")}
	case column == "":
	case len(tokens) == 3 && tokens[0].Is("excluded") && tokens[1].Is(".") && tokens[2].Text == column:
		return Operand{Kind: Excluded}
	case len(tokens) >= 3 && isName(tokens[0]) && tokens[0].Text == column && (tokens[1].Is("+") || tokens[1].Is("-")):
		by := p.operand(tokens[2:], "")
		if by.Kind == Literal || by.Kind == Param {
			return Operand{Kind: Delta, Negative: tokens[1].Is("-"), By: &by}
		}
	}
	return Operand{}
}

func (p *planner) peek() Token {
	if p.at < len(p.tokens) {
		return p.tokens[p.at]
	}
	return Token{Kind: TokenSealed}
}

func (p *planner) next() Token {
	t := p.peek()
	p.at = min(p.at+1, len(p.tokens))
	return t
}

// need takes the word, which has to stand there.
func (p *planner) need(word string) { p.bad = !p.take(word) || p.bad }

// one reads the name of a column, which has to stand there, and table that of a table.
func (p *planner) one() string {
	c, ok := p.column()
	p.bad = p.bad || !ok
	return c
}

func (p *planner) table() Name {
	n, ok := p.name()
	p.bad = p.bad || !ok
	return n
}

// take goes on if the next token is the word.
func (p *planner) take(word string) bool {
	if !p.peek().Is(word) {
		return false
	}
	p.at++
	return true
}

// until is what comes before one of the words, outside of parentheses.
func (p *planner) until(words ...string) []Token {
	from, depth := p.at, 0
	for ; p.at < len(p.tokens); p.at++ {
		t := p.tokens[p.at]
		if depth == 0 && slices.ContainsFunc(words, t.Is) {
			break
		}
		if t.Is("(") || t.Is("[") {
			depth++
		} else if t.Is(")") || t.Is("]") {
			depth--
		}
	}
	return p.tokens[from:p.at]
}

// column reads a name.
func (p *planner) column() (string, bool) {
	t := p.next()
	return t.Text, isName(t)
}

// columns reads names in parentheses.
func (p *planner) columns() []string {
	out := []string{}
	p.list(func() { out = append(out, p.one()) })
	return out
}

// name reads a table's name.
func (p *planner) name() (Name, bool) {
	t, ok := p.column()
	if !ok {
		return Name{}, false
	}
	if !p.take(".") {
		return Name{Table: t}, true
	}
	second, ok := p.column()
	if ok && p.take(".") { // with its database
		t += "." + second
		second, ok = p.column()
	}
	return Name{t, second}, ok && !p.peek().Is(".")
}

// alias reads another name for the table, if there is one before the words.
func (p *planner) alias(words ...string) (string, bool) {
	if p.take("as") {
		return p.column()
	}
	if p.at == len(p.tokens) || slices.ContainsFunc(words, p.peek().Is) {
		return "", true
	}
	return p.column()
}

// survey looks at every token: for what is written, and for what may be functions. It makes what the statement does
// less certain, never more.
func (p *planner) survey(out *Plan) {
	var written []Name
	all := false
	tokens := p.tokens
	is := func(i int, words ...string) bool {
		return i >= 0 && i < len(tokens) && slices.ContainsFunc(words, tokens[i].Is)
	}
	for i, t := range tokens {
		p.at = i + 1
		switch {
		case t.Is("(") && i > 0 && isName(tokens[i-1]):
			out.Calls = append(out.Calls, tokens[i-1].Text)
		case t.Is("into"):
			if !is(i-1, "insert", "merge") {
				all = true // SELECT INTO makes a table
				continue
			}
		case t.Is("delete") && is(i+1, "from"):
			p.at++
		case t.Is("update"):
			if is(i-1, "for", "key", "do", "on", "then") || is(i+1, "set") {
				continue
			}
		case t.Is("truncate") && i == 0:
			p.take("table")
			if slices.ContainsFunc(tokens, func(t Token) bool { return t.Is("cascade") }) {
				all = true
			}
		case t.Is("copy") && i == 0:
			if is(1, "(") || !slices.ContainsFunc(tokens, func(t Token) bool { return t.Is("from") }) {
				continue
			}
		default:
			continue
		}
		if t.Is("(") {
			continue
		}
		for {
			p.take("only")
			n, ok := p.name()
			if !ok {
				all = true
				break
			}
			written = append(written, n)
			p.take("*")
			if !t.Is("truncate") || !p.take(",") {
				break
			}
		}
	}
	switch {
	case out.Verb == Anything:
	case all:
		out.Verb = Anything
	case out.Verb == Define && len(written) > 0, out.Verb >= Begin && len(written) > 0:
		out.Verb = Anything
	case out.Verb == Insert || out.Verb == Update || out.Verb == Delete:
		if len(written) != 1 || written[0] != out.Target {
			out.Verb, out.Writes = WriteTables, written
		}
	case len(written) > 0:
		out.Verb, out.Writes = WriteTables, written
	case is(0, "insert", "update", "delete", "merge"):
		out.Verb = Anything
	}
}
