package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
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
// installed is skipped, and fails where CI is set. Those that wait for what a database does in half a minute are
// skipped where tests are to be brief, unless they are asked for by name.
func TestCanary(t *testing.T) {
	t.Parallel()
	p := scripts.Params("testdata/canary")
	p.Setup = func(env *testscript.Env) error { env.Values[startedKey{}] = &started{}; return nil }
	p.Condition = func(what string) (bool, error) {
		if what == "brief" {
			return race.Brief() && flag.Lookup("test.run").Value.String() == "", nil
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
		"mariadb": startMariaDB, "redis": startRedis, "etcd": startEtcd, "faults": faults, "hung": hung, "killed": killed, "broker": broker})
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
	b, err := databases.NewPgBouncer(context.Background(), dir, startedBy(ts).postgres)
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

// faults runs a canary that must end with the given exit status, and does harm to the script's PostgreSQL, one kind
// after the other, from when the canary has seen all nodes as they are until it ends:
//
//	faults kill,pause,connections STATUS monitor canary …
func faults(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg || len(args) < 4, "faults KINDS STATUS monitor canary …")
	p := startedBy(ts).postgres
	kinds := strings.Split(args[0], ",")
	for _, k := range kinds {
		usage(ts, !slices.Contains(databases.PostgresFaults(), k), "faults kill,pause,connections STATUS monitor canary …")
	}
	page, err := ports.Address()
	ts.Check(err)
	args = append(args, "--listen", page)
	ctx, over := context.WithCancel(context.Background())
	var harm sync.WaitGroup
	var done []string
	var failed error
	harm.Go(func() {
		for !seen(ctx, page) && wait(ctx, 100*time.Millisecond) == nil {
		}
		for i := 0; ctx.Err() == nil; i++ {
			k := kinds[i%len(kinds)]
			if failed = databases.Strike(ctx, p, k); failed != nil {
				return
			}
			done = append(done, k)
			_ = wait(ctx, time.Second)
		}
	})
	scripts.Status(ts, false, args[1:])
	over()
	harm.Wait()
	ts.Check(failed)
	for _, k := range kinds {
		if !slices.Contains(done, k) {
			ts.Fatalf("it ended before there was a fault %q: %v", k, done)
		}
	}
	ts.Logf("faults: %s", strings.Join(done, ", "))
}

// hung runs a canary that must end with the given exit status though the script's server is stopped, from when the canary is at
// work and until it has ended:
//
//	hung STATUS monitor canary …
func hung(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg || len(args) < 3, "hung STATUS monitor canary …")
	whileWorking(ts, args, func(ctx context.Context, _ string, server *servers.Server) error {
		server.Pause()
		<-ctx.Done()
		server.Resume()
		return nil
	})
}

// killed runs a canary that must end with the given exit status, and whose server is killed when it is at work, and started again
// when the canary's page says that it can't be reached:
//
//	killed STATUS monitor canary …
func killed(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg || len(args) < 3, "killed STATUS monitor canary …")
	whileWorking(ts, args, func(ctx context.Context, address string, server *servers.Server) error {
		server.Kill()
		for {
			if nodes := nodesOf(ctx, address); len(nodes) > 0 && nodes[0].State == "unreachable" || wait(ctx, 100*time.Millisecond) != nil {
				return server.Start(context.Background())
			}
		}
	})
}

// whileWorking runs a canary that must end with the given exit status, and does harm to the script's server from when the canary
// is at work; ctx ends when it has ended.
func whileWorking(ts *testscript.TestScript, args []string, do func(ctx context.Context, address string, server *servers.Server) error) {
	address, err := ports.Address()
	ts.Check(err)
	ctx, over := context.WithCancel(context.Background())
	var harm sync.WaitGroup
	var failed error
	harm.Go(func() {
		for !working(ctx, address) && wait(ctx, 100*time.Millisecond) == nil {
		}
		failed = do(ctx, address, startedBy(ts).server)
	})
	scripts.Status(ts, false, append(args, "--listen", address))
	over()
	harm.Wait()
	ts.Check(failed)
}

// working tells whether the canary whose page is at an address has committed something in all its sessions.
func working(ctx context.Context, page string) bool {
	nodes := nodesOf(ctx, page)
	return len(nodes) > 0 && nodes[0].Committed > 100
}

// seen tells whether the canary whose page is at an address has heard of each node what it is.
func seen(ctx context.Context, page string) bool {
	nodes := nodesOf(ctx, page)
	return len(nodes) > 0 && !slices.ContainsFunc(nodes, func(n pageNode) bool { return n.Role == "" })
}

type pageNode struct {
	Role, State string
	Committed   int64
}

// nodesOf are those that a canary's page shows; none while there is no page.
func nodesOf(ctx context.Context, page string) []pageNode {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+page+"/api/v1/status", nil)
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

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
