package proxy_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/databases"
	"github.com/isowatch/isowatch/internal/lab/fetched"
	"github.com/isowatch/isowatch/internal/lab/race"
	"github.com/isowatch/isowatch/internal/servers"
	"github.com/isowatch/isowatch/recorder/postgres"
)

// program is an application.
type program struct {
	name   string
	folder string // with its files
	needs  []string
	fetch  string // makes the folder it/ of what it needs: $SOURCE is its own folder
	run    string // with $IT, and its arguments behind
	logins int64  // of its clients, and others
	jdbc   bool
}

// pip fetches what a program in Python needs.
const pip = `pip3 install -q --disable-pip-version-check --target it -r "$SOURCE/requirements.txt"`

var python = []string{"pip3", "python3"}

var programs = []program{
	{name: "psycopg", folder: "../../../examples/python", needs: python, logins: 5,
		fetch: pip,
		run:   `PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$IT" python3 "$SOURCE/shop.py"`},
	{name: "sqlalchemy", folder: "../../../examples/python", needs: python, logins: 4,
		fetch: pip,
		run:   `PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$IT" python3 "$SOURCE/shop_sqlalchemy.py"`},
	{name: "node-postgres", folder: "../../../examples/node", needs: []string{"npm", "node"}, logins: 5,
		fetch: `cp "$SOURCE/package.json" . && npm install --silent --no-audit --no-fund && mv node_modules it`,
		run:   `NODE_PATH="$IT" node "$SOURCE/shop.js"`},
	{name: "jdbc", folder: "../../../examples/java", needs: []string{"mvn", "javac"}, logins: 5, jdbc: true,
		fetch: `cp "$SOURCE/pom.xml" . && mvn -q -B dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=it && javac -d it -cp "it/*" "$SOURCE"/*.java`,
		run:   `java -cp "$IT:$IT/*" Shop`},
}

// install fetches what a program needs, anew if its files have changed, and gives what is set when it runs.
func (p *program) install(t *testing.T) (env []string) {
	t.Helper()
	source, err := filepath.Abs(p.folder)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.New()
	for _, pattern := range []string{"*.java", "*.json", "*.txt", "*.xml"} {
		files, _ := filepath.Glob(filepath.Join(source, pattern)) // the patterns are constants
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			sum.Write(text)
		}
	}
	cache, err := fetched.Cache("examples/" + filepath.Base(p.folder) + "-" + hex.EncodeToString(sum.Sum(nil)[:8]))
	if err != nil {
		t.Fatal(err)
	}
	it, err := fetched.Once(t.Context(), cache, "it", func(ctx context.Context, work string) error {
		for _, needed := range p.needs {
			if _, err := exec.LookPath(needed); err != nil {
				return err
			}
		}
		_, err := shell(ctx, work, []string{"SOURCE=" + source}, p.fetch)
		return err
	})
	switch {
	case err != nil && os.Getenv("CI") != "":
		t.Fatal(err)
	case err != nil:
		t.Skipf("SKIPPED, what %s needs can't be had here: %v", p.folder, err)
	}
	return []string{"SOURCE=" + source, "IT=" + it}
}

// shell runs a text of the shell.
func shell(ctx context.Context, dir string, env []string, text string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", text, "sh"}, args...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", &failure{text, string(out), err}
	}
	return string(out), nil
}

// failure is that of a command, and what it said.
type failure struct {
	text, said string
	err        error
}

func (f *failure) Error() string { return f.text + ": " + f.err.Error() + ": " + f.said }
func (f *failure) Unwrap() error { return f.err }

// address is that of the database as the program wants it, at an isolation level.
func (p *program) address(addr, isolation string) string {
	options := url.QueryEscape("-c default_transaction_isolation=" + strings.ReplaceAll(isolation, " ", `\ `))
	options = "sslmode=disable&options=" + strings.ReplaceAll(options, "+", "%20")
	if p.jdbc {
		return "jdbc:postgresql://" + addr + "/canary?user=postgres&" + options
	}
	return "postgres://postgres@" + addr + "/canary?" + options
}

