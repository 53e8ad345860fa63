package postgres

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// verb is what a statement does.
type verb uint8

const (
	vQuiet      verb = iota // nothing to the tables that are recorded
	vSelect                 // reads
	vInsert                 // writes, as rows, sets and returning say
	vUpdate                 // likewise
	vDelete                 // likewise
	vTables                 // writes the tables in writes, it is not known what
	vDefine                 // changes which tables there are; may write those in writes
	vAnything               // may write anything
	vBegin                  // begins a transaction
	vCommit                 // ends it
	vRollback               // likewise
	vSavepoint              // name
	vRollbackTo             // name
	vRelease                // name
	vPrepare                // prepares the transaction to be committed by another session
)

// name is a table's as a statement has it; schema may be empty.
type name struct{ schema, table string }

// operandKind is what a value in a statement is.
type operandKind uint8

const (
	oOpaque   operandKind = iota // not worked out
	oConstant                    // text, or null
	oLiteral                     // the literal with this number
	oParam                       // the parameter with this number, from 0 on
	oDefault                     // the column's default
	oDelta                       // the column's own value, and what by says, added or taken away
	oExcluded                    // what was to be inserted into the column
)

// operand is a value in a statement.
type operand struct {
	kind     operandKind
	n        int // of oLiteral and oParam
	text     string
	isNull   bool
	negative bool // of a number: a minus in front of it; of oDelta: taken away
	by       *operand
	cast     class // that it is cast to; notHeld: to none
}

// assignment is a column and what it is given, or has to equal.
type assignment struct {
	column string
	value  operand
}

// conflict is what an INSERT does with a row that is there.
type conflict uint8

const (
	conflictFails conflict = iota
	conflictNothing
	conflictUpdate
)

// plan is what a statement does, worked out from its text alone. Its literals are those of one execution, by number.
type plan struct {
	verb verb
	text string // as counted: without its literals
	name string // of a savepoint
	// chain: another transaction begins where this one ends.
	chain bool

	target name // of vInsert, vUpdate, vDelete; of a vSelect from one table
	single bool // a vSelect is from target alone
	// conditions are columns that have to equal a value, all of them; only says that there is no other condition, and
	// nothing else that leaves out rows.
	conditions []assignment
	only       bool
	columns    []string       // of vInsert; nil: all of the table
	rows       [][]operand    // of vInsert
	loose      bool           // it is not known which rows vInsert, vUpdate and vDelete write
	sets       []assignment   // of vUpdate, and of vInsert for a row that is there
	conflict   conflict       //
	conflictOn []string       // its columns; nil: not given
	returning  []string       // names of columns; * for all
	plain      bool           // a vSelect whose output columns, where they are a table's, are of one row of it
	mentions   map[string]int // how often a vSelect has a word that may be a table's name
	writes     []name         // of vTables and vDefine
	temporary  []string       // tables that are the connection's own from here on
	calls      []string       // what may be functions
	searches   bool           // names are looked up in other schemas from here on
}

// planner reads the tokens of a statement.
type planner struct {
	tokens []token
	at     int
	bad    bool // something else stands there than precise can read
}

// plansOf are the statements of a text whose tokens these are. A statement without tokens is none.
func plansOf(tokens []token) []*plan {
	if hasBody(tokens) {
		return []*plan{{verb: vAnything, text: textOf(tokens)}}
	}
	var out []*plan
	depth, from := 0, 0
	for i := 0; i <= len(tokens); i++ {
		if i < len(tokens) {
			if tokens[i].is("(") {
				depth++
			} else if tokens[i].is(")") {
				depth--
			}
			if depth > 0 || !tokens[i].is(";") {
				continue
			}
		}
		statement := tokens[from:i]
		if len(statement) > 0 {
			out = append(out, planOf(statement))
		}
		from = i + 1
	}
	return out
}

// hasBody tells whether a function's body, with semicolons in it, may stand in the text.
func hasBody(tokens []token) bool {
	for i := 1; i < len(tokens); i++ {
		if tokens[i].is("atomic") && tokens[i-1].is("begin") {
			return true
		}
	}
	return false
}

// textMax is how much of a statement's text is kept to count it by.
const textMax = 400

