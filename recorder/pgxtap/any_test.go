package pgxtap_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/isowatch/isowatch/cmd/monitor/judge"
	"github.com/isowatch/isowatch/cmd/monitor/report"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/race"
	"github.com/isowatch/isowatch/internal/lab/seeds"
	"github.com/isowatch/isowatch/recorder/postgres"
)

// statement is one of any kind, about row i of a table; rarely one after which less is recorded.
func statement(rng *rand.Rand, table string) string {
	id, n := rng.IntN(4), rng.IntN(4)
	text := []string{
		"select n from %[1]s where id = %[2]d",
		"select n, s from %[1]s where id = %[2]d for update",
		"select * from %[1]s order by id",
		"select id, n from %[1]s where n > 1",
		"select id, n from %[1]s where id = %[2]d for update skip locked",
		"select n from %[1]s where id = %[2]d and s = 'x'",
		"select n from %[1]s where id = %[2]d and d = '2000-01-01'",
		"select n, unnest(array[]::int[]) from %[1]s where id = %[2]d",
		"update %[1]s set n = %[3]d where id = %[2]d",
		"update %[1]s set n = n + 1 where id = %[2]d returning n",
		"update %[1]s set n = %[3]d, s = 'x' where id = %[2]d and n = 2",
		"update %[1]s set n = n + 1 where n = %[3]d returning id, n",
		"insert into %[1]s values (%[2]d, %[3]d, 'new') on conflict do nothing",
		"insert into %[1]s (id, n) values (%[2]d, %[3]d) on conflict (id) do update set n = excluded.n returning *",
		"insert into %[1]s (id, n, s) values (%[2]d, %[3]d, 'x') on conflict (id) do update set n = excluded.n, s = 'x' where %[1]s.n > 1 returning id, s",
		"insert into %[1]s (id) values (%[2]d)",
		"insert into %[1]s select g, %[3]d from generate_series(0, %[2]d) g on conflict (id) do update set n = 5 where %[1]s.n = 0 returning *",
		"update %[1]s set n = %[1]s.n + u.n from (values (%[2]d, 1), (2, %[3]d)) as u (id, n) where u.id = %[1]s.id returning %[1]s.id, %[1]s.n",
		"delete from %[1]s where id = %[2]d",
		"delete from %[1]s where n = %[3]d returning id",
	}
	lossy := []string{"update %[1]s set n = n - %[3]d where id = %[2]d", "update %[1]s set s = s || '.' where id = %[2]d", "update %[1]s set n = %[3]d where n > 2", "delete from %[1]s where s = 'x'"}
	format := text[rng.IntN(len(text))]
	if rng.IntN(300) == 0 {
		format = lossy[rng.IntN(len(lossy))]
	}
	out := fmt.Sprintf(format+" -- %[1]s %[2]d %[3]d", table, id, n)
	return out
}

// within is a statement in a savepoint, of which some write what is learned only from what follows.
func within(rng *rand.Rand, table string) string {
	if rng.IntN(2) == 0 {
		return statement(rng, table)
	}
	text := []string{"update %s set n = n + 1 where id = %d", "select n from %s where id = %d"}[rng.IntN(2)]
	return fmt.Sprintf(text, table, rng.IntN(4))
}

// portal lets a statement begin that gives so many rows, or if there is none the one before go on; 0: to its end. It is
// true within a transaction that has not failed.
func portal(ctx context.Context, c *pgx.Conn, rows uint32, text string) (ok bool) {
	const name = "p"
	f := c.PgConn().Frontend()
	if text != "" {
		f.SendParse(&pgproto3.Parse{Query: text})
		f.SendBind(&pgproto3.Bind{DestinationPortal: name})
		f.SendDescribe(&pgproto3.Describe{ObjectType: 'P', Name: name})
	}
	f.SendExecute(&pgproto3.Execute{Portal: name, MaxRows: rows})
	f.SendSync(&pgproto3.Sync{})
	if f.Flush() != nil {
		return false
	}
	for {
		switch m, err := c.PgConn().ReceiveMessage(ctx); m := m.(type) {
		case *pgproto3.ReadyForQuery:
			return m.TxStatus == 'T'
		default:
			if err != nil {
				return false
			}
		}
	}
}

