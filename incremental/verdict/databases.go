package verdict

import (
	"fmt"
	"slices"
	"strings"
)

// Database is a database and what its documentation promises by the names that it has for
// levels, which mean something else in each.
type Database struct {
	Names    []string // as people write it, its own first
	Source   string   // the vendor's documentation that says so
	Promises []Promise
}

// Promise is a database's level.
type Promise struct {
	Names []string // the database's, folded; what it calls it first
	Level Level    // the strongest level here that the documentation promises, if Single
	// Single: there is such a level, whatever clients do. Otherwise Note says which there is when.
	Single bool
	Note   string // what the promise rests on
}

// gives is a promise of one level; none is one of which no single level follows.
func gives(l Level, note string, names ...string) Promise {
	return Promise{Names: names, Level: l, Single: true, Note: note}
}

func none(note string, names ...string) Promise { return Promise{Names: names, Note: note} }

const (
	dirty = "reads what is not committed: no level here is promised"
	// lockingReads is of InnoDB's REPEATABLE READ, and of what was made like it. Plain reads are of
	// one snapshot, a prefix of the order of commits; locking reads, and what an UPDATE computes
	// from, are of the newest version; two may overwrite one version.
	lockingReads = "pc where reads are plain SELECTs and an UPDATE sets values that the client computed; " +
		"g1 where reads lock (FOR UPDATE, FOR SHARE) or an UPDATE computes or appends (v = v + 1), as these see newer " +
		"versions than the snapshot; si nowhere: updates may be lost"
)

// databases is the table. A promise is written down only as far as the vendor's documentation
// goes: one too much makes alerts about a database that does what it says. All of it is about
// transactions that run at that level on the primary, without reads that ask for old data.
var databases = []Database{
	{[]string{"postgres", "postgresql", "pg"}, "PostgreSQL Documentation, Transaction Isolation (13.2)", []Promise{
		gives(G1, "runs as read-committed", "read-uncommitted"),
		gives(G1, "a snapshot for each statement; an UPDATE that waited sees newer rows, so that rc is not promised",
			"read-committed"),
		gives(SI, "implemented as snapshot isolation", "repeatable-read"),
		gives(SER, "", "serializable"),
	}},
	{[]string{"mysql", "innodb"}, "MySQL Reference Manual, InnoDB: Transaction Isolation Levels; Consistent Nonlocking " +
		"Reads", []Promise{
		none(dirty, "read-uncommitted"),
		gives(G1, "a snapshot for each statement", "read-committed"),
		none(lockingReads, "repeatable-read"),
		gives(SER, "plain SELECTs lock, unless they are a transaction each", "serializable"),
	}},
	{[]string{"mariadb"}, "MariaDB Documentation, SET TRANSACTION; InnoDB System Variables: innodb_snapshot_isolation",
		[]Promise{
			none(dirty, "read-uncommitted"),
			gives(G1, "a snapshot for each statement", "read-committed"),
			none("si with innodb_snapshot_isolation=ON, the default from 11.6.2 on; with OFF "+lockingReads, "repeatable-read"),
			gives(SER, "of one server, not of a Galera cluster", "serializable"),
		}},
	{[]string{"sqlserver", "mssql", "azuresql"}, "SQL Server, Transact-SQL: SET TRANSACTION ISOLATION LEVEL", []Promise{
		none(dirty, "read-uncommitted"),
		gives(G1, "with READ_COMMITTED_SNAPSHOT on or off", "read-committed"),
		none("ser where the row of every key that is read exists, as what is read stays locked; rc where keys are read "+
			"that may be absent, which nothing locks", "repeatable-read"),
		gives(SI, "", "snapshot"),
		gives(SER, "", "serializable"),
	}},
	{[]string{"oracle"}, "Oracle Database Concepts, Data Concurrency and Consistency", []Promise{
		gives(G1, "a snapshot for each statement", "read-committed"),
		gives(SI, "one snapshot, and ORA-08177 where a row of it was changed; write skew is possible, so ser is not what "+
			"it gives", "serializable"),
	}},
	{[]string{"cockroachdb", "cockroach", "crdb"}, "CockroachDB Docs, Transactions; Read Committed Transactions",
		[]Promise{
			gives(G1, "runs as read-committed", "read-uncommitted"),
			gives(G1, "", "read-committed"),
			gives(SI, "runs as serializable where it is not enabled", "repeatable-read", "snapshot"),
			gives(SER, "not sser, and not with AS OF SYSTEM TIME", "serializable"),
		}},
	{[]string{"yugabytedb", "yugabyte"}, "YugabyteDB Docs, Transaction isolation levels (YSQL)", []Promise{
		gives(G1, "runs as read-committed", "read-uncommitted"),
		gives(G1, "runs as repeatable-read where it is not enabled", "read-committed"),
		gives(SI, "not with follower reads", "repeatable-read", "snapshot"),
		gives(SER, "not with follower reads", "serializable"),
	}},
	{[]string{"tidb"}, "TiDB Docs, Transaction Isolation Levels; Pessimistic Transaction Mode", []Promise{
		gives(G1, "a snapshot for each statement", "read-committed"),
		none("si in optimistic transactions that are not retried by the server; in pessimistic ones, the default, "+
			lockingReads, "repeatable-read", "snapshot"),
	}},
	{[]string{"mongodb", "mongo"}, "MongoDB Manual, Read Concern; Transactions; Causal Consistency", []Promise{
		none("what was read may be rolled back: no level here is promised", "local", "available"),
		gives(G1, "with write concern majority", "majority"),
		gives(SI, "of transactions with write concern majority, each session of the records being one causally consistent "+
			"session", "snapshot"),
		gives(LIN, "of single documents, with write concern majority", "linearizable"),
	}},
	{[]string{"sqlite", "sqlite3"}, "SQLite Documentation, Isolation In SQLite", []Promise{
		none(dirty+" (PRAGMA read_uncommitted, with a shared cache)", "read-uncommitted"),
		gives(SER, "", "serializable"),
	}},
	{[]string{"etcd"}, "etcd Documentation, KV API guarantees", []Promise{
		gives(G1, "the option of a read, which then may be stale", "serializable"),
		gives(SSER, "the default", "strict-serializable"),
	}},
	{[]string{"redis"}, "Redis Docs, Transactions", []Promise{
		gives(SER, "of one instance; a fail-over may lose what was acknowledged", "multi-exec"),
	}},
	{[]string{"foundationdb", "fdb"}, "FoundationDB Documentation, Developer Guide: Transactions; Snapshot reads",
		[]Promise{
			gives(PC, "reads without conflicts: updates may be lost", "snapshot-reads"),
			gives(SSER, "the default", "strict-serializable"),
		}},
	{[]string{"spanner"}, "Google Cloud Spanner, Isolation levels overview", []Promise{
		gives(SI, "", "repeatable-read"),
		gives(SER, "not with stale reads", "serializable"),
		gives(SSER, "what serializable gives as well: for who trusts the clients' clocks", "external-consistency"),
	}},
}

