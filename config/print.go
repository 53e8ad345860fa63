package config

import (
	"bytes"
	"net/url"
	"reflect"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// YAML is the effective configuration: every key with its value, in the order
// of the documentation, as a file that Load reads to the same effect, but for
// the addresses of webhooks, of which only scheme and host are shown. Secrets are
// not in it, only the names of their files.
func (c *Config) YAML() []byte {
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	// The tree is made of strings, mappings and sequences and the buffer never
	// fails, so that neither can the encoder.
	if err := enc.Encode(tree(reflect.ValueOf(c).Elem())); err != nil {
		panic("config: can't happen, because a plain tree always encodes: " + err.Error())
	}
	return b.Bytes()
}

// tree makes the YAML of a value; nil for a part that is not set.
func tree(v reflect.Value) *yaml.Node {
	if sc, ok := scalars[v.Type()]; ok {
		return text(sc.print(v.Interface()))
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return tree(v.Elem())
	case reflect.Struct:
		n := &yaml.Node{Kind: yaml.MappingNode}
		for i := range v.NumField() {
			name := v.Type().Field(i).Tag.Get("yaml")
			if name == "-" {
				continue
			}
			if val := tree(v.Field(i)); val != nil {
				if name == "url" {
					val = text(redact(val.Value))
				}
				n.Content = append(n.Content, text(name), val)
			}
		}
		if len(n.Content) == 0 {
			n.Style = yaml.FlowStyle
		}
		return n
	case reflect.Slice:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		for i := range v.Len() {
			n.Content = append(n.Content, tree(v.Index(i)))
		}
		if v.Len() == 0 || n.Content[0].Kind == yaml.ScalarNode {
			n.Style = yaml.FlowStyle
		}
		return n
	case reflect.Bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(v.Bool())}
	case reflect.Int:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.FormatInt(v.Int(), 10)}
	}
	return text(v.String())
}

func text(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s} }

// redact leaves of an address what tells where it goes: what stands before the
// host and after it often is a secret.
func redact(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.User == nil && u.RawQuery == "" && (u.Path == "" || u.Path == "/") {
		return s
	}
	return u.Scheme + "://" + u.Host + "/…"
}
