package proxy_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/rs/zerolog"

	"github.com/isowatch/isowatch/cmd/monitor/embedded"
	"github.com/isowatch/isowatch/cmd/monitor/judge"
	"github.com/isowatch/isowatch/cmd/monitor/proxy"
	"github.com/isowatch/isowatch/cmd/monitor/report"
	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/databases"
	"github.com/isowatch/isowatch/internal/ports"
	"github.com/isowatch/isowatch/internal/servers"
	"github.com/isowatch/isowatch/internal/wait"
	"github.com/isowatch/isowatch/recorder"
	"github.com/isowatch/isowatch/recorder/pgxtap"
	"github.com/isowatch/isowatch/recorder/postgres"
)

// stood is a proxy at work.
type stood struct {
	addr    string
	capture *postgres.Capture
	end     func() []record.Transaction // ends it, and gives what it recorded
}

// stand lets a proxy stand before a database; secure is for clients who ask for TLS.
func stand(t *testing.T, url string, secure *tls.Config) stood {
	t.Helper()
	var out bytes.Buffer
	rec := recorder.New(recorder.Lines(&out), recorder.Options{Wait: true})
	upstream, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	capture, err := postgres.New(t.Context(), rec, postgres.Options{Complete: true, Load: pgxtap.Load(upstream), Failed: func(err error) { t.Error(err) }})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- proxy.New(proxy.Options{Upstream: &upstream.Config, TLS: secure, Capture: capture, Log: zerolog.Nop()}).Serve(ctx, l)
	}()
	ended := false
	end := func() []record.Transaction {
		if ended {
			return nil
		}
		ended = true
		stop()
		if err := errors.Join(<-done, rec.Close(context.Background())); err != nil {
			t.Fatal(err)
		}
		var txns []record.Transaction
		for line := range strings.Lines(out.String()) {
			var r record.Transaction
			if err := codec.Decode([]byte(strings.TrimSpace(line)), &r); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			txns = append(txns, r)
		}
		return txns
	}
	t.Cleanup(func() { end() })
	return stood{l.Addr().String(), capture, end}
}

