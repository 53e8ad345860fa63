package veil_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/isowatch/isowatch/alerts/veil"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
)

var salt = []byte("0123456789abcdef")

func list(text string) record.Value { return record.Value{Kind: record.KindList, Text: text} }

// What stays, and that all else is gone.
func TestValues(t *testing.T) {
	for _, c := range []struct {
		what    string
		initial record.Initial
		value   record.Value
		none    string // as pseudonyms
	}{
		{"absent", record.InitialAny, record.Null, `null`},
		{"the empty list", record.InitialAny, list("[]"), `[]`},
		{"a number", record.InitialAny, record.Int(7), `"v1"`},
		{"zero, which is no initial value", record.InitialAbsent, record.Int(0), `"v1"`},
		{"zero, which is", record.InitialZero, record.Int(0), `0`},
		{"a string of zero", record.InitialZero, record.String("0"), `"v1"`},
		{"text", record.InitialAny, record.String("a"), `"v1"`},
		{"a list", record.InitialAny, list(`[3,"a",3,null]`), `["v1","v2","v1",null]`},
		{"zero in a list", record.InitialZero, list(`[0,1]`), `[0,"v1"]`},
		{"a list in a list", record.InitialAny, list(`[[1],1,[]]`), `[["v1"],"v1",[]]`},
		{"an object", record.InitialAny, record.Value{Kind: record.KindObject, Text: `{"name":"Ada"}`}, `"v1"`},
		{"a bool", record.InitialAny, record.Value{Kind: record.KindBool, Text: "true"}, `"v1"`},
		{"a fraction", record.InitialAny, record.Value{Kind: record.KindNumber, Text: "1.5"}, `"v1"`},
	} {
		if got := veil.New(veil.None, nil).Alert(c.initial, nil).Value(c.value).String(); got != c.none {
			t.Errorf("%s: %s, want %s", c.what, got, c.none)
		}
		hash := veil.New(veil.Hash, salt).Alert(c.initial, nil).Value(c.value).String()
		if strings.Count(hash, `"value-`) != strings.Count(c.none, `"v`) {
			t.Errorf("%s: %s has other places than %s", c.what, hash, c.none)
		}
		if got := (veil.Veil{}).Alert(c.initial, nil).Value(c.value); got != c.value {
			t.Errorf("%s: %v in full", c.what, got)
		}
	}
}

// Equal stays equal, in all alerts or in one; different stays different, and a value is
// not seen to be a key.
func TestEquality(t *testing.T) {
	hash := veil.New(veil.Hash, salt)
	a, b := hash.Alert(record.InitialAny, nil), hash.Alert(record.InitialAny, nil)
	other := veil.New(veil.Hash, []byte("another salt, of some length")).Alert(record.InitialAny, nil)
	if x, y := a.Value(record.String("x")), b.Value(record.String("x")); x != y || len(x.Text) != len("value-")+16 {
		t.Errorf("%v and %v", x, y)
	}
	if a.Value(record.Int(1)) == a.Value(record.String("1")) || a.Value(record.String("x")) == other.Value(record.String("x")) || a.Key("x") == a.Key("y") {
		t.Error("what is different is equal")
	}
	if strings.TrimPrefix(a.Key("7"), "key-") == strings.TrimPrefix(a.Value(record.Int(7)).Text, "value-") {
		t.Error("a key is seen to be a value")
	}
	none := veil.New(veil.None, nil).Alert(record.InitialAny, nil)
	if got := []string{none.Key("b"), none.Key("a"), none.Key("b"), none.Key("")}; !cmp.Equal(got, []string{"k1", "k2", "k1", ""}) {
		t.Errorf("%q", got)
	}
}

// Keys of one object stay keys of one object: lin asks for it.
func TestObjects(t *testing.T) {
	for _, mode := range []veil.Mode{veil.Hash, veil.None} {
		a := veil.New(mode, salt).Alert(record.InitialAny, nil)
		x, one, two, y := a.Key("x"), a.Key("x = 1"), a.Key("x = 2"), a.Key("y")
		if record.Object(one) != x || record.Object(two) != x || one == two || x == y || strings.HasSuffix(one, " = 1") {
			t.Errorf("%v: %q, %q, %q, %q", mode, x, one, two, y)
		}
	}
}

