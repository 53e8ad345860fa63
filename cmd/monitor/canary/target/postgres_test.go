package target

import (
	"context"
	"errors"
	"flag"
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/databases"
)

// Tests wait for servers most of the time.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// What another session has locked is not waited for without end.
func TestPreparingEnds(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	db, other := prepared(t)
	if _, err := other.Exec(ctx, "begin; lock table isowatch_canary.items in access share mode"); err != nil {
		t.Fatal(err)
	}
	for what, do := range map[string]func(context.Context) error{"preparing": db.Prepare, "cleaning up": db.Cleanup} {
		if err := do(ctx); db.Fault(err).Reason != LockTimeout {
			t.Errorf("%s what is locked: %v", what, err)
		}
	}
}

// What is not the canary's stays, and with it the schema, where it lies there or depends on what does.
func TestCleanupDropsNothingElse(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	db, other := prepared(t)
	for _, c := range [][2]string{
		{"create schema another; create view another.mine as select * from isowatch_canary.items", "drop view another.mine"},
		{"create table isowatch_canary.mine ()", "drop table isowatch_canary.mine"},
	} {
		if _, err := other.Exec(ctx, c[0]); err != nil {
			t.Fatal(err)
		}
		if err := db.Cleanup(ctx); !errors.As(err, new(*Error)) {
			t.Errorf("after %s: %v", c[0], err)
		}
		if _, err := other.Exec(ctx, c[1]); err != nil {
			t.Errorf("after %s it is gone: %v", c[0], err)
		}
	}
	if err := db.Cleanup(ctx); err != nil {
		t.Error(err)
	}
}

