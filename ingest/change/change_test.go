package change_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/isowatch/isowatch/ingest/change"
	"github.com/isowatch/isowatch/ingest/reject"
)

// What Debezium 3.6.1 sent of a PostgreSQL 15, shortened: a change with its schema and without, a row of the snapshot,
// the end of a transaction.
const (
	withoutSchema = `{"before":null,"after":{"k":1,"v":7},"source":{"version":"3.6.1.Final","connector":"postgresql","name":"shop","ts_ms":1795800000000,"snapshot":"false","db":"postgres","sequence":"[\"26842600\",\"26842696\"]","schema":"public","table":"kv","txId":735,"lsn":26842696,"xmin":null},"transaction":null,"op":"u","ts_ms":1795800000100}`
	snapshot      = `{"before":null,"after":{"k":1,"v":0},"source":{"connector":"postgresql","name":"shop","snapshot":"first","db":"postgres","sequence":"[null,\"26842500\"]","txId":730,"lsn":26842500},"op":"r"}`
	end           = `{"status":"END","id":"735:26842696","event_count":1,"data_collections":[{"data_collection":"public.kv","event_count":1}],"ts_ms":1795800000000}`
)

func TestDecode(t *testing.T) {
	want := change.Change{XID: "735", LSN: 26842600, DB: "postgres", Log: "shop"}
	for _, c := range []struct {
		name, in string
		want     change.Change
		ok       bool
		says     string // of the error
	}{
		{"without schema", withoutSchema, want, true, ""},
		{"with schema", `{"schema":{"type":"struct","fields":[]},"payload":` + withoutSchema + `}`, want, true, ""},
		{"ours", `{"logged":{"xid":"735","lsn":26842600,"db":"postgres","log":"shop"}}`, want, true, ""},
		{"any database", ` { "logged":{"lsn":5,"xid":"8589935327"}}`, change.Change{XID: "735", LSN: 5}, true, ""},
		{"a snapshot's row", snapshot, change.Change{}, false, ""},
		{"a transaction's end", end, change.Change{}, false, ""},
		{"a transaction's begin", ` { "status" : "BEGIN","id":"735:26842696","event_count":null}`, change.Change{}, false, ""},
		{"no source", `{"op":"u","session":"s"}`, change.Change{}, false, "field source"},
		{"a schema alone", `{"schema":{}}`, change.Change{}, false, "field source"},
		{"the first commit", strings.Replace(withoutSchema, `\"26842600\"`, `null`, 1), change.Change{}, false, ""},
		{"no JSON", `{"before":`, change.Change{}, false, "a change that is not JSON"},
		{"another type", `{"before":null,"source":7}`, change.Change{}, false, "field source"},
		{"another database", strings.Replace(withoutSchema, "postgresql", "mysql", 1), change.Change{}, false, "not of \"mysql\""},
		{"no sequence", strings.Replace(withoutSchema, `"sequence"`, `"was"`, 1), change.Change{}, false, "source.sequence"},
		{"an LSN of words", strings.Replace(withoutSchema, "26842600", "x", 1), change.Change{}, false, "source.sequence"},
		{"no LSN", `{"logged":{"xid":"1"}}`, change.Change{}, false, "above 0"},
		{"no xid", `{"logged":{"lsn":1}}`, change.Change{}, false, "logged.xid"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !change.Is([]byte(c.in)) {
				t.Fatal("not taken for a change")
			}
			got, ok, err := change.Decode([]byte(c.in))
			if ok != c.ok || got != c.want || (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%+v, %v, %v; want %+v, %v, %q", got, ok, err, c.want, c.ok, c.says)
			}
		})
	}
}

func TestIsNoRecord(t *testing.T) {
	for _, in := range []string{`{"session":"s","status":"committed","ops":[]}`, `{"db":"d","session":"s"}`, `{"status":"committed"}`,
		`{"status":"committed","session":"s","ops":[["w","k","BEGIN"],["w","k","END"]]}`, `{"source":7}`, `{"ts_ms":1}`, `{"after":{}}`,
		`{"event":"begin"}`, `{"history":{}}`, ``, `{`, `{"`, `[]`, `{"op`} {
		if change.Is([]byte(in)) {
			t.Errorf("%s is taken for a change", in)
		}
	}
}

// Two databases' numbers have nothing to do with each other, nor have two logs.
func TestBook(t *testing.T) {
	var b change.Book
	add := func(c change.Change) error { return b.Add(c) }
	if err := add(change.Change{XID: "1", LSN: 10, DB: "a", Log: "x"}); err != nil {
		t.Fatal(err)
	}
	lsns := func() []int64 {
		return []int64{b.LSN("a", "1"), b.LSN("default", "4294967297"), b.LSN("b", "1"), b.LSN("a", "2")}
	}
	if diff := cmp.Diff([]int64{10, 10, 0, 0}, lsns()); diff != "" {
		t.Error(diff)
	}
	if err := add(change.Change{XID: "1", LSN: 99, DB: "a", Log: "x"}); err != nil || b.LSN("a", "1") != 10 {
		t.Errorf("again: %v, %d", err, b.LSN("a", "1"))
	}
	if err := add(change.Change{XID: "2", LSN: 5, DB: "a", Log: "y"}); reject.From(err) == nil || b.LSN("a", "2") != 0 {
		t.Errorf("another log: %v, %d", err, b.LSN("a", "2"))
	}
	if err := add(change.Change{XID: "1", LSN: 7, DB: "b", Log: "y"}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int64{10, 0, 7, 0}, lsns()); diff != "" {
		t.Errorf("with two databases: %s", diff)
	}
}

func FuzzChange(f *testing.F) {
	for _, in := range []string{withoutSchema, snapshot, end, `{"schema":{},"payload":` + withoutSchema + `}`, `{"payload":null,"source":null}`,
		`{"logged":{"xid":"735","lsn":26842600,"db":"postgres","log":"shop"}}`} {
		f.Add([]byte(in))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		change.Is(in)
		c, ok, err := change.Decode(in)
		if err != nil && (ok || reject.From(err) == nil) {
			t.Fatalf("%v, %v", ok, err)
		}
		if !ok {
			return
		}
		if c.XID == "" || c.LSN <= 0 {
			t.Fatalf("%+v", c)
		}
		if again, ok, err := change.Decode(c.Append(nil)); err != nil || !ok || again != c {
			t.Fatalf("%+v, and written and read %+v, %v, %v", c, again, ok, err)
		}
	})
}
