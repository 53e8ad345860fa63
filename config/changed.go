package config

import (
	"reflect"
	"slices"
	"strings"
)

// Changed lists the keys in which two configurations differ, in the order of the
// documentation. A list of parts, such as alerts.webhooks, is one key. Of a secret the
// key is that of its file, which may be the same.
func Changed(a, b *Config) []string {
	var out []string
	changed(reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem(), "", &out)
	return out
}

func changed(a, b reflect.Value, path string, out *[]string) {
	if a.Kind() == reflect.Pointer && !a.IsNil() && !b.IsNil() {
		a, b = a.Elem(), b.Elem()
	}
	_, isScalar := scalars[a.Type()]
	if a.Kind() != reflect.Struct || isScalar {
		if !reflect.DeepEqual(a.Interface(), b.Interface()) {
			*out = append(*out, path)
		}
		return
	}
	for i := range a.NumField() {
		at := pathOf(a.Type().Field(i), path)
		if slices.Contains(*out, at) {
			continue // said already of the name of the file
		}
		changed(a.Field(i), b.Field(i), at, out)
	}
}

// pathOf is the key of a field. What was read from a file has the key of the file.
func pathOf(f reflect.StructField, path string) string {
	if name := f.Tag.Get("yaml"); name != "-" {
		return join(path, name)
	}
	return join(path, strings.ToLower(f.Name)+"_file")
}
