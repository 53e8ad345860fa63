package servers

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

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

	account *Account
	bin     string
	dir     string
	apart   bool
}

const postgresInstall = "apt-get install postgresql, dnf install postgresql-server, or brew install postgresql"

// Initdb is the program that makes a database. The error is a *MissingError where PostgreSQL is not installed.
func Initdb() (string, error) {
	return Find("initdb", postgresInstall, "/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin",
		"/opt/homebrew/opt/postgresql*/bin", "/usr/local/opt/postgresql*/bin")
}

// NewPostgres makes and starts servers in dir. The error is a *MissingError where PostgreSQL is not installed.
func NewPostgres(ctx context.Context, dir string, o PostgresOptions) (*Postgres, error) {
	initdb, err := Initdb()
	if err != nil {
		return nil, err
	}
	p := &Postgres{bin: filepath.Dir(initdb), dir: dir, apart: o.Apart}
	if p.account, err = AccountOf("postgres"); err != nil {
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
	if err := p.account.Folder(data); err != nil {
		return err
	}
	if err := p.account.Run(ctx, filepath.Join(p.bin, "initdb"), "-D", data, "-A", "trust", "-U", "postgres", "-E", "UTF8",
		"--no-locale", "--no-sync"); err != nil {
		return err
	}
	lines := append([]string{"listen_addresses = '127.0.0.1'", "unix_socket_directories = ''", "max_connections = 200",
		"shared_buffers = 32MB", "port = " + strconv.Itoa(numbers[0])}, o.Settings...)
	if err := appendTo(filepath.Join(data, "postgresql.conf"), lines...); err != nil {
		return err
	}
	p.Primary = p.server(data, numbers[0])
	if err := p.Primary.Start(ctx); err != nil {
		return err
	}
	if err := p.Do(ctx, "postgres", "create role canary login", "create database canary",
		"grant create on database canary to canary"); err != nil {
		return err
	}
	if !o.Standby {
		return nil
	}
	data = filepath.Join(p.dir, "standby")
	if err := p.account.Folder(data); err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(p.Primary.Addr)
	if err != nil {
		return err
	}
	if err := p.account.Run(ctx, filepath.Join(p.bin, "pg_basebackup"), "-D", data, "-h", host, "-p", port, "-U",
		"postgres", "-X", "stream", "-c", "fast", "--no-sync"); err != nil {
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
	s := &Server{Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Account: p.account,
		Program: filepath.Join(p.bin, "postgres"), Args: []string{"-D", data}, apart: p.apart}
	s.Ready = func(ctx context.Context) error {
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

// Close ends the servers.
func (p *Postgres) Close() {
	for _, s := range []*Server{p.Standby, p.Primary} {
		if s != nil {
			s.Stop(syscall.SIGQUIT) // at once: what it has is not needed any more
		}
	}
}
