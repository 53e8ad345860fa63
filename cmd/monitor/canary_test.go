package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/isowatch/isowatch/internal/lab/databases"
	"github.com/isowatch/isowatch/internal/lab/race"
	"github.com/isowatch/isowatch/internal/lab/scripts"
	"github.com/isowatch/isowatch/internal/ports"
	"github.com/isowatch/isowatch/internal/servers"
)

// TestCanary runs testdata/canary/*.txtar: the canary on real servers. A script whose servers are not
// installed is skipped, and fails where CI is set. Unless they are asked for by name, those that wait for what a database
// does in half a minute are skipped where tests are to be brief, and those that take long where CI is not set.
func TestCanary(t *testing.T) {
	t.Parallel()
	p := scripts.Params("testdata/canary")
	p.Setup = func(env *testscript.Env) error { env.Values[startedKey{}] = &started{}; return nil }
	p.Condition = func(what string) (bool, error) {
		switch what {
		case "brief":
			return race.Brief() && !race.Named(), nil
		case "before-ci":
			return !race.CI() && !race.Named(), nil
		}
		server, ok := strings.CutPrefix(what, "installed:")
		if !ok {
			return false, fmt.Errorf("there is no condition %q", what)
		}
		err := databases.Missing(server)
		if errors.As(err, new(*servers.MissingError)) {
			return os.Getenv("CI") != "", nil // so that it fails when it is started
		}
		return err == nil, err
	}
	maps.Copy(p.Cmds, map[string]func(*testscript.TestScript, bool, []string){"postgres": startPostgres, "pgbouncer": startPgBouncer,
		"mariadb": startMariaDB, "redis": startRedis, "etcd": startEtcd, "until": until, "stops": stops, "broker": broker})
	testscript.Run(t, p)
}

// started are the servers of a script.
type started struct {
	postgres *servers.Postgres
	server   *servers.Server // the first that was started last
}

type startedKey struct{}

func startedBy(ts *testscript.TestScript) *started { return ts.Value(startedKey{}).(*started) }

// folder is one that a server's account may enter; it is gone at the script's end.
func folder(ts *testscript.TestScript) string {
	dir, err := os.MkdirTemp("", "isowatch-server-")
	ts.Check(err)
	ts.Defer(func() { ts.Check(os.RemoveAll(dir)) })
	return dir
}

// usage ends a script that calls a command wrongly.
func usage(ts *testscript.TestScript, wrong bool, text string) {
	if wrong {
		ts.Fatalf("usage: %s", text)
	}
}

// startPostgres starts PostgreSQL, and sets $PRIMARY, $SUPERUSER $ADDR and, of a pair, $STANDBY, $STANDBY_SUPERUSER, and $EITHER for the one that takes writes:
//
//	postgres [standby]
func startPostgres(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg || len(args) > 1 || len(args) == 1 && args[0] != "standby", "postgres [standby]")
	p, err := servers.NewPostgres(context.Background(), folder(ts), servers.PostgresOptions{Standby: len(args) == 1})
	ts.Check(err)
	ts.Defer(p.Close)
	ts.Setenv("PRIMARY", p.URL(p.Primary))
	ts.Setenv("ADDR", p.Primary.Addr)
	ts.Setenv("SUPERUSER", strings.Replace(p.URL(p.Primary), "canary@", "postgres@", 1))
	if p.Standby != nil {
		ts.Setenv("STANDBY", p.URL(p.Standby))
		ts.Setenv("STANDBY_SUPERUSER", strings.Replace(p.URL(p.Standby), "canary@", "postgres@", 1))
		_, first, _ := strings.Cut(p.Primary.Addr, ":")
		_, second, _ := strings.Cut(p.Standby.Addr, ":")
		ts.Setenv("EITHER", fmt.Sprintf("postgres://canary@/canary?sslmode=disable&host=127.0.0.1,127.0.0.1&port=%s,%s&target_session_attrs=read-write", first, second))
	}
	startedBy(ts).postgres, startedBy(ts).server = p, p.Primary
}

