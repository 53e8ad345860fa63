package postgres

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/sql"
)

// Catalog is what a database says of its tables. It does not change once it is loaded.
type Catalog struct {
	database string
	tables   map[sql.Name][]*table // without a schema: in whichever these are
	byOID    map[uint32]*table
	writers  map[string]bool // functions of which it is not known what they write
	isAtWork bool            // when it was loaded, somebody wrote what is recorded
}

// table is a table.
type table struct {
	oid     uint32
	rel     string
	called  string // with its schema, if that is not public
	label   string // what the names of its items begin with
	columns []column
	key     []int // columns of the primary key; nil: its rows are not recorded
	risky   bool  // a write may write anything else: by triggers, rules, or functions in defaults and constraints
	follow  []follower
	notHeld string // why its rows are not recorded
}

// follower is a table whose rows go, or change, with those that they refer to.
type follower struct {
	table     *table
	onDelete  bool
	onUpdates string // the numbers of the columns a change of which they follow
}

// column is a column of a table.
type column struct {
	name      string
	number    uint16       // as PostgreSQL counts them
	class     sql.Class    // notHeld: it is not recorded
	most      int          // how many characters, or digits behind the point and one more, it holds; 0: any
	preset    record.Value // what it holds if it is given nothing, if that is always the same
	hasPreset bool
}

func (t *table) column(name string) int {
	return slices.IndexFunc(t.columns, func(c column) bool { return c.name == name })
}

func (t *table) isKey(column int) bool { return slices.Contains(t.key, column) }

// Tables says of how many tables rows are recorded, and why those of others are not.
func (c *Catalog) Tables() (recorded int, others map[string]string) {
	others = map[string]string{}
	for _, t := range c.byOID {
		if t.key == nil {
			others[t.called] = t.notHeld
		} else {
			recorded++
		}
	}
	return recorded, others
}

const (
	schemas = `n.nspname not in ('pg_catalog', 'information_schema') and n.nspname !~ '^pg_(toast|temp)'`

	tablesQuery = `select c.oid, n.nspname, c.relname, c.relkind::text, c.relrowsecurity,
	c.relispartition or c.relhassubclass or exists (select from pg_inherits i where i.inhrelid = c.oid), c.relhasrules or
	exists (select from pg_trigger t where t.tgrelid = c.oid and not t.tgisinternal and t.tgenabled <> 'D') or
	exists (select ` + functions + ` and p.provolatile = 'v' and p.oid in (select d.refobjid from pg_depend d
		where d.refclassid = 'pg_proc'::regclass and (d.classid, d.objid) in (
		select 'pg_attrdef'::regclass, oid from pg_attrdef where adrelid = c.oid union all
		select 'pg_constraint'::regclass, oid from pg_constraint where conrelid = c.oid))),
	coalesce((select array_to_string(i.indkey, ' ') from pg_index i
		where i.indrelid = c.oid and i.indisprimary and i.indisvalid and i.indimmediate), '')
	from pg_class c join pg_namespace n on n.oid = c.relnamespace
	where c.relkind in ('r', 'p', 'f', 'v', 'm') and ` + schemas + ` order by c.oid`

	columnsQuery = `select a.attrelid, a.attnum, a.attname, a.atttypid, a.atttypmod, a.atthasdef or a.attidentity <> '',
	coalesce((select pg_get_expr(d.adbin, d.adrelid) from pg_attrdef d
		where d.adrelid = a.attrelid and d.adnum = a.attnum), ''),
	coalesce(l.collisdeterministic, true) and a.attgenerated = ''
	from pg_attribute a join pg_class c on c.oid = a.attrelid join pg_namespace n on n.oid = c.relnamespace
	left join pg_collation l on l.oid = a.attcollation
	where a.attnum > 0 and not a.attisdropped and c.relkind in ('r', 'p', 'f', 'v', 'm') and ` + schemas +
		` order by a.attrelid, a.attnum`

	followQuery = `select confrelid, conrelid, confdeltype not in ('a', 'r'),
	case when confupdtype in ('a', 'r') then '' else array_to_string(confkey, ' ') end
	from pg_constraint where contype = 'f' and (confdeltype not in ('a', 'r') or confupdtype not in ('a', 'r')) order by 1, 2`

	atWorkQuery = `select distinct relation from pg_locks where locktype = 'relation' and mode = 'RowExclusiveLock'
	and database = (select oid from pg_database where datname = current_database())`

	functions = `from pg_proc p join pg_namespace n on n.oid = p.pronamespace join pg_language l on l.oid = p.prolang
	where n.nspname not in ('pg_catalog', 'information_schema') and l.lanname not in ('c', 'internal')`

	functionsQuery = `select distinct p.proname ` + functions
)