// A commit that goes with the last operation is skipped where that fails, and done where it met no row.
func TestCommitGoesWithTheLastOperation(t *testing.T) {
	t.Parallel()
	p := databases.StartPostgres(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, mode := range []string{"", "&default_query_exec_mode=exec", "&default_query_exec_mode=simple_protocol"} {
		t.Run("mode"+mode, func(t *testing.T) {
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			db, err := Open(ctx, Options{Targets: []string{p.URL(p.Primary) + mode}, Isolation: "repeatable-read"})
			must(err)
			defer db.Close()
			must(db.Prepare(ctx))
			session := func() Session {
				s, err := db.Connect(ctx, db.Nodes()[0], nil)
				must(err)
				t.Cleanup(s.Close)
				return s
			}
			a, b, here, none := session(), session(), Item{Name: "here"}, Item{Name: "none"}
			is := func(want int64) {
				t.Helper()
				must(a.Begin(ctx))
				a.(Ender).Last()
				held, nothing := &Op{Kind: record.Read, Item: here}, &Op{Kind: record.Read, Item: none}
				if err := a.Do(ctx, held, nothing); err != nil || held.Read != record.Int(want) || nothing.Read != record.Null {
					t.Errorf("they hold %v, %v: %v, want %d and nothing", held.Read, nothing.Read, err, want)
				}
				must(a.Commit(ctx))
			}
			must(a.Begin(ctx))
			a.(Ender).Last()
			must(a.Do(ctx, &Op{Kind: record.Write, Create: true, Item: here, Value: 1}))
			must(a.Commit(ctx))
			is(1)

			must(a.Begin(ctx))
			a.(Ender).Last()
			there, gone := &Op{Kind: record.Write, Item: here, Value: 2}, &Op{Kind: record.Write, Item: none, Value: 3}
			if err := a.Do(ctx, there, gone); err != nil || there.Missing || !gone.Missing {
				t.Errorf("what is there was written, and what is not: %v, %v: %v", !there.Missing, !gone.Missing, err)
			}
			must(a.Commit(ctx))
			is(2)

			must(b.Begin(ctx))
			must(b.Do(ctx, &Op{Kind: record.Read, Item: here}))
			must(a.Begin(ctx))
			must(a.Do(ctx, &Op{Kind: record.Write, Item: here, Value: 4}))
			must(a.Commit(ctx))
			b.(Ender).Last()
			if err := b.Do(ctx, &Op{Kind: record.Write, Item: here, Value: 5}); db.Fault(err) != (Fault{Conflict, true}) {
				t.Errorf("what another has overwritten was written: %v", err)
			}
			must(b.Abort(ctx))
			is(4)
		})
	}
}

// Lists are read as they were appended to, texts and arrays.
func TestLists(t *testing.T) {
	t.Parallel()
	p := databases.StartPostgres(t)
	ctx := t.Context()
	for _, mode := range []string{"", "&default_query_exec_mode=exec", "&default_query_exec_mode=simple_protocol"} {
		db, err := Open(ctx, Options{Targets: []string{p.URL(p.Primary) + mode}})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if err := db.Prepare(ctx); err != nil {
			t.Fatal(err)
		}
		s, err := db.Connect(ctx, db.Nodes()[0], nil)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		text, array, other := Item{Name: "a", List: true}, Item{Name: "b", List: true, Array: true}, Item{Name: "c", List: true, Array: true}
		ops := []*Op{{Kind: record.Write, Create: true, Item: text}, {Kind: record.Write, Create: true, Item: array},
			{Kind: record.Write, Create: true, Item: other}, {Kind: record.Append, Item: text, Value: 7},
			{Kind: record.Append, Item: array, Value: 8}, {Kind: record.Append, Item: array, Value: 9}}
		items := []Item{text, array, other, {Name: "d", List: true, Array: true}}
		for _, item := range items {
			ops = append(ops, &Op{Kind: record.Read, Item: item})
		}
		err = errors.Join(s.Begin(ctx), s.Do(ctx, ops...))
		var got []record.Value
		for _, op := range ops[len(ops)-len(items):] {
			got = append(got, op.Read)
		}
		list := func(text string) record.Value { return record.Value{Kind: record.KindList, Text: text} }
		if want := []record.Value{list("[7]"), list("[8,9]"), list("[]"), record.Null}; err != nil || !slices.Equal(got, want) {
			t.Errorf("they hold %v, want %v: %v", got, want, err)
		}
		if err := s.Commit(ctx); err != nil {
			t.Error(err)
		}
		c, err := pgx.Connect(ctx, p.URL(p.Primary))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close(ctx)
		var numbers []int64
		if err := c.QueryRow(ctx, "select numbers from isowatch_canary.items where key = 'b'").Scan(&numbers); err != nil || !slices.Equal(numbers, []int64{8, 9}) {
			t.Errorf("the array is %v: %v", numbers, err)
		}
		if err := db.Discard(ctx, db.Nodes()[0], []Item{text, array, other}); err != nil {
			t.Error(err)
		}
	}
}

// A node that hangs, or is not there, keeps nobody from the others; one that takes writes has to answer.
func TestOpensWithoutTheFirst(t *testing.T) {
	t.Parallel()
	p := databases.StartPostgres(t)
	hangs, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer hangs.Close()
	first := []string{"postgres://canary@" + hangs.Addr().String() + "/canary?sslmode=disable", "postgres://canary@127.0.0.1:1/canary"}
	none := make(chan error, 1)
	go func() {
		_, err := Open(t.Context(), Options{Targets: first})
		none <- err
	}()
	db, err := Open(t.Context(), Options{Targets: append(slices.Clone(first), p.URL(p.Primary))})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := errors.Join(db.Prepare(t.Context()), Rehearse(t.Context(), db, nil), db.Cleanup(t.Context())); err != nil {
		t.Error(err)
	}
	if err := <-none; err == nil || errors.As(err, new(*Error)) || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("no node answers: %v", err)
	}
}

// prepared is a PostgreSQL with the canary's tables, and a connection of somebody else's.
func prepared(t *testing.T) (Database, *pgx.Conn) {
	t.Helper()
	p := databases.StartPostgres(t)
	ctx := t.Context()
	db, err := Open(ctx, Options{Targets: []string{p.URL(p.Primary)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	if err := db.Prepare(ctx); err != nil {
		t.Fatal(err)
	}
	other, err := pgx.Connect(ctx, p.URL(p.Primary))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close(context.Background()) })
	return db, other
}