// pgbench runs it, in some mode and at some isolation level, as user postgres in database canary.
func pgbench(t *testing.T, addr, isolation string, args ...string) string {
	t.Helper()
	program := databases.Program(t, "pgbench")
	host, port, _ := net.SplitHostPort(addr)
	cmd := exec.CommandContext(t.Context(), program, append(append([]string{"-h", host, "-p", port, "-U", "postgres"}, args...), "canary")...)
	cmd.Env = append(os.Environ(), "PGOPTIONS=-c default_transaction_isolation="+isolation)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("pgbench %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// judged says what check says of records, and what that is to be: violated by lost updates, or satisfied.
func judged(t *testing.T, txns []record.Transaction, level verdict.Level, want verdict.Outcome) {
	t.Helper()
	var out report.History
	q := judge.Question{DB: record.DefaultDB, Txns: txns, Levels: []verdict.Level{level}, AnomaliesMax: 1,
		Assume: record.Assumptions{Initial: record.InitialAbsent, Coverage: record.CoverageComplete}}
	if err := judge.Check(q, &out); err != nil {
		t.Fatal(err)
	}
	r := out.Results[0]
	if r.Verdict != want.String() || want == verdict.Violated && r.Anomalies[0].Name != "lost-update" {
		t.Errorf("%s %s, %+v; want %s", level, r.Verdict, r.Anomalies, want)
	}
}

// quiet is how many transactions PostgreSQL says were committed once all sessions have ended.
func quiet(t *testing.T, p *servers.Postgres) int64 {
	t.Helper()
	// It counts what a session did before it takes it from the list.
	for ask(t, p, "select count(*) from pg_stat_activity where datname = 'canary'") > 0 {
		if t.Context().Err() != nil {
			t.Fatal("a session stays")
		}
	}
	return committed(t, p)
}

// counting begins to count what PostgreSQL says was committed. count waits until that is as much as a proxy saw, and so
// much more: PostgreSQL counts logins too.
func counting(t *testing.T, p *servers.Postgres) (count func(s stood, more int64)) {
	before := quiet(t, p)
	return func(s stood, more int64) {
		t.Helper()
		mine := s.capture.Outcomes(record.Committed)
		for theirs := int64(-1); theirs != mine; { // it tells of a session that has ended a little later
			if t.Context().Err() != nil || theirs > mine {
				t.Fatalf("the proxy saw %d transactions commit, PostgreSQL %d", mine, theirs)
			}
			theirs = committed(t, p) - before - more
		}
	}
}

// committed is how many transactions PostgreSQL says were committed.
func committed(t *testing.T, p *servers.Postgres) int64 {
	t.Helper()
	return ask(t, p, "select xact_commit from pg_stat_database where datname = 'canary'")
}

// ask asks PostgreSQL for a number, from another database.
func ask(t *testing.T, p *servers.Postgres, query string) (n int64) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), "postgres://postgres@"+p.Primary.Addr+"/postgres?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	if err := c.QueryRow(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// clients is how many pgbench has.
const clients = 6

// readThenWrite is a transaction as applications have them: it reads a balance and writes another.
const readThenWrite = `\set aid random(1, 10)
begin;
select abalance from pgbench_accounts where aid = :aid \gset
\set more :abalance + 1
update pgbench_accounts set abalance = :more where aid = :aid;
end;
`

// pgbench, which knows nothing of the proxy, in all its modes: as many transactions as PostgreSQL has counted, satisfied where it is
// serializable, and lost updates where it is not.
func TestPgbench(t *testing.T) {
	t.Parallel()
	p := databases.StartPostgres(t)
	script := filepath.Join(t.TempDir(), "script.sql")
	if err := os.WriteFile(script, []byte(readThenWrite), 0o600); err != nil {
		t.Fatal(err)
	}
	pgbench(t, p.Primary.Addr, "serializable", "-i", "-q")
	url := strings.Replace(p.URL(p.Primary), "canary@", "postgres@", 1)
	counted := regexp.MustCompile(`actually processed: (\d+)`)
	for _, tc := range []struct {
		isolation string
		level     verdict.Level
		want      verdict.Outcome
		args      []string
	}{
		{"serializable", verdict.SER, verdict.Satisfied, []string{"-M", "prepared"}},
		{"serializable", verdict.SER, verdict.Satisfied, []string{"-M", "simple", "-f", script}},
		{`read\ committed`, verdict.SI, verdict.Violated, []string{"-M", "prepared", "-f", script}},
		{`read\ committed`, verdict.SI, verdict.Violated, []string{"-M", "simple", "-f", script}},
	} {
		t.Run(tc.isolation+" "+tc.args[1], func(t *testing.T) {
			s := stand(t, url, nil)
			count := counting(t, p)
			said := pgbench(t, s.addr, tc.isolation, append(tc.args, "-n", "-c", strconv.Itoa(clients), "-t", "60", "--max-tries", "1000")...)
			processed, err := strconv.Atoi(counted.FindStringSubmatch(said)[1])
			if err != nil {
				t.Fatal(err)
			}
			txns := s.end()
			count(s, clients+1) // pgbench connects once more
			mine := s.capture.Outcomes(record.Committed)
			recorded := int64(0)
			for i := range txns {
				if txns[i].Status == record.Committed && !strings.HasSuffix(txns[i].Session, "/initial") {
					recorded++
				}
			}
			if processed != 360 || recorded < int64(processed) || recorded > mine {
				t.Errorf("pgbench says %d, recorded are %d of %d", processed, recorded, mine)
			}
			judged(t, txns, tc.level, tc.want)
			for _, u := range s.capture.Unclear() {
				if u.Reason != postgres.ReasonValue || slices.Contains(tc.args, script) {
					t.Errorf("not understood: %+v", u)
				}
			}
		})
	}
}

// What is no statement passes too: cancel requests, refusals, and what is said where there is no PostgreSQL.
func TestPasses(t *testing.T) {
	t.Parallel()
	p := databases.StartPostgres(t)
	url := strings.Replace(p.URL(p.Primary), "canary@", "postgres@", 1)
	s := stand(t, url, nil)
	through := strings.Replace(url, p.Primary.Addr, s.addr, 1)
	c, err := pgx.Connect(t.Context(), through)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	asked := make(chan error, 1)
	go func() { _, err := c.Exec(ctx, "select pg_sleep(600)"); asked <- err }()
	watcher, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Close(context.Background())
	active := func() (n int) {
		if err := watcher.QueryRow(t.Context(), "select count(*) from pg_stat_activity where query ~ '^select pg_sleep' and state = 'active'").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for active() == 0 {
	}
	if err := c.PgConn().CancelRequest(t.Context()); err != nil {
		t.Error(err)
	}
	var told *pgconn.PgError
	if err := <-asked; !errors.As(err, &told) || told.Code != "57014" {
		t.Errorf("a canceled statement says %v", err)
	}
	cancel()
	for _, text := range []string{"create table a (id int primary key, n int)", "insert into a values (1, 5)"} {
		if _, err := c.Exec(t.Context(), text); err != nil {
			t.Error(err)
		}
	}
	var n int
	if err := c.QueryRow(t.Context(), "select n from a where id = 1").Scan(&n); err != nil || n != 5 {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := pgx.Connect(t.Context(), strings.Replace(through, "sslmode=disable", "sslmode=require", 1)); err == nil || !strings.Contains(err.Error(), "TLS") {
		t.Errorf("with TLS: %v", err)
	}
	c.Close(context.Background())
	var reads []string
	for _, r := range s.end() {
		for _, o := range r.Ops {
			reads = append(reads, o.Kind.String()+" "+o.Key)
		}
	}
	if !slices.Contains(reads, "r a:1.n") {
		t.Errorf("of a table that was made through the proxy was recorded %v", reads)
	}

	nowhere, err := ports.Address()
	if err != nil {
		t.Fatal(err)
	}
	upstream, err := pgconn.ParseConfig(fmt.Sprintf("postgres://canary@%s/canary?sslmode=disable", nowhere))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serving, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- proxy.New(proxy.Options{Upstream: upstream, Capture: s.capture, Log: zerolog.Nop()}).Serve(serving, l)
	}()
	_, err = pgx.Connect(t.Context(), strings.Replace(url, p.Primary.Addr, l.Addr().String(), 1))
	if !errors.As(err, &told) || told.Code != "08006" || !strings.Contains(told.Message, nowhere) {
		t.Errorf("without PostgreSQL: %v", err)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Clients may use TLS, and need not. What they ask for is recorded with what it read and wrote, without its literals.
func TestTLS(t *testing.T) {
	t.Parallel()
	p := databases.StartPostgres(t)
	url := strings.Replace(p.URL(p.Primary), "canary@", "postgres@", 1)
	shown := httptest.NewUnstartedServer(nil)
	shown.StartTLS()
	defer shown.Close()
	s := stand(t, url, &tls.Config{Certificates: shown.TLS.Certificates})
	for i, mode := range []string{"verify-full", "disable"} {
		config, err := pgx.ParseConfig(strings.Replace(strings.Replace(url, p.Primary.Addr, s.addr, 1), "sslmode=disable", "sslmode="+mode, 1))
		if err != nil {
			t.Fatal(err)
		}
		if config.TLSConfig != nil {
			config.TLSConfig.RootCAs = shown.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
		}
		config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
		c, err := pgx.ConnectConfig(t.Context(), config)
		if err != nil {
			t.Fatal(mode, err)
		}
		texts := []string{fmt.Sprintf("insert into a values (%d, 5)", i), fmt.Sprintf("begin; select n from a where id = %d; select n from a where id = 3; end", i)}
		if i == 0 {
			texts = append([]string{"create table a (id int primary key, n int)"}, texts...)
		}
		for _, text := range texts {
			if _, err := c.Exec(t.Context(), text); err != nil {
				t.Error(mode, err)
			}
		}
		c.Close(context.Background())
	}
	var asked []string
	for _, r := range s.end() {
		if r.Statements != "" {
			asked = append(asked, fmt.Sprintf("%s %s %d", r.Session, r.Statements, len(r.Ops)))
		}
	}
	want := "client/1 insert into a values (?, ?) 1\nclient/1 select n from a where id = ? 2\nclient/2 insert into a values (?, ?) 1\nclient/2 select n from a where id = ? 2"
	if got := strings.Join(asked, "\n"); got != want {
		t.Errorf("recorded are\n%s\nwant\n%s", got, want)
	}
}

// A client without TLS logs in by a password at a PostgreSQL that the proxy reaches under TLS: libpq would take the offer
// of SCRAM bound to TLS, which is not its own, for an attack.
func TestPasswordBehindTLS(t *testing.T) {
	t.Parallel()
	p := databases.StartPostgres(t)
	own := strings.Replace(p.URL(p.Primary), "canary@", "postgres@", 1)
	c, err := pgx.Connect(t.Context(), own)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	var dir, hba string
	if err := c.QueryRow(t.Context(), "select current_setting('data_directory'), current_setting('hba_file')").Scan(&dir, &hba); err != nil {
		t.Fatal(err)
	}
	shown := httptest.NewUnstartedServer(nil)
	shown.StartTLS()
	defer shown.Close()
	pair := shown.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	write := func(file, kind string, der []byte) string {
		return fmt.Sprintf("copy (select unnest(string_to_array('%s', E'\\n'))) to program 'umask 077; cat > %s/%s'", pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), dir, file)
	}
	for _, text := range []string{
		"create role guest login password 'sesame'",
		write("server.crt", "CERTIFICATE", pair.Certificate[0]), write("server.key", "PRIVATE KEY", key), "alter system set ssl = on",
		fmt.Sprintf("copy (values ('host all guest 127.0.0.1/32 scram-sha-256'), ('local all all trust'), ('host all all 127.0.0.1/32 trust')) to '%s'", hba),
		"select pg_reload_conf()",
	} {
		if _, err := c.Exec(t.Context(), text); err != nil {
			t.Fatalf("%.60s: %v", text, err)
		}
	}
	under := strings.Replace(own, "sslmode=disable", "sslmode=require", 1)
	for tries := 0; ; tries++ { // until it has read them
		c, err := pgx.Connect(t.Context(), under)
		if err == nil {
			c.Close(context.Background())
			break
		}
		if tries == 10_000 {
			t.Fatal(err)
		}
	}
	s := stand(t, under, nil)
	cmd := exec.CommandContext(t.Context(), databases.Program(t, "psql"), "-Atc", "select 6 * 7", "postgres://guest:sesame@"+s.addr+"/canary")
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "42\n" {
		t.Errorf("%v: %s", err, out)
	}
}

// A proxy that ends does not wait for a PostgreSQL that says nothing.
func TestEndsWithItsContext(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	upstream, err := pgconn.ParseConfig(fmt.Sprintf("postgres://canary@%s/canary?sslmode=require", silent.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- proxy.New(proxy.Options{Upstream: upstream, Log: zerolog.Nop()}).Serve(ctx, l) }()
	go func() {
		_, _ = pgconn.Connect(t.Context(), fmt.Sprintf("postgres://canary@%s/canary?sslmode=disable", l.Addr()))
	}()
	c, err := silent.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.ReadFull(c, make([]byte, 8)); err != nil { // it asks for TLS
		t.Fatal(err)
	}
	began := time.Now()
	stop()
	if err := <-done; err != nil || time.Since(began) >= 29*time.Second { // 30 are what it may take to be reached
		t.Errorf("it ended after %v: %v", time.Since(began), err)
	}
}

// said is what a command prints.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Write(b)
	wait.Signal(s.more)
	return len(b), nil
}

// wants waits until something is said, and gives what of it is in parentheses.
func (s *said) wants(t *testing.T, ended <-chan error, pattern string) string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	for {
		s.mu.Lock()
		found, text := re.FindStringSubmatch(s.text.String()), s.text.String()
		s.mu.Unlock()
		if found != nil {
			return found[len(found)-1]
		}
		select {
		case <-s.more:
		case err := <-ended:
			t.Fatalf("it has ended (%v) without saying %s:\n%s", err, pattern, text)
		case <-t.Context().Done():
			t.Fatalf("it does not say %s:\n%s", pattern, text)
		}
	}
}

// What is not understood is told when it comes first, with what follows, and counted in the metrics by its text without literals.
func TestExplains(t *testing.T) {
	t.Parallel()
	p := databases.StartPostgres(t)
	if err := p.Do(t.Context(), "canary", "create table a (id int primary key, n int)", "insert into a values (1, 5)"); err != nil {
		t.Fatal(err)
	}
	c := config.Default()
	c.Source.Stdin, c.HTTP.Listen, c.Coverage = &config.Stdin{}, "127.0.0.1:0", record.CoverageComplete
	out := &said{more: make(chan struct{}, 1)}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := proxy.Run(ctx, proxy.RunOptions{Config: c, Listen: "127.0.0.1:0", Explain: true, Output: embedded.Output{Out: out, Log: zerolog.Nop()},
			Upstream: strings.Replace(p.URL(p.Primary), "canary@", "postgres@", 1)})
		ended <- err
	}()
	at, page := out.wants(t, ended, `(\S+) passes on to`), out.wants(t, ended, `page (http\S+)/`)
	app, err := pgx.Connect(t.Context(), "postgres://postgres@"+at+"/canary?sslmode=disable&default_query_exec_mode=simple_protocol")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"select n from a where id = 1", "update a set n = n * 4711 where id = 1", "update a set n = n * 4712 where id = 1", "do $$ begin perform 4713; end $$"} {
		if _, err := app.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	out.wants(t, ended, `value-not-told: update a set n = n \* \? where id = \?: from here on nothing is recorded of the columns that it writes, in these rows`)
	out.wants(t, ended, `may-write-anything: do \?: from here on nothing is recorded`)
	resp, err := http.Get(page + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	metrics, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{`isowatch_proxy_connections 1`, `isowatch_proxy_blind 1`, `isowatch_proxy_records_dropped_total 0`,
		`isowatch_proxy_transactions_total{outcome="committed"} 4`, `isowatch_proxy_transactions_total{outcome="unknown"} 0`,
		`isowatch_proxy_unclear_total{reason="may-write-anything",statement="do ?"} 1`,
		`isowatch_proxy_unclear_total{reason="value-not-told",statement="update a set n = n * ? where id = ?"} 1`} { // the second wrote what was not recorded any more
		if !strings.Contains(string(metrics), line+"\n") {
			t.Errorf("/metrics lacks %s", line)
		}
	}
	app.Close(context.Background())
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if told := regexp.MustCompile(`\b471[123]\b`).FindString(out.text.String() + string(metrics)); told != "" {
		t.Errorf("the literal %s is told", told)
	}
}
