package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/sql"
	"github.com/isowatch/isowatch/recorder"
)

// shop is a catalog with a table of accounts (id, n, s).
func shop() *Catalog {
	t := &table{oid: 16400, rel: "a", called: "a", key: []int{0}, columns: []column{
		{name: "id", number: 1, class: sql.ClassInt}, {name: "n", number: 2, class: sql.ClassInt, preset: sqlNull, hasPreset: true},
		{name: "s", number: 3, class: sql.ClassText, preset: sqlNull, hasPreset: true}}}
	return &Catalog{database: "shop", tables: map[sql.Name][]*table{{Schema: "public", Table: "a"}: {t}, {Table: "a"}: {t}, {Table: "twice"}: {t, t}},
		byOID: map[uint32]*table{t.oid: t}, writers: map[string]bool{"f": true}}
}

// heard is what is recorded of what both sides send, in the order in which play says so.
func heard(t testing.TB, play func(c *Connection)) (ops []string, capture *Capture) {
	var out bytes.Buffer
	rec := recorder.New(recorder.Lines(&out), recorder.Options{Wait: true})
	capture, err := New(context.Background(), rec, Options{Complete: true, Load: func(context.Context) (*Catalog, error) { return shop(), nil }})
	if err != nil {
		t.Fatal(err)
	}
	c := capture.Connect()
	play(c)
	c.Close()
	if err := rec.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		var r record.Transaction
		if err := codec.Decode([]byte(strings.TrimSpace(line)), &r); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		_, what, _ := strings.Cut(strings.TrimSpace(line), `"status":`)
		ops = append(ops, what)
	}
	return ops, capture
}

// message is one of either side's.
type message interface {
	Encode([]byte) ([]byte, error)
}

