package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// bytesMax bounds a configuration file and a secret file: both are written by
// hand.
const bytesMax = 1 << 20

// envPrefix begins the name of every environment variable that is read.
const envPrefix = "ISOWATCH_"

// Override is a setting from the command line.
type Override struct {
	Flag  string // as it was written, for messages: "--topic" or "--set"
	Path  string // source.kafka.topic
	Value string // as in YAML, or comma-separated for a list
}

// Sources is all that a configuration is made of, weakest first.
type Sources struct {
	File      string   // path of the YAML file; empty: none
	Env       []string // as os.Environ gives it
	Overrides []Override
	// HTTPOnly leaves the secrets of sources and receivers alone, for who only reads the
	// store or asks a monitor: where that is done they need not be at hand.
	HTTPOnly bool
}

// Loaded is a configuration and what should be said about it.
type Loaded struct {
	*Config
	// Warnings do not keep the monitor from running.
	Warnings []string

	places validator // of keys
}

// Place is where a key, or the nearest part around it, was set; that may be nowhere.
func (l *Loaded) Place(path string) Place { return l.places.place(path) }

// Load reads, merges and validates a configuration and the secrets it names.
// The error is Errors. Beside them is what could be loaded, for who looks for more of them; nil if the file can't be
// read as YAML.
func Load(from Sources) (*Loaded, error) {
	l := &Loaded{Config: Default()}
	d := &decoder{places: map[string]Place{}}
	if from.File != "" {
		text, err := readFile(from.File)
		if err != nil {
			return nil, Errors{{Place: Place{Origin: from.File}, Msg: err.Error()}}
		}
		if d.file(from.File, text, l.Config); d.broken {
			return nil, d.errs
		}
	}
	d.env(from.Env, l.Config)
	for _, o := range from.Overrides {
		d.text(o.Flag, o.Path, o.Value, l.Config)
	}
	// What could not be decoded still has its default: validating only adds to
	// the list, except where it would complain about the default itself.
	failed := map[string]bool{}
	for _, e := range d.errs {
		failed[e.Path] = true
	}
	v := &validator{places: d.places, failed: failed, env: variables(from.Env)}
	v.validate(l.Config)
	v.secrets(l.Config, from.HTTPOnly)
	l.Warnings = append(l.strangers(from.Env), v.warnings...)
	l.places = *v
	if errs := append(d.errs, v.errs...); len(errs) > 0 {
		errs.Sort()
		return l, errs
	}
	return l, nil
}

// readFile reads a small file and puts the error in words that do not repeat
// the path.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, cause(err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, bytesMax+1))
	if err != nil {
		return nil, cause(err)
	}
	if len(text) > bytesMax {
		return nil, fmt.Errorf("is larger than %d bytes", bytesMax)
	}
	return text, nil
}

func cause(err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// file decodes a YAML file of at most one document.
func (d *decoder) file(name string, text []byte, c *Config) {
	d.origin, d.lines = name, true
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return // an empty file: every default
	case err != nil:
		d.syntax(err, text)
		return
	}
	if len(doc.Content) == 1 {
		d.decode(doc.Content[0], reflect.ValueOf(c).Elem(), "")
	}
	if err := dec.Decode(&doc); err == nil {
		d.errorf(&doc, "", "is a second document: one file is one configuration")
	} else if !errors.Is(err, io.EOF) {
		d.syntax(err, text)
	}
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// syntax reports an error of the YAML parser, which knows the line only. A tab that indents is what it
// stumbles over most, and speaks of in riddles, at the line of the tab or before it.
func (d *decoder) syntax(err error, text []byte) {
	d.broken = true
	e := &Error{Place: Place{Origin: d.origin}, Msg: "not YAML: " + yamlLine.ReplaceAllString(err.Error(), "")}
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil && m[1] != "" {
		e.Line, _ = strconv.Atoi(m[1])
	}
	d.errs = append(d.errs, e)
	if !strings.Contains(e.Msg, "tab character") && !strings.Contains(e.Msg, "cannot start any token") {
		return
	}
	for i, line := range bytes.Split(text, []byte("\n")) {
		if indent := line[:len(line)-len(bytes.TrimLeft(line, " \t"))]; i+1 >= e.Line && i <= e.Line &&
			bytes.ContainsRune(indent, '\t') {
			e.Line, e.Column = i+1, bytes.IndexByte(indent, '\t')+1
			e.Msg = "not YAML: a tab indents this line, where YAML takes spaces only: replace it, and set your editor to " +
				"indent with spaces"
			return
		}
	}
}

// env applies the environment.
func (d *decoder) env(environ []string, c *Config) {
	names := envNames()
	for _, kv := range slices.Sorted(slices.Values(environ)) {
		name, value, _ := strings.Cut(kv, "=")
		if path, ok := names[name]; ok {
			d.text(name, path, value, c)
		}
	}
}

// envNames are the keys by the variables that set them.
func envNames() map[string]string {
	names := map[string]string{}
	for _, k := range Keys() {
		if k.Env != "" {
			names[k.Env] = k.Path
		}
	}
	return names
}

// variables is an environment by name.
func variables(environ []string) map[string]string {
	out := map[string]string{}
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		out[name] = value
	}
	return out
}

