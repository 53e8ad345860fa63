//go:build unix

package findings

import (
	"bufio"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/isowatch/isowatch/cmd/monitor/judge"
	"github.com/isowatch/isowatch/cmd/monitor/report"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/history"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/record/packed"
	"github.com/isowatch/isowatch/internal/lab/databases"
	"github.com/isowatch/isowatch/internal/lab/golden"
	"github.com/isowatch/isowatch/internal/lab/oracle"
	"github.com/isowatch/isowatch/internal/servers"
)

const interleavings = "../../../testdata/interleavings"

var (
	scriptDatabase = regexp.MustCompile(`(?m)^-- database: (\w+)$`)
	scriptHolds    = regexp.MustCompile(`(?m)^-- holds: (.*)$`)
	scriptHeld     = regexp.MustCompile(`(?m)^-- held: (T\d) at (\w+)$`)
	scriptLine     = regexp.MustCompile(`^(.*;) -- (T\d)\b.*$`)
)

// What each interleaving of testdata/interleavings says came of its statements is what comes of them, in the order in
// which they stand, at a real server; -update writes it.
func TestInterleavings(t *testing.T) {
	files := scripts(t)
	for name, start := range map[string]func(t *testing.T) *server{"postgres": scriptPostgres, "mariadb": scriptMariaDB} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := start(t)
			for _, file := range slices.Sorted(maps.Keys(files)) {
				if scriptDatabase.FindStringSubmatch(files[file])[1] == name {
					golden.Check(t, file, at.play(t, files[file]))
				}
			}
		})
	}
}

// Each of them holds what it says, and nothing stronger; so says the oracle.
func TestInterleavingsAreJudged(t *testing.T) {
	for file, text := range scripts(t) {
		hs, err := history.Open(file, history.Options{})
		if err != nil || len(hs) != 1 {
			t.Fatalf("%s: %d histories, %v", file, len(hs), err)
		}
		q := judge.Question{Records: packed.Of(hs[0].Transactions), Assume: record.Assumptions{}.Override(hs[0].Header),
			Levels: verdict.Levels(), All: true}
		var h report.History
		if err := judge.Check(q, &h); err != nil {
			t.Fatal(err)
		}
		if got, want := cmp.Or(strings.Join(h.Strongest, ", "), "nothing"), scriptHolds.FindStringSubmatch(text)[1]; got != want {
			t.Errorf("%s: holds %s, want %s", file, got, want)
		}
		for l, holds := range oracle.Check(hs[0].Transactions, record.Assumptions{}.Override(hs[0].Header)) {
			for _, r := range h.Results {
				if r.Level == l.String() && (r.Verdict == verdict.Satisfied.String()) != holds {
					t.Errorf("%s: %s is %s, and holds: %v", file, l, r.Verdict, holds)
				}
			}
		}
	}
}

// scripts are the interleavings, by their files.
func scripts(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob(interleavings + "/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d interleavings, %v", len(files), err)
	}
	out := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		out[file] = string(text)
	}
	return out
}

// server is one that interleavings are played at.
type server struct {
	connect func() connection
	admin   connection
	id      string // a query: the number of a connection
	waits   string // a query: how many locks a connection waits for
	// stale is for how long the server tells what it has told of that.
	stale time.Duration
}

// connection runs a statement, and returns the rows that came, or how many it met.
type connection func(ctx context.Context, text string) (rows [][]string, met int64, err error)

func scriptPostgres(t *testing.T) *server {
	p, err := servers.NewPostgres(t.Context(), folder(t), servers.PostgresOptions{})
	missing(t, err)
	t.Cleanup(p.Close)
	connect := func() connection {
		c, err := pgx.Connect(t.Context(), "postgres://postgres@"+p.Primary.Addr+"/postgres?sslmode=disable")
		if err != nil {
			t.Fatal(err)
		}
		return func(ctx context.Context, text string) (rows [][]string, met int64, err error) {
			results, err := c.PgConn().Exec(ctx, text).ReadAll()
			for _, r := range results {
				met = r.CommandTag.RowsAffected()
				for _, row := range r.Rows {
					rows = append(rows, texts(row))
				}
			}
			return rows, met, err
		}
	}
	return &server{connect: connect, admin: connect(), id: "select pg_backend_pid()",
		waits: "select cardinality(pg_blocking_pids(%s))"}
}

