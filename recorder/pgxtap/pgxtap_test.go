package pgxtap_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/databases"
	"github.com/isowatch/isowatch/internal/lab/seeds"
	"github.com/isowatch/isowatch/recorder"
	"github.com/isowatch/isowatch/recorder/pgxtap"
	"github.com/isowatch/isowatch/recorder/postgres"
)

// server starts PostgreSQL with some tables.
func server(t *testing.T) (url string, do func(...string)) {
	t.Helper()
	p := databases.StartPostgres(t)
	do = func(statements ...string) {
		t.Helper()
		if err := p.Do(t.Context(), "canary", statements...); err != nil {
			t.Fatal(err)
		}
	}
	return strings.Replace(p.URL(p.Primary), "canary@", "postgres@", 1), do
}

// heard is a record, and what stands in a line of it: the outcome, or initial, and the operations.
type heard struct {
	record record.Transaction
	text   string
}

// slow is a connection on which some answers take longer, so that who has read from another may be heard before it.
type slow struct {
	net.Conn
	rng *rand.Rand
}

func (s slow) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	if s.rng.IntN(8) == 0 {
		time.Sleep(time.Duration(s.rng.Int64N(int64(4 * time.Millisecond))))
	}
	return n, err
}

// listen records what f does over connections that are listened to.
func listen(t *testing.T, url string, o postgres.Options, f func(connect func(pgx.QueryExecMode) *pgx.Conn)) ([]heard, *postgres.Capture) {
	t.Helper()
	var out bytes.Buffer
	rec := recorder.New(recorder.Lines(&out), recorder.Options{})
	o.Prefix = "this/"
	tap, err := pgxtap.Open(t.Context(), rec, url, o)
	if err != nil {
		t.Fatal(err)
	}
	connections := atomic.Uint64{}
	f(func(mode pgx.QueryExecMode) *pgx.Conn {
		config, err := pgx.ParseConfig(url)
		if err != nil {
			t.Fatal(err)
		}
		config.DefaultQueryExecMode = mode
		config.AfterNetConnect = func(ctx context.Context, c *pgconn.Config, conn net.Conn) (net.Conn, error) {
			return tap.Connection(ctx, c, slow{conn, rand.New(rand.NewPCG(*seeds.First, connections.Add(1)))})
		}
		c, err := pgx.ConnectConfig(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close(context.Background()) })
		return c
	})
	if err := rec.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	var lines []heard
	for line := range strings.Lines(out.String()) {
		var r struct {
			Session, Status string
			Ops             json.RawMessage
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		who := r.Status
		if strings.HasSuffix(r.Session, "/initial") {
			who = "initial"
		}
		h := heard{text: who + " " + strings.ReplaceAll(string(r.Ops), `"this/`, `"`)}
		if err := codec.Decode([]byte(strings.TrimSpace(line)), &h.record); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		lines = append(lines, h)
	}
	return lines, tap.Capture
}