// Load asks a database for its tables. Any role may.
func Load(ctx context.Context, conn *pgx.Conn) (*Catalog, error) {
	c := &Catalog{tables: map[sql.Name][]*table{}, byOID: map[uint32]*table{}, writers: map[string]bool{}}
	keys := map[uint32]string{}
	err := conn.QueryRow(ctx, "select current_database()").Scan(&c.database)
	if err != nil {
		return nil, fmt.Errorf("ask for the database's name: %w", err)
	}
	var oid, other uint32
	var schema, rel, kind, key string
	var secured, inherits, risky bool
	each := func(what, query string, into []any, f func()) {
		if err == nil {
			err = ask(ctx, conn, what, query, into, f)
		}
	}
	each("tables", tablesQuery, []any{&oid, &schema, &rel, &kind, &secured, &inherits, &risky, &key},
		func() {
			t := &table{oid: oid, rel: rel, called: rel, risky: risky || kind != "r" && kind != "p"}
			if schema != "public" {
				t.called = schema + "." + rel
			}
			keys[oid] = key
			switch {
			case kind != "r" && kind != "p":
				t.notHeld = "it is no plain table"
			case secured:
				t.notHeld = "policies hide rows of it"
			case inherits || kind == "p":
				t.notHeld = "it has partitions or is one"
			case key == "":
				t.notHeld = "it has no primary key"
			case strings.ContainsAny(rel+schema, ".:"):
				t.notHeld = "its name has a point or a colon"
			}
			c.byOID[oid] = t
			for _, n := range []sql.Name{{Schema: schema, Table: rel}, {Table: rel}} {
				c.tables[n] = append(c.tables[n], t)
			}
		})
	var number int16
	var typ uint32
	var modifier int32
	var isDefined, deterministic bool
	var preset string
	each("columns", columnsQuery,
		[]any{&oid, &number, &rel, &typ, &modifier, &isDefined, &preset, &deterministic}, func() {
			t := c.byOID[oid]
			if t == nil {
				return // it was made since
			}
			col := column{name: rel, number: uint16(number), class: classes[typ]}
			if !deterministic || strings.Contains(rel, ".") {
				col.class = sql.NoClass
			}
			if modifier >= 4 && col.class == sql.ClassText {
				col.most = int(modifier - 4)
			} else if modifier >= 4 && col.class == sql.ClassNumeric {
				col.most = int((modifier-4)&0x7ff) + 1
				if (modifier-4)&0x400 != 0 { // a negative scale rounds
					col.class = sql.NoClass
				}
			}
			if col.preset, col.hasPreset = sqlNull, !isDefined; isDefined {
				col.preset, col.hasPreset = constant(col.class, preset, col.most)
			}
			t.columns = append(t.columns, col)
		})
	for oid, t := range c.byOID {
		if t.notHeld == "" {
			t.setKey(keys[oid])
		}
	}
	each("foreign keys", followQuery, []any{&oid, &other, &risky, &key}, func() {
		if from, to := c.byOID[oid], c.byOID[other]; from != nil && to != nil {
			from.follow = append(from.follow, follower{to, risky, key})
		}
	})
	each("transactions at work", atWorkQuery, []any{&oid}, func() {
		t := c.byOID[oid]
		c.isAtWork = c.isAtWork || t != nil && t.key != nil
	})
	each("functions", functionsQuery, []any{&rel}, func() { c.writers[rel] = true })
	return c, err
}

// constant is what an expression of the catalog's always is, such as 0 or 'new'::character varying; false: it is no
// constant.
func constant(c sql.Class, expression string, most int) (record.Value, bool) {
	tokens, err := sql.Lex(nil, expression)
	if err != nil || len(tokens) == 0 || len(tokens) > 1 && !tokens[1].Is("::") {
		return record.Value{}, false
	}
	for i := 2; i < len(tokens); i++ {
		if tokens[i].Kind != sql.TokenWord { // a type with a length may cut it
			return record.Value{}, false
		}
	}
	switch t := tokens[0]; {
	case t.Kind == sql.TokenString, t.Kind == sql.TokenNumber && (c == sql.ClassInt || c == sql.ClassNumeric), t.Is("true"), t.Is("false"):
		return written(c, t.Text, most)
	case t.Is("null"):
		return sqlNull, true
	}
	return record.Value{}, false
}

// followers are the tables of which not known rows change with a change of t: a deletion, or of these columns; nil: of
// all.
func (t *table) followers(seen map[*table]bool, deleted bool, columns []int) {
	for _, f := range t.follow {
		hit := deleted && f.onDelete || columns == nil && f.onUpdates != "" || slices.ContainsFunc(columns, func(c int) bool {
			return slices.Contains(strings.Fields(f.onUpdates), strconv.Itoa(int(t.columns[c].number)))
		})
		if hit && !seen[f.table] {
			seen[f.table] = true
			f.table.followers(seen, true, nil)
		}
	}
}

// setKey says which columns are the primary key, by their numbers.
func (t *table) setKey(numbers string) {
	for n := range strings.FieldsSeq(numbers) {
		number, err := strconv.Atoi(n)
		at := slices.IndexFunc(t.columns, func(c column) bool { return err == nil && int(c.number) == number })
		if at < 0 || t.columns[at].class == sql.NoClass {
			t.key, t.notHeld = nil, "its primary key is of a type that is not recorded"
			return
		}
		t.key = append(t.key, at)
	}
}

// ask runs a query and f for every row of it.
func ask(ctx context.Context, conn *pgx.Conn, what, query string, into []any, f func()) error {
	rows, err := conn.Query(ctx, query)
	if err == nil {
		_, err = pgx.ForEachRow(rows, into, func() error { f(); return nil })
	}
	if err != nil {
		return fmt.Errorf("ask for the %s: %w", what, err)
	}
	return nil
}