func bytesOf(t testing.TB, ms ...message) []byte {
	var b []byte
	for _, m := range ms {
		var err error
		if b, err = m.Encode(b); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func hello(t testing.TB) (client, server []byte) {
	return bytesOf(t, &pgproto3.StartupMessage{ProtocolVersion: pgproto3.ProtocolVersion30, Parameters: map[string]string{"user": "u", "database": "shop"}}),
		bytesOf(t, &pgproto3.AuthenticationOk{}, &pgproto3.ParameterStatus{Name: "client_encoding", Value: "UTF8"},
			&pgproto3.ParameterStatus{Name: "standard_conforming_strings", Value: "on"}, &pgproto3.ReadyForQuery{TxStatus: 'I'})
}

var (
	columnN  = pgproto3.FieldDescription{Name: []byte("n"), TableOID: 16400, TableAttributeNumber: 2, DataTypeOID: pgtype.Int4OID}
	columnID = pgproto3.FieldDescription{Name: []byte("id"), TableOID: 16400, TableAttributeNumber: 1, DataTypeOID: pgtype.Int4OID}
)

func tag(text string) message { return &pgproto3.CommandComplete{CommandTag: []byte(text)} }

var (
	idle, inside, broken = &pgproto3.ReadyForQuery{TxStatus: 'I'}, &pgproto3.ReadyForQuery{TxStatus: 'T'}, &pgproto3.ReadyForQuery{TxStatus: 'E'}
)

// turn is what one side sends.
type turn struct {
	client []message
	server []message
}

func play(t testing.TB, turns ...turn) func(*Connection) {
	return func(c *Connection) {
		client, server := hello(t)
		c.FromClient(client)
		c.FromServer(server)
		for _, n := range turns {
			c.FromClient(bytesOf(t, n.client...))
			c.FromServer(bytesOf(t, n.server...))
		}
	}
}

// What is on its way when a connection breaks is what its client does not know.
func TestBreaks(t *testing.T) {
	begin := turn{[]message{&pgproto3.Query{String: "begin"}}, []message{tag("BEGIN"), inside}}
	insert := turn{[]message{&pgproto3.Query{String: "insert into a values (1, 10, 'x')"}}, []message{tag("INSERT 0 1"), inside}}
	commit := turn{[]message{&pgproto3.Query{String: "commit"}}, nil}
	made := `[["w","a:1.n",10],["w","a:1.s","x"]]}`
	for _, tc := range []struct {
		name  string
		turns []turn
		want  []string
	}{
		{"in a transaction", []turn{begin, insert}, []string{`"aborted","ops":` + made}},
		{"within a statement of a transaction", []turn{begin, insert, {[]message{&pgproto3.Query{String: "update a set n = 1 where id = 1"}}, nil}},
			[]string{`"aborted","ops":` + made}},
		{"before COMMIT is answered", []turn{begin, insert, commit}, []string{`"unknown","ops":` + made}},
		{"with a farewell in place of the answer", []turn{begin, insert, {commit.client, []message{&pgproto3.ErrorResponse{Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: "57P01"}}}},
			[]string{`"unknown","ops":` + made}},
		{"within a statement that commits itself", []turn{{insert.client, nil}}, []string{`"unknown","ops":` + made}},
		{"with several under way", []turn{{[]message{&pgproto3.Query{String: "insert into a values (1, 1); insert into a values (2, 2)"}}, nil}},
			[]string{`"aborted","ops":[]}`}}, // behind a gap
		{"when nothing is written", []turn{{[]message{&pgproto3.Query{String: "select n from a"}}, nil}}, nil},
		{"after an answer to COMMIT that says it failed", []turn{begin, insert, {commit.client, []message{&pgproto3.ErrorResponse{Severity: "ERROR", SeverityUnlocalized: "ERROR", Code: "40001"}, idle}}},
			[]string{`"aborted","ops":` + made}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, _ := heard(t, play(t, tc.turns...))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A pipeline is one transaction up to its Sync, what follows an error in it is not carried out, and a name of a statement then means
// what it meant before.
func TestPipeline(t *testing.T) {
	parse := func(name, text string) message { return &pgproto3.Parse{Name: name, Query: text} }
	bind := func(name string, params ...string) message {
		b := &pgproto3.Bind{PreparedStatement: name}
		for _, p := range params {
			b.Parameters = append(b.Parameters, []byte(p))
		}
		return b
	}
	run, sync := &pgproto3.Execute{}, &pgproto3.Sync{}
	got, capture := heard(t, play(t,
		turn{[]message{parse("put", "insert into a values ($1, $2)"), bind("put", "1", "10"), run, bind("put", "2", "20"), run, sync},
			[]message{&pgproto3.ParseComplete{}, &pgproto3.BindComplete{}, tag("INSERT 0 1"), &pgproto3.BindComplete{}, tag("INSERT 0 1"), idle}},
		turn{[]message{bind("put", "1", "11"), run, parse("put", "select 1"), bind("put", "3", "30"), run, sync},
			[]message{&pgproto3.BindComplete{}, &pgproto3.ErrorResponse{Severity: "ERROR", SeverityUnlocalized: "ERROR", Code: "23505"}, idle}},
		turn{[]message{bind("put", "4", "40"), run, sync}, []message{&pgproto3.BindComplete{}, tag("INSERT 0 1"), idle}},
	))
	want := []string{`"committed","ops":[["w","a:1.n",10],["w","a:1.s",{"null":true}],["w","a:2.n",20],["w","a:2.s",{"null":true}]]}`,
		`"committed","ops":[["w","a:4.n",40],["w","a:4.s",{"null":true}]]}`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if c, a := capture.Outcomes(record.Committed), capture.Outcomes(record.Aborted); c != 2 || a != 1 || len(capture.Unclear()) > 0 {
		t.Errorf("%d committed, %d aborted, unclear %v; want 2, 1, none", c, a, capture.Unclear())
	}
}

// What is not understood of a statement is counted by its text, and what it may have touched is recorded no more.
func TestNotUnderstood(t *testing.T) {
	for _, tc := range []struct {
		text   string
		reason Reason // empty: all of it is understood
	}{
		{"select n from a where id = 1", ""},
		{"set application_name = 'x'", ""},
		{"select f(1)", ReasonAnything},
		{"call p()", ReasonAnything},
		{"do $$ begin end $$", ReasonAnything},
		{"execute q", ReasonAnything},
		{"update elsewhere set n = 1", ReasonAnything},
		{"select n into b from a", ReasonAnything},
		{"select 'a", ReasonAnything},
		{"update a set n = n * 2 where id = 1", ReasonValue},
		{"update a set n = 1", ReasonRows},
		{"update a set n = 1 where id = 1 or n = 2", ReasonRows},
		{"update a set n = 1 where id between 1 and 2", ReasonRows},
		{"update a set id = 2 where id = 1", ReasonRows},
		{"update a set n = 1 from a as b where a.id = 1", ReasonRows},
		{"delete from a where n = 1", ReasonRows},
		{"insert into a select 1, 2", ReasonRows},
		{"insert into a (id) values (default)", ReasonRows},
		{"with x as (delete from a where id = 1 returning n) select n from x", ReasonRows},
		{"explain analyze delete from a where id = 1", ReasonRows},
		{"copy a from stdin", ReasonRows},
		{"copy a to stdout", ""},
		{"truncate a", ReasonRows},
		{"merge into a using b on a.id = b.id when matched then delete", ReasonRows},
		{"set search_path to x; update a set n = 1 where id = 1", ""}, // there is one of this name
		{"create table if not exists a (id int)", ""},
		{"alter table a add x int", ReasonRows},
		{"drop table twice", ReasonRows},
		{"update twice set n = 1 where id = 1", ReasonAnything},
		{"create temp table a (id int); update a set n = 1 where id = 1", ReasonAnything},
	} {
		_, capture := heard(t, play(t, turn{[]message{&pgproto3.Query{String: tc.text}}, nil}))
		var got Reason
		if u := capture.Unclear(); len(u) > 0 {
			got = u[0].Reason
		}
		if got != tc.reason {
			t.Errorf("%s: %q, want %q", tc.text, got, tc.reason)
		}
	}
}

// Of a statement with parameters that are too long it is known what it writes to, if not what; of one that is too long itself
// nothing is.
func TestLongMessages(t *testing.T) {
	long := strings.Repeat("x", messageMax)
	put := []message{&pgproto3.Parse{Name: "put", Query: "insert into a values ($1, $2, $3)"},
		&pgproto3.Bind{PreparedStatement: "put", Parameters: [][]byte{[]byte("1"), []byte("5"), []byte(long)}}, &pgproto3.Execute{}, &pgproto3.Sync{}}
	ask := []message{&pgproto3.Parse{Name: "get", Query: "select n from a where s = $1 and id = 1"}, &pgproto3.Describe{ObjectType: 'S', Name: "get"},
		&pgproto3.Bind{PreparedStatement: "get", Parameters: [][]byte{[]byte(long)}}, &pgproto3.Execute{}, &pgproto3.Sync{}}
	for _, tc := range []struct {
		client []message
		want   Reason
	}{{put, ReasonRows}, {ask, ""}, {[]message{&pgproto3.Query{String: "select '" + long + "'"}}, ReasonAnything}} {
		got, capture := heard(t, func(c *Connection) {
			play(t)(c)
			for text := bytesOf(t, tc.client...); len(text) > 0; {
				n := min(len(text), 1000)
				c.FromClient(text[:n])
				text = text[n:]
			}
			if tc.want == "" {
				c.FromServer(bytesOf(t, &pgproto3.ParseComplete{}, &pgproto3.ParameterDescription{ParameterOIDs: []uint32{pgtype.TextOID}}, &pgproto3.RowDescription{Fields: []pgproto3.FieldDescription{columnN}},
					&pgproto3.BindComplete{}, tag("SELECT 0"), idle))
			}
		})
		var why Reason
		if u := capture.Unclear(); len(u) > 0 {
			why = u[0].Reason
		}
		if why != tc.want || capture.Blind() != (why == ReasonAnything) || len(got) > 0 {
			t.Errorf("%q, want %q; blind %t, recorded %v", why, tc.want, capture.Blind(), got)
		}
	}
}

// However many texts there are, they are counted apart up to a bound, and none has a literal.
func TestUnclearIsBounded(t *testing.T) {
	var turns []turn
	for i := range 300 {
		turns = append(turns, turn{[]message{&pgproto3.Query{String: fmt.Sprintf("update a set n = 4711 where s = '4711' and x%d > 1", i)}}, []message{tag("UPDATE 1"), idle}})
	}
	_, capture := heard(t, play(t, turns...))
	all := int64(0)
	for _, u := range capture.Unclear() {
		all += u.Count
		if strings.Contains(u.Text, "4711") {
			t.Errorf("a literal is told: %s", u.Text)
		}
	}
	if n := len(capture.Unclear()); n != unclearMax+1 || all != 300 {
		t.Errorf("%d statements are counted, %d apart; want 300, %d", all, n, unclearMax+1)
	}
}

// With a prefix neither sessions nor items are called as those of another run.
func TestPrefix(t *testing.T) {
	var out bytes.Buffer
	rec := recorder.New(recorder.Lines(&out), recorder.Options{})
	capture, err := New(t.Context(), rec, Options{Complete: true, Prefix: "x/", Load: func(context.Context) (*Catalog, error) { return shop(), nil }})
	if err != nil {
		t.Fatal(err)
	}
	c := capture.Connect()
	play(t, turn{[]message{&pgproto3.Query{String: "insert into a values (1, 10, 'x')"}}, []message{tag("INSERT 0 1"), idle}})(c)
	c.Close()
	if err := rec.Close(t.Context()); err != nil || !strings.Contains(out.String(), `"session":"x/client/1"`) || !strings.Contains(out.String(), `["w","x/a:1.n",10]`) {
		t.Errorf("%v: %s", err, out.String())
	}
}

// Tables that can't be asked for again are not taken for those that were.
func TestReloadFails(t *testing.T) {
	var told error
	_, capture := heard(t, func(c *Connection) {
		c.capture.options.Load = func(context.Context) (*Catalog, error) { return nil, errors.New("gone") }
		c.capture.options.Failed = func(err error) { told = err }
		play(t, turn{[]message{&pgproto3.Query{String: "create table b (id int)"}}, []message{tag("CREATE TABLE"), idle}})(c)
	})
	if told == nil || !capture.items.all {
		t.Errorf("told %v, all lossy %t", told, capture.items.all)
	}
}

// A mistake of ours costs the records, and not the connection.
func TestPanics(t *testing.T) {
	var told error
	got, capture := heard(t, func(c *Connection) {
		c.capture.options.Failed = func(err error) { told = err }
		play(t, turn{[]message{&pgproto3.Query{String: "insert into a values (1, 10, 'x')"}}, []message{tag("INSERT 0 1"), idle}})(c)
		c.statements = nil
		c.FromClient(bytesOf(t, &pgproto3.Parse{Name: "s", Query: "select 1"}, &pgproto3.Sync{}))
	})
	if told == nil || !capture.Blind() || len(got) != 2 || !strings.Contains(got[1], "aborted") {
		t.Errorf("told %v, blind %t, records %v; want a record, and one behind a gap", told, capture.Blind(), got)
	}
}

// FuzzConnection feeds what both sides may send, in pieces. Whatever that is, nothing panics, and what is recorded are records.
func FuzzConnection(f *testing.F) {
	turns := []turn{
		{[]message{&pgproto3.Query{String: "begin; update a set n = n - 1 where id = 1"}}, []message{tag("BEGIN"), tag("UPDATE 1"), inside}},
		{[]message{&pgproto3.Query{String: "select id, n from a"}}, []message{&pgproto3.RowDescription{Fields: []pgproto3.FieldDescription{columnID, columnN}},
			&pgproto3.DataRow{Values: [][]byte{[]byte("1"), []byte("5")}}, tag("SELECT 1"), inside}},
		{[]message{&pgproto3.Parse{Name: "s", Query: "update a set n = $1 where id = $2 returning n", ParameterOIDs: []uint32{pgtype.Int4OID, pgtype.Int4OID}}, &pgproto3.Describe{ObjectType: 'S', Name: "s"}, &pgproto3.Sync{}},
			[]message{&pgproto3.ParseComplete{}, &pgproto3.ParameterDescription{ParameterOIDs: []uint32{pgtype.Int4OID, pgtype.Int4OID}}, &pgproto3.RowDescription{Fields: []pgproto3.FieldDescription{columnN}}, inside}},
		{[]message{&pgproto3.Bind{PreparedStatement: "s", ParameterFormatCodes: []int16{1}, Parameters: [][]byte{{0, 0, 0, 9}, {0, 0, 0, 1}}, ResultFormatCodes: []int16{1}}, &pgproto3.Execute{MaxRows: 1}, &pgproto3.Sync{}},
			[]message{&pgproto3.BindComplete{}, &pgproto3.DataRow{Values: [][]byte{{0, 0, 0, 9}}}, tag("UPDATE 1"), inside}},
		{[]message{&pgproto3.Query{String: "savepoint p; rollback to p; commit"}}, []message{tag("SAVEPOINT"), tag("ROLLBACK"), tag("COMMIT"), idle}},
		{[]message{&pgproto3.Query{String: "copy a from stdin"}, &pgproto3.CopyData{Data: []byte("1")}, &pgproto3.CopyDone{}}, []message{&pgproto3.CopyInResponse{}, tag("COPY 1"), idle}},
	}
	client, server := hello(f)
	for i := range turns {
		f.Add(slices.Concat(client, bytesOf(f, turns[i].client...)), slices.Concat(server, bytesOf(f, turns[i].server...)), uint8(i))
	}
	for _, file := range recordedTraffic(f) {
		messages, _ := traffic(f, file)
		var client, server []byte
		for _, m := range messages {
			if m.connection == 1 && m.byClient {
				client = append(client, m.bytes...)
			} else if m.connection == 1 {
				server = append(server, m.bytes...)
			}
		}
		f.Add(client, server, uint8(255))
	}
	f.Fuzz(func(t *testing.T, client, server []byte, piece uint8) {
		heard(t, func(c *Connection) {
			n := int(piece) + 1
			for len(client) > 0 || len(server) > 0 {
				k := min(n, len(client))
				c.FromClient(client[:k])
				client = client[k:]
				k = min(n, len(server))
				c.FromServer(server[:k])
				server = server[k:]
			}
		})
	})
}

// Who has read what a transaction wrote is recorded behind it, though it hears first how it ended: wherever the records of
// one who was killed end, nobody has read what nobody wrote. What else was read waits for nobody. What a row held that its
// writer deleted and made again is not known.
func TestBehindWhomItHasRead(t *testing.T) {
	ask := func(text string, answers ...message) turn {
		return turn{[]message{&pgproto3.Query{String: text}}, answers}
	}
	one := func(n string) []message {
		return []message{&pgproto3.RowDescription{Fields: []pgproto3.FieldDescription{columnN}}, &pgproto3.DataRow{Values: [][]byte{[]byte(n)}}, tag("SELECT 1"), idle}
	}
	read := func(n string) turn { return ask("select n from a where id = 1", one(n)...) }
	returning := []message{&pgproto3.RowDescription{Fields: []pgproto3.FieldDescription{columnN}}, &pgproto3.DataRow{Values: [][]byte{[]byte("11")}}, tag("UPDATE 1"), idle}
	known := []turn{read("10")}
	deleted := []message{&pgproto3.Query{String: "delete from a where id = 1; insert into a (id, n) values (1, 11)"}}
	for _, tc := range []struct {
		name   string
		begins []turn // of the one who reads
		first  []turn // the last is not answered before the other has read
		answer []message
		reads  string
		want   []string
	}{
		{"a transaction", known, []turn{ask("begin", tag("BEGIN"), inside), ask("update a set n = 11 where id = 1", tag("UPDATE 1"), inside), ask("commit")}, []message{tag("COMMIT"), idle}, "11",
			[]string{`w 10`, `r 10`, `w 11`, `r 11`}},
		{"a statement", known, []turn{ask("update a set n = 11 where id = 1")}, []message{tag("UPDATE 1"), idle}, "11", []string{`w 10`, `r 10`, `w 11`, `r 11`}},
		{"what only the answer tells", known, []turn{ask("update a set n = n + 1 where id = 1 returning n")}, returning, "11", []string{`w 10`, `r 10`, `r 10 w 11`, `r 11`}},
		{"what was there before", known, []turn{ask("update a set n = n + 1 where id = 1 returning n")}, returning, "10", []string{`w 10`, `r 10`, `r 10 w 11`, `r 10`}},
		{"one that is open", known, []turn{ask("begin", tag("BEGIN"), inside), ask("update a set n = 11 where id = 1", tag("UPDATE 1"), inside)}, nil, "10", []string{`w 10`, `r 10`, `r 10`, `w 11`}},
		{"one that breaks", known, []turn{ask("update a set n = 11 where id = 1")}, nil, "11", []string{`w 10`, `r 10`, `w 11`, `r 11`}},
		{"a row that is made again", nil, []turn{ask("begin", tag("BEGIN"), inside), {deleted, []message{tag("DELETE 1"), tag("INSERT 0 1"), inside}}}, []message{}, "10", []string{`w null w null w 11 w {"null":true}`}},
		{"one behind the other", known, []turn{{[]message{&pgproto3.Query{String: "update a set n = 11 where id = 1"}, &pgproto3.Query{String: "update a set n = 12 where id = 1"}},
			[]message{tag("UPDATE 1"), idle}}}, []message{tag("UPDATE 1"), idle}, "12", []string{`w 10`, `r 10`, `w 11`, `w 12`, `r 12`}},
		{"several at once", known, []turn{ask("update a set n = 10 where id = 1; update a set n = 11 where id = 1")}, []message{tag("UPDATE 1"), tag("UPDATE 1"), idle}, "11", []string{`w 10`, `r 10`, `w 10 w 11`, `r 11`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out bytes.Buffer
			rec := recorder.New(recorder.Lines(&out), recorder.Options{})
			capture, err := New(t.Context(), rec, Options{Complete: true, Load: func(context.Context) (*Catalog, error) { return shop(), nil }})
			if err != nil {
				t.Fatal(err)
			}
			reader, writer := capture.Connect(), capture.Connect()
			play(t, tc.begins...)(reader)
			play(t, tc.first...)(writer)
			last := read(tc.reads)
			reader.FromClient(bytesOf(t, last.client...))
			reader.FromServer(bytesOf(t, last.server...))
			writer.FromServer(bytesOf(t, tc.answer...))
			writer.Close()
			reader.Close()
			if err := rec.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			var got []string
			for line := range strings.Lines(out.String()) {
				var r record.Transaction
				if err := codec.Decode([]byte(strings.TrimSpace(line)), &r); err != nil {
					t.Fatal(err)
				}
				var ops []string
				for _, o := range r.Ops {
					ops = append(ops, o.Kind.String()+" "+o.Value.String())
				}
				got = append(got, strings.Join(ops, " "))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// What a client sends who never waits for the answers to all before is recorded as it goes on.
func TestAlwaysUnderWay(t *testing.T) {
	heard(t, func(c *Connection) {
		play(t)(c)
		update := bytesOf(t, &pgproto3.Query{String: "update a set n = 1 where id = 1"})
		c.FromClient(bytesOf(t, &pgproto3.Query{String: "insert into a values (1, 1, 'x')"}, &pgproto3.Query{String: "update a set n = 1 where id = 1"}))
		c.FromServer(bytesOf(t, tag("INSERT 0 1"), idle))
		for range 1000 {
			c.FromClient(update)
			c.FromServer(bytesOf(t, tag("UPDATE 1"), idle))
		}
		if len(c.did) > 2 {
			t.Errorf("%d operations are held", len(c.did))
		}
	})
}
