package servers_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/isowatch/isowatch/internal/servers"
	"github.com/isowatch/isowatch/internal/servers/serverstest"
)

// What is committed on the primary is there after SIGKILL, and on the standby once it was promoted.
func TestPostgresKilledAndPromoted(t *testing.T) {
	p := serverstest.Postgres(t, servers.PostgresOptions{Standby: true})
	ctx := t.Context()
	if err := p.Do(ctx, "canary", "create table t (k int primary key)", "set synchronous_commit = remote_apply", "insert into t values (1)"); err != nil {
		t.Fatal(err)
	}
	p.Primary.Kill()
	if err := p.Primary.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if n := count(ctx, t, p.Primary); n != 1 {
		t.Errorf("after SIGKILL the primary has %d rows", n)
	}
	p.Primary.Kill()
	if err := p.Promote(ctx); err != nil {
		t.Fatal(err)
	}
	if n := count(ctx, t, p.Standby); n != 1 {
		t.Errorf("after its promotion the standby has %d rows", n)
	}
}

func count(ctx context.Context, t *testing.T, s *servers.Server) (n int) {
	t.Helper()
	c, err := pgx.Connect(ctx, "postgres://postgres@"+s.Addr+"/canary?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx)
	if err := c.QueryRow(ctx, "select count(*) from t").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
