package config

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// described is a key as the documentation has it.
type described struct {
	Path, Type, Default, Help string
}

// describe describes every key: by the comments of the fields.
func describe(t *testing.T) []described {
	t.Helper()
	helps := map[string]string{} // by struct and key
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			of, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if s, ok := of.Type.(*ast.StructType); ok {
				for _, f := range s.Fields.List {
					if f.Tag != nil {
						key := reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("yaml")
						helps[of.Name.Name+"."+key] = strings.Join(strings.Fields(f.Doc.Text()), " ")
					}
				}
			}
			return false
		})
	}
	var out []described
	eachKey(reflect.ValueOf(Default()).Elem(), "", func(path string, in reflect.Type, f reflect.StructField,
		v reflect.Value) {
		k := described{Path: path, Type: typeName(v.Type()), Default: printValue(v),
			Help: helps[in.Name()+"."+f.Tag.Get("yaml")]}
		if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct {
			k.Default, k.Help = "[]", "In the environment, the whole list in YAML."
		}
		if k.Help == "" {
			t.Errorf("%s has no description", k.Path)
		}
		out = append(out, k)
	})
	return out
}

func typeName(t reflect.Type) string {
	if sc, ok := scalars[t]; ok {
		return sc.name
	}
	switch t.Kind() {
	case reflect.Slice:
		if t.Elem().Kind() == reflect.String {
			return "list of text"
		}
		return "list of " + typeName(t.Elem()) + "s"
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "number"
	case reflect.Struct:
		return "mapping"
	}
	return "text"
}

// printValue writes a value as the file would have it; empty text is empty.
func printValue(v reflect.Value) string {
	if sc, ok := scalars[v.Type()]; ok {
		return sc.print(v.Interface())
	}
	switch v.Kind() {
	case reflect.Slice:
		items := make([]string, v.Len())
		for i := range items {
			items[i] = printValue(v.Index(i))
		}
		if len(items) == 0 {
			return ""
		}
		return "[" + strings.Join(items, ", ") + "]"
	case reflect.Struct:
		return ""
	}
	return fmt.Sprint(v.Interface())
}

func TestKeys(t *testing.T) {
	envs := map[string]string{}
	for _, k := range Keys() {
		if k.Env == "" {
			if !strings.Contains(k.Path, "[]") {
				t.Errorf("%s has no environment variable", k.Path)
			}
			continue
		}
		if other, taken := envs[k.Env]; taken {
			t.Errorf("%s and %s are both %s", other, k.Path, k.Env)
		}
		envs[k.Env] = k.Path
	}
}

// TestDocumentationHasEveryKey keeps docs/configuration.md equal to the struct;
// UPDATE=1 rewrites the table.
func TestDocumentationHasEveryKey(t *testing.T) {
	const begin, end = "<!-- keys: begin, written by the tests of config -->\n", "<!-- keys: end -->\n"
	path := filepath.Join("..", "docs", "configuration.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := strings.Cut(string(text), begin)
	got, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s has not the lines %q and %q", path, begin, end)
	}
	if got == table(t) {
		return
	}
	if os.Getenv("UPDATE") == "" {
		t.Errorf("the table in %s is not that of the struct: run UPDATE=1 go test ./config\n%s", path,
			cmp.Diff(table(t), got))
		return
	}
	if err := os.WriteFile(path, []byte(before+begin+table(t)+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// table is the table of docs/configuration.md, in Markdown. A group of keys that is the same below another key has one
// row there; a type is said where no default shows it.
func table(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("| Key | Default | Meaning |\n| --- | --- | --- |\n")
	said, last := map[string]described{}, ""
	for _, k := range describe(t) {
		if strings.HasPrefix(k.Help, "The same for ") {
			continue
		}
		group := k.Path[:strings.LastIndex(k.Path, ".")+1]
		name := k.Path[strings.LastIndex(strings.TrimSuffix(group, "."), ".")+1:]
		if first, ok := said[name]; ok && first.Help == k.Help {
			if group != last {
				fmt.Fprintf(&b, "| `%s*` |  | As `%s*`. |\n", group, strings.TrimSuffix(first.Path, k.Path[len(group):]))
			}
			last = group
			continue
		}
		said[name] = k
		def, help := "", k.Help
		switch {
		case k.Default != "":
			def = "`" + k.Default + "`"
		case k.Type != "text":
			help += " (" + k.Type + ")"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", k.Path, def, help)
	}
	return b.String()
}
