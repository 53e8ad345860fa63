package servers

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/isowatch/isowatch/internal/ports"
)

// PostgresOptions say what is started.
type PostgresOptions struct {
	// Standby: there is a standby as well, and commits wait for it as synchronous_commit says.
	Standby bool
	// Settings are further lines of the primary's configuration.
	Settings []string
	// Apart: a Ctrl-C at the terminal does not reach the servers, and who started them is sure to end them.
	Apart bool
}

// Postgres is PostgreSQL: a primary with a database canary, in which a role of that name may make schemas.
type Postgres struct {
	Primary, Standby *Server // Standby may be nil

	account *account
	bin     string
	dir     string
	apart   bool
}

const postgresInstall = "apt-get install postgresql, dnf install postgresql-server, or brew install postgresql"

// initdb is the program that makes a database.
func initdb() (string, error) {
	return find("initdb", postgresInstall, "/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql*/bin", "/usr/local/opt/postgresql*/bin")
}

// NewPostgres makes and starts servers in dir. The error is a *MissingError where PostgreSQL is not installed.
func NewPostgres(ctx context.Context, dir string, o PostgresOptions) (*Postgres, error) {
	initdb, err := initdb()
	if err != nil {
		return nil, err
	}
	p := &Postgres{bin: filepath.Dir(initdb), dir: dir, apart: o.Apart}
	if p.account, err = accountOf("postgres"); err != nil {
		return nil, err
	}
	if err := p.make(ctx, o); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

func (p *Postgres) make(ctx context.Context, o PostgresOptions) error {
	numbers, err := ports.Free(2)
	if err != nil {
		return err
	}
	data := filepath.Join(p.dir, "primary")
	if err := os.Chmod(p.dir, 0o755); err != nil {
		return err
	}
	if err := p.account.folder(data); err != nil {
		return err
	}
	if err := p.account.run(ctx, filepath.Join(p.bin, "initdb"), "-D", data, "-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-locale", "--no-sync"); err != nil {
		return err
	}
	lines := append([]string{"listen_addresses = '127.0.0.1'", "unix_socket_directories = ''", "max_connections = 200", "shared_buffers = 32MB", "port = " + strconv.Itoa(numbers[0])}, o.Settings...)
	if err := appendTo(filepath.Join(data, "postgresql.conf"), lines...); err != nil {
		return err
	}
	p.Primary = p.server(data, numbers[0])
	if err := p.Primary.Start(ctx); err != nil {
		return err
	}
	if err := p.Do(ctx, "postgres", "create role canary login", "create database canary", "grant create on database canary to canary"); err != nil {
		return err
	}
	if !o.Standby {
		return nil
	}
	data = filepath.Join(p.dir, "standby")
	if err := p.account.folder(data); err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(p.Primary.Addr)
	if err != nil {
		return err
	}
	if err := p.account.run(ctx, filepath.Join(p.bin, "pg_basebackup"), "-D", data, "-h", host, "-p", port, "-U", "postgres", "-X", "stream", "-c", "fast", "--no-sync"); err != nil {
		return err
	}
	if err := appendTo(filepath.Join(data, "postgresql.conf"), "port = "+strconv.Itoa(numbers[1]), "hot_standby = on",
		fmt.Sprintf("primary_conninfo = 'host=%s port=%s user=postgres application_name=standby'", host, port)); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(data, "standby.signal"), nil, 0o644); err != nil {
		return err
	}
	p.Standby = p.server(data, numbers[1])
	if err := p.Standby.Start(ctx); err != nil {
		return err
	}
	// Only now, or the first commit would wait for a standby that is not there.
	return p.Do(ctx, "postgres", "alter system set synchronous_standby_names = 'standby'", "select pg_reload_conf()")
}

