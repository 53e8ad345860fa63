// Package serverstest runs database servers for the length of a test.
package serverstest

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/isowatch/isowatch/internal/servers"
)

// Postgres starts PostgreSQL. The test is skipped where it is not installed, and fails where CI is set.
func Postgres(t testing.TB, o servers.PostgresOptions) *servers.Postgres {
	t.Helper()
	return start(t, func(ctx context.Context, dir string) (*servers.Postgres, error) {
		return servers.NewPostgres(ctx, dir, o)
	})
}

// MariaDB starts n servers of MariaDB, as a cluster if they are several; else as Postgres.
func MariaDB(t testing.TB, n int, settings ...string) *servers.MariaDB {
	t.Helper()
	return start(t, func(ctx context.Context, dir string) (*servers.MariaDB, error) {
		return servers.NewMariaDB(ctx, dir, n, settings...)
	})
}

func start[S interface{ Close() }](t testing.TB, begin func(context.Context, string) (S, error)) S {
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
	s, err := begin(t.Context(), dir)
	if errors.As(err, new(*servers.MissingError)) && os.Getenv("CI") == "" {
		t.Skip("SKIPPED: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}
