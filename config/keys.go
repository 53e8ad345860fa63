package config

import (
	"reflect"
	"regexp"
	"strings"
	"sync"
)

// Key describes one setting. What it means its field's comment says.
type Key struct {
	Path  string   // source.kafka.topic; items of a list of parts are alerts.webhooks[].url
	Env   string   // ISOWATCH_SOURCE_KAFKA_TOPIC; empty for what can only be set with its list
	List  bool     // it takes several values
	Words []string // that a value, or an item of a list, is one of; nil: any text
}

// Keys lists every setting in the order of the file. Of a list of parts, such as
// alerts.webhooks, both the list (one environment variable, in YAML) and the
// keys of its items are listed.
func Keys() []Key {
	var out []Key
	eachKey(reflect.ValueOf(Default()).Elem(), "", func(path string, in reflect.Type, f reflect.StructField,
		v reflect.Value) {
		k := Key{Path: path, List: v.Kind() == reflect.Slice, Words: wordsOf(f, v.Type())}
		if !strings.Contains(path, "[]") {
			k.Env = envPrefix + strings.ToUpper(strings.ReplaceAll(path, ".", "_"))
		}
		out = append(out, k)
	})
	return out
}

// eachKey visits every setting with its field, the struct that this is in, and the default.
func eachKey(v reflect.Value, path string,
	visit func(path string, in reflect.Type, f reflect.StructField, v reflect.Value)) {
	for i := range v.NumField() {
		f, fv := v.Type().Field(i), v.Field(i)
		name := f.Tag.Get("yaml")
		if name == "-" {
			continue
		}
		if fv.Kind() == reflect.Pointer {
			fv = reflect.New(f.Type.Elem())
			setDefaults(fv)
			fv = fv.Elem()
		}
		at := join(path, name)
		if _, isScalar := scalars[fv.Type()]; fv.Kind() == reflect.Struct && !isScalar && fv.NumField() > 0 {
			eachKey(fv, at, visit)
			continue
		}
		visit(at, v.Type(), f, fv)
		if fv.Kind() == reflect.Slice && fv.Type().Elem().Kind() == reflect.Struct {
			item := reflect.New(fv.Type().Elem())
			setDefaults(item)
			eachKey(item.Elem(), at+"[]", visit)
		}
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
