package canary

import (
	"path/filepath"
	"testing"

	"github.com/isowatch/isowatch/cmd/monitor/canary/target"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/closure"
)

// Who is refused a COMMIT may have the transaction open still: SQLite while another reads, MariaDB while its node is not part of
// a cluster, where the next BEGIN commits it.
func TestRefusedCommitIsUndone(t *testing.T) {
	ctx := t.Context()
	db, err := target.Open(ctx, target.Options{Targets: []string{"sqlite://" + filepath.Join(t.TempDir(), "canary.db") + "?journal=delete"}})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Prepare(ctx); err != nil {
		t.Fatal(err)
	}
	connect := func() target.Session {
		s, err := db.Connect(ctx, db.Nodes()[0], []target.Setting{{Name: "busy_timeout", Value: "1"}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		return s
	}
	item := target.Item{Name: "0.0"}
	writer := &client{Load: &Load{db: db}, session: connect(), entry: &closure.Entry{}}
	reader := connect()
	step := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	read := func(s target.Session) int64 {
		t.Helper()
		op := &target.Op{Kind: record.Read, Item: item}
		step(s.Do(ctx, op))
		return op.Read.Num
	}
	step(writer.session.Begin(ctx))
	step(writer.session.Do(ctx, &target.Op{Kind: record.Write, Create: true, Item: item, Value: 1}))
	step(writer.session.Commit(ctx))

	step(reader.Begin(ctx))
	read(reader)
	step(writer.session.Begin(ctx))
	step(writer.session.Do(ctx, &target.Op{Kind: record.Write, Item: item, Value: 2}))
	if got, why := writer.finish(ctx, nil); got != record.Aborted || why != target.Conflict {
		t.Fatalf("while another reads: %v, %v", got, why)
	}
	step(reader.Commit(ctx))
	step(writer.session.Begin(ctx))
	if got := read(writer.session); got != 1 {
		t.Errorf("it was aborted, and reads %d", got)
	}
	step(writer.session.Abort(ctx))
}