// Databases lists the databases whose names of levels FindLevel takes, as in
// postgres:repeatable-read. The caller must not change it.
func Databases() []Database { return databases }

// promised is the level that a database calls so.
func promised(database, level string) (Level, error) {
	i := slices.IndexFunc(databases, func(d Database) bool { return slices.Contains(d.Names, database) })
	if i < 0 {
		known := make([]string, len(databases))
		for i, d := range databases {
			known[i] = d.Names[0]
		}
		return 0, fmt.Errorf("no database is called %q here: known are %s", database, strings.Join(known, ", "))
	}
	d, known := databases[i], []string(nil)
	for _, p := range d.Promises {
		switch {
		case !slices.Contains(p.Names, level):
			known = append(known, p.Names...)
		case !p.Single:
			return 0, fmt.Errorf("%s:%s is no single level here, so name what yours promises: %s", d.Names[0], level, p.Note)
		default:
			return p.Level, nil
		}
	}
	return 0, fmt.Errorf("no level of %s is called %q here: known are %s", d.Names[0], level, strings.Join(known, ", "))
}

// inDatabases says what databases call by a name that is no level by itself; empty: none does.
func inDatabases(name string) string {
	var single [numLevels][]string
	var others []string
	example := ""
	for _, d := range databases {
		for _, p := range d.Promises {
			if !slices.Contains(p.Names, name) {
				continue
			}
			if !p.Single {
				others = append(others, d.Names[0])
				continue
			}
			single[p.Level] = append(single[p.Level], d.Names[0])
			if example == "" {
				example = d.Names[0] + ":" + name
			}
		}
	}
	var parts []string
	for l, of := range single {
		if len(of) > 0 {
			parts = append(parts, fmt.Sprintf("%v of %s", Level(l), strings.Join(of, ", ")))
		}
	}
	if len(others) > 0 {
		parts = append(parts, "no single level of "+strings.Join(others, ", "))
	}
	if len(parts) == 0 {
		return ""
	}
	if example == "" {
		example = others[0] + ":" + name
	}
	return fmt.Sprintf("it is %s; write the database in front, as in %s", strings.Join(parts, ", "), example)
}