// TokenEnv is the variable from which the command line takes the token of a
// monitor's API; it is no key of the configuration.
const TokenEnv = envPrefix + "TOKEN"

// strangers are warnings about variables that look like keys and mean nothing.
func (c *Config) strangers(environ []string) (warnings []string) {
	names := envNames()
	names[TokenEnv] = ""
	for _, w := range c.Alerts.Webhooks {
		for _, of := range []string{w.URLEnv, w.SecretEnv, w.RoutingKeyEnv} {
			names[of] = ""
		}
	}
	for _, kv := range slices.Sorted(slices.Values(environ)) {
		name, _, _ := strings.Cut(kv, "=")
		if _, ok := names[name]; !ok && strings.HasPrefix(name, envPrefix) {
			warnings = append(warnings, fmt.Sprintf("environment variable %s names no key of the configuration and is ignored",
				name))
		}
	}
	return warnings
}

// text decodes one value that was given outside a file for the key at path.
func (d *decoder) text(origin, path, value string, c *Config) {
	d.origin, d.lines = origin, false
	v, rest := reflect.ValueOf(c).Elem(), path
	for rest != "" {
		var name string
		name, rest, _ = strings.Cut(rest, ".")
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
				setDefaults(v)
			}
			v = v.Elem()
		}
		if v.Kind() != reflect.Struct {
			d.errorf(nil, path, "unknown key")
			return
		}
		fields := fieldsOf(v.Type())
		i, ok := fields[name]
		if !ok {
			d.errorf(nil, path, "unknown key%s", suggest(name, fields))
			return
		}
		v = v.Field(i)
	}
	n, err := parseText(value, v.Type())
	if err != nil {
		d.errorf(nil, path, "%s", err)
		return
	}
	d.decode(n, v, path)
}

// parseText makes a tree of a value as a person writes it in a shell: text,
// numbers and words are taken as they are, lists may be separated by commas,
// and what is built of more is YAML in flow style.
func parseText(value string, t reflect.Type) (*yaml.Node, error) {
	isScalar := func(t reflect.Type) bool {
		_, ok := scalars[t]
		return ok || t.Kind() == reflect.String || t.Kind() == reflect.Bool || t.Kind() == reflect.Int
	}
	trimmed := strings.TrimSpace(value)
	switch {
	case isScalar(t):
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value}, nil
	case t.Kind() == reflect.Slice && isScalar(t.Elem()) && !strings.HasPrefix(trimmed, "["):
		list := &yaml.Node{Kind: yaml.SequenceNode}
		for _, s := range strings.Split(trimmed, ",") {
			if s = strings.TrimSpace(s); s != "" {
				list.Content = append(list.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s})
			}
		}
		return list, nil
	}
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(value), &doc); err != nil {
		return nil, errors.New("not YAML: " + yamlLine.ReplaceAllString(err.Error(), ""))
	}
	if len(doc.Content) != 1 {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"}, nil
	}
	return doc.Content[0], nil
}
