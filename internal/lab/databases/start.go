package databases

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/isowatch/isowatch/internal/servers"
)

// StartPostgres starts a PostgreSQL for a test, with further lines of its configuration, and ends it with that. Where
// none is installed the test is skipped, and fails under CI. What is lost with the machine's power is lost.
func StartPostgres(t testing.TB, settings ...string) *servers.Postgres {
	t.Helper()
	if err := Missing("postgres"); err != nil && os.Getenv("CI") == "" {
		t.Skip("NOT TESTED ON A REAL POSTGRESQL: ", err)
	}
	dir, err := os.MkdirTemp("", "isowatch-postgres-") // the server's own account goes into it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	p, err := servers.NewPostgres(t.Context(), dir, servers.PostgresOptions{Settings: append(settings, "fsync = off")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// Pgbench is PostgreSQL's program of that name. Where it is not installed the test is skipped, and fails under CI.
func Pgbench(t testing.TB) string {
	t.Helper()
	initdb, err := servers.Initdb()
	program := ""
	if err == nil {
		program, err = servers.Find("pgbench", "apt-get install postgresql-contrib", filepath.Dir(initdb))
	}
	switch {
	case err != nil && os.Getenv("CI") == "":
		t.Skip("NOT TESTED WITH PGBENCH: ", err)
	case err != nil:
		t.Fatal(err)
	}
	return program
}