func exec(t *testing.T, c *pgx.Conn, text string, args ...any) {
	t.Helper()
	if _, err := c.Exec(t.Context(), text, args...); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// An application that asks what PostgreSQL calls its transaction has that recorded, with the transaction of which it is true.
func TestNumbered(t *testing.T) {
	t.Parallel()
	url, do := server(t)
	do("create table a (id int primary key, xid text)")
	for i, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeSimpleProtocol} {
		for j, asked := range []string{"pg_current_xact_id()", "pg_current_xact_id()::text", "pg_current_xact_id()::text::bigint"} {
			id := strconv.Itoa(10*i + j)
			lines, _ := listen(t, url, postgres.Options{}, func(connect func(pgx.QueryExecMode) *pgx.Conn) {
				c := connect(mode)
				for _, text := range []string{
					"insert into a values (-" + id + " - 1, 'not asked')",
					"begin", "savepoint p", "insert into a values (" + id + ", 'x')", "select 5, " + asked, "commit",
					"select " + asked,
					"insert into a values (-" + id + " - 101, pg_current_xact_id())",
					"update a set xid = '" + asked + "' where id = -" + id + " - 1",
				} {
					exec(t, c, text)
				}
			})
			var got, want []string
			for _, l := range lines {
				got = append(got, l.record.XID)
			}
			c, err := pgx.Connect(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			// The savepoint has the next number.
			rows, err := c.Query(t.Context(), "select (xmin::text::bigint - 1)::text from a where id = "+id)
			if err == nil {
				want, err = pgx.CollectRows(rows, pgx.RowTo[string])
			}
			if err != nil {
				t.Fatal(err)
			}
			c.Close(t.Context())
			if got = slices.DeleteFunc(got, func(s string) bool { return s == "" }); !slices.Equal(got, want) {
				t.Errorf("%s, %s: recorded is %v of the transaction %v", mode, asked, got, want)
			}
		}
	}
}

// What becomes of statements, in both protocols, at a real server.
func TestStatements(t *testing.T) {
	url, do := server(t)
	do("create table a (id int primary key, n int not null default 0, s varchar(5), m numeric(10,2), at timestamptz default now())",
		"create table pair (x text, y int, v bigint, primary key (x, y))", "create table nokey (v int)", "create materialized view seen as select 1 as n",
		"create schema other", "alter database canary set search_path = public, other",
		"create function f() returns int language plpgsql as 'begin return 1; end'", "create table called (id int primary key, n int default f())")
	type ops []string
	cases := []struct {
		name string
		do   func(c *pgx.Conn)
		want ops
	}{
		{"a row is made, read, changed and removed", func(c *pgx.Conn) {
			exec(t, c, "insert into a (id, n, s, m) values ($1, $2, $3, $4)", 1, 5, "one", "1.50")
			exec(t, c, "select n, s, m from a where id = $1", 1)
			exec(t, c, "update a set n = $1 where id = $2 and s = 'one'", 6, 1)
			exec(t, c, "delete from a where id = 1")
			exec(t, c, "select n from a where id = 1")
		}, ops{
			`committed [["w","a:1.n",5],["w","a:1.s","one"],["w","a:1.m","1.5"]]`,
			`committed [["r","a:1.n",5],["r","a:1.s","one"],["r","a:1.m","1.5"]]`,
			`committed [["r","a:1.s","one"],["w","a:1.n",6]]`,
			`committed [["w","a:1.n",null],["w","a:1.s",null],["w","a:1.m",null]]`,
			`committed [["r","a:1.n",null]]`}},
		{"what was there before is told when it is first read", func(c *pgx.Conn) {
			do("insert into a values (2, 7, null)")
			exec(t, c, "select n, s from a where id = 2")
			exec(t, c, "update a set n = n - 1 where id = 2 returning n")
		}, ops{
			`initial [["w","a:2.n",7]]`, `initial [["w","a:2.s",{"null":true}]]`,
			`committed [["r","a:2.n",7],["r","a:2.s",{"null":true}]]`,
			`committed [["r","a:2.n",7],["w","a:2.n",6]]`}},
		{"a hidden read is learned within the transaction", func(c *pgx.Conn) {
			do("insert into a values (3, 10)")
			exec(t, c, "begin")
			exec(t, c, "update a set n = n + $1 where id = 3", 5)
			exec(t, c, "update a set n = n - 1 where id = 3")
			exec(t, c, "select n from a where id = 3")
			exec(t, c, "commit")
		}, ops{`initial [["w","a:3.n",10]]`, `committed [["r","a:3.n",10],["w","a:3.n",14]]`}},
		{"what is never learned is lossy", func(c *pgx.Conn) {
			do("insert into a values (4, 10)")
			exec(t, c, "select n from a where id = 4")
			exec(t, c, "update a set n = n * 2 where id = 4")
			exec(t, c, "select n from a where id = 4")
			exec(t, c, "update a set n = 1 where id = 4")
		}, ops{`initial [["w","a:4.n",10]]`, `committed [["r","a:4.n",10]]`}},
		{"what was written first without being read is lossy", func(c *pgx.Conn) {
			do("insert into a values (5, 10)")
			exec(t, c, "update a set n = 1 where id = 5")
			exec(t, c, "select n from a where id = 5")
		}, ops{`committed [["w","a:5.n",1]]`}},
		{"savepoints", func(c *pgx.Conn) {
			exec(t, c, "insert into a (id, n) values (6, 1)")
			exec(t, c, "begin")
			exec(t, c, "savepoint p")
			exec(t, c, "update a set n = 2 where id = 6")
			exec(t, c, "select n from a where id = 6")
			exec(t, c, "rollback to p")
			exec(t, c, "select n from a where id = 6")
			exec(t, c, "commit")
		}, ops{`committed [["w","a:6.n",1],["w","a:6.s",{"null":true}],["w","a:6.m",{"null":true}]]`, `committed [["r","a:6.n",1]]`}},
		{"failures and conflicts", func(c *pgx.Conn) {
			exec(t, c, "insert into a (id, n) values (7, 1) on conflict do nothing")
			exec(t, c, "insert into a (id, n) values (7, 2) on conflict do nothing")
			exec(t, c, "begin")
			exec(t, c, "update a set n = 3 where id = 7")
			if _, err := c.Exec(t.Context(), "insert into a (id) values (7)"); err == nil {
				t.Error("a key twice")
			}
			exec(t, c, "commit") // which the server rolls back
			exec(t, c, "insert into a (id, n) values (7, 4) on conflict (id) do update set n = excluded.n")
			exec(t, c, "select n from a where id = 7")
		}, ops{
			`committed [["w","a:7.n",1],["w","a:7.s",{"null":true}],["w","a:7.m",{"null":true}]]`,
			`aborted [["w","a:7.n",3]]`, `committed [["w","a:7.n",4]]`, `committed [["r","a:7.n",4]]`}},
		{"keys of several columns, rows by a range, several rows", func(c *pgx.Conn) {
			exec(t, c, "insert into pair values ('a', 1, 10), ('b', 2, 20)")
			exec(t, c, "select * from pair where y > 0 order by y")
			exec(t, c, "select p.v from pair as p where p.y = 2 and 'b' = p.x for update")
			exec(t, c, "update pair set v = v + 1 where y > 1 returning *")
			exec(t, c, "select p.x, p.y, p.v, a.id, a.n from pair p join a on a.id = 1 + 0 * p.y")
		}, ops{
			`committed [["w","pair:\"a\",1.v",10],["w","pair:\"b\",2.v",20]]`,
			`committed [["r","pair:\"a\",1.v",10],["r","pair:\"b\",2.v",20]]`,
			`committed [["r","pair:\"b\",2.v",20]]`,
			`committed [["r","pair:\"b\",2.v",20],["w","pair:\"b\",2.v",21]]`}},
		{"rows that are not told", func(c *pgx.Conn) {
			exec(t, c, "insert into pair values ('z', 1, 10)")
			exec(t, c, "update pair set v = 0 where y > 100")
			exec(t, c, "select v from pair where x = 'z' and y = 1")
		}, ops{`committed [["w","pair:\"z\",1.v",10]]`}},
		{"a batch", func(c *pgx.Conn) {
			b := &pgx.Batch{}
			b.Queue("insert into a (id, n) values ($1, 1)", 8)
			b.Queue("select n from a where id = $1", 8)
			if err := c.SendBatch(t.Context(), b).Close(); err != nil {
				t.Error(err)
			}
		}, ops{`committed [["w","a:8.n",1],["w","a:8.s",{"null":true}],["w","a:8.m",{"null":true}],["r","a:8.n",1]]`}},
		{"no row comes back, and it may be there", func(c *pgx.Conn) {
			exec(t, c, "insert into a (id, n) values (10, 1)")
			exec(t, c, "select n from a where id = 10 and at = '2000-01-01'")
			exec(t, c, "select n from a where id = 10 and s = null")
			exec(t, c, "select n from a where id = 10 and xmin = '3'")
			exec(t, c, "select n, unnest('{}'::int[]) from a where id = 10")
			exec(t, c, "select n from a where (id = 11)")
		}, ops{`committed [["w","a:10.n",1],["w","a:10.s",{"null":true}],["w","a:10.m",{"null":true}]]`, `committed [["r","a:11.n",null]]`}},
		{"a row that is there is updated perhaps", func(c *pgx.Conn) {
			exec(t, c, "insert into pair values ('a', 1, 10), ('b', 1, 10)")
			for _, n := range []string{"10", "11"} {
				exec(t, c, "insert into pair values ('a', 1, 20) on conflict (x, y) do update set v = excluded.v where pair.v < "+n)
			}
			exec(t, c, "insert into pair values ('a', 1, 30), ('b', 1, 30) on conflict (x, y) do update set v = excluded.v where pair.v > 10 returning x, y as z, pair.v")
		}, ops{
			`committed [["w","pair:\"a\",1.v",10],["w","pair:\"b\",1.v",10]]`, `committed [["w","pair:\"a\",1.v",20]]`,
			`committed [["w","pair:\"a\",1.v",30]]`}},
		{"rows that RETURNING tells, whatever says which these are", func(c *pgx.Conn) {
			exec(t, c, "insert into pair select g.x, g.y, 5 from (values ('a', 1), ('b', 1)) g (x, y) join nokey on true on conflict do nothing returning *")
			exec(t, c, "insert into pair select x, y, 5 from (values ('a', 1), ('b', 1)) g (x, y) on conflict do nothing returning *")
			exec(t, c, "update pair set v = u.v from (values ('a', 6), ('b', 7)) as u (x, v) where pair.x = u.x returning pair.x, y, u.v, pair.v")
			exec(t, c, "update pair as p set v = 8 from (values (6)) as u (v) where p.x = 'a' and p.y = 1 and p.v = u.v")
			exec(t, c, "delete from pair using (values ('b')) as u (x) where pair.x = u.x returning pair.*")
		}, ops{
			`committed [["w","pair:\"a\",1.v",5],["w","pair:\"b\",1.v",5]]`,
			`committed [["w","pair:\"a\",1.v",6],["w","pair:\"b\",1.v",7]]`,
			`committed [["w","pair:\"a\",1.v",8]]`, `committed [["r","pair:\"b\",1.v",7],["w","pair:\"b\",1.v",null]]`}},
		{"rows of which RETURNING may tell another", func(c *pgx.Conn) {
			exec(t, c, "insert into pair values ('a', 1, 10)")
			exec(t, c, "update pair set v = 11 from pair as old1 where pair.x = old1.x returning pair.x, pair.y, old1.v")
			exec(t, c, "select v from pair where x = 'a' and y = 1")
		}, ops{`committed [["w","pair:\"a\",1.v",10]]`}},
		{"a savepoint that told what was written before", func(c *pgx.Conn) {
			exec(t, c, "insert into a (id, n) values (12, 1)")
			exec(t, c, "begin")
			exec(t, c, "update a set n = n + 1 where id = 12")
			exec(t, c, "savepoint p")
			exec(t, c, "update a set n = n + 1 where id = 12")
			exec(t, c, "select n from a where id = 12")
			p := c.PgConn().StartPipeline(t.Context())
			p.SendQueryParams("rollback to p", nil, nil, nil, nil)
			p.SendQueryParams("commit", nil, nil, nil, nil)
			if err := errors.Join(p.Sync(), p.Close()); err != nil {
				t.Error(err)
			}
			exec(t, c, "select n from a where id = 12")
		}, ops{`committed [["w","a:12.n",1],["w","a:12.s",{"null":true}],["w","a:12.m",{"null":true}]]`}},
		{"a savepoint behind the one that told", func(c *pgx.Conn) {
			exec(t, c, "insert into pair values ('a', 1, 10)")
			exec(t, c, "begin")
			exec(t, c, "update pair set v = v + 1 where x = 'a' and y = 1")
			exec(t, c, "savepoint p")
			exec(t, c, "select v from pair where x = 'a' and y = 1")
			exec(t, c, "release p")
			exec(t, c, "savepoint p")
			exec(t, c, "rollback to p")
			exec(t, c, "commit")
			exec(t, c, "select v from pair where x = 'a' and y = 1")
		}, ops{`committed [["w","pair:\"a\",1.v",10]]`, `committed [["r","pair:\"a\",1.v",10],["w","pair:\"a\",1.v",11]]`,
			`committed [["r","pair:\"a\",1.v",11]]`}},
		{"what a savepoint told is known when it is undone", func(c *pgx.Conn) {
			exec(t, c, "insert into pair values ('a', 1, 10)")
			exec(t, c, "begin")
			exec(t, c, "update pair set v = v + 1 where x = 'a' and y = 1")
			exec(t, c, "savepoint p")
			exec(t, c, "select v from pair where x = 'a' and y = 1")
			exec(t, c, "rollback to p")
			exec(t, c, "update pair set v = v - 2 where x = 'a' and y = 1")
			exec(t, c, "select v from pair where x = 'a' and y = 1")
			exec(t, c, "commit")
		}, ops{`committed [["w","pair:\"a\",1.v",10]]`,
			`committed [["r","pair:\"a\",1.v",10],["w","pair:\"a\",1.v",11],["w","pair:\"a\",1.v",9],["r","pair:\"a\",1.v",9]]`}},
		{"rows that come back later are those of before", func(c *pgx.Conn) {
			exec(t, c, "insert into pair values ('a', 1, 10), ('b', 1, 10)")
			exec(t, c, "begin")
			portal(t.Context(), c, 1, "select * from pair order by x")
			exec(t, c, "update pair set v = 20 where x = 'b' and y = 1")
			portal(t.Context(), c, 0, "")
			exec(t, c, "commit")
			portal(t.Context(), c, 1, "update pair set v = v + 1 where x = 'b' and y = 1 returning v")
			exec(t, c, "begin")
			portal(t.Context(), c, 1, "update pair set v = 1 where y = 1 returning *")
			exec(t, c, "commit")
			exec(t, c, "select v from pair where x = 'b' and y = 1")
		}, ops{
			`committed [["w","pair:\"a\",1.v",10],["w","pair:\"b\",1.v",10]]`,
			`committed [["r","pair:\"a\",1.v",10],["w","pair:\"b\",1.v",20]]`,
			`committed [["r","pair:\"b\",1.v",20],["w","pair:\"b\",1.v",21]]`}},
		{"tables of its own", func(c *pgx.Conn) {
			exec(t, c, "create temp table own (id int)")
			exec(t, c, "insert into own values (1)")
			exec(t, c, "update pg_temp.own set id = 2")
			exec(t, c, "refresh materialized view seen")
			exec(t, c, "insert into pair values ('a', 1, 10)")
			exec(t, c, "create table pg_temp.pair (x text, y int, v bigint)")
			exec(t, c, "insert into pair values ('a', 1, 11)")
			exec(t, c, "select v from public.pair where x = 'a' and y = 1")
		}, ops{`committed [["w","pair:\"a\",1.v",10]]`}},
		{"tables that are made, and changed", func(c *pgx.Conn) {
			exec(t, c, "drop table if exists other.pair, other.made")
			exec(t, c, "create table if not exists pair (x text primary key)")
			exec(t, c, "insert into pair values ('a', 1, 10)")
			exec(t, c, "create table other.made (id int primary key, n int)")
			exec(t, c, "insert into made values (1, 5)")
			exec(t, c, "alter table other.made rename to pair")
			exec(t, c, "insert into other.pair values (2, 6)")
			exec(t, c, "select v from public.pair where y = 1 and x = 'a'")
			exec(t, c, "alter table public.pair alter v type int")
			exec(t, c, "select v from public.pair where x = 'a' and y = 1")
			exec(t, c, "select n from other.pair where id = 1")
			exec(t, c, "drop table other.pair")
			exec(t, c, "alter table pair alter v type bigint")
		}, ops{`committed [["w","pair:\"a\",1.v",10]]`, `committed [["w","other.made:1.n",5]]`, `committed [["w","other.pair:2.n",6]]`,
			`committed [["r","pair:\"a\",1.v",10]]`, `initial [["w","other.pair:1.n",5]]`, `committed [["r","other.pair:1.n",5]]`}},
		{"a function in a default may write anything", func(c *pgx.Conn) {
			exec(t, c, "insert into pair values ('a', 1, 10)")
			exec(t, c, "insert into called values ($1) on conflict do nothing", 1)
			exec(t, c, "select v from pair where x = 'a' and y = 1")
		}, ops{`committed [["w","pair:\"a\",1.v",10]]`}},
		{"a function may write anything", func(c *pgx.Conn) {
			exec(t, c, "insert into a (id, n) values (9, 1)")
			exec(t, c, "select f()")
			exec(t, c, "select n from a where id = 9")
			exec(t, c, "update a set n = 2 where id = 9")
		}, ops{`committed [["w","a:9.n",1],["w","a:9.s",{"null":true}],["w","a:9.m",{"null":true}]]`}},
	}
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeSimpleProtocol} {
		for _, tc := range cases {
			t.Run(mode.String()+"/"+tc.name, func(t *testing.T) {
				do("delete from a", "delete from pair")
				lines, _ := listen(t, url, postgres.Options{Complete: true}, func(connect func(pgx.QueryExecMode) *pgx.Conn) {
					tc.do(connect(mode))
				})
				var got []string
				for _, l := range lines {
					got = append(got, l.text)
				}
				if diff := cmp.Diff([]string(tc.want), got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		}
	}
}

// An application that uses pgx under database/sql.
func TestDatabaseSQL(t *testing.T) {
	t.Parallel()
	url, do := server(t)
	do("create table a (id int primary key, n int)", "insert into a values (1, 5)")
	var got []string
	lines, _ := listen(t, url, postgres.Options{Complete: true}, func(connect func(pgx.QueryExecMode) *pgx.Conn) {
		db := stdlib.OpenDB(*connect(pgx.QueryExecModeCacheStatement).Config())
		defer db.Close()
		tx, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelSerializable})
		if err != nil {
			t.Fatal(err)
		}
		var n int
		err = tx.QueryRow("select n from a where id = $1", 1).Scan(&n)
		if _, again := tx.Exec("update a set n = $1 where id = $2", n+1, 1); errors.Join(err, again, tx.Commit()) != nil {
			t.Error(err, again)
		}
	})
	for _, l := range lines {
		got = append(got, l.text)
	}
	if diff := cmp.Diff([]string{`initial [["w","a:1.n",5]]`, `committed [["r","a:1.n",5],["w","a:1.n",6]]`}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Where all that writes is to be recorded, it is waited for those that have begun to write before, and that is said; but
// not for those that write what is not recorded.
func TestWritersBefore(t *testing.T) {
	url, do := server(t)
	do("create table a (id int primary key, n int)")
	do("create table log (n int)")
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	other, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(context.WithoutCancel(t.Context()))
	exec(t, other, "begin")
	exec(t, other, "insert into log values (1)")
	for _, isComplete := range []bool{true, false} {
		before, err := pgx.ConnectConfig(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		exec(t, before, "begin")
		exec(t, before, "update a set n = 1") // none is there
		loads, said, load := 0, 0, pgxtap.Load(config)
		rec := recorder.New(recorder.Lines(&bytes.Buffer{}), recorder.Options{})
		capture, err := postgres.New(t.Context(), rec, postgres.Options{Complete: isComplete, Failed: func(error) { said++ },
			Load: func(ctx context.Context) (*postgres.Catalog, error) {
				if loads++; loads == 3 {
					exec(t, before, "commit")
				}
				return load(ctx)
			}})
		if err != nil {
			t.Fatal(err)
		}
		if want := map[bool]int{true: 3, false: 1}[isComplete]; loads != want || said != want/3 || capture.Blind() {
			t.Errorf("complete %v: looked %d times, said %d times, blind %v", isComplete, loads, said, capture.Blind())
		}
		before.Close(t.Context())
		if err := rec.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
