package predicate

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/isowatch/isowatch/ingest/record"
)

// What a condition may have at most: bytes, and parentheses and nots within each other.
const (
	textMax  = 64 << 10
	depthMax = 100
)

// Parse reads a condition, or the tree of one in JSON: see Predicate.JSON. An error says what is not understood, and
// where: its byte, from 1, in that of the text that the tree stands for. O(len(text)).
func Parse(text string) (*Predicate, error) {
	if len(text) > textMax {
		return nil, fmt.Errorf("the condition has %d bytes, more than %d", len(text), textMax)
	}
	if strings.HasPrefix(text, "[") {
		var err error
		if text, err = textOf(text); err != nil {
			return nil, err
		}
	}
	p := parser{rest: text, size: len(text)}
	p.advance()
	n := p.disjunction(0)
	if p.kind != tokenEnd {
		p.unexpected("the end, && or ||")
	}
	if p.err != nil {
		return nil, p.err
	}
	return &Predicate{n}, nil
}

type tokenKind uint8

const (
	tokenEnd    tokenKind = iota
	tokenWord             // a column or a word of the language
	tokenColumn           // a column in backquotes
	tokenText
	tokenNumber
	tokenSign
	tokenBad
)

// parser has one token in hand; what comes behind it is rest. The first error stays, and nothing comes behind it.
type parser struct {
	rest  string
	size  int
	kind  tokenKind
	token string // what it says, without quotes
	at    int    // where it began
	err   error
}

// signs are tokens, longer ones before those that they begin with.
var signs = []string{"&&", "||", "==", "!=", "<>", "<=", ">=", "=", "<", ">", "!", "(", ")", ",", "%"}

func isLetter(c byte) bool {
	return c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= utf8.RuneSelf
}
func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isWord(s string) bool {
	for i := range len(s) {
		if !isLetter(s[i]) && (i == 0 || !isDigit(s[i]) && s[i] != '.') {
			return false
		}
	}
	return s != ""
}

// words are no columns, unless in backquotes.
var words = []string{"and", "or", "not", "in", "like", "between", "is", "null", "true", "false"}

func reserved(word string) bool { return slices.Contains(words, strings.ToLower(word)) }

// advance takes the next token.
func (p *parser) advance() {
	p.rest = strings.TrimLeft(p.rest, " \t\r\n")
	p.at = p.size - len(p.rest)
	if p.rest == "" {
		p.kind, p.token = tokenEnd, ""
		return
	}
	c, n := p.rest[0], 1
	switch {
	case isLetter(c):
		for n < len(p.rest) && (isLetter(p.rest[n]) || isDigit(p.rest[n]) || p.rest[n] == '.') {
			n++
		}
		p.kind, p.token = tokenWord, p.rest[:n]
	case isDigit(c), c == '-' && len(p.rest) > 1 && isDigit(p.rest[1]):
		for n < len(p.rest) && (isDigit(p.rest[n]) || strings.IndexByte(".eE", p.rest[n]) >= 0 ||
			strings.IndexByte("+-", p.rest[n]) >= 0 && strings.IndexByte("eE", p.rest[n-1]) >= 0) {
			n++
		}
		p.kind, p.token = tokenNumber, p.rest[:n]
	case c == '\'' || c == '`':
		n = p.quoted(c)
	case c == '"':
		n = p.json()
	default:
		p.kind, p.token = tokenBad, p.rest[:1]
		for _, s := range signs {
			if strings.HasPrefix(p.rest, s) {
				n, p.kind, p.token = len(s), tokenSign, s
				break
			}
		}
	}
	p.rest = p.rest[n:]
}

// quoted takes what stands between two quotes, of which two within stand for one, and says how long it is.
func (p *parser) quoted(quote byte) int {
	var text strings.Builder
	for i := 1; i < len(p.rest); i++ {
		if p.rest[i] != quote {
			text.WriteByte(p.rest[i])
			continue
		}
		if i+1 < len(p.rest) && p.rest[i+1] == quote {
			text.WriteByte(quote)
			i++
			continue
		}
		p.kind, p.token = tokenText, text.String()
		if quote == '`' {
			p.kind = tokenColumn
		}
		return i + 1
	}
	p.kind, p.token = tokenBad, p.rest
	return len(p.rest)
}

// json takes a text in double quotes, as JSON has it, and says how long it is.
func (p *parser) json() int {
	i := 1
	for i < len(p.rest) && p.rest[i] != '"' {
		if p.rest[i] == '\\' {
			i++
		}
		i++
	}
	if i >= len(p.rest) || json.Unmarshal([]byte(p.rest[:i+1]), &p.token) != nil {
		p.kind, p.token = tokenBad, p.rest
		return len(p.rest)
	}
	p.kind = tokenText
	return i + 1
}

// fail ends the condition with an error.
func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
	p.rest, p.kind, p.token = "", tokenEnd, ""
}

// unexpected says that the token in hand is none of what may stand there.
func (p *parser) unexpected(want string) {
	found := "the end"
	if p.kind != tokenEnd {
		found = strconv.Quote(fmt.Sprintf("%.40s", p.token))
	}
	p.fail("byte %d of the condition: want %s, found %s", p.at+1, want, found)
}

// is tells whether the token in hand is a sign or, in any case of letters, a word.
func (p *parser) is(texts ...string) bool {
	if p.kind != tokenSign && p.kind != tokenWord {
		return false
	}
	return slices.ContainsFunc(texts, func(t string) bool { return strings.EqualFold(t, p.token) })
}

// take advances if the token in hand is one of those.
func (p *parser) take(texts ...string) bool {
	if !p.is(texts...) {
		return false
	}
	p.advance()
	return true
}

