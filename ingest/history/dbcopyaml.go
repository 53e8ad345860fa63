package history

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/dustin/go-humanize/english"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/reject"
)

// dbcop's YAML says what its bincode says (dbcop.go): a list of sessions, each a
// list of transactions {events: [{write, variable, value, success}], success},
// and 0 is what a key holds at first.

const (
	dbcopYAMLFormat = "dbcop-yaml"
	// dbcopYAMLMax bounds the bytes of a document, which the parser holds as a
	// tree some ten times as large.
	dbcopYAMLMax = 64 << 20
)

// looksDbcopYAML recognises how a list of lists of transactions begins, in block style
// or in flow style, which may be JSON; and success of events, which dbcop's JSON does not have.
var looksDbcopYAML = begins(`^\s*(?:#[^\n]*\n\s*|---\s+|%YAML[^\n]*\n\s*)*`+
	`(?:(?:-\s*(?:\[\s*\]\s+|\[\s*\{\s*)?)+|\[\s*(?:\[\s*\]\s*,\s*)*\[\s*\{\s*)["']?(?:events|success)["']?\s*:`,
	`["']?success["']?\s*:`)

func readDbcopYAML(in *input) ([]History, error) {
	text, err := io.ReadAll(io.LimitReader(in.r, dbcopYAMLMax+1))
	if err != nil {
		return nil, err
	}
	if len(text) > dbcopYAMLMax {
		return nil, in.reject(reject.TooLarge,
			"the YAML has more than %d bytes, the limit; dbcop's bincode and JSON have none", dbcopYAMLMax)
	}
	var document, more yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(blankHead(text)))
	if err := d.Decode(&document); err != nil && !errors.Is(err, io.EOF) {
		return nil, in.yamlError(err)
	}
	if err := d.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, in.reject(reject.BadStructure, "something follows the YAML document")
	}
	y := dbcopYAML{dbcop: dbcop{builder: newBuilder(), in: in}}
	txns := y.sessions(&document)
	if y.err != nil {
		return nil, y.err
	}
	return one(y.made(in.name, dbcopYAMLFormat, record.InitialZero, txns, noTransaction))
}

// blankHead empties the blank lines that text begins with, as YAML allows no tabs
// in them, and leaves their number as it is.
func blankHead(text []byte) []byte {
	text = bytes.TrimPrefix(text, byteOrderMark)
	from := 0
	for end := 0; ; from += end + 1 {
		if end = bytes.IndexByte(text[from:], '\n'); end < 0 || len(bytes.TrimSpace(text[from:from+end])) > 0 {
			return append(bytes.Repeat(newline, bytes.Count(text[:from], newline)), text[from:]...)
		}
	}
}

// dbcopYAML walks the tree of a document. The first error stays, and lists are empty after it.
type dbcopYAML struct{ dbcop }

func (d *dbcopYAML) sessions(document *yaml.Node) (txns []record.Transaction) {
	if document.Kind == 0 || len(document.Content) == 0 {
		return nil
	}
	for s, session := range d.list(document.Content[0], "a list of sessions") {
		for t, n := range d.list(session, "a session, which is a list of transactions") {
			txns = append(txns, d.transaction(d.session(uint64(s)), t+1, n))
		}
	}
	return txns
}

func (d *dbcopYAML) transaction(session string, seq int, n *yaml.Node) record.Transaction {
	d.ops, d.doomed = d.ops[:0], d.doomed[:0]
	f := d.fields(n, "events", "success")
	for _, e := range d.list(f[0], "a list of events") {
		d.event(e)
	}
	status := either(d.flag("success", f[1]), record.Committed, record.Aborted)
	d.drop(status)
	return d.builder.transaction(session, seq, status)
}

func (d *dbcopYAML) event(n *yaml.Node) {
	f := d.fields(n, "write", "variable", "value", "success")
	kind := either(d.flag("write", f[0]), record.Write, record.Read)
	if !d.flag("success", f[3]) {
		d.doomed = append(d.doomed, len(d.ops))
	}
	key, value := d.number("variable", f[1]), d.number("value", f[2])
	d.op(kind, key, d.value(value))
}

func (d *dbcopYAML) refuse(n *yaml.Node, e *reject.Error) {
	if d.err == nil {
		d.err = d.in.at(e, int64(n.Line), 0)
	}
}

func (d *dbcopYAML) list(n *yaml.Node, what string) []*yaml.Node {
	if n.Kind != yaml.SequenceNode {
		d.refuse(n, reject.New(reject.WrongType, "want %s", what))
	}
	if d.err != nil {
		return nil
	}
	return n.Content
}

func (d *dbcopYAML) flag(field string, n *yaml.Node) bool {
	if n.Kind != yaml.ScalarNode || n.Value != "true" && n.Value != "false" {
		d.refuse(n, reject.In(field, reject.WrongType, "want true or false, not %.40q", n.Value))
	}
	return n.Value == "true"
}

func (d *dbcopYAML) number(field string, n *yaml.Node) uint64 {
	v, err := unsigned(field, []byte(n.Value))
	if err != nil {
		d.refuse(n, err)
	}
	return v
}

// fields are those of a mapping that has exactly the fields of those names, in their order.
func (d *dbcopYAML) fields(n *yaml.Node, names ...string) []*yaml.Node {
	out := make([]*yaml.Node, len(names))
	if n.Kind != yaml.MappingNode {
		d.refuse(n, reject.New(reject.WrongType, "want a mapping with %s", english.WordSeries(names, "and")))
	}
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		field := n.Content[i]
		switch at := slices.Index(names, field.Value); {
		case at < 0:
			d.refuse(field, reject.In(brief(field.Value), reject.UnknownField, "want a mapping with %s", english.WordSeries(names, "and")))
		case out[at] != nil:
			d.refuse(field, reject.In(names[at], reject.DuplicateField, "the field is there twice"))
		default:
			out[at] = n.Content[i+1]
		}
	}
	for i := range out {
		if out[i] == nil {
			d.refuse(n, reject.In(names[i], reject.MissingField, "want a mapping with %s", english.WordSeries(names, "and")))
			out[i] = &yaml.Node{}
		}
	}
	return out
}

func brief(s string) string { return fmt.Sprintf("%.40q", s) }

var yamlLine = regexp.MustCompile(`line (\d+): `)

// yamlError takes the line out of what the YAML library says.
func (in *input) yamlError(err error) error {
	text, line := strings.TrimPrefix(err.Error(), "yaml: "), int64(0)
	var typed *yaml.TypeError
	reason := reject.BadStructure
	if errors.As(err, &typed) && len(typed.Errors) > 0 {
		text, reason = typed.Errors[0], reject.WrongType
	}
	if m := yamlLine.FindStringSubmatchIndex(text); m != nil {
		line, _ = strconv.ParseInt(text[m[2]:m[3]], 10, 64)
		text = text[:m[0]] + text[m[1]:]
	}
	return in.at(reject.New(reason, "%s", text), line, 0)
}