// work runs transactions of any statements on one connection after the other, some of which break.
func work(t *testing.T, rng *rand.Rand, isolation pgx.TxIsoLevel, connect func(pgx.QueryExecMode) *pgx.Conn, transactions int) {
	ctx := t.Context()
	modes := []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeExec}
	c := connect(modes[rng.IntN(len(modes))])
	for range transactions {
		table := fmt.Sprintf("t%d", rng.IntN(12))
		switch rng.IntN(8) {
		case 0: // commits by itself
			_, _ = c.Exec(ctx, statement(rng, table))
			continue
		case 1: // a pipeline
			b := &pgx.Batch{}
			b.Queue("begin isolation level " + string(isolation))
			for range 1 + rng.IntN(3) {
				b.Queue(statement(rng, table))
			}
			b.Queue("commit")
			_ = c.SendBatch(ctx, b).Close()
			_, _ = c.Exec(ctx, "rollback")
			continue
		case 2: // one of several transactions, some of whose answers are read while others are under way
			p := c.PgConn().StartPipeline(ctx)
			for range 1 + rng.IntN(8) {
				for range 1 + rng.IntN(2) {
					p.SendQueryParams(statement(rng, table), nil, nil, nil, nil)
				}
				if p.Sync() == nil && rng.IntN(2) == 0 {
					_, _ = p.GetResults()
				}
			}
			_ = p.Close()
			continue
		}
		tx, err := c.BeginTx(ctx, pgx.TxOptions{IsoLevel: isolation})
		if err != nil {
			t.Error(err)
			return
		}
		for range 1 + rng.IntN(4) {
			if rng.IntN(6) == 0 {
				inner, err := tx.Begin(ctx) // a savepoint
				if err != nil {
					break
				}
				for range 1 + rng.IntN(3) {
					if _, err = inner.Exec(ctx, within(rng, table)); err != nil {
						break
					}
				}
				if err != nil || rng.IntN(2) == 0 {
					_ = inner.Rollback(ctx)
				} else {
					_ = inner.Commit(ctx)
				}
				continue
			}
			if rng.IntN(8) == 0 { // others between its rows
				text := []string{"select id, n from %s order by id", "update %s set n = n + 1 where id < 3 returning id, n"}[min(1, rng.IntN(40)/39)]
				if portal(ctx, c, 1, fmt.Sprintf(text, table)) {
					_, err = c.Exec(ctx, statement(rng, table))
				}
				if err != nil || !portal(ctx, c, uint32(rng.IntN(2)), "") {
					break
				}
				continue
			}
			if rng.IntN(8) == 0 { // what it writes is learned from what is read next
				id := rng.IntN(4)
				if _, err := tx.Exec(ctx, fmt.Sprintf("update %s set n = n - 1 where id = $1", table), id); err != nil {
					break
				}
				if _, err := tx.Exec(ctx, fmt.Sprintf("select n from %s where id = $1", table), id); err != nil {
					break
				}
				continue
			}
			if _, err := tx.Exec(ctx, statement(rng, table)); err != nil {
				break
			}
		}
		switch rng.IntN(40) {
		case 0: // it breaks while COMMIT is on its way
			conn := c.PgConn().Conn()
			_, _ = conn.Write([]byte("Q\x00\x00\x00\x0bcommit\x00"))
			conn.Close()
			c = connect(modes[rng.IntN(len(modes))])
		case 1, 2, 3:
			_ = tx.Rollback(ctx)
		default:
			_ = tx.Commit(ctx)
		}
	}
	c.Close(context.Background())
}

