package target

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"slices"
	"strconv"

	"github.com/go-sql-driver/mysql"

	"github.com/isowatch/isowatch/ingest/record"
)

// dialect is what databases that speak SQL say differently.
type dialect struct {
	table  string // of all items: a row has a value, or elements, or numbers where lists are arrays
	key    string // the column of their names
	begin  string
	concat string // adds ? to the column elements
	take   string // ends a query, the rows of which nobody else takes
	upsert string // ends an insert that is an update of the row that has its sole
	// changed: what a DELETE met is not told, and is this error where it is not what was locked before.
	changed error
}

var (
	postgresDialect = dialect{table: Space + ".items", key: "key", concat: "elements || ?",
		take: " for update skip locked", upsert: onConflict}
	mySQLDialect = dialect{table: Space + ".items", key: "name", concat: "concat(elements, ?)", begin: "start transaction",
		take: " for update skip locked", upsert: " on duplicate key update value = values(value)",
		changed: &mysql.MySQLError{Number: 1020, Message: "other rows were deleted than had been read"}}
	sqliteDialect = dialect{table: "items", key: "name", concat: "elements || ?", upsert: onConflict}
)

const onConflict = " on conflict (sole) do update set value = excluded.value"

// row is one that a statement returns.
type row interface{ Scan(into ...any) error }

// statement is a text of SQL with ? for each argument, and what is called for each row that it returns, and with how
// many it met; nil: it returns none, or nobody asks.
type statement struct {
	sql  string
	args []any
	row  func(row) error
	met  func(rows int64)
}

// statements is what a Session does, as all databases say it that speak SQL. run runs some, one after the other.
type statements struct {
	said dialect
	run  func(ctx context.Context, all ...statement) error
}

func (s *statements) Do(ctx context.Context, ops ...*Op) error {
	all := make([]statement, len(ops))
	for i, op := range ops {
		all[i] = s.of(op)
	}
	return s.run(ctx, all...)
}

// of is the statement of an operation.
func (s *statements) of(op *Op) statement {
	table, where, name := s.said.table, " where "+s.said.key+" = ?", op.Item.Name
	change := statement{met: func(rows int64) { op.Missing = rows == 0 }}
	switch array := s.isArray(op.Item); {
	case op.Kind == record.Read:
		column := "value"
		switch {
		case array:
			column = "array_to_string(numbers, ',')"
		case op.Item.List:
			column = "elements"
		}
		return statement{sql: "select " + column + " from " + table + where, args: []any{name},
			row: func(r row) (err error) { op.Read, err = op.Item.value(r.Scan); return err }}
	case op.Kind == record.Append && array:
		change.sql, change.args = "update "+table+" set numbers = array_append(numbers, ?)"+where, []any{op.Value, name}
	case op.Kind == record.Append:
		change.sql = "update " + table + " set elements = " + s.said.concat + where
		change.args = []any{strconv.FormatInt(op.Value, 10) + ",", name}
	case !op.Create:
		change.sql, change.args = "update "+table+" set value = ?"+where, []any{op.Value, name}
	case array:
		change.sql, change.args = "insert into "+table+" ("+s.said.key+", numbers) values (?, '{}')", []any{name}
	case op.Item.List:
		change.sql, change.args = "insert into "+table+" ("+s.said.key+", elements) values (?, '')", []any{name}
	default:
		change.sql, change.args = s.insert(op.Item, op.Value, op.Sole)
	}
	return change
}

// insert is a statement that makes a register.
func (s *statements) insert(item Item, value int64, sole string) (text string, args []any) {
	return "insert into " + s.said.table + " (" + s.said.key + ", value, sole) values (?, ?, ?)",
		[]any{item.Name, value, sql.NullString{String: sole, Valid: sole != ""}}
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
	return out, s.run(ctx, statement{sql: "select " + s.said.key + ", value from " + s.said.table + " where " +
		s.said.key + " between ? and ?",
		args: []any{registers[0].Name, registers[len(registers)-1].Name}, row: put(out, registers)})
}

// Where implements Asker. A DELETE tells which rows it met, or is of as many as were locked before, which are those; of
// an UPDATE what it gave them does.
func (s *statements) Where(ctx context.Context, c Condition) ([]record.Value, error) {
	first, last, out := c.Registers[0].Name, c.Registers[len(c.Registers)-1].Name, absent(c.Registers)
	rows, within := s.said.key+", value", " where "+s.said.key+" between ? and ?"
	asked, args := within, []any{first, last}
	for i, high := range c.High {
		if high != 0 {
			asked += fmt.Sprintf(" and value >> %d & %d between ? and ?", i*ColumnBits, 1<<ColumnBits-1)
			args = append(args, c.Low[i], high)
		}
	}
	look := statement{sql: "select " + rows + " from " + s.said.table + asked, args: args, row: put(out, c.Registers)}
	given := statement{sql: "select " + rows + " from " + s.said.table + within + " and value = ?",
		args: []any{first, last, c.Set}, row: look.row}
	remove, deleted := statement{sql: "delete from " + s.said.table + asked, args: args}, int64(-1)
	switch {
	case c.Take:
		look.sql += " order by " + s.said.key + " limit 1" + s.said.take
		return out, s.run(ctx, look)
	case c.Delete && s.said.changed == nil:
		remove.sql, remove.row = remove.sql+" returning "+rows, look.row
		return out, s.run(ctx, remove)
	case c.Delete:
		look.sql += " for update"
		remove.met = func(rows int64) { deleted = rows }
		err := s.run(ctx, look, remove)
		if found := slices.DeleteFunc(slices.Clone(out), record.Value.IsNull); err == nil && int64(len(found)) != deleted {
			err = s.said.changed
		}
		return out, err
	case c.Insert != Item{}:
		change := statement{}
		change.sql, change.args = s.insert(c.Insert, c.Set, c.Sole)
		change.sql += s.said.upsert
		return out, s.run(ctx, change, given)
	case c.Set != 0:
		return out, s.run(ctx, statement{sql: "update " + s.said.table + " set value = ?" + asked,
			args: slices.Insert(args, 0, any(c.Set))}, given)
	}
	return out, s.run(ctx, look)
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
func (s *sqlSession) do(ctx context.Context, all ...statement) error {
	for _, one := range all {
		if one.row != nil {
			if err := s.query(ctx, one); err != nil {
				return err
			}
			continue
		}
		result, err := s.conn.ExecContext(ctx, one.sql, one.args...)
		if err != nil {
			return err
		}
		rows, err := result.RowsAffected()
		if err != nil {
			return err
		}
		if one.met != nil {
			one.met(rows)
		}
	}
	return nil
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
		err = db.QueryRowContext(ctx, stateOf(said.table, "elements")).Scan(&state)
		return state, err
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
