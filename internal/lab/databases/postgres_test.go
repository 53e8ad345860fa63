package databases

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/isowatch/isowatch/internal/servers"
)

// What is committed on the primary is there after SIGKILL, and on the standby once it was promoted.
func TestPostgresKilledAndPromoted(t *testing.T) {
	p := startPair(t)
	ctx := t.Context()
	if err := p.Do(ctx, "canary", "create table t (k int primary key)", "set synchronous_commit = remote_apply", "insert into t values (1)"); err != nil {
		t.Fatal(err)
	}
	if err := Strike(ctx, p, "kill"); err != nil {
		t.Fatal(err)
	}
	if n := count(ctx, t, p.Primary); n != 1 {
		t.Errorf("after SIGKILL the primary has %d rows", n)
	}
	if err := Strike(ctx, p, "promote"); err != nil {
		t.Fatal(err)
	}
	if n := count(ctx, t, p.Primary); n != 1 {
		t.Errorf("after its promotion the standby has %d rows", n)
	}
}

// startPair starts a primary and its standby. The test is skipped where PostgreSQL is not installed, and fails where CI
// is set.
func startPair(t *testing.T) *servers.Postgres {
	t.Helper()
	dir, err := os.MkdirTemp("", "isowatch-server-") // t.TempDir's can't be entered by another account
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	p, err := servers.NewPostgres(t.Context(), dir, servers.PostgresOptions{Standby: true})
	if errors.As(err, new(*servers.MissingError)) && os.Getenv("CI") == "" {
		t.Skip("SKIPPED: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
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
