package target

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"io"
	"log"
	"net/url"
	"strconv"
	"strings"
	"time"

	driver "github.com/go-sql-driver/mysql"
)

// mySQL is MySQL 8 or MariaDB 10 and later: one server, a primary and its replicas, or a cluster of which each
// node takes writes.
type mySQL struct {
	servers
	pools map[string]*sql.DB // by node
	level string
}

// sqlMode makes MySQL refuse what it would otherwise change in silence.
const sqlMode = "'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'"

func openMySQL(ctx context.Context, o Options) (Database, error) {
	level, err := isolation(o.Isolation, map[string]string{"read-uncommitted": "read uncommitted",
		"read-committed": "read committed", "repeatable-read": "repeatable read", "serializable": "serializable"})
	if err != nil {
		return nil, err
	}
	m := &mySQL{servers: servers{nodes: nodesOf(o)}, pools: map[string]*sql.DB{}, level: level}
	for _, n := range m.nodes {
		c, err := mySQLConnector(n.address)
		if err != nil {
			m.Close()
			return nil, &Error{Option: n.option, What: "the address can't be read", Err: err,
				Do: "write it as mysql://user:password@host:3306/?tls=true"}
		}
		m.pools[n.Name] = sql.OpenDB(c)
	}
	look := func(ctx context.Context, n Node) error { return m.look(ctx, n, o.AllowSuperuser) }
	if err := m.lookAt(ctx, look); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

// mySQLConnector translates an address; its errors hold no password.
func mySQLConnector(address string) (sqldriver.Connector, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("it is no URL") // the error would have the password in it
	}
	c := driver.NewConfig()
	c.Net, c.Addr, c.User = "tcp", u.Host, u.User.Username()
	if u.Port() == "" {
		c.Addr = u.Host + ":3306"
	}
	c.Passwd, _ = u.User.Password()
	for name, values := range u.Query() {
		switch name {
		case "tls":
			c.TLSConfig = values[0]
		case "socket":
			c.Net, c.Addr = "unix", values[0]
		default:
			return nil, fmt.Errorf("there is no parameter %q; there are tls (true, skip-verify) and socket", name)
		}
	}
	c.InterpolateParams, c.ClientFoundRows = true, true
	lock := strconv.Itoa(int(lockMax / time.Second))
	c.Params = map[string]string{"innodb_lock_wait_timeout": lock, "lock_wait_timeout": lock}
	c.Timeout, c.ReadTimeout = connectMax, 2*statementMax
	c.Logger = log.New(io.Discard, "", 0) // what it says of broken connections is counted here
	return driver.NewConnector(c)
}

// look connects to a node and checks that it is what the options say.
func (m *mySQL) look(ctx context.Context, n Node, superuser bool) error {
	var readOnly bool
	var version string
	err := m.pools[n.Name].QueryRowContext(ctx, "select version(), @@global.read_only").Scan(&version, &readOnly)
	var said *driver.MySQLError
	switch {
	case errors.As(err, &said) && (said.Number == 1045 || said.Number == 1044 || said.Number == 1698):
		return &Error{Option: n.option, What: n.Name + " does not let the account in", Err: said,
			Do: "check user and password"}
	case err == nil: // a node of a cluster without a quorum refuses whatever has a table
		var name, status string
		if err = m.pools[n.Name].QueryRowContext(ctx, "show status like 'wsrep_cluster_status'").
			Scan(&name, &status); err == nil && status == "non-Primary" {
			return fmt.Errorf("%s: the cluster of %s has no quorum (wsrep_cluster_status is non-Primary); bring its other "+
				"nodes back, or, "+
				"if they are gone for good, SET GLOBAL wsrep_provider_options='pc.bootstrap=YES' there", n.option, n.Name)
		} else if errors.Is(err, sql.ErrNoRows) {
			err = nil
		}
	}
	switch {
	case err != nil:
		return unanswered(n, err, m.Fault(err))
	case readOnly && !n.Replica:
		return &Error{Option: "--target", What: n.Name + " is read-only",
			Do: "give a node that takes writes, and this one with --replica"}
	}
	product, oldest := "MySQL", 8
	if name, _, ok := strings.Cut(version, "-MariaDB"); ok {
		product, version, oldest = "MariaDB", name, 10
	}
	if err := tooOld(n, product, version, oldest); err != nil {
		return err
	}
	m.version.Store(product + " " + version)
	if m.mayAnything(ctx, n) && !superuser {
		return &Error{Option: n.option, What: "the account at " + n.Name +
			" may do anything, and a canary needs no such rights",
			Do: "make it one: CREATE USER canary …; GRANT ALL ON " + Space + ".* TO canary; or say --allow-superuser"}
	}
	return nil
}

