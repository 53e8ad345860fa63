package target

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"modernc.org/sqlite"
)

// sqliteFile is a file of SQLite, opened by each session as by a process of its own.
type sqliteFile struct {
	node    Node
	db      *sql.DB
	begin   string
	version string
}

func openSQLite(ctx context.Context, o Options) (Database, error) {
	begin, err := isolation(o.Isolation, map[string]string{"serializable": "begin", "immediate": "begin immediate"})
	if err != nil {
		return nil, err
	}
	u, err := storeOf(o, "file", "sqlite:///folder/canary.db", "journal")
	if err != nil {
		return nil, err
	}
	journal := cmp.Or(u.Query().Get("journal"), "wal")
	if journal != "wal" && journal != "delete" {
		return nil, &Error{Option: "--target", What: fmt.Sprintf("there is no journal mode %q", journal),
			Do: "use wal or delete"}
	}
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: u.Path}).EscapedPath()+
		"?_pragma=busy_timeout(5000)&_pragma=journal_mode("+journal+")")
	if err != nil {
		return nil, err
	}
	s := &sqliteFile{node: Node{Name: filepath.Base(u.Path), address: u.Path}, db: db, begin: begin}
	if err := db.QueryRowContext(ctx, "select sqlite_version()").Scan(&s.version); err != nil {
		db.Close()
		return nil, &Error{Option: "--target", What: u.Path + " can't be opened", Err: err,
			Do: "name a file in a folder that may be written"}
	}
	return s, nil
}

func (s *sqliteFile) Nodes() []Node    { return []Node{s.node} }
func (s *sqliteFile) Describe() string { return "SQLite " + s.version }
func (s *sqliteFile) Close()           { s.db.Close() }

// ours refuses a file with something that no canary has made: other tables than its own, or these with other columns.
func (s *sqliteFile) ours(ctx context.Context) error {
	var others int
	if err := s.db.QueryRowContext(ctx, "select (select count(*) from sqlite_master where tbl_name <> 'items') +"+
		" (select count(*) not in (0, 4) or total(name not in ('name', 'value', 'elements', 'sole')) from"+
		" pragma_table_info('items'))").
		Scan(&others); err != nil {
		return err
	}
	if others > 0 {
		return &Error{Option: "--target", What: s.node.address + " has tables that no canary has made",
			Do: "name a file of the canary's own"}
	}
	return nil
}

func (s *sqliteFile) Prepare(ctx context.Context) error {
	if err := s.ours(ctx); err != nil {
		return err
	}
	if _, err := s.db.ExecContext(ctx, "create table if not exists items (name text primary key, value integer, "+
		"elements text, sole text unique)"); err != nil {
		return err
	}
	if err := unused(ctx, stateIn(s.db, sqliteDialect)); err != nil {
		return err
	}
	_, err := s.db.ExecContext(ctx, "delete from items")
	return err
}

// Cleanup removes the file, and what SQLite keeps beside it.
func (s *sqliteFile) Cleanup(ctx context.Context) error {
	if err := s.Prepare(ctx); err != nil { // which refuses what is not ours, or in use
		return err
	}
	s.db.Close()
	var errs []error
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if err := os.Remove(s.node.address + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (s *sqliteFile) Discard(ctx context.Context, _ Node, items []Item) error {
	return discard(ctx, s.db, sqliteDialect, items)
}

func (s *sqliteFile) Connect(ctx context.Context, _ Node, settings []Setting) (Session, error) {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	d := sqliteDialect
	d.begin = s.begin
	session := newSQLSession(conn, d)
	for _, set := range settings {
		var there bool
		err := conn.QueryRowContext(ctx, "select exists (select 1 from pragma_pragma_list where name = lower(?))", set.Name).
			Scan(&there)
		if err == nil && !there { // SQLite itself says nothing of it
			err = errors.New("there is no such pragma")
		}
		if err == nil {
			err = session.exec(ctx, "pragma "+set.Name+" = "+literal(set.Value))
		}
		if err != nil {
			session.Close()
			return nil, &Error{Option: "--session-settings", What: "SQLite does not take " + set.Name + "=" + set.Value,
				Err: err, Do: "see pragma pragma_list for what there is"}
		}
	}
	return session, nil
}

// Fault reads SQLite's result code: the low byte is the primary one.
func (s *sqliteFile) Fault(err error) Fault {
	var said *sqlite.Error
	if !errors.As(err, &said) {
		return Fault{Lost, false}
	}
	const generic, busy, locked, readOnly, ioError, full, constraint = 1, 5, 6, 8, 10, 13, 19
	switch said.Code() & 0xff {
	case busy, locked, constraint: // constraint: another has made the row
		return Fault{Conflict, true}
	case readOnly:
		return Fault{ReadOnly, true}
	case ioError, full:
		return Fault{Down, false}
	case generic: // there is no such table, or no transaction any more
		return Fault{AnythingElse, true}
	}
	return Fault{AnythingElse, false}
}