func (p *Postgres) server(data string, port int) *Server {
	s := &Server{Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), account: p.account,
		program: filepath.Join(p.bin, "postgres"), args: []string{"-D", data}, apart: p.apart}
	s.ready = func(ctx context.Context) error {
		c, err := pgx.Connect(ctx, "postgres://postgres@"+s.Addr+"/postgres?sslmode=disable")
		if err != nil {
			return err
		}
		return c.Close(ctx)
	}
	return s
}

// URL is the address of a server's database canary, for the role canary.
func (p *Postgres) URL(s *Server) string {
	return "postgres://canary@" + s.Addr + "/canary?sslmode=disable"
}

// URLs is the address of whichever server takes writes.
func (p *Postgres) URLs() string {
	if p.Standby == nil {
		return p.URL(p.Primary)
	}
	return "postgres://canary@" + p.Primary.Addr + "," + p.Standby.Addr + "/canary?sslmode=disable&target_session_attrs=read-write"
}

// Do runs statements on the primary, as its superuser.
func (p *Postgres) Do(ctx context.Context, database string, statements ...string) error {
	c, err := pgx.Connect(ctx, "postgres://postgres@"+p.Primary.Addr+"/"+database+"?sslmode=disable")
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	for _, text := range statements {
		if _, err := c.Exec(ctx, text); err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
	}
	return nil
}

// Promote makes the standby a primary.
func (p *Postgres) Promote(ctx context.Context) error {
	return p.account.run(ctx, filepath.Join(p.bin, "pg_ctl"), "-D", filepath.Join(p.dir, "standby"), "promote", "-w")
}

// postgresFaults are what may be done to a PostgreSQL that clients are at work on.
var postgresFaults = map[string]func(ctx context.Context, p *Postgres, pause func(time.Duration)) error{
	"kill": func(ctx context.Context, p *Postgres, _ func(time.Duration)) error {
		p.Primary.Kill()
		return p.Primary.Start(ctx)
	},
	"outage": func(ctx context.Context, p *Postgres, pause func(time.Duration)) error { // so long that it is trouble, and over for as long
		p.Primary.Kill()
		pause(8 * time.Second)
		defer pause(8 * time.Second)
		return p.Primary.Start(ctx)
	},
	"pause": func(_ context.Context, p *Postgres, pause func(time.Duration)) error {
		p.Primary.Pause()
		defer p.Primary.Resume()
		pause(2 * time.Second)
		return nil
	},
	"connections": func(ctx context.Context, p *Postgres, _ func(time.Duration)) error {
		return p.Do(ctx, "postgres", "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'canary'")
	},
	"promote": func(ctx context.Context, p *Postgres, _ func(time.Duration)) error {
		if p.Standby == nil {
			return nil // it was promoted before
		}
		p.Primary.Kill()
		if err := p.Promote(ctx); err != nil {
			return err
		}
		p.Primary, p.Standby = p.Standby, nil
		return nil
	},
}

// PostgresFaults lists what Strike knows, sorted.
func PostgresFaults() []string { return slices.Sorted(maps.Keys(postgresFaults)) }

// Strike harms the servers: kill ends the primary with SIGKILL and starts it again, pause stops it for two seconds,
// connections ends those of clients, promote kills it and makes the standby the primary, once. When ctx ends nothing is
// waited for any more, and what was stopped is started.
func (p *Postgres) Strike(ctx context.Context, fault string) error {
	strike := postgresFaults[fault]
	if strike == nil {
		return fmt.Errorf("there is no fault %q, but %s", fault, strings.Join(PostgresFaults(), ", "))
	}
	return strike(context.WithoutCancel(ctx), p, func(d time.Duration) {
		select {
		case <-ctx.Done():
		case <-time.After(d):
		}
	})
}

// Close ends the servers.
func (p *Postgres) Close() {
	for _, s := range []*Server{p.Standby, p.Primary} {
		if s != nil {
			s.Stop(syscall.SIGQUIT) // at once: what it has is not needed any more
		}
	}
}
