package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// decoder puts YAML trees into a Config. It goes on after an error, so that one
// run reports all of them.
type decoder struct {
	origin string           // of the tree being decoded
	lines  bool             // whether the tree's lines mean anything to the reader
	places map[string]Place // where each key that was mentioned was mentioned last
	errs   Errors
	broken bool // a file was no YAML: what it says is not known
}

func (d *decoder) place(n *yaml.Node) Place {
	if !d.lines || n == nil {
		return Place{Origin: d.origin}
	}
	return Place{Origin: d.origin, Line: n.Line, Column: n.Column}
}

func (d *decoder) errorf(n *yaml.Node, path, format string, args ...any) {
	d.errs = append(d.errs, &Error{Place: d.place(n), Path: path, Msg: fmt.Sprintf(format, args...)})
}

// decode puts n into v, the value of the key at path. The recursion follows
// the struct, not the tree, so that no tree makes it deep.
func (d *decoder) decode(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	d.places[path] = d.place(n)
	if sc, ok := scalars[v.Type()]; ok {
		s, ok := d.scalar(n, path, sc.name)
		if !ok {
			return
		}
		x, err := sc.parse(s)
		if err != nil {
			d.errorf(n, path, "%v", err)
			return
		}
		v.Set(reflect.ValueOf(x))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
			setDefaults(v)
		}
		d.decode(n, v.Elem(), path)
	case reflect.Struct:
		d.mapping(n, v, path)
	case reflect.Slice:
		d.sequence(n, v, path)
	case reflect.String:
		if s, ok := d.scalar(n, path, "text"); ok {
			v.SetString(s)
		}
	case reflect.Bool:
		if s, ok := d.scalar(n, path, "true or false"); ok {
			switch s {
			case "true", "false":
				v.SetBool(s == "true")
			default:
				d.errorf(n, path, "wants true or false, not %q", s)
			}
		}
	case reflect.Int:
		if s, ok := d.scalar(n, path, "a whole number"); ok {
			i, err := strconv.Atoi(strings.ReplaceAll(s, "_", ""))
			if err != nil {
				d.errorf(n, path, "wants a whole number, not %q", s)
				return
			}
			v.SetInt(int64(i))
		}
	default:
		panic(fmt.Sprintf("config: can't happen, because every field is of a known kind: %s is %s", path, v.Type()))
	}
}

// setDefaults gives a part that has just been mentioned its own defaults.
func setDefaults(ptr reflect.Value) {
	if p, ok := ptr.Interface().(defaulter); ok {
		p.setDefaults()
	}
}

// scalar returns the text of a scalar node.
func (d *decoder) scalar(n *yaml.Node, path, want string) (string, bool) {
	switch {
	case n.Kind != yaml.ScalarNode:
		d.errorf(n, path, "wants %s, not %s", article(want), kindName(n))
		return "", false
	case n.Tag == "!!null":
		d.errorf(n, path, "has no value: give one or remove the key")
		return "", false
	}
	return n.Value, true
}

// mapping puts a mapping node into a struct. A key without a value is an empty
// mapping, so that `stdin:` means `stdin: {}`.
func (d *decoder) mapping(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return
	}
	if n.Kind != yaml.MappingNode {
		d.errorf(n, path, "wants keys and values, not %s", kindName(n))
		return
	}
	fields := fieldsOf(v.Type())
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, val := n.Content[i], n.Content[i+1]
		name := key.Value
		at := join(path, name)
		if line, twice := seen[name]; twice {
			d.errorf(key, at, "is given twice, first on line %d", line)
			continue
		}
		seen[name] = key.Line
		index, ok := fields[name]
		if !ok {
			d.errorf(key, at, "unknown key%s", suggest(name, fields))
			continue
		}
		d.decode(val, v.Field(index), at)
	}
}

// sequence puts a sequence node into a slice, which it replaces.
func (d *decoder) sequence(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.SequenceNode {
		d.errorf(n, path, "wants a list, such as [a, b], not %s", kindName(n))
		return
	}
	out := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
	for i, item := range n.Content {
		setDefaults(out.Index(i).Addr())
		d.decode(item, out.Index(i), fmt.Sprintf("%s[%d]", path, i))
	}
	v.Set(out)
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// fieldsOf maps a struct's YAML names to field numbers.
func fieldsOf(t reflect.Type) map[string]int {
	out := make(map[string]int, t.NumField())
	for i := range t.NumField() {
		if name := t.Field(i).Tag.Get("yaml"); name != "-" {
			out[name] = i
		}
	}
	return out
}

func article(want string) string {
	switch want {
	case "duration", "place", "level", "word", "time":
		return "a " + want
	case "amount":
		return "an " + want
	}
	return want
}

func kindName(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "keys and values"
	case yaml.SequenceNode:
		return "a list"
	case yaml.ScalarNode:
		if n.Tag == "!!null" {
			return "nothing"
		}
		return strconv.Quote(n.Value)
	}
	return "this"
}

// suggest names the known key that an unknown one was probably meant to be.
func suggest(name string, fields map[string]int) string {
	best, least := "", len(name)/2+1
	for known := range fields {
		if dist := distance(name, known); dist < least || dist == least && best != "" && known < best {
			best, least = known, dist
		}
	}
	if best == "" {
		known := make([]string, 0, len(fields))
		for k := range fields {
			known = append(known, k)
		}
		if len(known) == 0 {
			return ": there are none here"
		}
		slices.Sort(known)
		return ": known are " + strings.Join(known, ", ")
	}
	return ": did you mean " + best + "?"
}

// distance is the number of insertions, deletions and replacements of bytes
// that turn a into b. O(len(a)·len(b)); both are names of keys.
func distance(a, b string) int {
	if len(a) > 64 {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diag := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diag
			if a[i] != b[j] {
				cost++
			}
			diag = row[j+1]
			row[j+1] = min(cost, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