func (p *parser) expect(text string) {
	if !p.take(text) {
		p.unexpected(strconv.Quote(text))
	}
}

func (p *parser) disjunction(depth int) node {
	return p.series(depth, true, p.conjunction, "||", "or")
}

func (p *parser) conjunction(depth int) node {
	return p.series(depth, false, p.negation, "&&", "and")
}

// series takes conditions with one of the signs between them.
func (p *parser) series(depth int, or bool, part func(int) node, signs ...string) node {
	var parts []node
	for {
		n := part(depth)
		if j, is := n.(junction); is && j.or == or {
			parts = append(parts, j.parts...)
		} else {
			parts = append(parts, n)
		}
		switch {
		case p.take(signs...):
		case len(parts) == 1:
			return parts[0]
		default:
			return junction{or, parts}
		}
	}
}

func (p *parser) negation(depth int) node {
	if depth == depthMax {
		p.fail("byte %d of the condition: more than %d parentheses and nots within each other", p.at+1, depthMax)
	}
	switch {
	case p.take("!", "not"):
		return not{p.negation(depth + 1)}
	case p.take("("):
		n := p.disjunction(depth + 1)
		p.expect(")")
		return n
	}
	return p.comparison()
}

// comparison takes what is compared, or a column or constant that is true or false by itself.
func (p *parser) comparison() node {
	left := p.operand()
	if p.is("==", "=", "!=", "<>", "<", "<=", ">", ">=") {
		op := p.token
		switch op {
		case "=":
			op = "=="
		case "<>":
			op = "!="
		}
		p.advance()
		return comparison{left, p.operand(), op}
	}
	if p.take("is") {
		negated := p.take("not")
		p.expect("null")
		return negate(negated, isNull{left})
	}
	negated := p.take("not")
	switch {
	case p.take("in"):
		return negate(negated, p.list(left))
	case p.take("between"):
		low := p.operand()
		p.expect("and")
		return negate(negated, junction{parts: []node{comparison{left, low, ">="}, comparison{left, p.operand(), "<="}}})
	case p.take("like"):
		return negate(negated, p.pattern(left))
	case negated:
		p.unexpected("in, between or like")
	case left.column != "" && left.divisor == 0:
		return comparison{left, operand{constant: boolean("true")}, "=="}
	case left.constant.Kind == record.KindBool:
		return always(left.constant.Text == "true")
	default:
		p.unexpected("a comparison")
	}
	return nil
}

func negate(negated bool, n node) node {
	if negated {
		return not{n}
	}
	return n
}

func (p *parser) list(of operand) node {
	n := in{of: of}
	p.expect("(")
	for more := true; more; more = p.take(",") {
		at := p.at
		o := p.operand()
		if o.column != "" {
			p.fail("byte %d of the condition: want a constant, found the column %q", at+1, o.column)
		}
		n.list = append(n.list, o.constant)
	}
	slices.SortFunc(n.list, func(a, b record.Value) int { return strings.Compare(a.String(), b.String()) })
	n.list = slices.Compact(n.list)
	if k := n.list[0].Kind; (k == record.KindInt || k == record.KindString) &&
		!slices.ContainsFunc(n.list, func(v record.Value) bool { return v.Kind != k }) {
		n.set = map[record.Value]bool{}
		for _, v := range n.list {
			n.set[v] = true
		}
	}
	p.expect(")")
	return n
}

// pattern takes the prefix of a like.
func (p *parser) pattern(of operand) node {
	prefix, found := strings.CutSuffix(p.token, "%")
	if p.kind != tokenText || !found || strings.ContainsAny(prefix, `%_\`) {
		p.unexpected("a prefix, 'abc%', as other patterns are not understood")
	}
	p.advance()
	return startsWith{of, prefix}
}

func boolean(text string) record.Value { return record.Value{Kind: record.KindBool, Text: text} }

// operand takes a column or a constant.
func (p *parser) operand() (o operand) {
	switch {
	case p.kind == tokenText:
		o.constant = record.String(p.token)
	case p.kind == tokenNumber:
		var ok bool
		if o.constant, ok = number(p.token); !ok {
			p.unexpected("a number")
		}
	case p.is("true", "false"):
		o.constant = boolean(strings.ToLower(p.token))
	case p.is("null"):
	case p.is("mod") && strings.HasPrefix(strings.TrimLeft(p.rest, " \t\r\n"), "("):
		p.advance()
		p.advance()
		o = p.operand()
		p.divide(&o, ",")
		if !p.is(")") {
			p.unexpected(strconv.Quote(")"))
		}
	case p.kind == tokenColumn && p.token != "" && !strings.Contains(p.token, "`"),
		p.kind == tokenWord && !reserved(p.token):
		o.column = p.token
	default:
		p.unexpected("a column or a constant")
	}
	if p.advance(); p.is("%") {
		p.divide(&o, "%")
	}
	return o
}

// divide takes the integer by which a column is divided, of which what is left counts.
func (p *parser) divide(o *operand, sign string) {
	p.expect(sign)
	n, err := strconv.ParseInt(p.token, 10, 64)
	if p.kind != tokenNumber || err != nil || n == 0 || o.column == "" || o.divisor != 0 {
		p.unexpected("a column, and behind it an integer that is not 0")
	}
	o.divisor = n
	p.advance()
}

// number is a constant as a record has it: an int64, or other digits that JSON allows.
func number(text string) (record.Value, bool) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return record.Int(n), true
	}
	return record.Value{Kind: record.KindNumber, Text: text}, json.Valid([]byte(text))
}
