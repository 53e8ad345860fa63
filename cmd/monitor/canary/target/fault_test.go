package target

import (
	"fmt"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/gomodule/redigo/redis"
	"github.com/jackc/pgx/v5/pgconn"
)

// Only what a database is known to refuse did not happen. A server that panics as it commits may have written the commit down.
func TestWhatIsNotRefusedIsNoAnswer(t *testing.T) {
	p, m, r := &postgres{}, &mySQL{}, &redisServer{}
	said := func(severity, code string) error {
		return fmt.Errorf("commit: %w", &pgconn.PgError{Severity: severity, SeverityUnlocalized: severity, Code: code})
	}
	for _, c := range []struct {
		db   Database
		err  error
		want Fault
	}{
		{p, said("PANIC", "58030"), Fault{AnythingElse, false}},
		{p, said("FATAL", "42501"), Fault{Denied, false}},
		{p, &pgconn.PgError{Severity: "PANIK", SeverityUnlocalized: "PANIC", Code: "40001"}, Fault{Conflict, false}},
		{p, said("ERROR", "XX000"), Fault{AnythingElse, false}},
		{p, said("ERROR", "40003"), Fault{Down, false}},
		{p, said("ERROR", "40002"), Fault{AnythingElse, true}},
		{p, said("ERROR", "42P01"), Fault{AnythingElse, true}},
		{p, said("ERROR", "40001"), Fault{Conflict, true}},
		{p, errRolledBack, Fault{Conflict, true}},
		{m, &mysql.MySQLError{Number: 1105}, Fault{AnythingElse, false}},
		{m, &mysql.MySQLError{Number: 1026}, Fault{AnythingElse, false}},
		{m, &mysql.MySQLError{Number: 1969}, Fault{Slow, false}},
		{m, &mysql.MySQLError{Number: 1146}, Fault{AnythingElse, true}},
		{r, redis.Error("ERR something"), Fault{AnythingElse, false}},
		{r, redis.Error("WRONGTYPE Operation against a key"), Fault{AnythingElse, false}},
		{r, redis.Error("EXECABORT Transaction discarded"), Fault{AnythingElse, true}},
	} {
		if got := c.db.Fault(c.err); got != c.want {
			t.Errorf("%T, %v: %v, want %v", c.db, c.err, got, c.want)
		}
	}
}