// textOf is a statement without its literals.
func textOf(tokens []token) string {
	var b strings.Builder
	for i, t := range tokens {
		if b.Len() > textMax {
			return b.String()[:textMax] + " …"
		}
		if i > 0 && !t.is(")") && !t.is(",") && !t.is(".") && !tokens[i-1].is("(") && !tokens[i-1].is(".") {
			b.WriteByte(' ')
		}
		switch t.kind {
		case tNumber, tString, tSealed:
			b.WriteByte('?')
		case tParam:
			b.WriteString("$" + t.text)
		case tQuoted:
			b.WriteString(`"` + t.text + `"`)
		default:
			b.WriteString(t.text)
		}
	}
	return b.String()
}

// planOf works out one statement.
func planOf(tokens []token) *plan {
	p := &planner{tokens: tokens}
	out := p.statement()
	out.text = textOf(tokens)
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
	"copy":    true, "truncate": true, "with": true, "values": true, "table": true, "merge": true, "(": true, "load": true}

// statement reads a statement; what it can't read in full is left to survey.
func (p *planner) statement() *plan {
	first := p.peek()
	switch {
	case first.is("select"):
		return p.query()
	case first.is("insert"):
		return p.precise(p.insert, vInsert)
	case first.is("update"):
		return p.precise(p.update, vUpdate)
	case first.is("delete"):
		return p.precise(p.delete, vDelete)
	case first.is("begin"), first.is("start"):
		return &plan{verb: vBegin}
	case first.is("commit"), first.is("end"), first.is("rollback"), first.is("abort"):
		return p.end()
	case first.is("savepoint"):
		p.at++
		return &plan{verb: vSavepoint, name: p.next().text}
	case first.is("release"):
		p.at++
		p.take("savepoint")
		return &plan{verb: vRelease, name: p.next().text}
	case first.is("prepare") && p.tokens[min(1, len(p.tokens)-1)].is("transaction"):
		return &plan{verb: vPrepare}
	case first.is("create"), first.is("alter"), first.is("drop"):
		return p.define()
	case first.kind != tQuoted && quiet[first.text]:
		return &plan{verb: vQuiet}
	}
	return &plan{verb: vAnything}
}

func (p *planner) end() *plan {
	word := p.next()
	for p.take("work") || p.take("transaction") {
	}
	if p.take("prepared") {
		return &plan{verb: vQuiet} // of another transaction, whose outcome is not known here
	}
	if p.take("to") {
		p.take("savepoint")
		return &plan{verb: vRollbackTo, name: p.next().text}
	}
	v := vCommit
	if word.is("rollback") || word.is("abort") {
		v = vRollback
	}
	return &plan{verb: v, chain: p.take("and") && p.take("chain")}
}

// define reads what changes which tables there are.
func (p *planner) define() *plan {
	out := &plan{verb: vDefine}
	word := p.next()
	for p.take("unlogged") || p.take("global") || p.take("local") || p.take("unique") {
	}
	temporary := word.is("create") && (p.take("temp") || p.take("temporary"))
	what := p.next()
	if what.is("index") || what.is("sequence") || what.is("schema") || what.is("extension") || what.is("type") ||
		what.is("database") ||
		what.is("role") || what.is("user") {
		if word.is("create") || what.is("index") || what.is("sequence") {
			return out
		}
	}
	if !what.is("table") {
		return &plan{verb: vAnything}
	}
	for p.take("if") || p.take("not") || p.take("exists") || p.take("only") {
	}
	for {
		n, ok := p.name()
		if !ok {
			return &plan{verb: vAnything}
		}
		p.take("*")
		if temporary {
			out.temporary = append(out.temporary, n.table)
		}
		out.writes = append(out.writes, n)
		if !word.is("drop") || !p.take(",") {
			return out
		}
	}
}

// precise reads a statement that writes. If it can't be read in full, what is written is the table that it names.
func (p *planner) precise(read func(*plan), v verb) *plan {
	out := &plan{verb: v}
	if read(out); !p.bad && p.at == len(p.tokens) {
		return out
	}
	return &plan{verb: vQuiet} // survey finds its table
}