// A record with predicates is one after it was hidden, and nothing of them shows.
func TestPredicates(t *testing.T) {
	const line = `{"db":"d","session":"s","id":"T1","status":"committed","ops":[["rp",{"table":"people","where":"name == 'Ada'"},{"people:7":{"name":"Ada"}}],["wp",{"table":"people","where":"age > 40"},{"set":{"vip":true}}],["r","people:7","Ada"]]}`
	var r record.Transaction
	if err := codec.Decode([]byte(line), &r); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []veil.Mode{veil.Hash, veil.None} {
		out := codec.AppendJSON(nil, veil.New(mode, salt).Alert(record.InitialAny, nil).Transaction(&r))
		var back record.Transaction
		if err := codec.Decode(out, &back); err != nil {
			t.Errorf("%v: %s: %v", mode, out, err)
		}
		for _, data := range []string{"people", "Ada", "40", "vip", "name", "age", "true"} {
			if strings.Contains(string(out), data) {
				t.Errorf("%v: %s shows in %s", mode, data, out)
			}
		}
		if len(back.Ops) != 3 || back.Ops[0].Kind != record.PredicateRead || back.Ops[0].Key != back.Ops[1].Key || back.Ops[0].Where == back.Ops[1].Where {
			t.Errorf("%v: %s", mode, out)
		}
	}
	if string(codec.AppendJSON(nil, &r)) != line {
		t.Errorf("the record itself is another: %s", codec.AppendJSON(nil, &r))
	}
}

// Reasons share their parts; hiding them takes no exponential time, and is complete.
func TestSharedReasons(t *testing.T) {
	e := verdict.Edge{Key: "secret"}
	for range 64 {
		c := []verdict.Edge{e, e}
		e = verdict.Edge{Key: "secret", Because: c, Others: [][]verdict.Edge{c, c}}
	}
	v := verdict.Violation{Key: "secret", Cycle: []verdict.Edge{e}, Cases: [][]verdict.Edge{{e}, nil}, Exhibits: []verdict.Exhibit{{Reads: []string{"secret"}, Writes: []string{"secret"}, All: []string{"secret"}}}}
	h := veil.New(veil.None, nil).Alert(record.InitialAny, nil).Violation(v)
	for c := h.Cycle; len(c) > 0; c = c[0].Because {
		if c[0].Key != "k1" || len(c[0].Others) > 0 && c[0].Others[1][1].Key != "k1" {
			t.Fatalf("a key shows: %q", c[0].Key)
		}
	}
	if h.Key != "k1" || h.Cases[0][0].Key != "k1" || h.Exhibits[0].Reads[0]+h.Exhibits[0].Writes[0]+h.Exhibits[0].All[0] != "k1k1k1" || v.Cycle[0].Key != "secret" {
		t.Errorf("%+v", h.Exhibits)
	}
}

// The salt of a folder is made once, for its owner alone.
func TestOwnSalt(t *testing.T) {
	file := filepath.Join(t.TempDir(), "salt")
	first, err := veil.OwnSalt(file)
	if err != nil || len(first) != 64 {
		t.Fatalf("%q, %v", first, err)
	}
	if again, err := veil.OwnSalt(file); err != nil || string(again) != string(first) {
		t.Errorf("%q, then %q, %v", first, again, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if names, _ := filepath.Glob(file + "*"); len(names) != 1 {
		t.Errorf("left behind: %q", names)
	}
	if other, err := veil.OwnSalt(filepath.Join(t.TempDir(), "salt")); err != nil || string(other) == string(first) {
		t.Errorf("two folders, one salt: %v", err)
	}
	if err := os.WriteFile(file, []byte("short\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := veil.OwnSalt(file); err == nil || !strings.Contains(err.Error(), "holds 5 bytes") {
		t.Errorf("%v", err)
	}
	if _, err := veil.OwnSalt(filepath.Join(file, "below")); err == nil {
		t.Error("a file is no folder")
	}
}
