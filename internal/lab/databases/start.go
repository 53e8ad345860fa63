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

// Program is one that comes with PostgreSQL, such as pgbench. Where there is none the test is skipped, and fails under
// CI.
func Program(t testing.TB, name string) string {
	t.Helper()
	path, initdb := "", ""
	var err error
	if initdb, err = servers.Initdb(); err == nil {
		path, err = servers.Find(name, "apt-get install postgresql-client postgresql-contrib", filepath.Dir(initdb))
	}
	if err != nil && os.Getenv("CI") == "" {
		t.Skip("NOT TESTED WITH A PROGRAM OF POSTGRESQL: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}
