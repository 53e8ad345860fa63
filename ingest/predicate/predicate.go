package predicate

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/isowatch/isowatch/ingest/record"
)

// truth is a value of SQL's logic; the order is that of "and" and "or".
type truth uint8

const (
	no truth = iota
	unknown
	yes
)

func truthOf(b bool) truth {
	if b {
		return yes
	}
	return no
}

// Predicate is a condition on the columns of one row. It is immutable.
type Predicate struct{ root node }

// Match tells whether a row matches: an object with a value for each column, or null where there is no row.
// An error is about values that can't be compared, or a row that is no object. O(size of the condition).
func (p *Predicate) Match(row record.Value) (bool, error) {
	if row.IsNull() {
		return false, nil
	}
	if row.Kind != record.KindObject {
		return false, fmt.Errorf("the row %s is no object with columns", row)
	}
	return p.match(row.Fields())
}

func (p *Predicate) match(columns map[string]record.Value) (bool, error) {
	t, err := p.root.eval(columns)
	return t == yes, err
}

// String is the canonical text of the condition: equal conditions that are spelled differently have the same.
func (p *Predicate) String() string { return p.root.text() }

// columns are those that the condition names.
func (p *Predicate) columns() map[string]bool {
	out := map[string]bool{}
	p.root.name(out)
	return out
}

// node is a part of a condition.
type node interface {
	eval(row map[string]record.Value) (truth, error)
	text() string
	name(columns map[string]bool) // adds the columns that are named
	// compares is an error if that can't be compared which columns hold, by examples of each kind.
	compares(kinds map[string][]record.Value) error
}

// operand is a column, or a constant if that has no name.
type operand struct {
	column   string
	divisor  int64 // not 0: what is left of the column when it is divided, with the sign of the column
	constant record.Value
}

func (o operand) of(row map[string]record.Value) record.Value {
	if o.column != "" {
		return o.rest(row[o.column]) // null if it is not there
	}
	return o.constant
}

// rest is what is left of what the column holds. Of anything but an integer it is what compares with nothing.
func (o operand) rest(v record.Value) record.Value {
	switch {
	case o.divisor == 0 || v.IsNull():
		return v
	case v.Kind != record.KindInt:
		return record.ObjectOf(map[string]record.Value{o.text(): v})
	}
	return record.Int(v.Num % o.divisor)
}

func (o operand) text() string {
	if o.column == "" {
		return constantText(o.constant)
	}
	name := o.column
	if !isWord(name) || reserved(name) {
		name = "`" + name + "`"
	}
	if o.divisor != 0 {
		name += " % " + strconv.FormatInt(o.divisor, 10)
	}
	return name
}

func (o operand) name(columns map[string]bool) {
	if o.column != "" {
		columns[o.column] = true
	}
}

// kinds are examples of what the operand holds.
func (o operand) kinds(of map[string][]record.Value) []record.Value {
	if o.column == "" {
		return []record.Value{o.constant}
	}
	held := of[o.column]
	if o.divisor != 0 {
		held = slices.Clone(held)
		for i, v := range held {
			held[i] = o.rest(v)
		}
	}
	return held
}

// constantText is a constant as the canonical text has it: texts in single quotes, unless JSON's are needed.
func constantText(v record.Value) string {
	if v.Kind == record.KindString && !strings.ContainsFunc(v.Text,
		func(c rune) bool { return c < ' ' || c == '\'' || c == '\\' }) {
		return "'" + v.Text + "'"
	}
	return v.String()
}

// always is a constant condition.
type always bool

func (a always) eval(map[string]record.Value) (truth, error) { return truthOf(bool(a)), nil }
func (a always) text() string                                { return strconv.FormatBool(bool(a)) }
func (a always) name(map[string]bool)                        {}
func (a always) compares(map[string][]record.Value) error    { return nil }

// comparison is "left op right", with op one of == != < <= > >=.
type comparison struct {
	left, right operand
	op          string
}

func (c comparison) eval(row map[string]record.Value) (truth, error) {
	l, r := c.left.of(row), c.right.of(row)
	if l.IsNull() || r.IsNull() {
		return unknown, nil
	}
	n, err := compare(l, r)
	if err != nil {
		return unknown, fmt.Errorf("%s: %w", c.text(), err)
	}
	switch c.op {
	case "==":
		return truthOf(n == 0), nil
	case "!=":
		return truthOf(n != 0), nil
	case "<":
		return truthOf(n < 0), nil
	case "<=":
		return truthOf(n <= 0), nil
	case ">":
		return truthOf(n > 0), nil
	}
	return truthOf(n >= 0), nil
}

func (c comparison) text() string { return c.left.text() + " " + c.op + " " + c.right.text() }

func (c comparison) name(columns map[string]bool) {
	c.left.name(columns)
	c.right.name(columns)
}

func (c comparison) compares(kinds map[string][]record.Value) error {
	for _, l := range c.left.kinds(kinds) {
		for _, r := range c.right.kinds(kinds) {
			if _, err := compare(l, r); err != nil && !l.IsNull() && !r.IsNull() {
				return fmt.Errorf("%s: %w", c.text(), err)
			}
		}
	}
	return nil
}

// isNull is "operand is null".
type isNull struct{ of operand }

func (n isNull) eval(row map[string]record.Value) (truth, error) {
	return truthOf(n.of.of(row).IsNull()), nil
}
func (n isNull) text() string                 { return n.of.text() + " is null" }
func (n isNull) name(columns map[string]bool) { n.of.name(columns) }