func scriptMariaDB(t *testing.T) *server {
	m, err := databases.NewMariaDB(t.Context(), folder(t), databases.MariaDBOptions{Nodes: 1})
	missing(t, err)
	t.Cleanup(m.Close)
	db, err := sql.Open("mysql", "root@tcp("+m.Nodes[0].Addr+")/")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	connect := func() connection {
		c, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		run := func(ctx context.Context, text string) (all [][]string, met int64, err error) {
			if !strings.HasPrefix(text, "select") {
				result, err := c.ExecContext(ctx, text)
				if err == nil {
					met, err = result.RowsAffected()
				}
				return nil, met, err
			}
			rows, err := c.QueryContext(ctx, text)
			if err != nil {
				return nil, 0, err
			}
			defer rows.Close()
			columns, err := rows.Columns()
			for err == nil && rows.Next() {
				row, into := make([][]byte, len(columns)), make([]any, len(columns))
				for i := range row {
					into[i] = &row[i]
				}
				err = rows.Scan(into...)
				all = append(all, texts(row))
			}
			return all, 0, errors.Join(err, rows.Err())
		}
		for _, text := range []string{"create database if not exists canary", "use canary"} {
			if _, _, err := run(t.Context(), text); err != nil {
				t.Fatal(err)
			}
		}
		return run
	}
	return &server{connect: connect, admin: connect(), id: "select connection_id()", stale: 100 * time.Millisecond,
		waits: "select count(*) from information_schema.innodb_trx where trx_mysql_thread_id = %s and trx_state = 'LOCK WAIT'"}
}

func texts(row [][]byte) (out []string) {
	for _, cell := range row {
		out = append(out, string(cell))
	}
	return out
}