// mayAnything tells whether the account at a node, by itself or by its role, may do anything.
func (m *mySQL) mayAnything(ctx context.Context, n Node) bool {
	rows, err := m.pools[n.Name].QueryContext(ctx, "show grants")
	if err != nil {
		return false
	}
	defer rows.Close()
	for rows.Next() {
		var grant string
		if rows.Scan(&grant) == nil && ofSuperuser(grant) {
			return true
		}
	}
	return false
}

// ofSuperuser tells whether a grant is of all rights. MySQL lists them, and SUPER only root has.
func ofSuperuser(grant string) bool {
	rights, _, isGlobal := strings.Cut(strings.ToUpper(grant), " ON *.* ")
	return isGlobal && (rights == "GRANT ALL PRIVILEGES" || strings.Contains(rights+",", " SUPER,"))
}

func (m *mySQL) Close() {
	for _, p := range m.pools {
		p.Close()
	}
}

// owned counts the tables, and refuses a database that is not ours.
func (m *mySQL) owned(ctx context.Context) (tables int, err error) {
	db := m.pools[m.first.Name]
	var ours int
	if err := db.QueryRowContext(ctx, "select count(*), coalesce(sum(table_comment = ?), 0) from "+
		"information_schema.tables where table_schema = ?", made, Space).Scan(&tables, &ours); err != nil {
		return 0, err
	}
	if tables != ours {
		return 0, &Error{Option: "--target", What: "the server has a database " + Space +
			" with tables that no canary of this version has made",
			Do: "rename it, or drop it if it is an older canary's"}
	}
	return tables, nil
}

func (m *mySQL) Prepare(ctx context.Context) error {
	if _, err := m.owned(ctx); err != nil {
		return err
	}
	db := m.pools[m.first.Name]
	run := func(texts ...string) error {
		for _, text := range texts {
			if _, err := db.ExecContext(ctx, text); err != nil {
				if m.Fault(err).Reason == Denied {
					return &Error{Option: "--target", What: "the account may not make the database " + Space, Err: err,
						Do: "GRANT ALL ON " + Space + ".* TO it"}
				}
				return err
			}
		}
		return nil
	}
	if err := run("create database if not exists "+Space,
		"create table if not exists "+Space+".items (name varchar(64) character set ascii collate ascii_bin primary key, "+
			"value bigint, elements mediumtext, sole varchar(64) character set ascii collate ascii_bin unique)"+
			" engine=InnoDB comment='"+made+"'"); err != nil {
		return err
	}
	if err := unused(ctx, stateIn(db, mySQLDialect)); err != nil {
		return err
	}
	return run("truncate table " + Space + ".items")
}

func (m *mySQL) Cleanup(ctx context.Context) error {
	db := m.pools[m.first.Name]
	tables, err := m.owned(ctx)
	if tables > 0 {
		err = unused(ctx, stateIn(db, mySQLDialect))
	}
	if err == nil { // an account without rights to it sees none, and is told so
		_, err = db.ExecContext(ctx, "drop database if exists "+Space)
	}
	if m.Fault(err).Reason == Denied {
		return anothers(err)
	}
	return err
}

func (m *mySQL) Discard(ctx context.Context, at Node, items []Item) error {
	return discard(ctx, m.pools[at.Name], mySQLDialect, items)
}