func (n isNull) compares(map[string][]record.Value) error { return nil }

// startsWith is "operand like 'prefix%'".
type startsWith struct {
	of     operand
	prefix string
}

func (s startsWith) eval(row map[string]record.Value) (truth, error) {
	switch v := s.of.of(row); v.Kind {
	case record.KindNull:
		return unknown, nil
	case record.KindString:
		return truthOf(strings.HasPrefix(v.Text, s.prefix)), nil
	default:
		return unknown, fmt.Errorf("%s: %s is no text", s.text(), v)
	}
}
func (s startsWith) text() string {
	return s.of.text() + " like " + constantText(record.String(s.prefix+"%"))
}
func (s startsWith) name(columns map[string]bool) { s.of.name(columns) }

func (s startsWith) compares(kinds map[string][]record.Value) error {
	for _, v := range s.of.kinds(kinds) {
		if v.Kind != record.KindString && !v.IsNull() {
			return fmt.Errorf("%s: %s is no text", s.text(), v)
		}
	}
	return nil
}

// in is "operand in (constants)", which are sorted by their text, each once.
type in struct {
	of   operand
	list []record.Value
	set  map[record.Value]bool // the same, if all are integers, or all are texts
}

func (n in) eval(row map[string]record.Value) (truth, error) {
	if v := n.of.of(row); n.set != nil && v.Kind == n.list[0].Kind {
		return truthOf(n.set[v]), nil
	}
	out := no
	for _, c := range n.list {
		t, err := comparison{n.of, operand{constant: c}, "=="}.eval(row)
		if err != nil {
			return unknown, err
		}
		out = max(out, t)
	}
	return out, nil
}

func (n in) text() string {
	texts := make([]string, len(n.list))
	for i, c := range n.list {
		texts[i] = constantText(c)
	}
	return n.of.text() + " in (" + strings.Join(texts, ", ") + ")"
}

func (n in) name(columns map[string]bool) { n.of.name(columns) }

func (n in) compares(kinds map[string][]record.Value) error {
	for _, c := range n.list {
		if err := (comparison{n.of, operand{constant: c}, "=="}).compares(kinds); err != nil {
			return err
		}
	}
	return nil
}

// not, and, or: with unknown between no and yes.
type not struct{ of node }

func (n not) eval(row map[string]record.Value) (truth, error) {
	t, err := n.of.eval(row)
	return yes - t, err
}

func (n not) text() string                 { return "!(" + n.of.text() + ")" }
func (n not) name(columns map[string]bool) { n.of.name(columns) }

func (n not) compares(kinds map[string][]record.Value) error { return n.of.compares(kinds) }

type junction struct {
	or    bool
	parts []node // at least two, none of which is a junction of the same kind
}

// eval looks at all parts: an error in one is an error whatever the others say, so that it does not depend on their
// order.
func (j junction) eval(row map[string]record.Value) (truth, error) {
	out := truthOf(!j.or)
	for _, p := range j.parts {
		t, err := p.eval(row)
		if err != nil {
			return unknown, err
		}
		if j.or {
			out = max(out, t)
		} else {
			out = min(out, t)
		}
	}
	return out, nil
}

func (j junction) text() string {
	sign := " && "
	if j.or {
		sign = " || "
	}
	texts := make([]string, len(j.parts))
	for i, p := range j.parts {
		texts[i] = p.text()
		if _, inner := p.(junction); inner {
			texts[i] = "(" + texts[i] + ")"
		}
	}
	return strings.Join(texts, sign)
}

func (j junction) name(columns map[string]bool) {
	for _, p := range j.parts {
		p.name(columns)
	}
}

func (j junction) compares(kinds map[string][]record.Value) error {
	for _, p := range j.parts {
		if err := p.compares(kinds); err != nil {
			return err
		}
	}
	return nil
}

// compare is the order of two values that are not null.
func compare(a, b record.Value) (int, error) {
	switch {
	case a.Kind == record.KindInt && b.Kind == record.KindInt:
		return cmp.Compare(a.Num, b.Num), nil
	case isNumber(a) && isNumber(b):
		x, err := exact(a)
		if err != nil {
			return 0, err
		}
		y, err := exact(b)
		if err != nil {
			return 0, err
		}
		return x.Cmp(y), nil
	case a.Kind == b.Kind && (a.Kind == record.KindString || a.Kind == record.KindBool): // false before true
		return strings.Compare(a.Text, b.Text), nil
	}
	return 0, fmt.Errorf("%s and %s can't be compared", a, b)
}

func isNumber(v record.Value) bool { return v.Kind == record.KindInt || v.Kind == record.KindNumber }

// exponentMax bounds the numbers that are compared exactly: a power of ten has as many digits.
const exponentMax = 400

// exact is a number without rounding.
func exact(v record.Value) (*big.Rat, error) {
	if v.Kind == record.KindInt {
		return new(big.Rat).SetInt64(v.Num), nil
	}
	digits, exponent, _ := strings.Cut(strings.ToLower(v.Text), "e")
	if e, err := strconv.Atoi(exponent); len(digits) > exponentMax || exponent != "" &&
		(err != nil || e > exponentMax || e < -exponentMax) {
		return nil, fmt.Errorf("the number %.40s is too large to be compared", v.Text)
	}
	r, ok := new(big.Rat).SetString(v.Text)
	if !ok {
		return nil, fmt.Errorf("%.40s is no number", v.Text)
	}
	return r, nil
}
