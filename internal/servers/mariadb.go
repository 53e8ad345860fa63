package servers

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	_ "github.com/go-sql-driver/mysql" // the driver

	"github.com/isowatch/isowatch/internal/ports"
)

// MariaDB is servers of MariaDB, one, or several as a Galera cluster. The user canary, without a password, may do
// anything in the database isowatch_canary.
type MariaDB struct {
	Nodes []*Server
}

const mariaDBPackage = "mariadb-server galera-4 rsync lsof"

// galeraLibrary is where Debian's galera-4 puts it.
const galeraLibrary = "/usr/lib/galera/libgalera_smm.so"

// NewMariaDB makes and starts n servers in dir, with further lines of their configuration. The error is a *MissingError
// where MariaDB or, for several, Galera is not installed.
func NewMariaDB(ctx context.Context, dir string, n int, settings ...string) (*MariaDB, error) {
	install, err := find("mariadb-install-db", mariaDBPackage)
	if err != nil {
		return nil, err
	}
	program, err := find("mariadbd", mariaDBPackage, "/usr/sbin")
	if err != nil {
		return nil, err
	}
	if n > 1 && !exists(galeraLibrary) {
		return nil, &MissingError{"Galera", mariaDBPackage}
	}
	a, err := accountOf("mysql")
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, err
	}
	numbers, err := ports.Free(4 * n)
	if err != nil {
		return nil, err
	}
	var members []string // where they speak to each other
	for i := range n {
		members = append(members, "127.0.0.1:"+strconv.Itoa(numbers[4*i+1]))
	}
	m := &MariaDB{}
	for i := range n {
		data := filepath.Join(dir, fmt.Sprintf("node-%d", i+1))
		if err := a.folder(data); err != nil {
			return nil, err
		}
		if err := a.run(ctx, install, "--no-defaults", "--datadir="+data, "--auth-root-authentication-method=normal", "--skip-test-db"); err != nil {
			return nil, err
		}
		port := numbers[4*i : 4*i+4]
		lines := append([]string{"[mysqld]", "datadir=" + data, "socket=" + filepath.Join(data, "s"), "port=" + strconv.Itoa(port[0]), "bind-address=127.0.0.1",
			"innodb_buffer_pool_size=64M", "innodb_flush_log_at_trx_commit=2", "binlog_format=ROW", "innodb_autoinc_lock_mode=2", "skip-name-resolve"}, settings...)
		if n > 1 {
			lines = append(lines, "wsrep_on=ON", "wsrep_provider="+galeraLibrary, "wsrep_cluster_name=canary", "wsrep_cluster_address=gcomm://"+strings.Join(members, ","),
				fmt.Sprintf("wsrep_node_name=node-%d", i+1), "wsrep_node_address="+members[i], "wsrep_sst_method=rsync",
				"wsrep_sst_receive_address=127.0.0.1:"+strconv.Itoa(port[2]),
				fmt.Sprintf(`wsrep_provider_options="gmcast.listen_addr=tcp://%s;ist.recv_addr=127.0.0.1:%d;gcache.size=32M"`, members[i], port[3]))
		}
		file := data + ".cnf"
		if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			return nil, err
		}
		s := &Server{Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port[0])), account: a, program: program, args: []string{"--defaults-file=" + file}}
		s.ready = func(ctx context.Context) error { return m.ready(ctx, s, n > 1) }
		m.Nodes = append(m.Nodes, s)
		joining := s.args
		if n > 1 && i == 0 {
			s.args = append(slices.Clone(s.args), "--wsrep-new-cluster")
		}
		if err := s.Start(ctx); err != nil {
			m.Close()
			return nil, err
		}
		s.args = joining
		if i > 0 {
			continue
		}
		if err := m.do(ctx, s, "create user canary@'127.0.0.1'", "grant all on isowatch_canary.* to canary@'127.0.0.1'"); err != nil {
			m.Close()
			return nil, err
		}
	}
	return m, nil
}

// ready tells whether a server answers and, in a cluster, has what the others have.
func (m *MariaDB) ready(ctx context.Context, s *Server, cluster bool) error {
	db, err := sql.Open("mysql", "root@tcp("+s.Addr+")/")
	if err != nil {
		return err
	}
	defer db.Close()
	if !cluster {
		return db.PingContext(ctx)
	}
	var name, state string
	if err := db.QueryRowContext(ctx, "show status like 'wsrep_local_state_comment'").Scan(&name, &state); err != nil {
		return err
	}
	if state != "Synced" {
		return fmt.Errorf("it is %s, not Synced", state)
	}
	return nil
}

// do runs statements on a server, as its superuser.
func (m *MariaDB) do(ctx context.Context, s *Server, statements ...string) error {
	db, err := sql.Open("mysql", "root@tcp("+s.Addr+")/")
	if err != nil {
		return err
	}
	defer db.Close()
	for _, text := range statements {
		if _, err := db.ExecContext(ctx, text); err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
	}
	return nil
}

// URL is the address of a server for the user canary.
func (m *MariaDB) URL(s *Server) string { return "mysql://canary@" + s.Addr + "/" }

// Close ends the servers.
func (m *MariaDB) Close() {
	for _, s := range slices.Backward(m.Nodes) {
		s.Stop(syscall.SIGKILL) // what it has is not needed any more
	}
}