// Whatever statements there are, a PostgreSQL that keeps its isolation level is not called anything else, and who is read from
// is recorded before, so that neither it is of an application that was killed.
func TestAnyStatements(t *testing.T) {
	url, do := server(t)
	for i := range 12 {
		do(fmt.Sprintf("create table t%d (id int primary key, n int default 2, s text, d date)", i))
	}
	for i := range race.Few(6, 42) {
		seed, complete := *seeds.First+uint64(i), i%2 == 0
		isolation := []pgx.TxIsoLevel{pgx.Serializable, pgx.RepeatableRead, pgx.ReadCommitted}[i%3]
		level := []verdict.Level{verdict.SER, verdict.SI, verdict.RC}[i%3]
		url := url + "&default_transaction_isolation=" + strings.ReplaceAll(string(isolation), " ", "%20")
		do("truncate t0, t1, t2, t3, t4, t5, t6, t7, t8, t9, t10, t11")
		for i := range 12 {
			do(fmt.Sprintf("insert into t%d select i, i from generate_series(0, 2) i", i))
		}
		lines, capture := listen(t, url, postgres.Options{Complete: complete}, func(connect func(pgx.QueryExecMode) *pgx.Conn) {
			var wg sync.WaitGroup
			for client := range 6 {
				wg.Go(func() { work(t, rand.New(rand.NewPCG(seed, uint64(client))), isolation, connect, 100) })
			}
			wg.Wait()
		})
		reads := 0
		for _, r := range lines {
			reads += strings.Count(r.text, `["r"`)
		}
		if capture.Blind() || reads < 100 {
			t.Errorf("seed %d: %d reads, unclear: %v", seed, reads, capture.Unclear())
		}
		if r := judged(t, lines, complete, level); r.Verdict == verdict.Violated.String() || complete && r.Verdict != verdict.Satisfied.String() {
			t.Errorf("seed %d, %s, complete: %t: %s, unclear %v", seed, isolation, complete, r.Verdict, capture.Unclear())
			for _, l := range lines {
				for _, a := range r.Anomalies {
					if slices.Contains(a.Transactions, l.record.ID) {
						t.Errorf("%s: %s asked %s", l.record.ID, l.text, l.record.Statements)
					}
				}
			}
		}
		if !complete {
			continue
		}
		writers, last, of := map[record.Cell][]int{}, make([]int, len(lines)), map[string]int{} // last: of the session, or itself
		for i, l := range lines {
			if last[i] = i; l.record.Seq > 0 {
				last[i] = of[l.record.Session]
			}
			of[l.record.Session] = i
			for _, op := range l.record.Ops {
				if op.Kind == record.Write {
					writers[op.Cell()] = append(writers[op.Cell()], i)
				}
			}
		}
		var from func(i int, seen map[int]bool) // whom a record goes behind, and these, and so on
		from = func(i int, seen map[int]bool) {
			if seen[i] {
				return
			}
			seen[i] = true
			from(last[i], seen)
			for _, op := range lines[i].record.Ops {
				for _, w := range writers[op.Cell()] {
					if op.Kind == record.Read {
						from(w, seen)
					}
				}
			}
		}
		for i, l := range lines {
			for _, op := range l.record.Ops {
				if w := writers[op.Cell()]; op.Kind == record.Read && !op.Value.IsNull() && (len(w) == 0 || w[0] > i) {
					seen := map[int]bool{}
					if len(w) > 0 {
						from(w[0], seen)
					}
					if !seen[i] { // else they go together
						t.Errorf("seed %d: %s has read %v, which nobody before has written", seed, l.record.ID, op)
					}
				}
			}
		}
	}
}

// Two that read a balance and overwrite it, as READ COMMITTED lets them: in both protocols, with values that were there before, and
// with those that both write alike.
func TestLostUpdate(t *testing.T) {
	url, do := server(t)
	do("create table a (id int primary key, n int)", "insert into a values (1, 0)")
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeSimpleProtocol} {
		for _, second := range []int{20, 15} {
			do("update a set n = 10")
			lines, _ := listen(t, url, postgres.Options{Complete: true}, func(connect func(pgx.QueryExecMode) *pgx.Conn) {
				one, two := connect(mode), connect(mode)
				for _, c := range []*pgx.Conn{one, two} {
					exec(t, c, "begin isolation level read committed")
					exec(t, c, "select n from a where id = $1", 1)
				}
				exec(t, one, "update a set n = $1 where id = $2", 15, 1)
				exec(t, one, "commit")
				exec(t, two, "update a set n = $1 where id = $2", second, 1)
				exec(t, two, "commit")
			})
			if r := judged(t, lines, true, verdict.SI); r.Verdict != verdict.Violated.String() || r.Anomalies[0].Name != "lost-update" {
				t.Errorf("%s, then %d: %s %+v", mode, second, r.Verdict, r.Anomalies)
			}
		}
	}
}