func (m *mySQL) Connect(ctx context.Context, at Node, settings []Setting) (Session, error) {
	conn, err := m.pools[at.Name].Conn(ctx)
	if err != nil {
		return nil, err
	}
	s := newSQLSession(conn, mySQLDialect)
	texts := []string{"set session transaction isolation level " + m.level, "set session sql_mode = " + sqlMode}
	own := len(texts)
	for _, set := range settings {
		texts = append(texts, "set session "+set.Name+" = "+literal(set.Value))
	}
	for i, text := range texts {
		if err := s.exec(ctx, text); err != nil {
			s.Close()
			if i >= own && errors.As(err, new(*driver.MySQLError)) {
				set := settings[i-own]
				return nil, &Error{Option: "--session-settings", What: "the database does not take " + set.Name + "=" + set.Value,
					Err: err, Do: "see SHOW VARIABLES for what there is"}
			}
			return nil, err
		}
	}
	return s, nil
}

// literal is a value as a statement has it: a number as it is, anything else as a string.
func literal(value string) string {
	if value != "" && strings.Trim(value, "0123456789") == "" {
		return value
	}
	return "'" + strings.ReplaceAll(strings.ReplaceAll(value, `\`, `\\`), "'", "''") + "'"
}

// Fault reads the server's error number. A commit that ends with 1180 (an error of the engine's) or 1213 in a cluster
// has been undone by certification; 1180 is ambiguous, and left so.
func (m *mySQL) Fault(err error) Fault {
	var said *driver.MySQLError
	if !errors.As(err, &said) {
		return Fault{Lost, false}
	}
	switch said.Number {
	case 1213:
		return Fault{Deadlock, true}
	case 1020, 1062, 3101: // 1062: another has made the row
		return Fault{Conflict, true}
	case 1205:
		return Fault{LockTimeout, true}
	case 1969, 3024: // a commit too, which may have been written
		return Fault{Slow, false}
	case 1290, 1792, 1836:
		return Fault{ReadOnly, true}
	case 1040, 1203, 1226:
		return Fault{TooMany, true}
	case 1044, 1045, 1142, 1227:
		return Fault{Denied, true}
	case 1047: // WSREP has not yet prepared node for application use
		return Fault{Down, true}
	case 1053, 1077, 1180, 1317, 1927, 2006, 2013:
		return Fault{Down, false}
	case 1049, 1146: // the database or the table is not there
		return Fault{AnythingElse, true}
	}
	return Fault{AnythingElse, false}
}

// Observe implements Observer.
func (m *mySQL) Observe(ctx context.Context, at Node) (State, error) {
	s := State{Age: -1}
	db := m.pools[at.Name]
	if err := db.QueryRowContext(ctx, "select @@global.read_only").Scan(&s.ReadOnly); err != nil {
		return State{}, err
	}
	var name string
	if err := db.QueryRowContext(ctx, "show global status like 'wsrep_local_state_comment'").
		Scan(&name, &s.Cluster); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return State{}, err
	}
	if at.Replica {
		s.Role = "replica"
		s.Age = replicaAge(ctx, db)
	}
	return s, nil
}

// replicaAge is how far a replica says that it is behind; -1 if it does not, or the account may not ask.
func replicaAge(ctx context.Context, db *sql.DB) time.Duration {
	// MySQL 8.0.22 and MariaDB 10.5, and before
	for _, statement := range []string{"show replica status", "show slave status"} {
		rows, err := db.QueryContext(ctx, statement)
		if err != nil {
			continue
		}
		defer rows.Close()
		columns, err := rows.Columns()
		if err != nil || !rows.Next() {
			continue
		}
		values := make([]sql.NullString, len(columns))
		into := make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if rows.Scan(into...) != nil {
			continue
		}
		for i, c := range columns {
			if c != "Seconds_Behind_Source" && c != "Seconds_Behind_Master" {
				continue
			}
			if seconds, err := strconv.Atoi(values[i].String); err == nil {
				return time.Duration(seconds) * time.Second
			}
		}
	}
	return -1
}
