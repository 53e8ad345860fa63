package postgres

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/recorder"
)

// nowhere is a sink that takes everything.
type nowhere struct{}

func (nowhere) Put(context.Context, [][]byte) error { return nil }
func (nowhere) Close() error                        { return nil }

// BenchmarkTransaction is what it costs to record a transaction that begins, reads a row, writes it and commits, with prepared
// statements and with the simple protocol, in which each text has other literals.
func BenchmarkTransaction(b *testing.B) {
	row := &pgproto3.DataRow{Values: [][]byte{[]byte("5")}}
	about := &pgproto3.RowDescription{Fields: []pgproto3.FieldDescription{columnN}}
	prepared := func(name string, params ...string) []message {
		bind := &pgproto3.Bind{PreparedStatement: name}
		for _, p := range params {
			bind.Parameters = append(bind.Parameters, []byte(p))
		}
		return []message{bind, &pgproto3.Describe{ObjectType: 'P'}, &pgproto3.Execute{}, &pgproto3.Sync{}}
	}
	begin, commit := turn{[]message{&pgproto3.Query{String: "begin"}}, []message{tag("BEGIN"), inside}}, turn{[]message{&pgproto3.Query{String: "commit"}}, []message{tag("COMMIT"), idle}}
	for _, mode := range []string{"prepared", "simple"} {
		b.Run(mode, func(b *testing.B) {
			rec := recorder.New(nowhere{}, recorder.Options{Wait: true})
			capture, err := New(b.Context(), rec, Options{Complete: true, Load: func(context.Context) (*Catalog, error) { return shop(), nil }})
			if err != nil {
				b.Fatal(err)
			}
			c := capture.Connect()
			play(b, turn{[]message{&pgproto3.Parse{Name: "r", Query: "select n from a where id = $1"}, &pgproto3.Parse{Name: "w", Query: "update a set n = $1 where id = $2", ParameterOIDs: []uint32{pgtype.Int4OID, pgtype.Int4OID}}, &pgproto3.Sync{}},
				[]message{&pgproto3.ParseComplete{}, &pgproto3.ParseComplete{}, idle}})(c)
			var client, server [][]byte
			for i := range 100 {
				id, n := fmt.Sprint(i), fmt.Sprint(i+1)
				turns := []turn{begin, {prepared("r", id), []message{&pgproto3.BindComplete{}, about, row, tag("SELECT 1"), inside}},
					{prepared("w", n, id), []message{&pgproto3.BindComplete{}, &pgproto3.NoData{}, tag("UPDATE 1"), inside}}, commit}
				if mode == "simple" {
					turns = []turn{begin, {[]message{&pgproto3.Query{String: "select n from a where id = " + id}}, []message{about, row, tag("SELECT 1"), inside}},
						{[]message{&pgproto3.Query{String: "update a set n = " + n + " where id = " + id}}, []message{tag("UPDATE 1"), inside}}, commit}
				}
				for _, t := range turns {
					client, server = append(client, bytesOf(b, t.client...)), append(server, bytesOf(b, t.server...))
				}
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				at := i % 100 * 4
				for k := range 4 {
					c.FromClient(client[at+k])
					c.FromServer(server[at+k])
				}
			}
			if err := rec.Close(b.Context()); err != nil {
				b.Fatal(err)
			}
			if n := capture.Outcomes(record.Committed); n < int64(b.N) || len(capture.Unclear()) > 0 {
				b.Fatalf("%d of %d committed, %v", n, b.N, capture.Unclear())
			}
		})
	}
}
