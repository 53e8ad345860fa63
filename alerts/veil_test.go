package alerts_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/present"
	"github.com/isowatch/isowatch/alerts/veil"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/alerttest"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
	"github.com/isowatch/isowatch/internal/lab/oracle/tiny"
	"github.com/isowatch/isowatch/internal/lab/race"
)

var salt = []byte("only for this test, of 16 bytes and more")

// mark is in every key and value of a marked history, and long enough to be nowhere
// by chance.
const mark = "Zq7"

// marked is a history with keys and values that can be found again in any text: words
// with markup, control characters and invalid UTF-8 around the mark. What equals what
// stays, and what means something by itself.
func marked(s script.Script) script.Script {
	zero := s.Header.Initial != nil && *s.Header.Initial == record.InitialZero
	var value func(v record.Value) record.Value
	value = func(v record.Value) record.Value {
		switch {
		case v.IsNull() || zero && v == record.Int(0):
			return v
		case v.Kind == record.KindList:
			var es []string
			for _, e := range v.Elements() {
				es = append(es, value(e).String())
			}
			return record.Value{Kind: record.KindList, Text: "[" + strings.Join(es, ",") + "]"}
		}
		return record.String(mark + "<script>\x1b[31m" + v.String() + "\u2028" + strings.Repeat(mark, 30))
	}
	out := script.Script{Header: s.Header, Txns: slices.Clone(s.Txns)}
	for i := range out.Txns {
		out.Txns[i].Ops = slices.Clone(out.Txns[i].Ops)
		for j := range out.Txns[i].Ops {
			op := &out.Txns[i].Ops[j]
			op.Key, op.Value = mark+"&\x07"+op.Key+"\u202e", value(op.Value)
		}
	}
	return out
}

// rekeyed is a violation of a marked history.
func rekeyed(v verdict.Violation) verdict.Violation {
	var edges func(c []verdict.Edge) []verdict.Edge
	edges = func(c []verdict.Edge) []verdict.Edge {
		out := slices.Clone(c)
		for i := range out {
			if out[i].Key != "" {
				out[i].Key = mark + "&\x07" + out[i].Key + "\u202e"
			}
			out[i].Because = edges(out[i].Because)
			for j := range out[i].Others {
				out[i].Others[j] = edges(out[i].Others[j])
			}
		}
		return out
	}
	if v.Key != "" {
		v.Key = mark + "&\x07" + v.Key + "\u202e"
	}
	v.Cycle = edges(v.Cycle)
	for i := range v.Cases {
		v.Cases[i] = edges(v.Cases[i])
	}
	return v
}

