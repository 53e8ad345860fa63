package codec

import (
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"

	"github.com/isowatch/isowatch/ingest/assemble"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/record/packed"
	"github.com/isowatch/isowatch/ingest/reject"
)

// What each line of testdata/events.txt is: an event or a record in canonical form, or
// why it is refused.
func TestMessages(t *testing.T) {
	datadriven.RunTest(t, "testdata/events.txt", func(t *testing.T, d *datadriven.TestData) string {
		if d.Cmd != "decode" {
			t.Fatalf("%s: no such command", d.Pos)
		}
		var out strings.Builder
		decoder := New(Options{})
		for line := range strings.Lines(d.Input) {
			var chunk packed.Chunk
			var e assemble.Event
			isEvent, err := decoder.Message([]byte(strings.TrimSpace(line)), &chunk, &e)
			switch {
			case err != nil:
				out.WriteString("refused: " + err.Error())
			case isEvent:
				out.Write(AppendEvent(nil, &e))
			default:
				out.WriteString("record: ")
				txn := chunk.Seal().Copy(0)
				out.Write(AppendJSON(nil, &txn))
			}
			out.WriteByte('\n')
		}
		return out.String()
	})
}

var eventSeeds = []string{
	`{"event":"begin","session":"s","txn":"t","db":"d","seq":3,"id":"i","start":5}`,
	`{"event":"op","session":"s","txn":"t","n":0,"op":["r","x",[1]]}`,
	`{"n":1,"op":["rp",{"table":"t","where":"v"},{}],"txn":"t","session":"s","event":"op"}`,
	`{"event":"commit","session":"s","txn":"t","count":1,"end":null}`,
	`{"event":"begin","session":"s\u0000","txn":"t"}`,
	`{"event":"begin","session":"s","txn":"t\u0000","id":"\u0000","db":"\u0000"}`,
	`{"event":"op","session":"s","txn":"t","n":16777216,"op":["w","x",1]}`,
	`{"session":"s","status":"committed","ops":[],"n":1}`,
}

// An event agrees with the twin, which knows the format from the documentation and JSON from the standard
// library, and is written and read again as the same. A message is one thing or the other.
func FuzzEvent(f *testing.F) {
	for _, s := range append(slices.Clone(eventSeeds), seeds...) {
		f.Add([]byte(s))
	}
	d := New(Options{NamesMax: 1})
	f.Fuzz(func(t *testing.T, in []byte) {
		var e assemble.Event
		err := d.Event(in, &e)
		want, wantErr := twinEvent(in)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%s: Event says %v, the twin %v", in, err, wantErr)
		}
		var chunk packed.Chunk
		var again assemble.Event
		isEvent, messageErr := d.Message(in, &chunk, &again)
		var txn record.Transaction
		isRecord := Decode(in, &txn) == nil
		if isEvent && isRecord || (messageErr == nil) != (isRecord || err == nil) || chunk.Len() > 0 != isRecord {
			t.Fatalf("%s: Message says %v, %v; %d records", in, isEvent, messageErr, chunk.Len())
		}
		if err != nil {
			if bad := reject.From(err); bad == nil || bad.Detail == "" || !cmp.Equal(e, assemble.Event{}) {
				t.Fatalf("%s: %v, %+v", in, err, e)
			}
			return
		}
		if !cmp.Equal(e, want) || !cmp.Equal(e, again) {
			t.Fatalf("%s\n%s\n%s", in, cmp.Diff(want, e), cmp.Diff(e, again))
		}
		text := AppendEvent(nil, &e)
		if err := d.Event(text, &again); err != nil || !cmp.Equal(e, again) {
			t.Fatalf("%s is written as %s: %v", in, text, err)
		}
	})
}

// twinEvent decodes slowly and simply.
func twinEvent(in []byte) (e assemble.Event, err error) {
	tree, err := parseTree(in)
	if err != nil {
		return e, err
	}
	obj, ok := tree.(fields)
	if !ok {
		return e, errTwin
	}
	get := map[string]any{}
	for _, f := range obj {
		if _, twice := get[f.name]; twice {
			return e, errTwin
		}
		get[f.name] = f.value
	}
	kind, _ := get["event"].(string)
	needed, may := map[string][]string{"begin": {}, "op": {"n", "op"}, "commit": {"count"}, "abort": {"count"}, "unknown": {"count"}}[kind], []string{"end"}
	switch kind {
	case "begin":
		may = []string{"db", "seq", "id", "start"}
		e.DB = record.DefaultDB
	case "op":
		e.Kind, may = assemble.Step, nil
	case "commit", "abort", "unknown":
		e.Kind = assemble.End
		e.Status = map[string]record.Status{"commit": record.Committed, "abort": record.Aborted, "unknown": record.Unknown}[kind]
	default:
		return e, errTwin
	}
	needed = append(needed, "event", "session", "txn")
	for _, name := range needed {
		if get[name] == nil {
			return e, errTwin
		}
	}
	// What a record of the same values is tells what names, times and operations mean.
	line := fields{{"session", get["session"]}, {"status", "committed"}, {"ops", []any{}}}
	for name, value := range get {
		switch {
		case slices.Contains(needed, name):
		case value == nil && (slices.Contains(may, name) || slices.Contains([]string{"db", "seq", "id", "start", "end"}, name)):
		case slices.Contains(may, name):
			line = append(line, field{name, value})
			if name == "start" {
				line = append(line, field{"end", value})
			}
			if name == "end" {
				line = append(line, field{"start", value})
			}
		default:
			return e, errTwin
		}
	}
	if op, ok := get["op"]; ok {
		line[2].value = []any{op}
	}
	t, err := twinOf(line)
	if err != nil {
		return e, err
	}
	e.Session, e.DB, e.Seq, e.HasSeq, e.Time, e.HasTime = t.Session, "", t.Seq, t.HasSeq, t.Start, t.HasTimes
	if kind == "begin" {
		e.DB = t.DB
		if get["id"] != nil {
			e.ID = t.ID
		}
	}
	if len(t.Ops) > 0 {
		e.Op = t.Ops[0]
	}
	if e.Txn, ok = get["txn"].(string); !ok || e.Txn == "" {
		return e, errTwin
	}
	for name, most := range map[string]int64{"n": assemble.OpsLimit - 1, "count": assemble.OpsLimit} {
		if value, ok := get[name]; ok {
			t, err := twinOf(fields{{"session", "s"}, {"status", "committed"}, {"ops", []any{}}, {"seq", value}})
			if err != nil || t.Seq > most {
				return e, errTwin
			}
			e.N = uint32(t.Seq)
		}
	}
	return e, nil
}
