package config

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"sync"
)

// Key describes one setting.
type Key struct {
	Path    string // source.kafka.topic; items of a list of parts are alerts.webhooks[].url
	Env     string // ISOWATCH_SOURCE_KAFKA_TOPIC; empty for what can only be set with its list
	Type    string // text, list of text, duration, …
	Default string // as in YAML; empty: none
	Help    string
	Words   []string // that a value, or an item of a list, is one of; nil: any text
}

// Keys lists every setting in the order of the file. Of a list of parts, such as
// alerts.webhooks, both the list (one environment variable, in YAML) and the
// keys of its items are listed.
func Keys() []Key {
	var out []Key
	keysOf(reflect.ValueOf(Default()).Elem(), "", true, &out)
	return out
}

func keysOf(v reflect.Value, path string, env bool, out *[]Key) {
	t := v.Type()
	for i := range t.NumField() {
		f := t.Field(i)
		name := f.Tag.Get("yaml")
		if name == "-" {
			continue
		}
		fv, at, help := v.Field(i), join(path, name), f.Tag.Get("help")
		if fv.Kind() == reflect.Pointer {
			fv = reflect.New(f.Type.Elem())
			setDefaults(fv)
			fv = fv.Elem()
		}
		_, isScalar := scalars[fv.Type()]
		switch {
		case fv.Kind() == reflect.Struct && !isScalar && fv.NumField() > 0:
			keysOf(fv, at, env, out)
			continue
		case fv.Kind() == reflect.Slice && fv.Type().Elem().Kind() == reflect.Struct:
			*out = append(*out, Key{Path: at, Env: envName(at, env), Type: "list", Default: "[]",
				Help: "In the environment, the whole list in YAML."})
			item := reflect.New(fv.Type().Elem())
			setDefaults(item)
			keysOf(item.Elem(), at+"[]", false, out)
			continue
		}
		*out = append(*out, Key{Path: at, Env: envName(at, env), Type: typeName(fv.Type()), Default: printValue(fv),
			Help: help, Words: wordsOf(f, fv.Type())})
	}
}

// wordsOf are the words that a field of a type takes; strings name them in a tag.
func wordsOf(f reflect.StructField, t reflect.Type) []string {
	if of := strings.Fields(f.Tag.Get("of")); len(of) > 0 {
		return of
	}
	if t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() == reflect.Bool {
		return []string{"true", "false"}
	}
	return scalars[t].words
}

// words are the words of keys, by their paths.
var words = sync.OnceValue(func() map[string][]string {
	out := map[string][]string{}
	for _, k := range Keys() {
		out[k.Path] = k.Words
	}
	return out
})

// index is an item's place in a list, as paths have it.
var index = regexp.MustCompile(`\[\d+\]`)

func envName(path string, env bool) string {
	if !env {
		return ""
	}
	return envPrefix + strings.ToUpper(strings.ReplaceAll(path, ".", "_"))
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
