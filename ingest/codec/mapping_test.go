package codec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/assemble"
	"github.com/isowatch/isowatch/ingest/generate"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/record/packed"
	"github.com/isowatch/isowatch/ingest/reject"
	drawn "github.com/isowatch/isowatch/internal/lab/seeds"
)

// shopLog is how a service logs its transactions.
func shopLog() *Mapping {
	return &Mapping{Only: "msg", Is: "transaction", Session: "conn.id", ID: "trace.id", DB: "service", Start: "begin", End: "end", Unit: time.Millisecond,
		Outcome: "result", Outcomes: [3][]string{{"ok"}, {"rolled back", "conflict"}, {"timeout"}},
		Ops: "sql.ops", Kind: "op", Key: "row", Value: "val", Kinds: [3][]string{{"get"}, {"set", "put"}, {"push"}}}
}

// oneEach is of a log that has a line for each operation, committed by itself.
func oneEach() *Mapping {
	return &Mapping{Session: "s", Seq: "n", Kind: "op", Key: "key", Value: "value", Kinds: [3][]string{{"get"}, {"set"}, nil}}
}

// mapped is the record that a message is, as AppendJSON has it, or what is wrong with it.
func mapped(t testing.TB, m *Mapping, line []byte) (string, error) {
	t.Helper()
	var c packed.Chunk
	if _, err := NewMapped(m, Options{}).Message(line, &c, &assemble.Event{}); err != nil {
		if c.Len() != 0 {
			t.Fatalf("%s: %v, and %d records", line, err, c.Len())
		}
		return "", err
	}
	got := c.Seal().Copy(0)
	text := AppendJSON(nil, &got)
	var again record.Transaction
	if err := Decode(text, &again); err != nil {
		t.Fatalf("%s\nbecomes %s, which is no record: %v", line, text, err)
	}
	return string(text), nil
}

// testdata/mappings.txt: a line of a log, and what becomes of it.
func TestMappings(t *testing.T) {
	mappings := map[string]*Mapping{"shop": shopLog(), "each": oneEach(), "timekiller-ms": TimeKiller(time.Millisecond), "timekiller-ns": TimeKiller(1)}
	datadriven.RunTest(t, "testdata/mappings.txt", func(t *testing.T, d *datadriven.TestData) string {
		m := mappings[d.Cmd]
		if m == nil {
			d.Fatalf(t, "there is no mapping %s", d.Cmd)
		}
		var out strings.Builder
		for line := range strings.Lines(d.Input) {
			got, err := mapped(t, m, []byte(strings.TrimSpace(line)))
			if err != nil {
				got = err.Error()
			}
			fmt.Fprintln(&out, got)
		}
		return out.String()
	})
}

// What is written in another form is read as what it was.
func TestMappedAsWritten(t *testing.T) {
	m := &Mapping{Session: "who.session", ID: "id", Seq: "n", DB: "db", Start: "t.0", End: "t.1", Unit: 1, Outcome: "o",
		Outcomes: [3][]string{{"yes"}, {"no"}, {"who knows"}}, Ops: "did", Kind: "a", Key: "b", Value: "c", Kinds: [3][]string{{"get"}, {"put"}, {"push"}}}
	for _, w := range []generate.Workload{generate.General, generate.Mix} {
		g, err := generate.New(generate.Config{Level: verdict.SI, Workload: w, Transactions: 300, AbortRate: 0.1, UnknownRate: 0.1, Seed: *drawn.First})
		if err != nil {
			t.Fatal(err)
		}
		for r := range g.Transactions() {
			r.DB = record.DefaultDB
			var did []any
			for _, o := range r.Ops {
				did = append(did, map[string]any{"a": []string{"get", "PUT", "push"}[slices.Index([]record.OpKind{record.Read, record.Write, record.Append}, o.Kind)],
					"b": o.Key, "c": json.RawMessage(o.Value.String())})
			}
			if did == nil {
				did = []any{}
			}
			line, err := json.Marshal(map[string]any{"who": map[string]any{"session": r.Session, "more": []int{1}}, "id": r.ID, "n": r.Seq, "db": r.DB,
				"t.0": r.Start, "t": map[string]any{"1": r.End}, "o": m.Outcomes[r.Status][0], "did": did, "else": nil})
			if err != nil {
				t.Fatal(err)
			}
			if got, err := mapped(t, m, line); err != nil || got != string(AppendJSON(nil, &r)) {
				t.Fatalf("%s\nis read as %s, %v", line, got, err)
			}
		}
	}
}

// Whatever a line is, what becomes of it is a record or has a reason.
func FuzzMapped(f *testing.F) {
	f.Add([]byte(`{"msg":"transaction","conn":{"id":7},"trace.id":"x","service":"shop","begin":1,"end":"2026-01-31T12:00:00Z","result":"ok","sql":{"ops":[{"op":"get","row":"a:1","val":[1]}]}}`), uint8(0))
	f.Add([]byte(`{"s":"a","n":"7","op":"set","key":1,"value":null}`), uint8(1))
	f.Add([]byte(`{"tid":7,"sid":3,"sts":{"p":17,"l":0},"cts":{"p":"18","l":2},"ops":[{"t":"W","k":1,"v":5},{"t":"r","k":1,"v":[]}]}`), uint8(2))
	mappings := []*Mapping{shopLog(), oneEach(), TimeKiller(time.Millisecond), TimeKiller(1)}
	f.Fuzz(func(t *testing.T, line []byte, which uint8) {
		_, err := mapped(t, mappings[int(which)%len(mappings)], line)
		if e := reject.From(err); err != nil && err != ErrNoRecord && (e == nil || e.Reason == reject.None || len(err.Error()) > 5000) {
			t.Errorf("%.200s: %v", line, err)
		}
	})
}

func BenchmarkMapped(b *testing.B) {
	line := []byte(`{"ts":"2026-01-31T12:00:00.5Z","level":"info","msg":"transaction","conn":{"id":"api-3/7"},"trace.id":"4bf92f3577b34da6","service":"shop","begin":1732160000123,"end":1732160000125,"result":"ok","sql":{"ops":[{"op":"get","row":"acct:1","val":100},{"op":"set","row":"acct:1","val":90},{"op":"get","row":"acct:2","val":7},{"op":"set","row":"acct:2","val":17}]}}`)
	d := NewMapped(shopLog(), Options{})
	var c packed.Chunk
	b.ReportAllocs()
	b.SetBytes(int64(len(bytes.TrimSpace(line))))
	for b.Loop() {
		if _, err := d.Message(line, &c, nil); err != nil {
			b.Fatal(err)
		}
		c.Undo()
	}
}
