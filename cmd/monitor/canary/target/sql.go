package target

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"slices"
	"strconv"

	"github.com/isowatch/isowatch/ingest/record"
)

// dialect is what databases that speak SQL say differently.
type dialect struct {
	table  string // of all items: a row has a value, or elements, or numbers where lists are arrays
	key    string // the column of their names
	begin  string
	concat string // adds ? to the column elements
}

var (
	postgresDialect = dialect{table: Space + ".items", key: "key", concat: "elements || ?"}
	mySQLDialect    = dialect{table: Space + ".items", key: "name", concat: "concat(elements, ?)",
		begin: "start transaction"}
	sqliteDialect = dialect{table: "items", key: "name", concat: "elements || ?"}
)

// row is one that a statement returns.
type row interface{ Scan(into ...any) error }

// statement is a text of SQL with ? for each argument, and what is called for each row that it returns; nil: it
// returns none.
type statement struct {
	sql  string
	args []any
	row  func(row) error
}

// statements is what a Session does, as all databases say it that speak SQL. run runs some, one after the other, and
// tells how many rows the last one met.
type statements struct {
	said dialect
	run  func(ctx context.Context, all ...statement) (met int64, err error)
}

func (s *statements) Read(ctx context.Context, items ...Item) ([]record.Value, error) {
	out, all := absent(items), make([]statement, len(items))
	for i, item := range items {
		column := "value"
		switch {
		case s.isArray(item):
			column = "array_to_string(numbers, ',')"
		case item.List:
			column = "elements"
		}
		all[i] = statement{"select " + column + " from " + s.said.table + " where " + s.said.key + " = ?", []any{item.Name},
			func(r row) (err error) { out[i], err = item.value(r.Scan); return err }}
	}
	_, err := s.run(ctx, all...)
	return out, err
}

// isArray tells whether a list is an array: PostgreSQL alone has them.
func (s *statements) isArray(item Item) bool { return item.Array && s.said == postgresDialect }

// put is where a row of name and value of one of some registers goes.
func put(out []record.Value, registers []Item) func(row) error {
	return func(r row) error {
		var name string
		var value int64
		err := r.Scan(&name, &value)
		if i := slices.IndexFunc(registers, func(r Item) bool { return r.Name == name }); i >= 0 {
			out[i] = record.Int(value)
		}
		return err
	}
}

func (s *statements) Scan(ctx context.Context, registers []Item) ([]record.Value, error) {
	out := absent(registers)
	_, err := s.run(ctx, statement{"select " + s.said.key + ", value from " + s.said.table + " where " + s.said.key +
		" between ? and ?",
		[]any{registers[0].Name, registers[len(registers)-1].Name}, put(out, registers)})
	return out, err
}

func (s *statements) Write(ctx context.Context, item Item, value int64) error {
	return s.change(ctx, "update "+s.said.table+" set value = ? where "+s.said.key+" = ?", value, item.Name)
}

func (s *statements) Append(ctx context.Context, list Item, element int64) error {
	if s.isArray(list) {
		return s.change(ctx, "update "+s.said.table+" set numbers = array_append(numbers, ?) where "+s.said.key+" = ?",
			element, list.Name)
	}
	return s.change(ctx, "update "+s.said.table+" set elements = "+s.said.concat+" where "+s.said.key+" = ?",
		strconv.FormatInt(element, 10)+",", list.Name)
}

func (s *statements) Create(ctx context.Context, item Item, value int64) error {
	switch {
	case s.isArray(item):
		return s.change(ctx, "insert into "+s.said.table+" ("+s.said.key+", numbers) values (?, '{}')", item.Name)
	case item.List:
		return s.change(ctx, "insert into "+s.said.table+" ("+s.said.key+", elements) values (?, '')", item.Name)
	}
	return s.change(ctx, "insert into "+s.said.table+" ("+s.said.key+", value) values (?, ?)", item.Name, value)
}

// change runs a statement that changes one row.
func (s *statements) change(ctx context.Context, text string, args ...any) error {
	met, err := s.run(ctx, statement{text, args, nil})
	if err == nil && met == 0 {
		err = ErrNotThere
	}
	return err
}

// Where implements Asker, for a database in which a DELETE tells which rows it met. Of an UPDATE what it gave them
// does.
func (s *statements) Where(ctx context.Context, c Condition) ([]record.Value, error) {
	first, last, out := c.Registers[0].Name, c.Registers[len(c.Registers)-1].Name, absent(c.Registers)
	rows, within := s.said.key+", value", " where "+s.said.key+" between ? and ? and value"
	asked := fmt.Sprintf("%s >> %d & %d between ? and ?", within, c.Column*ColumnBits, 1<<ColumnBits-1)
	all := []statement{{"select " + rows + " from " + s.said.table + asked, []any{first, last, c.Low, c.High},
		put(out, c.Registers)}}
	switch {
	case c.Delete:
		all[0].sql = "delete from " + s.said.table + asked + " returning " + rows
	case c.Set != 0:
		all = []statement{{"update " + s.said.table + " set value = ?" + asked, []any{c.Set, first, last, c.Low, c.High},
			nil},
			{"select " + rows + " from " + s.said.table + within + " = ?", []any{first, last, c.Set}, put(out, c.Registers)}}
	}
	_, err := s.run(ctx, all...)
	return out, err
}

// sqlSession is a connection of database/sql, held for as long as the session lasts: nothing is tried again
// on another one.
type sqlSession struct {
	statements
	conn *sql.Conn
}

func newSQLSession(conn *sql.Conn, said dialect) *sqlSession {
	s := &sqlSession{conn: conn}
	s.said, s.run = said, s.do
	return s
}

func (s *sqlSession) Begin(ctx context.Context) error  { return s.exec(ctx, s.said.begin) }
func (s *sqlSession) Commit(ctx context.Context) error { return s.exec(ctx, "commit") }
func (s *sqlSession) Abort(ctx context.Context) error  { return s.exec(ctx, "rollback") }

func (s *sqlSession) exec(ctx context.Context, text string) error {
	_, err := s.conn.ExecContext(ctx, text)
	return err
}

// do runs statements.
func (s *sqlSession) do(ctx context.Context, all ...statement) (met int64, err error) {
	for _, one := range all {
		if one.row == nil {
			result, err := s.conn.ExecContext(ctx, one.sql, one.args...)
			if err == nil {
				met, err = result.RowsAffected()
			}
			if err != nil {
				return 0, err
			}
			continue
		}
		if err := s.query(ctx, one); err != nil {
			return 0, err
		}
	}
	return met, nil
}

func (s *sqlSession) query(ctx context.Context, one statement) error {
	rows, err := s.conn.QueryContext(ctx, one.sql, one.args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := one.row(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Close ends the connection itself, rather than giving it back to the pool.
func (s *sqlSession) Close() {
	_ = s.conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = s.conn.Close()
}

// stateIn reads the state of a Space, for unused.
func stateIn(db *sql.DB, said dialect) func(context.Context) (int64, error) {
	return func(ctx context.Context) (state int64, err error) {
		return state, db.QueryRowContext(ctx, stateOf(said.table, "elements")).Scan(&state)
	}
}

// discard removes items with one statement each.
func discard(ctx context.Context, db *sql.DB, d dialect, items []Item) error {
	for _, i := range items {
		if _, err := db.ExecContext(ctx, "delete from "+d.table+" where "+d.key+" = ?", i.Name); err != nil {
			return err
		}
	}
	return nil
}
