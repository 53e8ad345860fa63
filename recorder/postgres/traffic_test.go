package postgres

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/sql"
	"github.com/isowatch/isowatch/recorder"
)

// said is a message of recorded traffic.
type said struct {
	connection int
	byClient   bool
	bytes      []byte
}

// traffic is what a driver and PostgreSQL said to each other (go test ./cmd/monitor/proxy -traffic), a message a line, and
// how PostgreSQL has numbered table account.
func traffic(t testing.TB, file string) (messages []said, oid uint32) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if oid == 0 {
			if _, err := fmt.Sscanf(line, "oid %d", &oid); err != nil {
				t.Fatal(err)
			}
			continue
		}
		var m said
		var way rune
		var kind, body string
		if _, err := fmt.Sscanf(line, "%d%c %s %q", &m.connection, &way, &kind, &body); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if kind != "startup" {
			m.bytes = []byte(kind)
		}
		m.byClient = way == '>'
		m.bytes = append(binary.BigEndian.AppendUint32(m.bytes, uint32(len(body)+4)), body...)
		messages = append(messages, m)
	}
	return messages, oid
}

// recordedTraffic are the files of it.
func recordedTraffic(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 6 {
		t.Fatalf("%v: %q", err, files)
	}
	return files
}

// What psql, pgx, psycopg, SQLAlchemy, JDBC's and Node's driver say is heard, whole or byte by byte: with statements that
// are prepared once they were used some times, as text and as binary.
func TestTraffic(t *testing.T) {
	want := []string{`"committed","ops":[["w","account:0.n",0],["w","account:1.n",0]]`}
	for i := range 7 {
		key := fmt.Sprintf("account:%d.n", i%2)
		want = append(want, fmt.Sprintf(`"committed","ops":[["r",%q,%d],["w",%q,%d]]`, key, i/2, key, i/2+1))
	}
	for _, file := range recordedTraffic(t) {
		messages, oid := traffic(t, file)
		account := &table{oid: oid, rel: "account", called: "account", key: []int{0}, columns: []column{
			{name: "id", number: 1, class: sql.ClassInt}, {name: "n", number: 2, class: sql.ClassInt, preset: sqlNull, hasPreset: true}}}
		loads := 0
		load := func(context.Context) (*Catalog, error) {
			if loads++; loads == 1 { // the application makes the table
				return &Catalog{database: "canary"}, nil
			}
			tables := []*table{account}
			return &Catalog{database: "canary", tables: map[sql.Name][]*table{{Schema: "public", Table: "account"}: tables, {Table: "account"}: tables},
				byOID: map[uint32]*table{oid: account}}, nil
		}
		for _, piece := range []int{1, 7, 1 << 20} {
			var out bytes.Buffer
			rec := recorder.New(recorder.Lines(&out), recorder.Options{Wait: true})
			loads = 0
			capture, err := New(t.Context(), rec, Options{Complete: true, Load: load})
			if err != nil {
				t.Fatal(err)
			}
			connections := map[int]*Connection{}
			for _, m := range messages {
				c := connections[m.connection]
				if c == nil {
					c = capture.Connect()
					connections[m.connection] = c
				}
				for b := range slices.Chunk(m.bytes, piece) {
					if m.byClient {
						c.FromClient(b)
					} else {
						c.FromServer(b)
					}
				}
			}
			for _, c := range connections {
				c.Close()
			}
			if err := rec.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
			var got []string
			for line := range strings.Lines(out.String()) {
				var r record.Transaction
				if err := codec.Decode([]byte(strings.TrimSpace(line)), &r); err != nil {
					t.Fatalf("%s: %v", line, err)
				}
				_, ops, _ := strings.Cut(strings.TrimSuffix(line, "}\n"), `"status":`)
				got = append(got, ops)
			}
			if diff := cmp.Diff(want, got); diff != "" || len(capture.Unclear()) > 0 || capture.Outcomes(record.Unknown) > 0 {
				t.Errorf("%s, %d bytes at once (-want +got):\n%s\nunclear %v, %d unknown", file, piece, diff, capture.Unclear(), capture.Outcomes(record.Unknown))
			}
		}
	}
}