// A row that is made while another transaction, which ends before, deletes the one of the same key is another row: at
// REPEATABLE READ both may commit, and who makes it sees both. Nothing is told of it, whichever of the two is heard first.
func TestMadeAnew(t *testing.T) {
	url, do := server(t)
	do("create table a (id int primary key, n int, s text)")
	url += "&default_transaction_isolation=repeatable%20read"
	const waits = "select n from a where id = 3 for update"
	for i, with := range []string{"%s", waits + "; %s", waits + "; %s; commit"} { // what it is sent with
		for j, insert := range []string{
			"insert into a (id, n) values (1, 7)",
			"insert into a values (1, 7, null) on conflict do nothing",
			"insert into a (id, n) values (1, 7) on conflict (id) do update set n = excluded.n",
			"insert into a (id, n) values (1, 7) on conflict (id) do update set n = excluded.n returning *",
			"insert into a select 1, 7 returning id, n, s",
		} {
			complete, remove := j != (i+2)%5, []string{"delete from a where id = 1", "delete from a where n = 1 returning id"}[(i+j)%2]
			do("truncate a", "insert into a values (1, 1, 'x'), (2, 5, 'y'), (3, 0, 'z')")
			lines, _ := listen(t, url, postgres.Options{Complete: complete}, func(connect func(pgx.QueryExecMode) *pgx.Conn) {
				one, two, holds := connect(pgx.QueryExecModeSimpleProtocol), connect(pgx.QueryExecModeExec), connect(pgx.QueryExecModeExec)
				exec(t, one, "select * from a order by id")
				exec(t, one, "begin")
				exec(t, one, "select n from a where id = 2")
				exec(t, holds, "begin")
				exec(t, holds, waits)
				answered := make(chan error, 1)
				asks := func() {
					_, err := one.Exec(t.Context(), fmt.Sprintf(with, insert))
					answered <- err
				}
				if i > 0 {
					go asks()
				}
				for waiting := i == 0; !waiting; {
					row := holds.QueryRow(t.Context(), "select count(*) > 0 from pg_locks where not granted")
					if err := row.Scan(&waiting); err != nil {
						t.Fatal(err)
					}
				}
				exec(t, two, "begin")
				exec(t, two, "update a set n = 6 where id = 2")
				exec(t, two, remove)
				exec(t, two, "commit")
				exec(t, holds, "commit")
				if i == 0 {
					asks()
				}
				if err := <-answered; err != nil {
					t.Fatal(err)
				}
				if i < 2 {
					exec(t, one, "select * from a order by id") // both
					exec(t, one, "commit")
				}
				exec(t, one, "select * from a order by id")
				exec(t, two, "select * from a where id = 4")
				exec(t, two, "delete from a where id = 4")
				exec(t, two, "insert into a values (4, 8, 'new')") // when that is over
			})
			all, what := "", fmt.Sprintf("%s, and %s, complete: %t", fmt.Sprintf(with, insert), remove, complete)
			for _, l := range lines {
				all += l.text + "\n"
			}
			for _, want := range []string{`["w","a:1.n",7]`, `["r","a:1.n",7]`, `["w","a:4.n",8]`} {
				if strings.Count(all, want) != 1 {
					t.Errorf("%s: %s is not told once:\n%s", what, want, all)
				}
			}
			if r := judged(t, lines, complete, verdict.SI); r.Verdict == verdict.Violated.String() {
				t.Errorf("%s: %s %v\n%s", what, r.Verdict, r.Anomalies, all)
			}
		}
	}
}

// A transaction that has written rows which are not known reads its own from then on, and no others', where coverage is
// partial, too.
func TestUnknownRows(t *testing.T) {
	t.Parallel()
	url, do := server(t)
	do("create table a (id int primary key, n int)", "create function f() returns int language plpgsql as 'begin update a set n = 7; return 1; end'")
	for _, writes := range []string{"update a set n = n * 2 where n > 0", "update a set n = 6 where id in (1, 2)", "select f()",
		"with x as (update a set n = 8 returning n) select n from x", "savepoint p; update a set n = n * 2 where n > 0; rollback to p"} {
		do("truncate a", "insert into a values (1, 1)")
		n := 0
		lines, _ := listen(t, url, postgres.Options{}, func(connect func(pgx.QueryExecMode) *pgx.Conn) {
			c := connect(pgx.QueryExecModeSimpleProtocol)
			exec(t, c, "begin isolation level repeatable read")
			for _, text := range []string{"select n from a where id = 1", "update a set n = 3 where id = 1", writes,
				"select n from a where id = 1", "update a set n = n + 1 where id = 1"} {
				exec(t, c, text)
			}
			if err := c.QueryRow(t.Context(), "select n from a where id = 1").Scan(&n); err != nil {
				t.Fatal(err)
			}
			exec(t, c, "commit")
		})
		want := fmt.Sprintf(`committed [["r","a:1.n",1],["w","a:1.n",3],["w","a:1.n",%d]]`, n)
		if len(lines) != 1 || lines[0].text != want {
			t.Errorf("%s: %v, want %s", writes, lines, want)
		}
	}
}

// judged is what check says of records, of all that was written or not.
func judged(t *testing.T, lines []heard, complete bool, level verdict.Level) report.Result {
	t.Helper()
	var txns []record.Transaction
	for _, l := range lines {
		txns = append(txns, l.record)
	}
	var out report.History
	q := judge.Question{DB: record.DefaultDB, Txns: txns, Levels: []verdict.Level{level}, AnomaliesMax: 1,
		Assume: record.Assumptions{Initial: record.InitialAbsent, Coverage: record.CoverageComplete}}
	if !complete {
		q.Assume = record.Assumptions{Coverage: record.CoveragePartial, UnseenUnique: new(bool)}
	}
	if err := judge.Check(q, &out); err != nil {
		t.Fatal(err)
	}
	return out.Results[0]
}