// startPgBouncer starts a pooler before the script's PostgreSQL, and sets $POOLER.
func startPgBouncer(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg || len(args) > 0, "pgbouncer")
	dir := folder(ts)
	ts.Check(os.Chmod(dir, 0o755)) // PostgreSQL's account reads what is there
	b, err := databases.NewPgBouncer(context.Background(), dir, startedBy(ts).postgres, "transaction", 5)
	ts.Check(err)
	ts.Defer(b.Close)
	ts.Setenv("POOLER", b.URL())
}

// startMariaDB starts MariaDB, as a cluster if there are several nodes, and sets $NODE1, $PORT1, $NODE2 and so on:
//
//	mariadb NODES
func startMariaDB(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg || len(args) != 1, "mariadb NODES")
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	m, err := databases.NewMariaDB(context.Background(), folder(ts), databases.MariaDBOptions{Nodes: n})
	ts.Check(err)
	ts.Defer(m.Close)
	startedBy(ts).server = m.Nodes[0]
	ts.Setenv("ADDR", m.Nodes[0].Addr)
	for i, s := range m.Nodes {
		ts.Setenv(fmt.Sprintf("NODE%d", i+1), m.URL(s))
		_, port, _ := strings.Cut(s.Addr, ":")
		ts.Setenv(fmt.Sprintf("PORT%d", i+1), port)
	}
}

// startRedis starts Redis with a replica, and sets $PRIMARY, $ADDR and $REPLICA.
func startRedis(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg || len(args) > 0, "redis")
	r, err := databases.NewRedis(context.Background(), folder(ts), true)
	ts.Check(err)
	ts.Defer(r.Close)
	startedBy(ts).server = r.Primary
	ts.Setenv("PRIMARY", r.URL(r.Primary))
	ts.Setenv("ADDR", r.Primary.Addr)
	ts.Setenv("REPLICA", r.URL(r.Replica))
}

// startEtcd starts etcd, and sets $PRIMARY and $ADDR.
func startEtcd(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg || len(args) > 0, "etcd")
	e, err := databases.NewEtcd(context.Background(), folder(ts))
	ts.Check(err)
	ts.Defer(e.Close)
	startedBy(ts).server = e.Server
	ts.Setenv("PRIMARY", e.URL())
	ts.Setenv("ADDR", e.Addr)
}

// until runs a canary, does harm to the script's server while it is at work, and ends it with SIGTERM when a file has a line that
// matches. What it prints is in the file out while it runs:
//
//	until FILE PATTERN [FAULT…] monitor canary …
//
// The faults are those of Strike, at PostgreSQL; hang, which stops the server until the canary has ended; lose, which kills it until
// the canary has told that it is not reached; and what a shell is to do.
func until(ts *testscript.TestScript, neg bool, args []string) {
	program := slices.Index(args, "monitor")
	usage(ts, neg || program < 2, "until FILE PATTERN [FAULT…] monitor canary …")
	file, pattern, found := ts.MkAbs(args[0]), regexp.MustCompile("(?m)"+args[1]), false
	_ = os.Remove(file) // of one that ran before
	while(ts, "0", args[2:program], args[program:], func(c *atWork) {
		if found = c.waitFor(func() bool { return has(file, pattern) }); found {
			c.end()
		}
	})
	if !found {
		ts.Fatalf("it ended before %s had %q", args[0], args[1])
	}
}

// stops runs a canary that must end by itself with the given exit status, and does harm as until does:
//
//	stops STATUS FAULT… monitor canary …
func stops(ts *testscript.TestScript, neg bool, args []string) {
	program := slices.Index(args, "monitor")
	usage(ts, neg || program < 2, "stops STATUS FAULT… monitor canary …")
	while(ts, args[0], args[1:program], args[program:], func(*atWork) {})
}