// shown is all that an alert says, in JSON and in a terminal.
func shown(t *testing.T, a alerts.Alert) string {
	t.Helper()
	var b strings.Builder
	b.Write(a.JSON())
	if err := present.Text(&b, a, present.Options{}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// hidden holds an alert with its values hidden to the same one with them: it has the same
// id and the same of all that is no data, not a byte of the data is in it, and its
// evidence is the same history, which proves the same.
func hidden(t *testing.T, full, a alerts.Alert, mode veil.Mode) {
	t.Helper()
	if a.ID != full.ID {
		t.Errorf("%v: another id", mode)
	}
	if text := shown(t, a); strings.Contains(text, mark) || !strings.Contains(shown(t, full), mark) {
		t.Errorf("%v: data shows, or did not even in full:\n%s", mode, text)
	}
	recheck(t, a)
	reaches(t, a)
	words := cmp.FilterPath(func(p cmp.Path) bool {
		return slices.Contains([]string{"Summary", "Explanation", "Evidence", "Key", "Keys", "Why", "Values"}, strings.TrimPrefix(p.Last().String(), "."))
	}, cmp.Ignore())
	if d := cmp.Diff(full, a, words); d != "" {
		t.Errorf("%v: -full +hidden:\n%s", mode, d)
	}
	if len(a.Keys) != len(full.Keys) || a.Values != mode.String() || full.Values != "" {
		t.Errorf("%v: keys %q, values %q and %q", mode, a.Keys, a.Values, full.Values)
	}
	equalities(t, full.Evidence, a.Evidence)
}

// equalities tells whether two histories have the same records but for their keys and
// values, and of these the same are equal.
func equalities(t *testing.T, a, b []json.RawMessage) {
	t.Helper()
	if len(a) != len(b) || string(a[0]) != string(b[0]) {
		t.Fatalf("%d and %d lines\n%s\n%s", len(a), len(b), a[0], b[0])
	}
	there, back := map[string]string{}, map[string]string{}
	same := func(x, y string) {
		if was, ok := there[x]; ok && was != y {
			t.Errorf("%s is both %s and %s", x, was, y)
		}
		if was, ok := back[y]; ok && was != x {
			t.Errorf("%s stands for %s and %s", y, was, x)
		}
		there[x], back[y] = y, x
	}
	for i := range a[1:] {
		var x, y record.Transaction
		if err := codec.Decode(a[i+1], &x); err != nil {
			t.Fatal(err)
		}
		if err := codec.Decode(b[i+1], &y); err != nil {
			t.Fatal(err)
		}
		if len(x.Ops) != len(y.Ops) {
			t.Fatalf("%d and %d operations", len(x.Ops), len(y.Ops))
		}
		for j := range x.Ops {
			p, q := x.Ops[j], y.Ops[j]
			same("key "+p.Key, "key "+q.Key)
			if ps, qs := p.Value.Elements(), q.Value.Elements(); len(ps) != len(qs) {
				t.Errorf("%v has %d elements, %v has %d", p.Value, len(ps), q.Value, len(qs))
			} else if len(ps) > 0 {
				for k := range ps {
					same("value "+ps[k].String(), "value "+qs[k].String())
				}
			} else {
				same("value "+p.Value.String(), "value "+q.Value.String())
			}
			if p.Kind != q.Kind || p.Value.IsNull() != q.Value.IsNull() {
				t.Errorf("%v became %v", p, q)
			}
		}
		x.Ops, y.Ops = nil, nil
		if d := cmp.Diff(x, y); d != "" {
			t.Errorf("-full +hidden:\n%s", d)
		}
	}
}

// Of every anomaly by hand, in both modes, not a byte of keys and values shows.
func TestVeil(t *testing.T) {
	for _, c := range alerttest.Cases {
		if c.History == "" {
			continue
		}
		t.Run(c.Title, func(t *testing.T) {
			s, v := c.Load(t)
			s, v = marked(s), rekeyed(v)
			ctx := context(s, verdict.SI, verdict.SER, verdict.SSER)
			full, err := alerts.New(v, ctx)
			if err != nil {
				t.Fatal(err)
			}
			for _, mode := range []veil.Mode{veil.Hash, veil.None} {
				ctx.Veil = veil.New(mode, salt)
				a, err := alerts.New(v, ctx)
				if err != nil {
					t.Fatal(err)
				}
				recheck(t, a)
				hidden(t, full, a, mode)
			}
			sameWords(t, s, v, ctx)
		})
	}
}

// sameWords: an alert whose values are hidden is, word by word, the alert of a history
// that had the hashes from the beginning. It also has its id, which so says nothing of keys
// and values: whatever they are, it is the same.
func sameWords(t *testing.T, s script.Script, v verdict.Violation, ctx alerts.Context) {
	t.Helper()
	ctx.Veil = veil.New(veil.Hash, salt)
	a, err := alerts.New(v, ctx)
	if err != nil {
		t.Fatal(err)
	}
	h := ctx.Veil.Alert(ctx.Initial, nil)
	txns := make([]record.Transaction, len(s.Txns))
	for i := range txns {
		txns[i] = *h.Transaction(&s.Txns[i])
	}
	ctx.Veil, ctx.Lookup = veil.Veil{}, alerttest.Lookup(txns)
	b, err := alerts.New(h.Violation(v), ctx)
	if err != nil {
		t.Fatal(err)
	}
	a.Values = b.Values // which is of what was recorded
	if d := cmp.Diff(b, a); d != "" {
		t.Errorf("-of a hashed history +hashed:\n%s", d)
	}
}

// The same of whatever the engine finds in random histories, ambiguous ones among them.
func TestVeilOfRandomHistories(t *testing.T) {
	n := uint64(race.Draws(150, 400))
	found := 0
	for seed := range n {
		rng := rand.New(rand.NewPCG(seed, 55))
		s := tiny.Random(rng, tiny.Config{Txns: 5, Times: seed%2 == 0, Aborted: true, Keys: int(seed % 4), Mutations: 3})
		if seed%2 == 1 {
			s, rng = ambiguous(seed, 55)
		}
		s = marked(s)
		level := oneOf(rng, s.Txns)
		for _, v := range engine(s.Header, s.Txns, level)[0].Violations {
			ctx := context(s, level)
			ctx.Judge, ctx.Find = engineJudge, engineFind
			full, err := alerts.New(v, ctx)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if !strings.Contains(string(full.JSON()), mark) {
				continue // all of it means something by itself
			}
			for _, mode := range []veil.Mode{veil.Hash, veil.None} {
				ctx.Veil = veil.New(mode, salt)
				a, err := alerts.New(v, ctx)
				if err != nil {
					t.Fatalf("seed %d: %v\n%s", seed, err, script.Format(s))
				}
				recheck(t, a)
				hidden(t, full, a, mode)
				if sameWords(t, s, v, ctx); t.Failed() {
					t.Fatalf("seed %d at %v\n%s", seed, level, script.Format(s))
				}
				found++
			}
		}
	}
	if found < int(n)/2 {
		t.Errorf("only %d alerts", found)
	}
}

// Hashes link alerts of one salt, and of no other; pseudonyms link none.
func TestVeilLinks(t *testing.T) {
	alert := func(key string, value int, v veil.Veil) alerts.Alert {
		s, err := script.Parse(fmt.Sprintf("s1 T0: w(other,9)\ns1 T1 aborted: w(%s,%d)\ns2 T2: r(other,9) r(%s,%d)", key, value, key, value))
		if err != nil {
			t.Fatal(err)
		}
		ctx := context(s, verdict.SI)
		ctx.Veil = v
		a, err := alerts.New(verdict.Violation{Kind: verdict.AbortedRead, Level: verdict.SI, Key: key, Read: 1, Txns: []verdict.TxnID{2, 1}, Evidence: []verdict.TxnID{0, 1, 2}}, ctx)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	hash, other, none := veil.New(veil.Hash, salt), veil.New(veil.Hash, append([]byte("x"), salt...)), veil.New(veil.None, nil)
	for _, c := range []struct {
		what  string
		a, b  alerts.Alert
		equal bool
	}{
		{"one key", alert("x", 1, hash), alert("x", 2, hash), true},
		{"two keys", alert("x", 1, hash), alert("y", 1, hash), false},
		{"two salts", alert("x", 1, hash), alert("x", 1, other), false},
		{"pseudonyms", alert("x", 1, none), alert("y", 2, none), true}, // both are k1
	} {
		if slices.Equal(c.a.Keys, c.b.Keys) != c.equal {
			t.Errorf("%s: %q and %q", c.what, c.a.Keys, c.b.Keys)
		}
	}
	if a := alert("x", 1, none); !slices.Equal(a.Keys, []string{"k1"}) || !strings.Contains(a.Summary, `"v1"`) {
		t.Errorf("%q, %s", a.Keys, a.Summary)
	}
}