// query reads a SELECT.
func (p *planner) query() *plan {
	out := &plan{verb: vSelect, plain: true, mentions: map[string]int{}}
	selects := 0
	for i, t := range p.tokens {
		switch {
		case t.is("select"):
			selects++
		case t.is("union"), t.is("intersect"), t.is("except"), t.is("group"), t.is("having"), t.is("distinct"),
			t.is("window"), t.is("with"),
			t.is("values"), t.is("returning"), t.is("tablesample"):
			out.plain = false
		}
		if (t.kind == tWord || t.kind == tQuoted) && !(i+1 < len(p.tokens) && p.tokens[i+1].is(".")) {
			out.mentions[t.text]++
		}
	}
	if out.plain = out.plain && selects == 1; !out.plain {
		return out
	}
	depth, from := 0, -1
	for i, t := range p.tokens {
		switch {
		case t.is("("):
			depth++
		case t.is(")"):
			depth--
		case t.is("from") && depth == 0 && from < 0:
			from = i
		}
	}
	if from < 0 {
		return out
	}
	p.at = from + 1
	p.take("only")
	n, ok := p.name()
	if !ok {
		return out
	}
	alias, ok := p.alias("where", "order", "limit", "offset", "for", "fetch")
	if !ok {
		return out
	}
	if p.take("where") {
		if !p.conditions(out, n.table, alias, "order", "limit", "offset", "for", "fetch") {
			return out
		}
	} else if p.at < len(p.tokens) && !p.peek().is("order") && !p.peek().is("limit") && !p.peek().is("for") && !p.peek().
		is("offset") && !p.peek().is("fetch") {
		return out // more tables
	}
	out.target, out.single = n, true
	for _, t := range p.tokens[p.at:] {
		if t.is("limit") || t.is("offset") || t.is("fetch") || t.is("skip") || t.is("locked") {
			out.only = false
		}
	}
	return out
}

func (p *planner) insert(out *plan) {
	p.at++
	p.need("into")
	out.target = p.table()
	if p.take("as") {
		p.one()
	}
	if p.peek().is("(") {
		out.columns = p.columns()
	}
	p.need("values")
	for more := true; more; more = p.take(",") {
		out.rows = append(out.rows, p.row(out.columns))
	}
	if p.take("on") {
		p.conflict(out)
	}
	p.returned(out)
}

// conflict reads what stands behind ON.
func (p *planner) conflict(out *plan) {
	p.need("conflict")
	switch {
	case p.peek().is("("):
		out.conflictOn = p.columns()
	case p.peek().is("on"):
		p.bad = true // a constraint's name
	}
	p.need("do")
	switch {
	case p.take("nothing"):
		out.conflict = conflictNothing
	case p.take("update") && p.take("set"):
		out.conflict = conflictUpdate
		p.assignments(out, "returning")
	default:
		p.bad = true
	}
}

func (p *planner) update(out *plan) {
	p.at++
	p.take("only")
	out.target = p.table()
	alias, ok := p.alias("set")
	p.need("set")
	p.assignments(out, "where", "returning", "from")
	p.bad = p.bad || !ok || p.peek().is("from")
	p.rest(out, alias)
}

func (p *planner) delete(out *plan) {
	p.at++
	p.need("from")
	p.take("only")
	out.target = p.table()
	alias, ok := p.alias("where", "returning", "using")
	p.bad = p.bad || !ok || p.peek().is("using")
	p.rest(out, alias)
}

// rest reads WHERE and RETURNING of what changes rows.
func (p *planner) rest(out *plan, alias string) {
	out.loose = !p.take("where") || !p.conditions(out, out.target.table, alias, "returning")
	p.returned(out)
}

// returned reads RETURNING, if there is one. What is no column alone is passed over.
func (p *planner) returned(out *plan) {
	for more := p.take("returning"); more; more = p.take(",") {
		item := p.until(",")
		switch {
		case len(item) == 0, slices.ContainsFunc(item, func(t token) bool {
			return t.is("old") || t.is("new") || t.is("select") // old.x and new.x say which of the two is returned
		}):
			p.bad = true
		case len(item) == 1 && (item[0].kind == tWord || item[0].kind == tQuoted) || len(item) == 1 && item[0].is("*"):
			out.returning = append(out.returning, item[0].text)
		case len(item) == 3 && item[1].is(".") && item[2].kind != tNumber:
			out.returning = append(out.returning, item[2].text)
		}
	}
}

