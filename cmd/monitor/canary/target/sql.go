package target

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strconv"

	"github.com/isowatch/isowatch/ingest/record"
)

// sqlSession is a connection of database/sql, held for as long as the session lasts: nothing is tried again
// on another one.
type sqlSession struct {
	conn *sql.Conn
	said dialect
}

// dialect is what databases behind database/sql say differently.
type dialect struct {
	begin  string
	concat string // adds ? to the column elements
	table  string // of all items: a row has a value, or elements
}

// stateIn reads the state of a Space, for unused.
func stateIn(db *sql.DB, said dialect) func(context.Context) (int64, error) {
	return func(ctx context.Context) (state int64, err error) {
		return state, db.QueryRowContext(ctx, stateOf(said.table, "elements")).Scan(&state)
	}
}

func (s *sqlSession) Begin(ctx context.Context) error  { return s.exec(ctx, s.said.begin) }
func (s *sqlSession) Commit(ctx context.Context) error { return s.exec(ctx, "commit") }
func (s *sqlSession) Abort(ctx context.Context) error  { return s.exec(ctx, "rollback") }

func (s *sqlSession) exec(ctx context.Context, text string, args ...any) error {
	_, err := s.conn.ExecContext(ctx, text, args...)
	return err
}

func (s *sqlSession) Read(ctx context.Context, items ...Item) ([]record.Value, error) {
	return each(ctx, items, s.one)
}

func (s *sqlSession) one(ctx context.Context, item Item) (record.Value, error) {
	column := "value"
	if item.List {
		column = "elements"
	}
	v, err := item.value(s.conn.QueryRowContext(ctx, "select "+column+" from "+s.said.table+" where name = ?", item.Name).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return record.Null, nil
	}
	return v, err
}

func (s *sqlSession) Scan(ctx context.Context, registers []Item) ([]record.Value, error) {
	rows, err := s.conn.QueryContext(ctx, "select name, value from "+s.said.table+" where name between ? and ?", registers[0].Name, registers[len(registers)-1].Name)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := absent(registers)
	for err == nil && rows.Next() {
		err = found(out, registers, rows.Scan)
	}
	return out, cmp.Or(err, rows.Err())
}

func (s *sqlSession) Write(ctx context.Context, item Item, value int64) error {
	return s.change(ctx, "update "+s.said.table+" set value = ? where name = ?", value, item.Name)
}

func (s *sqlSession) Append(ctx context.Context, list Item, element int64) error {
	return s.change(ctx, "update "+s.said.table+" set elements = "+s.said.concat+" where name = ?", strconv.FormatInt(element, 10)+",", list.Name)
}

// change runs a statement that changes one row.
func (s *sqlSession) change(ctx context.Context, text string, args ...any) error {
	result, err := s.conn.ExecContext(ctx, text, args...)
	if err != nil {
		return err
	}
	n, err := result.RowsAffected()
	if err == nil && n == 0 {
		err = ErrNotThere
	}
	return err
}

func (s *sqlSession) Create(ctx context.Context, item Item, value int64) error {
	if item.List {
		return s.exec(ctx, "insert into "+s.said.table+" (name, elements) values (?, '')", item.Name)
	}
	return s.exec(ctx, "insert into "+s.said.table+" (name, value) values (?, ?)", item.Name, value)
}

// Close ends the connection itself, rather than giving it back to the pool.
func (s *sqlSession) Close() {
	_ = s.conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = s.conn.Close()
}

// discard removes items with one statement each.
func discard(ctx context.Context, db *sql.DB, d dialect, items []Item) error {
	for _, i := range items {
		if _, err := db.ExecContext(ctx, "delete from "+d.table+" where name = ?", i.Name); err != nil {
			return err
		}
	}
	return nil
}