// while runs a canary that must end with the given exit status, and beside it the faults, and then more.
func while(ts *testscript.TestScript, status string, faults, command []string, then func(*atWork)) {
	page, err := ports.Address()
	ts.Check(err)
	c := &atWork{started: startedBy(ts), page: page, dir: ts.MkAbs("."), enough: 100}
	var over context.CancelFunc
	c.ctx, over = context.WithCancel(context.Background())
	var beside sync.WaitGroup
	var failed error
	beside.Go(func() {
		if failed = c.harm(faults); failed != nil {
			c.end()
		} else {
			then(c)
		}
	})
	defer func() { // also where the script fails
		over()
		beside.Wait()
		if c.server != nil {
			c.server.Resume()
		}
		ts.Check(failed)
	}()
	run := `"$@" > out & echo $! > pid; wait $!; status=$?; cat out; exit $status`
	scripts.Status(ts, false, slices.Concat([]string{status, "sh", "-c", run, "sh"}, command, []string{"--listen", page}))
}

// atWork is a canary that a script runs; ctx ends when it has ended.
type atWork struct {
	*started
	ctx       context.Context
	page, dir string
	enough    int64 // committed at the first node: it is at work
}

// waitFor waits until something is so; false: the canary ended before.
func (c *atWork) waitFor(is func() bool) bool {
	for !is() {
		select {
		case <-c.ctx.Done():
			return false
		case <-time.After(100 * time.Millisecond):
		}
	}
	return true
}

// harm strikes once the canary is at work. After what is over by then it waits until it is again.
func (c *atWork) harm(faults []string) error {
	for _, fault := range faults {
		if !c.waitFor(c.isAtWork) {
			return nil
		}
		switch fault {
		case "hang":
			c.server.Pause()
			return nil
		case "lose":
			c.server.Kill()
			told := regexp.MustCompile("has not reached node")
			c.waitFor(func() bool { return has(filepath.Join(c.dir, "out"), told) })
			if err := c.server.Start(context.Background()); err != nil {
				return err
			}
		default:
			if !slices.Contains(databases.PostgresFaults(), fault) {
				cmd := exec.CommandContext(c.ctx, "sh", "-c", fault)
				cmd.Dir = c.dir
				if said, err := cmd.CombinedOutput(); err != nil && c.ctx.Err() == nil {
					return fmt.Errorf("%s: %w: %s", fault, err, said)
				}
				continue
			}
			if err := databases.Strike(c.ctx, c.postgres, fault); err != nil {
				return err
			}
		}
		if nodes := c.nodes(); len(nodes) > 0 {
			c.enough = nodes[0].Committed + 100
		}
		c.waitFor(c.isAtWork)
	}
	return nil
}

// isAtWork tells whether the canary has committed enough, and has heard of each node of PostgreSQL what it is.
func (c *atWork) isAtWork() bool {
	nodes := c.nodes()
	return len(nodes) > 0 && nodes[0].Committed >= c.enough &&
		(c.postgres == nil || !slices.ContainsFunc(nodes, func(n pageNode) bool { return n.Role == "" }))
}

// end tells the canary to end.
func (c *atWork) end() {
	text, err := os.ReadFile(filepath.Join(c.dir, "pid"))
	if pid, wrong := strconv.Atoi(strings.TrimSpace(string(text))); errors.Join(err, wrong) == nil {
		_ = syscall.Kill(pid, syscall.SIGTERM) // it may have ended
	}
}

// has tells whether a file has a line that matches.
func has(file string, pattern *regexp.Regexp) bool {
	text, err := os.ReadFile(file)
	return err == nil && pattern.Match(text)
}

type pageNode struct {
	Role      string
	Committed int64
}

// nodes are those that the canary's page shows; none while there is no page.
func (c *atWork) nodes() []pageNode {
	req, err := http.NewRequestWithContext(c.ctx, http.MethodGet, "http://"+c.page+"/api/v1/status", nil)
	if err != nil {
		return nil
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil // it does not listen yet
	}
	defer resp.Body.Close()
	var s struct {
		Canary struct{ Nodes []pageNode }
	}
	if json.NewDecoder(resp.Body).Decode(&s) != nil {
		return nil
	}
	return s.Canary.Nodes
}
