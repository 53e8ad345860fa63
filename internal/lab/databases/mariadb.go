package databases

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	_ "github.com/go-sql-driver/mysql" // the driver

	"github.com/isowatch/isowatch/internal/ports"
	"github.com/isowatch/isowatch/internal/servers"
)

// MariaDB is servers of MariaDB: one; or one and a replica that follows its binary log; or several that are a Galera
// cluster. The user canary, without a password, may do anything in the database isowatch_canary.
type MariaDB struct {
	Nodes   []*servers.Server // those that take writes
	Replica *servers.Server   // may be nil

	account          *servers.Account
	install, program string
}

const mariaDBInstall = "apt-get install mariadb-server galera-4 rsync lsof"

// galeraLibrary is where Debian's galera-4 puts it.
const galeraLibrary = "/usr/lib/galera/libgalera_smm.so"

// MariaDBOptions say what is started.
type MariaDBOptions struct {
	Nodes   int  // several are a Galera cluster
	Replica bool // there is a replica of the one node as well
}

// NewMariaDB makes and starts servers in dir. The error is a *servers.MissingError where MariaDB or, for several,
// Galera is not installed.
func NewMariaDB(ctx context.Context, dir string, o MariaDBOptions) (*MariaDB, error) {
	m := &MariaDB{}
	var err error
	if m.install, err = servers.Find("mariadb-install-db", mariaDBInstall); err != nil {
		return nil, err
	}
	if m.program, err = servers.Find("mariadbd", mariaDBInstall, "/usr/sbin"); err != nil {
		return nil, err
	}
	if o.Nodes > 1 && !exists(galeraLibrary) {
		return nil, &servers.MissingError{Program: "Galera", Install: mariaDBInstall}
	}
	if m.account, err = servers.AccountOf("mysql"); err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, err
	}
	if o.Nodes > 1 {
		err = m.cluster(ctx, dir, o.Nodes)
	} else {
		err = m.alone(ctx, dir, o.Replica)
	}
	if err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

// users are the statements that make the account of a canary.
var users = []string{"create user canary@'127.0.0.1'", "grant all on isowatch_canary.* to canary@'127.0.0.1'"}

// alone starts one server, and its replica if asked for.
func (m *MariaDB) alone(ctx context.Context, dir string, replica bool) error {
	numbers, err := ports.Free(2)
	if err != nil {
		return err
	}
	log := func(id string) []string { return []string{"server_id=" + id, "log_bin=binlog"} }
	s, err := m.server(ctx, dir, "node-1", numbers[0], false, log("1")...)
	if err != nil {
		return err
	}
	m.Nodes = []*servers.Server{s}
	if err := errors.Join(s.Start(ctx), m.do(ctx, s, users...)); err != nil || !replica {
		return err
	}
	if m.Replica, err = m.server(ctx, dir, "replica", numbers[1], false, append(log("2"), "read_only=ON")...); err != nil {
		return err
	}
	db, err := sql.Open("mysql", "root@tcp("+s.Addr+")/")
	if err != nil {
		return err
	}
	defer db.Close()
	var position string
	if err := db.QueryRowContext(ctx, "select @@gtid_current_pos").Scan(&position); err != nil {
		return err
	}
	if err := m.Replica.Start(ctx); err != nil {
		return err
	}
	return m.do(ctx, m.Replica, fmt.Sprintf("change master to master_host='127.0.0.1', master_port=%d, "+
		"master_user='root', master_use_gtid=slave_pos", numbers[0]),
		"start slave", "select master_gtid_wait('"+position+"', 60)")
}

// cluster starts the nodes of a Galera cluster, one after the other.
func (m *MariaDB) cluster(ctx context.Context, dir string, n int) error {
	numbers, err := ports.Free(4 * n)
	if err != nil {
		return err
	}
	var members []string // where they speak to each other
	for i := range n {
		members = append(members, "127.0.0.1:"+strconv.Itoa(numbers[4*i+1]))
	}
	for i := range n {
		name, port := fmt.Sprintf("node-%d", i+1), numbers[4*i:4*i+4]
		s, err := m.server(ctx, dir, name, port[0], true,
			"wsrep_on=ON", "wsrep_provider="+galeraLibrary, "wsrep_cluster_name=canary",
			"wsrep_cluster_address=gcomm://"+strings.Join(members, ","),
			"wsrep_node_name="+name, "wsrep_node_address="+members[i], "wsrep_sst_method=rsync",
			"wsrep_sst_receive_address=127.0.0.1:"+strconv.Itoa(port[2]),
			fmt.Sprintf(`wsrep_provider_options="gmcast.listen_addr=tcp://%s;ist.recv_addr=127.0.0.1:%d;gcache.size=32M"`,
				members[i], port[3]))
		if err != nil {
			return err
		}
		m.Nodes = append(m.Nodes, s)
		joining := s.Args
		if i == 0 {
			s.Args = append(slices.Clone(s.Args), "--wsrep-new-cluster")
		}
		if err := s.Start(ctx); err != nil {
			return err
		}
		s.Args = joining
	}
	return m.do(ctx, m.Nodes[0], users...)
}

// server makes a server and its files, and does not start it.
func (m *MariaDB) server(ctx context.Context, dir, name string, port int, cluster bool,
	settings ...string) (*servers.Server, error) {
	data := filepath.Join(dir, name)
	tmp := data + ".tmp" // its own: a server that starts removes the temporary tables of all that have the same
	if err := errors.Join(m.account.Folder(data), m.account.Folder(tmp)); err != nil {
		return nil, err
	}
	if err := m.account.Run(ctx, m.install, "--no-defaults", "--datadir="+data, "--tmpdir="+tmp,
		"--auth-root-authentication-method=normal", "--skip-test-db"); err != nil {
		return nil, err
	}
	lines := append([]string{"[mysqld]", "datadir=" + data, "tmpdir=" + tmp, "socket=" + filepath.Join(data, "s"),
		"port=" + strconv.Itoa(port), "bind-address=127.0.0.1",
		"innodb_buffer_pool_size=64M", "innodb_flush_log_at_trx_commit=2", "binlog_format=ROW", "innodb_autoinc_lock_mode=2",
		"skip-name-resolve"}, settings...)
	file := data + ".cnf"
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		return nil, err
	}
	s := &servers.Server{Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Account: m.account, Program: m.program,
		Args: []string{"--defaults-file=" + file}}
	s.Ready = func(ctx context.Context) error { return m.ready(ctx, s, cluster) }
	return s, nil
}

// ready tells whether a server answers and, in a cluster, has what the others have.
func (m *MariaDB) ready(ctx context.Context, s *servers.Server, cluster bool) error {
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
func (m *MariaDB) do(ctx context.Context, s *servers.Server, statements ...string) error {
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
func (m *MariaDB) URL(s *servers.Server) string { return "mysql://canary@" + s.Addr + "/" }

// Close ends the servers.
func (m *MariaDB) Close() {
	nodes := m.Nodes
	if m.Replica != nil {
		nodes = append(slices.Clone(nodes), m.Replica)
	}
	for _, s := range slices.Backward(nodes) {
		s.Kill() // what it has is not needed any more
	}
}