// transparent lets an application work through a proxy where PostgreSQL is serializable, and where it is not, on new
// tables: as many transactions as PostgreSQL has counted are recorded, satisfied there, and lost updates here. args are
// the application's; checked is told what was recorded, and what it should be.
func (p *program) transparent(t *testing.T, db *servers.Postgres, tables string, args func() []string,
	checked func(*testing.T, stood, []record.Transaction, verdict.Level, verdict.Outcome)) {
	env := p.install(t)
	for _, tc := range []struct {
		isolation string
		level     verdict.Level
		want      verdict.Outcome
	}{{"serializable", verdict.SER, verdict.Satisfied}, {"read committed", verdict.SI, verdict.Violated}} {
		t.Run(tc.isolation, func(t *testing.T) {
			if err := db.Do(t.Context(), "canary", "drop table if exists "+tables); err != nil {
				t.Fatal(err)
			}
			before := quiet(t, db)
			s := stand(t, superuser(db), nil)
			asked := quiet(t, db) - before // for the tables: so much again, as the application makes some
			count := counting(t, db)
			all := append([]string{p.address(s.addr, tc.isolation)}, args()...)
			if _, err := shell(t.Context(), ".", env, p.run+` "$@"`, all...); err != nil {
				t.Fatal(err)
			}
			txns := s.end()
			count(s, p.logins+asked)
			judged(t, txns, tc.level, tc.want)
			checked(t, s, txns, tc.level, tc.want)
		})
	}
}

// superuser is the address of a database as its owner has it.
func superuser(p *servers.Postgres) string {
	return strings.Replace(p.URL(p.Primary), "canary@", "postgres@", 1)
}

// Applications in other languages record what they do, while a proxy does the same of them. Both say the same, and as many
// transactions as PostgreSQL has counted: satisfied where it is serializable, and lost updates where it is not.
func TestDrivers(t *testing.T) {
	race.SkipBeforeCI(t)
	t.Parallel()
	p := databases.StartPostgres(t)
	super := superuser(p)
	const each = 25
	for _, app := range programs {
		t.Run(app.name, func(t *testing.T) {
			file := ""
			app.transparent(t, p, "account", func() []string {
				file = filepath.Join(t.TempDir(), "records")
				return []string{file, "4", strconv.Itoa(each)}
			}, func(t *testing.T, s stood, theirs []record.Transaction, level verdict.Level, want verdict.Outcome) {
				own := recorded(t, file)
				judged(t, own, level, want)
				if a, b := writes(own), writes(theirs); a != 4*each+1 || b != a {
					t.Errorf("the application recorded %d transactions that wrote, the proxy %d; there were %d", a, b, 4*each+1)
				}
				if u := s.capture.Unclear(); len(u) > 0 {
					t.Errorf("not understood: %+v", u)
				}
				if sum := total(t, super); (sum == 4*each) != (want == verdict.Satisfied) {
					t.Errorf("of %d additions the accounts have %d", 4*each, sum)
				}
			})
			t.Run("full disk", func(t *testing.T) { // the application goes on
				if _, err := os.Stat("/dev/full"); err != nil {
					t.Skip("SKIPPED: there is no /dev/full")
				}
				env := app.install(t)
				if err := p.Do(t.Context(), "canary", "drop table account"); err != nil {
					t.Fatal(err)
				}
				if _, err := shell(t.Context(), ".", env, app.run+` "$@"`, app.address(p.Primary.Addr, "serializable"), "/dev/full", "2", "3"); err != nil {
					t.Fatal(err)
				}
				if sum := total(t, super); sum != 6 {
					t.Errorf("of 6 additions the accounts have %d", sum)
				}
			})
		})
	}
}

// Django's ORM, which knows nothing of the proxy: as many transactions as PostgreSQL has counted, all understood but for rows
// that are made of a list, satisfied where it is serializable, and lost updates where it is not.
func TestDjango(t *testing.T) {
	race.SkipBeforeCI(t)
	t.Parallel()
	app := program{name: "django", folder: "testdata/django", needs: python, fetch: pip, logins: 5,
		run: `PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$IT" python3 "$SOURCE/shop.py"`}
	const clients, each = 4, 24
	app.transparent(t, databases.StartPostgres(t), "shop_line, shop_order, shop_product, shop_customer",
		func() []string { return []string{strconv.Itoa(clients), strconv.Itoa(each)} },
		func(t *testing.T, s stood, txns []record.Transaction, _ verdict.Level, _ verdict.Outcome) {
			if n := writes(txns); n < clients*each*2/3+1 {
				t.Errorf("%d transactions that wrote are recorded; there were %d that bought, and others", n, clients*each*2/3)
			}
			for _, u := range s.capture.Unclear() {
				if u.Reason != postgres.ReasonRows || !strings.HasPrefix(u.Text, `insert into "shop_customer"`) {
					t.Errorf("not understood: %+v", u)
				}
			}
		})
}