// row reads the values of a row that is inserted.
func (p *planner) row(columns []string) (out []operand) {
	p.list(func() {
		v := p.operand(p.until(",", ")"), "")
		if v.kind == oDelta || v.kind == oExcluded {
			v = operand{}
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
func (p *planner) assignments(out *plan, ends ...string) {
	for more := true; more; more = p.take(",") {
		column := p.one()
		p.need("=")
		out.sets = append(out.sets, assignment{column, p.operand(p.until(append([]string{","}, ends...)...), column)})
	}
}

// conditions reads a WHERE up to one of the words. It is false if rows can't be told by what has to be equal, as it
// may be otherwise.
func (p *planner) conditions(out *plan, table, alias string, ends ...string) bool {
	tokens := p.until(ends...)
	out.only = true
	depth, from := 0, 0
	for i := 0; i <= len(tokens); i++ {
		if i < len(tokens) {
			t := tokens[i]
			switch {
			case t.is("("):
				depth++
			case t.is(")"):
				depth--
			case depth == 0 && (t.is("or") || t.is("between") || t.is("case") || t.is("current")):
				return false
			}
			if depth > 0 || !t.is("and") {
				continue
			}
		}
		if a, ok := p.equal(tokens[from:i], table, alias); ok {
			out.conditions = append(out.conditions, a)
		} else {
			out.only = false
		}
		from = i + 1
	}
	return true
}

// equal reads column = value, either way round.
func (p *planner) equal(tokens []token, table, alias string) (assignment, bool) {
	if len(tokens) > operandMax {
		return assignment{}, false
	}
	for len(tokens) > 2 && tokens[0].is("(") && closes(tokens) {
		tokens = tokens[1 : len(tokens)-1]
	}
	at := slices.IndexFunc(tokens, func(t token) bool { return t.is("=") })
	if at < 0 {
		return assignment{}, false
	}
	left, right := tokens[:at], tokens[at+1:]
	for range 2 {
		if column, ok := columnOf(left, table, alias); ok {
			if v := p.operand(right, ""); v.kind == oConstant && !v.isNull || v.kind == oLiteral || v.kind == oParam {
				return assignment{column, v}, true
			}
		}
		left, right = right, left
	}
	return assignment{}, false
}

// closes tells whether the first parenthesis is closed by the last token.
func closes(tokens []token) bool {
	depth := 0
	for i, t := range tokens {
		if t.is("(") {
			depth++
		} else if t.is(")") {
			if depth--; depth == 0 {
				return i == len(tokens)-1
			}
		}
	}
	return false
}

// columnOf is the column that tokens name, of this table or any.
func columnOf(tokens []token, table, alias string) (string, bool) {
	if len(tokens) == 3 && tokens[1].is(".") && isName(tokens[0]) && tokens[0].text == cmp.Or(alias, table) {
		tokens = tokens[2:]
	}
	if len(tokens) == 1 && isName(tokens[0]) {
		return tokens[0].text, true
	}
	return "", false
}

// values are words that are no columns.
var values = map[string]bool{"true": true, "false": true, "null": true, "default": true, "current_date": true,
	"current_time":      true,
	"current_timestamp": true, "localtime": true, "localtimestamp": true, "current_user": true, "session_user": true,
	"user":         true,
	"current_role": true, "current_catalog": true, "current_schema": true, "not": true}

func isName(t token) bool { return t.kind == tQuoted || t.kind == tWord && !values[t.text] }

// operandMax is how many tokens a value may have to be looked into.
const operandMax = 32

// casts are types to which a constant may be cast without becoming another one.
var casts = map[string]class{"int": cInt, "integer": cInt, "int2": cInt, "int4": cInt, "int8": cInt, "bigint": cInt,
	"smallint": cInt,
	"text":     cText, "uuid": cUUID, "bool": cBool, "boolean": cBool, "numeric": cNumeric}

// operand works out a value. column is what it is given to, or empty.
func (p *planner) operand(tokens []token, column string) operand {
	if len(tokens) > operandMax {
		return operand{}
	}
	for len(tokens) > 2 && tokens[0].is("(") && closes(tokens) {
		tokens = tokens[1 : len(tokens)-1]
	}
	if n := len(tokens); n > 2 && tokens[n-2].is("::") && tokens[n-1].kind == tWord && casts[tokens[n-1].text] != notHeld {
		v := p.operand(tokens[:n-2], "")
		if v.kind == oDelta || v.kind == oDefault || v.kind == oExcluded || v.cast != notHeld {
			return operand{}
		}
		v.cast = casts[tokens[n-1].text]
		return v
	}
	switch {
	case len(tokens) == 1:
		t := tokens[0]
		switch {
		case t.kind == tNumber || t.kind == tString:
			return operand{kind: oLiteral, n: t.n}
		case t.kind == tParam:
			n, err := strconv.Atoi(t.text)
			if err != nil || n < 1 {
				return operand{}
			}
			return operand{kind: oParam, n: n - 1}
		case t.is("null"):
			return operand{kind: oConstant, isNull: true}
		case t.is("true"), t.is("false"):
			return operand{kind: oConstant, text: t.text}
		case t.is("default"):
			return operand{kind: oDefault}
		}
	case len(tokens) == 2 && (tokens[0].is("-") || tokens[0].is("+")) && tokens[1].kind == tNumber:
		return operand{kind: oLiteral, n: tokens[1].n, negative: tokens[0].is("-")}
	case column == "":
	case len(tokens) == 3 && tokens[0].is("excluded") && tokens[1].is(".") && tokens[2].text == column:
		return operand{kind: oExcluded}
	case len(tokens) >= 3 && isName(tokens[0]) && tokens[0].text == column && (tokens[1].is("+") || tokens[1].is("-")):
		by := p.operand(tokens[2:], "")
		if by.kind == oLiteral || by.kind == oParam {
			return operand{kind: oDelta, negative: tokens[1].is("-"), by: &by}
		}
	}
	return operand{}
}

func (p *planner) peek() token {
	if p.at < len(p.tokens) {
		return p.tokens[p.at]
	}
	return token{kind: tSealed}
}

func (p *planner) next() token {
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

func (p *planner) table() name {
	n, ok := p.name()
	p.bad = p.bad || !ok
	return n
}

// take goes on if the next token is the word.
func (p *planner) take(word string) bool {
	if !p.peek().is(word) {
		return false
	}
	p.at++
	return true
}

// until is what comes before one of the words, outside of parentheses.
func (p *planner) until(words ...string) []token {
	from, depth := p.at, 0
	for ; p.at < len(p.tokens); p.at++ {
		t := p.tokens[p.at]
		if depth == 0 && slices.ContainsFunc(words, t.is) {
			break
		}
		if t.is("(") || t.is("[") {
			depth++
		} else if t.is(")") || t.is("]") {
			depth--
		}
	}
	return p.tokens[from:p.at]
}

// column reads a name.
func (p *planner) column() (string, bool) {
	t := p.next()
	return t.text, isName(t)
}

// columns reads names in parentheses.
func (p *planner) columns() []string {
	out := []string{}
	p.list(func() { out = append(out, p.one()) })
	return out
}

// name reads a table's name.
func (p *planner) name() (name, bool) {
	t, ok := p.column()
	if !ok {
		return name{}, false
	}
	if !p.take(".") {
		return name{table: t}, true
	}
	second, ok := p.column()
	return name{t, second}, ok && !p.peek().is(".")
}

// alias reads another name for the table, if there is one before the words.
func (p *planner) alias(words ...string) (string, bool) {
	if p.take("as") {
		return p.column()
	}
	if p.at == len(p.tokens) || slices.ContainsFunc(words, p.peek().is) {
		return "", true
	}
	return p.column()
}

// survey looks at every token: for what is written, and for what may be functions. It makes what the statement does
// less certain, never more.
func (p *planner) survey(out *plan) {
	var written []name
	all := false
	tokens := p.tokens
	is := func(i int, words ...string) bool {
		return i >= 0 && i < len(tokens) && slices.ContainsFunc(words, tokens[i].is)
	}
	for i, t := range tokens {
		p.at = i + 1
		switch {
		case t.is("(") && i > 0 && isName(tokens[i-1]):
			out.calls = append(out.calls, tokens[i-1].text)
		case t.is("into"):
			if !is(i-1, "insert", "merge") {
				all = true // SELECT INTO makes a table
				continue
			}
		case t.is("delete") && is(i+1, "from"):
			p.at++
		case t.is("update"):
			if is(i-1, "for", "key", "do", "on", "then") || is(i+1, "set") {
				continue
			}
		case t.is("truncate") && i == 0:
			p.take("table")
			if slices.ContainsFunc(tokens, func(t token) bool { return t.is("cascade") }) {
				all = true
			}
		case t.is("copy") && i == 0:
			if is(1, "(") || !slices.ContainsFunc(tokens, func(t token) bool { return t.is("from") }) {
				continue
			}
		case t.is("search_path"), t.is("set_config"), t.is("schema") && is(0, "set"):
			out.searches = true
			continue
		default:
			continue
		}
		if t.is("(") {
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
			if !t.is("truncate") || !p.take(",") {
				break
			}
		}
	}
	switch {
	case out.verb == vAnything:
	case all:
		out.verb = vAnything
	case out.verb == vDefine && len(written) > 0, out.verb >= vBegin && len(written) > 0:
		out.verb = vAnything
	case out.verb == vInsert || out.verb == vUpdate || out.verb == vDelete:
		if len(written) != 1 || written[0] != out.target {
			out.verb, out.writes = vTables, written
		}
	case len(written) > 0:
		out.verb, out.writes = vTables, written
	case is(0, "insert", "update", "delete", "merge"):
		out.verb = vAnything
	}
}