// ask is what a query returns, in one row and column.
func (s *server) ask(t *testing.T, of connection, query string) string {
	t.Helper()
	rows, _, err := of(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	return rows[0][0]
}

// hold lets the server's process of a session come as far as a function of its own, and no further until it is released.
func (s *server) hold(t *testing.T, p *played, function string) *held {
	t.Helper()
	gdb, err := servers.Find("gdb", "apt-get install gdb")
	missing(t, err)
	cmd := exec.CommandContext(t.Context(), gdb, "-q", "-nx", "-iex", "set auto-solib-add off", "-iex", "set debuginfod enabled off",
		"-ex", "handle SIGUSR1 SIGURG nostop noprint pass", "-ex", "break "+function, "-ex", "continue", "-p", p.id)
	h := &held{exit: cmd.Wait}
	if h.in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	h.out = bufio.NewReader(out)
	h.until(t, "Continuing.")
	return h
}

// held is a process of a server in the hands of a debugger.
type held struct {
	in   io.WriteCloser
	out  *bufio.Reader
	exit func() error
}

// until waits until the debugger says something.
func (h *held) until(t *testing.T, words string) {
	t.Helper()
	for said := ""; ; {
		line, err := h.out.ReadString('\n')
		if said += line; err != nil {
			t.Fatalf("the debugger never said %q, but: %s", words, said)
		}
		if strings.Contains(line, words) {
			return
		}
	}
}

// release lets the process go on.
func (h *held) release(t *testing.T) {
	t.Helper()
	h.in.Close() // the debugger leaves what it is attached to, and ends
	if _, err := io.Copy(io.Discard, h.out); err != nil {
		t.Fatal(err)
	}
	if err := h.exit(); err != nil {
		t.Fatal(err)
	}
}

// played is a session of an interleaving.
type played struct {
	name    string
	run     connection
	id      string
	answers chan string // to the statements that it was asked for last
	blocked bool
	held    *held // from before its commit until another session has committed
}

// play does what a script says, and returns it with what came of each statement.
func (s *server) play(t *testing.T, script string) string {
	t.Helper()
	if _, _, err := s.admin(t.Context(), "drop table if exists test"); err != nil {
		t.Fatal(err)
	}
	sessions := map[string]*played{}
	var out strings.Builder
	for line := range strings.Lines(script) {
		line = strings.TrimSuffix(line, "\n")
		parts := scriptLine.FindStringSubmatch(line)
		switch {
		case parts == nil && line != "" && !strings.HasPrefix(line, "--"):
			if _, _, err := s.admin(t.Context(), line); err != nil {
				t.Fatal(err)
			}
			fallthrough
		case parts == nil:
			out.WriteString(line + "\n")
			continue
		}
		p := sessions[parts[2]]
		if p == nil {
			p = &played{name: parts[2], run: s.connect(), answers: make(chan string, 1)}
			p.id = s.ask(t, p.run, s.id)
			sessions[p.name] = p
		}
		if p.blocked {
			t.Fatalf("%s waits still: %s", p.name, line)
		}
		commits := parts[1] == "commit;"
		if where := scriptHeld.FindStringSubmatch(script); commits && where != nil && where[1] == p.name {
			p.held = s.hold(t, p, where[2])
		}
		go func() { p.answers <- p.do(t.Context(), parts[1]) }()
		said := []string{parts[2]}
		if p.held != nil {
			p.held.until(t, "Breakpoint 1, ")
		}
		answer, ended := s.await(t, p)
		if !ended {
			said = append(said, "BLOCKS")
		} else if answer != "" {
			said = append(said, strings.ToUpper(answer[:1])+answer[1:])
		}
		for _, name := range slices.Sorted(maps.Keys(sessions)) {
			b := sessions[name]
			if b != p && b.held != nil && commits {
				b.held.release(t)
				b.held = nil
			}
			if b != p && b.blocked {
				if answer, ended := s.await(t, b); ended && answer != "" {
					said = append(said, "Unblocks "+name+", which "+answer)
				} else if ended {
					said = append(said, "Unblocks "+name)
				}
			}
		}
		out.WriteString(parts[1] + " -- " + strings.Join(said, ". ") + "\n")
	}
	return out.String()
}

// await waits until a session is answered, or waits for another's lock.
func (s *server) await(t *testing.T, p *played) (answer string, ended bool) {
	t.Helper()
	if p.held != nil {
		p.blocked = true
		return "", false
	}
	for {
		select {
		case answer = <-p.answers:
			p.blocked = false
			return answer, true
		case <-time.After(s.stale + 10*time.Millisecond):
		}
		if p.blocked = s.ask(t, s.admin, fmt.Sprintf(s.waits, p.id)) != "0"; p.blocked {
			return "", false
		}
	}
}

// do runs statements, and says what came of the last one as the format hermitage-sql reads it.
func (p *played) do(ctx context.Context, statements string) string {
	var rows [][]string
	var met int64
	var err error
	verb := ""
	for text := range strings.SplitSeq(strings.TrimSuffix(statements, ";"), ";") {
		text = strings.TrimSpace(text)
		verb, _, _ = strings.Cut(text, " ")
		if rows, met, err = p.run(ctx, text); err != nil {
			message := err.Error()
			if said := new(pgconn.PgError); errors.As(err, &said) {
				message = said.Message
			} else if said := new(mysql.MySQLError); errors.As(err, &said) {
				message = said.Message
			}
			return "prints an error: " + message
		}
	}
	var found []string
	for _, row := range rows {
		found = append(found, strings.Join(row, " => "))
	}
	slices.Sort(found)
	switch {
	case len(found) > 0:
		return "returns " + strings.Join(found, ", ")
	case verb == "select":
		return "returns nothing"
	case met == 0 && (verb == "update" || verb == "delete"):
		return verb + "s nothing"
	}
	return ""
}
