package databases

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/isowatch/isowatch/internal/ports"
	"github.com/isowatch/isowatch/internal/servers"
)

// What installs them.
const (
	redisInstall     = "apt-get install redis-server"
	etcdInstall      = "apt-get install etcd-server"
	pgBouncerInstall = "apt-get install pgbouncer"
)

// Redis is a primary of Redis and, if asked for, its replica.
type Redis struct{ Primary, Replica *servers.Server }

// NewRedis makes and starts servers in dir.
func NewRedis(ctx context.Context, dir string, replica bool) (*Redis, error) {
	program, err := servers.Find("redis-server", redisInstall)
	if err != nil {
		return nil, err
	}
	numbers, err := ports.Free(2)
	if err != nil {
		return nil, err
	}
	server := func(name string, port int, args ...string) (*servers.Server, error) {
		data := filepath.Join(dir, name)
		if err := os.MkdirAll(data, 0o700); err != nil {
			return nil, err
		}
		s := &servers.Server{Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Program: program,
			Args: append([]string{"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", data, "--appendonly", "yes"},
				args...)}
		s.Ready = func(ctx context.Context) error { return pong(ctx, s.Addr) }
		return s, s.Start(ctx)
	}
	r := &Redis{}
	if r.Primary, err = server("primary", numbers[0]); err == nil && replica {
		r.Replica, err = server("replica", numbers[1], "--replicaof", "127.0.0.1", strconv.Itoa(numbers[0]))
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// pong asks a Redis whether it is there, and has its data.
func pong(ctx context.Context, addr string) error {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := c.SetDeadline(deadline); err != nil {
			return err
		}
	}
	if _, err := c.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	if err == nil && !strings.HasPrefix(line, "+PONG") {
		err = fmt.Errorf("it says %q", strings.TrimSpace(line))
	}
	return err
}

// URL is the address of a server.
func (r *Redis) URL(s *servers.Server) string { return "redis://" + s.Addr + "/0" }

// Close ends the servers.
func (r *Redis) Close() {
	for _, s := range []*servers.Server{r.Replica, r.Primary} {
		if s != nil {
			s.Kill()
		}
	}
}

// Etcd is a member of etcd that is a cluster by itself.
type Etcd struct{ *servers.Server }

// NewEtcd makes and starts a server in dir.
func NewEtcd(ctx context.Context, dir string) (*Etcd, error) {
	program, err := servers.Find("etcd", etcdInstall)
	if err != nil {
		return nil, err
	}
	numbers, err := ports.Free(2)
	if err != nil {
		return nil, err
	}
	client, peer := fmt.Sprintf("http://127.0.0.1:%d", numbers[0]), fmt.Sprintf("http://127.0.0.1:%d", numbers[1])
	e := &Etcd{&servers.Server{Addr: strings.TrimPrefix(client, "http://"), Program: program,
		Args: []string{"--data-dir", filepath.Join(dir, "data"),
			"--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peer,
			"--initial-advertise-peer-urls", peer, "--initial-cluster", "default=" + peer, "--logger", "zap"}}}
	e.Ready = func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, client+"/health", nil)
		if err != nil {
			return err
		}
		r, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer r.Body.Close()
		if r.StatusCode != http.StatusOK {
			return fmt.Errorf("its health is %s", r.Status)
		}
		return nil
	}
	if err := e.Start(ctx); err != nil {
		return nil, err
	}
	return e, nil
}

// URL is the server's address.
func (e *Etcd) URL() string { return "etcd://" + e.Addr }

// Close ends the server.
func (e *Etcd) Close() { e.Stop(syscall.SIGTERM) }

// PgBouncer pools connections to a PostgreSQL.
type PgBouncer struct{ *servers.Server }

// NewPgBouncer makes and starts a pooler of p's primary in dir. A client has one of its size connections for a
// transaction or a session, as mode says.
func NewPgBouncer(ctx context.Context, dir string, p *servers.Postgres, mode string, size int) (*PgBouncer, error) {
	program, err := servers.Find("pgbouncer", pgBouncerInstall, "/usr/sbin")
	if err != nil {
		return nil, err
	}
	numbers, err := ports.Free(1)
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(p.Primary.Addr)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "pgbouncer.ini")
	text := fmt.Sprintf("[databases]\n* = host=%s port=%s\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = "+
		"%d\nunix_socket_dir =\nauth_type = any\npool_mode = %s\n"+
		"ignore_startup_parameters = extra_float_digits\ndefault_pool_size = %d\n", host, port, numbers[0], mode, size)
	text = strings.Replace(text, "* = host", "canary = user=canary dbname=canary host", 1)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return nil, err
	}
	b := &PgBouncer{&servers.Server{Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(numbers[0])),
		Account: p.Primary.Account, Program: program, Args: []string{file}}}
	b.Ready = func(ctx context.Context) error {
		var d net.Dialer
		c, err := d.DialContext(ctx, "tcp", b.Addr)
		if err != nil {
			return err
		}
		return c.Close()
	}
	if err := b.Start(ctx); err != nil {
		return nil, err
	}
	return b, nil
}

// URL is the pooler's address for the role canary. What a pooled connection prepares is not there for the next one.
func (b *PgBouncer) URL() string {
	return "postgres://canary@" + b.Addr + "/canary?sslmode=disable&default_query_exec_mode=exec"
}

// Close ends the pooler.
func (b *PgBouncer) Close() { b.Kill() }
