package wal_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/isowatch/isowatch/cmd/monitor/wal"
	"github.com/isowatch/isowatch/ingest/change"
	"github.com/isowatch/isowatch/ingest/source"
	"github.com/isowatch/isowatch/internal/lab/databases"
)

// Who changes a table of the publication is told in the order of commits, by the number that a client is told, also after the
// connection broke; who changes others, or gives up, is not.
func TestTells(t *testing.T) {
	t.Parallel()
	p := databases.StartPostgres(t, "wal_level = logical")
	url := strings.Replace(p.URL(p.Primary), "canary@", "postgres@", 1)
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	do := func(statements ...string) {
		t.Helper()
		if err := p.Do(t.Context(), "canary", statements...); err != nil {
			t.Fatal(err)
		}
	}
	do("create table a (id int primary key)", "create table other (id int primary key)")
	told, began, failed := make(chan change.Change, 100), make(chan bool, 1), make(chan error, 100)
	o := wal.Options{Source: &config.Config, Logged: func(c change.Change) { told <- c },
		Began: func() { began <- true }, Failed: func(err error) { failed <- err }}
	var startup *source.StartupError
	if err := wal.Run(t.Context(), o); !errors.As(err, &startup) || !strings.Contains(startup.Do, "create publication isowatch") {
		t.Errorf("without a publication: %v", err)
	}
	do("create publication isowatch for table a")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- wal.Run(ctx, o) }()
	<-began

	begin := func() (pgx.Tx, string) {
		c, err := pgx.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close(context.Background()) })
		tx, err := c.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var xid string
		if err := tx.QueryRow(t.Context(), "select pg_current_xact_id()::text").Scan(&xid); err != nil {
			t.Fatal(err)
		}
		return tx, xid
	}
	exec := func(tx pgx.Tx, text string) {
		t.Helper()
		if _, err := tx.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	commit := func(tx pgx.Tx) {
		t.Helper()
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	round := func(n int) {
		t.Helper()
		first, firstXID := begin()
		second, secondXID := begin()
		aborted, _ := begin()
		other, _ := begin()
		exec(first, fmt.Sprintf("insert into a values (%d), (%d)", n, n+1))
		exec(second, fmt.Sprintf("insert into a values (%d)", n+2))
		exec(second, "savepoint p")
		exec(second, fmt.Sprintf("delete from a where id = %d", n+2))
		exec(aborted, fmt.Sprintf("insert into a values (%d)", n+3))
		exec(other, fmt.Sprintf("insert into other values (%d)", n))
		commit(second) // it began later
		commit(other)
		if err := aborted.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		commit(first)
		got := []change.Change{<-told, <-told}
		if got[0].LSN <= 0 || got[0].LSN >= got[1].LSN || got[0].Log == "" {
			t.Errorf("the log has them at %+v", got)
		}
		want := []change.Change{{XID: secondXID, LSN: got[0].LSN, DB: "canary", Log: got[0].Log}, {XID: firstXID, LSN: got[1].LSN, DB: "canary", Log: got[0].Log}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	round(10)
	do("select pg_terminate_backend(active_pid) from pg_replication_slots")
	<-failed
	<-began
	round(20)
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if len(told) > 0 {
		t.Errorf("told is also %+v", <-told)
	}
}
