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

// dbcopYAMLStart is how a list of lists of transactions begins, in block style
// or in flow style, which may be JSON.
var dbcopYAMLStart = regexp.MustCompile(`^(?:#[^\n]*\n\s*|---\s+|%YAML[^\n]*\n\s*)*(?:(?:-\s*(?:\[\s*\]\s+|\[\s*\{\s*)?)+|\[\s*(?:\[\s*\]\s*,\s*)*\[\s*\{\s*)["']?(?:events|success)["']?\s*:`)

// dbcopYAMLEvent tells it from dbcop's JSON, whose transactions have events too.
var dbcopYAMLEvent = regexp.MustCompile(`["']?success["']?\s*:`)

func looksDbcopYAML(head []byte) bool {
	head = bytes.TrimLeft(bytes.TrimPrefix(head, byteOrderMark), " \t\r\n")
	return dbcopYAMLStart.Match(head) && dbcopYAMLEvent.Match(head)
}

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
	txns, err := y.sessions(&document)
	if err != nil {
		return nil, err
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

// dbcopYAML walks the tree of a document.
type dbcopYAML struct{ dbcop }

func (d *dbcopYAML) sessions(document *yaml.Node) ([]record.Transaction, error) {
	if document.Kind == 0 || len(document.Content) == 0 {
		return nil, nil
	}
	sessions, err := d.list(document.Content[0], "a list of sessions")
	if err != nil {
		return nil, err
	}
	var txns []record.Transaction
	for s, session := range sessions {
		list, err := d.list(session, "a session, which is a list of transactions")
		if err != nil {
			return nil, err
		}
		for t, n := range list {
			txn, err := d.transaction(d.session(uint64(s)), t+1, n)
			if err != nil {
				return nil, err
			}
			txns = append(txns, txn)
		}
	}
	return txns, nil
}

func (d *dbcopYAML) transaction(session string, seq int, n *yaml.Node) (none record.Transaction, err error) {
	var events, success *yaml.Node
	if err := d.fields(n, []string{"events", "success"}, &events, &success); err != nil {
		return none, err
	}
	list, err := d.list(events, "a list of events")
	if err != nil {
		return none, err
	}
	d.ops, d.doomed = d.ops[:0], d.doomed[:0]
	for _, e := range list {
		if err := d.event(e); err != nil {
			return none, err
		}
	}
	committed, err := d.flag("success", success)
	if err != nil {
		return none, err
	}
	status := record.Aborted
	if committed {
		status = record.Committed
	}
	d.drop(status)
	return d.builder.transaction(session, seq, status), nil
}

func (d *dbcopYAML) event(n *yaml.Node) error {
	var write, variable, value, success *yaml.Node
	if err := d.fields(n, []string{"write", "variable", "value", "success"}, &write, &variable, &value,
		&success); err != nil {
		return err
	}
	kind := record.Read
	isWrite, err := d.flag("write", write)
	if err != nil {
		return err
	}
	if isWrite {
		kind = record.Write
	}
	done, err := d.flag("success", success)
	if err != nil {
		return err
	}
	if !done {
		d.doomed = append(d.doomed, len(d.ops))
	}
	key, refused := unsigned("variable", []byte(variable.Value))
	if refused != nil {
		return d.at(refused, variable)
	}
	v, refused := unsigned("value", []byte(value.Value))
	if refused != nil {
		return d.at(refused, value)
	}
	d.op(kind, key, d.value(v))
	return nil
}

func (d *dbcopYAML) at(e *reject.Error, n *yaml.Node) error { return d.in.at(e, int64(n.Line), 0) }

func (d *dbcopYAML) list(n *yaml.Node, what string) ([]*yaml.Node, error) {
	if n.Kind != yaml.SequenceNode {
		return nil, d.at(reject.New(reject.WrongType, "want %s", what), n)
	}
	return n.Content, nil
}

func (d *dbcopYAML) flag(field string, n *yaml.Node) (bool, error) {
	if n.Kind == yaml.ScalarNode && (n.Value == "true" || n.Value == "false") {
		return n.Value == "true", nil
	}
	return false, d.at(reject.In(field, reject.WrongType, "want true or false, not %.40q", n.Value), n)
}

// fields takes apart a mapping that has exactly the fields of those names.
func (d *dbcopYAML) fields(n *yaml.Node, names []string, into ...**yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return d.at(reject.New(reject.WrongType, "want a mapping with %s", list(names)), n)
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		field := n.Content[i]
		at := slices.Index(names, field.Value)
		if at < 0 {
			return d.at(reject.In(brief(field.Value), reject.UnknownField, "want a mapping with %s", list(names)), field)
		}
		if *into[at] != nil {
			return d.at(reject.In(names[at], reject.DuplicateField, "the field is there twice"), field)
		}
		*into[at] = n.Content[i+1]
	}
	for i := range into {
		if *into[i] == nil {
			return d.at(reject.In(names[i], reject.MissingField, "want a mapping with %s", list(names)), n)
		}
	}
	return nil
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