// An application whose connection breaks before its COMMIT is answered does not know what became of that, and says so,
// though it was carried out.
func TestUnanswered(t *testing.T) {
	race.SkipBeforeCI(t)
	t.Parallel()
	p := databases.StartPostgres(t)
	super := superuser(p)
	for _, app := range programs {
		t.Run(app.name, func(t *testing.T) {
			env := app.install(t)
			if err := p.Do(t.Context(), "canary", "drop table if exists account"); err != nil {
				t.Fatal(err)
			}
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			go breaks(l, p.Primary.Addr)
			defer l.Close()
			file := filepath.Join(t.TempDir(), "records")
			_, failed := shell(t.Context(), ".", env, app.run+` "$@"`, app.address(l.Addr().String(), "serializable"), file, "1", "1")
			txns := recorded(t, file)
			if len(txns) == 0 {
				t.Fatalf("nothing is recorded: %v", failed)
			}
			last := &txns[len(txns)-1]
			if last.Status != record.Unknown || len(last.Ops) != 2 || writes(txns) != 1 {
				t.Errorf("recorded is %+v; the application says %v", txns, failed)
			}
			if sum := total(t, super); sum != 1 {
				t.Errorf("the accounts have %d: nothing was committed", sum)
			}
		})
	}
}

// breaks passes connections on. One on which a client has updated, and commits, it breaks in place of the answer.
func breaks(l net.Listener, to string) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", to)
		if err != nil {
			client.Close()
			continue
		}
		var committing atomic.Bool
		go func() {
			updates := false
			copied(server, client, func(text []byte) bool {
				updates = updates || bytes.Contains(bytes.ToLower(text), []byte("update account"))
				committing.Store(updates && bytes.Contains(text, []byte("COMMIT")))
				return true
			})
			server.Close()
		}()
		go func() {
			copied(client, server, func([]byte) bool { return !committing.Load() })
			client.Close()
		}()
	}
}

// copied passes on what comes, as long as f says so.
func copied(to io.Writer, from io.Reader, f func([]byte) bool) {
	b := make([]byte, 4096)
	for {
		n, err := from.Read(b)
		if err != nil || !f(b[:n]) {
			return
		}
		if _, err := to.Write(b[:n]); err != nil {
			return
		}
	}
}

// What SQLAlchemy's sessions do is recorded, or dropped where it is not known.
func TestSessions(t *testing.T) {
	race.SkipBeforeCI(t)
	t.Parallel()
	p := databases.StartPostgres(t)
	app := programs[slices.IndexFunc(programs, func(p program) bool { return p.name == "sqlalchemy" })]
	env := app.install(t)
	const run = `PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$IT:$SOURCE" python3 testdata/sessions.py "$@"`
	if out, err := shell(t.Context(), ".", env, run, app.address(p.Primary.Addr, "serializable"), os.DevNull); err != nil {
		t.Error(out, err)
	}
}

// recorded are the records of a file.
func recorded(t *testing.T, file string) (txns []record.Transaction) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var r record.Transaction
		if err := codec.Decode([]byte(strings.TrimSpace(line)), &r); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		txns = append(txns, r)
	}
	return txns
}

// writes is how many transactions wrote, and are committed.
func writes(txns []record.Transaction) (n int) {
	for i := range txns {
		if r := &txns[i]; r.Status == record.Committed && !strings.HasSuffix(r.Session, "/initial") && len(r.Ops) > 0 && r.Ops[len(r.Ops)-1].Kind == record.Write {
			n++
		}
	}
	return n
}

// total is what all accounts have.
func total(t *testing.T, url string) (n int) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	if err := c.QueryRow(t.Context(), "select sum(n) from account").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
