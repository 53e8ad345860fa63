package target

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// postgres is PostgreSQL 12 or later, one primary and any number of standbys, or what speaks its protocol.
type postgres struct {
	servers
	configs     map[string]*pgx.ConnConfig // by node
	begin       string
	beginAtHand string // on a standby
	superuser   bool
	observers   map[string]*pgSession // by node; without a connection before the first question
}

// What a session may take: a statement, a wait for a lock, a transaction that does nothing.
const (
	statementMax = 10 * time.Second
	lockMax      = 5 * time.Second
	connectMax   = 5 * time.Second
)

// limits are set for a transaction, and no longer: a pooler may give the connection to others next.
var limits = []Setting{{"statement_timeout", ms(statementMax)}, {"lock_timeout", ms(lockMax)},
	{"idle_in_transaction_session_timeout", ms(statementMax)}}

// atHand begins a transaction in which a hot standby can be asked. It refuses the level serializable, its default
// perhaps.
const atHand = "begin isolation level repeatable read read only"

func openPostgres(ctx context.Context, o Options) (Database, error) {
	level, err := isolation(o.Isolation, map[string]string{
		"read-committed": "read committed", "repeatable-read": "repeatable read", "serializable": "serializable"})
	if err != nil {
		return nil, err
	}
	p := &postgres{servers: servers{nodes: nodesOf(o)}, configs: map[string]*pgx.ConnConfig{}, superuser: o.AllowSuperuser,
		observers: map[string]*pgSession{},
		begin:     "begin isolation level " + level, beginAtHand: "begin isolation level " + level + " read only"}
	if level == "serializable" {
		p.beginAtHand = atHand
	}
	for _, n := range p.nodes {
		c, err := parsePostgres(n)
		if err != nil {
			return nil, err
		}
		c.ConnectTimeout = connectMax
		c.RuntimeParams["application_name"] = "isowatch-canary"
		// nothing is prepared before BEGIN: see atHand
		if n.Replica && c.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
			c.DefaultQueryExecMode = pgx.QueryExecModeExec
		}
		p.configs[n.Name], p.observers[n.Name] = c, &pgSession{}
	}
	return p, p.lookAt(ctx, p.look)
}

// PostgresAt is the node at an address that an option gives, as libpq has it, and how to connect to it. The error is
// an *Error.
func PostgresAt(option, address string) (Node, *pgx.ConnConfig, error) {
	n := Node{address: address, option: option}
	c, err := parsePostgres(n)
	if err == nil {
		n.Name = net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port)))
		n.address = "postgres://" + n.Name
	}
	return n, c, err
}

func parsePostgres(n Node) (*pgx.ConnConfig, error) {
	c, err := pgx.ParseConfig(n.address)
	if err != nil { // its text has the password taken out, and names what it could not read
		return nil, &Error{Option: n.option, What: "the address can't be read", Err: err,
			Do: "write it as postgres://user:password@host:port/database?sslmode=require; in a password write %2F for /, %25 " +
				"for %, %23 for #"}
	}
	return c, nil
}

// PostgresFailure says what is to be done about an error of a node's: an *Error where an option is at fault.
func PostgresFailure(n Node, err error) error {
	return unanswered(n, refused(n, err), (*postgres)(nil).Fault(err))
}

// look connects to a node and checks that it is what the options say.
func (p *postgres) look(ctx context.Context, n Node) error {
	c, err := p.dial(ctx, n)
	if err != nil {
		return unanswered(n, err, p.Fault(err))
	}
	defer c.Close(context.WithoutCancel(ctx))
	var standby, super bool
	var version string
	if err := within(ctx, c, atHand, `select pg_is_in_recovery(), current_setting('server_version'),
		(select rolsuper from pg_roles where rolname = current_user)`, nil, &standby, &version, &super); err != nil {
		return pooled(n, unanswered(n, err, p.Fault(err)))
	}
	if err := tooOld(n, "PostgreSQL", version, 12); err != nil {
		return err
	}
	switch {
	case standby && !n.Replica:
		return &Error{Option: "--target", What: n.Name + " is a standby, which takes no writes",
			Do: "give its primary, and it with --replica"}
	case !standby && n.Replica:
		return &Error{Option: "--replica", What: n.Name + " is no standby",
			Do: "give it with --target, or the standby that is meant"}
	case super && !p.superuser:
		return &Error{Option: n.option, What: "the account at " + n.Name +
			" is a superuser's, and a canary needs no such rights",
			Do: "make it one: CREATE ROLE canary LOGIN; GRANT CREATE ON DATABASE … TO canary; or say --allow-superuser"}
	}
	p.version.Store("PostgreSQL " + version)
	var database string // what only speaks PostgreSQL's protocol may not say
	if within(ctx, c, atHand, `select concat_ws('/', system_identifier, oid) from pg_control_system(), pg_database
		where datname = current_database()`, nil, &database) == nil {
		p.has.Store(n.Name, database)
	}
	return nil
}

// dial connects, and says which option is at fault where one is.
func (p *postgres) dial(ctx context.Context, n Node) (*pgx.Conn, error) {
	cfg := p.configs[n.Name]
	c, err := pgx.ConnectConfig(ctx, cfg)
	// What a server has said tells more than that it had refused to be spoken to over TLS before.
	if said := new(pgconn.PgError); errors.As(err, &said) &&
		!slices.ContainsFunc(cfg.Fallbacks, func(f *pgconn.FallbackConfig) bool { return f.Host != cfg.Host }) {
		err = said
	}
	return c, refused(n, err)
}

// refused is err, or says which option is at fault where one is.
func refused(n Node, err error) error {
	var said *pgconn.PgError
	if errors.As(err, &said) {
		switch said.Code {
		case "28P01", "28000":
			return &Error{Option: n.option, What: n.Name + " does not let the account in", Err: said,
				Do: "check user, password and pg_hba.conf"}
		case "3D000":
			return &Error{Option: n.option, What: n.Name + " has no such database", Err: said,
				Do: "name one that is there: postgres://host/database"}
		case "42501":
			return &Error{Option: n.option, What: n.Name + " does not let the account into the database", Err: said,
				Do: "GRANT CONNECT ON DATABASE … TO it"}
		case "42704", "22023", "08P01": // the last is how a pooler says it
			return &Error{Option: n.option, What: n.Name + " does not take a parameter of the address", Err: said,
				Do: "leave it out, or see SHOW ALL for what there is"}
		}
	}
	if text := fmt.Sprint(err); strings.Contains(text, "received unexpected message") ||
		strings.Contains(text, "unknown message type") {
		return &Error{Option: n.option, What: n.Name + " answers, and not as PostgreSQL does",
			Do: "check host and port, and what the address begins with"}
	}
	return err
}

// pooled is err, or says what is to be done where it shows a pooler that gives each transaction another's connection.
func pooled(n Node, err error) error {
	if said := new(pgconn.PgError); errors.As(err, &said) && (said.Code == "42P05" || said.Code == "26000") {
		return &Error{Option: n.option, What: n.Name + " mixes up prepared statements, as a pooler of transactions does",
			Err: said,
			Do:  "add default_query_exec_mode=exec to the address's parameters"}
	}
	return err
}

func (p *postgres) Close() {
	for _, c := range p.observers {
		if c.conn != nil {
			c.Close()
		}
	}
}

// made is the comment that tells our schema from another's of the same name.
const made = "made by isowatch canary, version 4"

// within runs a statement in a transaction of its own, and reads what it returns into the rest, if there is that.
func within(ctx context.Context, c *pgx.Conn, begin, text string, args []any, into ...any) error {
	return pgx.BeginTxFunc(ctx, c, pgx.TxOptions{BeginQuery: begin}, func(tx pgx.Tx) error {
		if len(into) > 0 {
			return tx.QueryRow(ctx, text, args...).Scan(into...)
		}
		_, err := tx.Exec(ctx, text, args...)
		return err
	})
}

// own runs a statement that may take as long as a session's.
func own(ctx context.Context, c *pgx.Conn, text string, args []any, into ...any) error {
	begin := "begin isolation level read committed"
	for _, s := range limits {
		begin += "; set local " + s.Name + " = " + s.Value
	}
	return within(ctx, c, begin, text, args, into...)
}

// do runs statements of its own at a node.
func (p *postgres) do(ctx context.Context, at Node, work func(*pgx.Conn) error) error {
	c, err := p.dial(ctx, at)
	if err != nil {
		return err
	}
	defer c.Close(context.WithoutCancel(ctx))
	return pooled(at, work(c))
}

// owned tells whether the schema is there, and refuses one that is not ours.
func (p *postgres) owned(ctx context.Context, c *pgx.Conn) (bool, error) {
	var comment string
	err := own(ctx, c, `select coalesce(obj_description(oid, 'pg_namespace'), '') from pg_namespace where nspname = $1`,
		[]any{Space}, &comment)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return false, nil
	case err != nil:
		return false, err
	case comment != made:
		return false, &Error{Option: "--target",
			What: "the database has a schema " + Space + " that no canary of this version has made",
			Do:   "rename it, or drop it if it is an older canary's, or use another database"}
	}
	return true, nil
}

func (p *postgres) Prepare(ctx context.Context) error {
	return p.do(ctx, p.first, func(c *pgx.Conn) error {
		there, err := p.owned(ctx, c)
		if err != nil {
			return err
		}
		text := "create schema " + Space + "; comment on schema " + Space + " is '" + made + "';" +
			"create table " + Space + ".items (key text collate \"C\" primary key, value bigint, elements text, numbers " +
			"bigint[], sole text unique)"
		if there {
			if err := p.unused(ctx, c); err != nil {
				return err
			}
			text = "truncate " + Space + ".items"
		}
		err = own(ctx, c, text, nil)
		switch f := p.Fault(err); {
		case err == nil:
		case f.Reason == Denied && there:
			return anothers(err)
		case f.Reason == ReadOnly:
			return &Error{Option: "--target", What: "the account's transactions are read-only", Err: err,
				Do: "add default_transaction_read_only=off to the address's parameters, or let it write"}
		case f.Reason == Denied:
			return &Error{Option: "--target", What: "the account may not make a schema", Err: err,
				Do: "GRANT CREATE ON DATABASE … TO it"}
		}
		return err
	})
}

// unused refuses a schema that another canary is at work in. Rights that are missing show in what follows.
func (p *postgres) unused(ctx context.Context, c *pgx.Conn) error {
	err := unused(ctx, func(ctx context.Context) (state int64, err error) {
		err = own(ctx, c, stateOf(Space+".items", "coalesce(elements, array_to_string(numbers, ','))"), nil, &state)
		return state, err
	})
	// or there is no table
	if said := new(pgconn.PgError); errors.As(err, &said) && (said.Code == "42501" || said.Code == "42P01") {
		return nil
	}
	return err
}

// anothers says that the Space belongs to another account.
func anothers(err error) error {
	return &Error{Option: "--target", What: Space + " is another account's", Err: err,
		Do: "use that account, and --cleanup with it removes it"}
}

func (p *postgres) Cleanup(ctx context.Context) error {
	return p.do(ctx, p.first, func(c *pgx.Conn) error {
		there, err := p.owned(ctx, c)
		if err == nil && there {
			err = p.unused(ctx, c)
		}
		if err == nil && there {
			err = own(ctx, c, "drop table if exists "+Space+".items; drop schema "+Space, nil)
		}
		if said := new(pgconn.PgError); errors.As(err, &said) && said.Code == "2BP01" { // dependent objects still exist
			return &Error{Option: "--target", What: "what is not the canary's lies in " + Space + " or depends on it", Err: err,
				Do: "drop that first: " + said.Detail}
		}
		if p.Fault(err).Reason == Denied {
			return anothers(err)
		}
		return err
	})
}

func (p *postgres) Discard(ctx context.Context, at Node, items []Item) error {
	var keys []string
	for _, i := range items {
		keys = append(keys, i.Name)
	}
	return p.do(ctx, at, func(c *pgx.Conn) error {
		return own(ctx, c, "delete from "+Space+".items where key = any($1)", []any{keys})
	})
}

func (p *postgres) Connect(ctx context.Context, at Node, settings []Setting) (Session, error) {
	c, err := p.dial(ctx, at)
	if err != nil {
		return nil, err
	}
	// the first is taken, where no pooler mixes up what is prepared
	for _, s := range slices.Concat(limits[:1], settings) {
		if err := within(ctx, c, atHand, "select set_config($1, $2, true)", []any{s.Name, s.Value}); err != nil {
			c.Close(context.WithoutCancel(ctx))
			if err = pooled(at, err); !errors.As(err, new(*Error)) && p.Fault(err).Answered {
				err = &Error{Option: "--session-settings", What: "the database does not take " + s.Name + "=" + s.Value, Err: err,
					Do: "see SHOW ALL for what there is"}
			}
			return nil, err
		}
	}
	begin := p.begin
	if at.Replica {
		begin = p.beginAtHand
	}
	set := statement{sql: "select true"}
	for _, one := range limits {
		set.sql += ", set_config('" + one.Name + "', '" + one.Value + "', true)"
	}
	for _, one := range settings {
		set.sql += ", set_config(?, ?, true)"
		set.args = append(set.args, one.Name, one.Value)
	}
	s := &pgSession{conn: c, begin: []statement{{sql: begin}, set}}
	s.said, s.run = postgresDialect, func(_ context.Context, all ...statement) error {
		_, err := s.do(all...)
		return err
	}
	return s, nil
}

// Observe implements Observer. A connection is kept for it, so that a short outage shows too.
func (p *postgres) Observe(ctx context.Context, at Node) (State, error) {
	o := p.observers[at.Name]
	if o.conn == nil {
		c, err := p.dial(ctx, at)
		if err != nil {
			return State{}, err
		}
		o.conn = c
	}
	var standby bool
	var age *float64
	var position string
	s := State{Age: -1, Server: o.conn.PgConn().Conn().RemoteAddr().String()}
	err := within(ctx, o.conn, atHand, `select pg_is_in_recovery(), current_setting('default_transaction_read_only') = 'on',
		extract(epoch from clock_timestamp() - pg_last_xact_replay_timestamp())::float8,
		coalesce(case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_lsn() end::text, '')`, nil,
		&standby, &s.ReadOnly, &age, &position)
	if err != nil {
		o.Close()
		o.conn = nil
		return State{}, err
	}
	s.Role = "primary"
	if standby {
		s.Role, s.ReadOnly = "standby", true
		if age != nil {
			s.Age = max(0, time.Duration(*age*float64(time.Second)))
		}
	}
	var high, low uint32
	if _, err := fmt.Sscanf(position, "%X/%X", &high, &low); err == nil {
		s.Position = uint64(high)<<32 | uint64(low)
	}
	return s, nil
}

func ms(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// Fault reads the SQLSTATE (PostgreSQL, Appendix A). What ends the connection or the server answers nothing: a commit
// may have been written before it.
func (p *postgres) Fault(err error) Fault {
	var said *pgconn.PgError
	if !errors.As(err, &said) {
		return Fault{Lost, false}
	}
	reason, answered := AnythingElse, cmp.Or(said.SeverityUnlocalized, said.Severity) == "ERROR"
	switch said.Code {
	case "40001", "23505": // another has made the row
		reason = Conflict
	case "40P01":
		reason = Deadlock
	case "55P03":
		reason = LockTimeout
	case "57014": // also where a commit was waiting for a standby, when it had taken effect
		reason, answered = Slow, false
	case "25006":
		reason = ReadOnly
	case "53300":
		reason = TooMany
	case "42501", "28000", "28P01":
		reason = Denied
	case "40003", "25P03":
		reason, answered = Down, false
	default:
		switch class := said.Code[:min(2, len(said.Code))]; {
		case strings.HasPrefix(said.Code, "57P"), class == "08":
			reason, answered = Down, false
		case !slices.Contains([]string{"22", "23", "25", "26", "40", "42", "55"}, class):
			// it is not about what was asked for
			answered = false
		}
	}
	return Fault{reason, answered}
}

// pgSession is a connection to a node.
type pgSession struct {
	statements
	conn    *pgx.Conn
	begin   []statement
	due     bool        // begin is to be sent with the next statement
	last    bool        // and commit
	ended   *ending     // how commit was answered, where it was sent so
	unwatch func() bool // of the context that the transaction began in
}

// ending is the answer to a commit.
type ending struct {
	tag pgconn.CommandTag
	err error
}

// Begin costs no round trip: the statement goes with the first one of the transaction, which is when PostgreSQL takes
// the snapshot. ctx is watched for the transaction as a whole, as doing so in each statement costs more.
func (s *pgSession) Begin(ctx context.Context) error {
	s.due, s.last, s.ended = true, false, nil
	conn := s.conn.PgConn().Conn()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return err
	}
	s.unwatch = context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	return nil
}

// Last implements Ender: where the operation fails, PostgreSQL skips the commit that follows.
func (s *pgSession) Last() { s.last = true }

// numbered is a text with $1 and so on for each ?.
func numbered(text string) string {
	parts := strings.Split(text, "?")
	var out strings.Builder
	out.WriteString(parts[0])
	for i, part := range parts[1:] {
		out.WriteString("$" + strconv.Itoa(i+1) + part)
	}
	return out.String()
}

// do runs statements, which go together, with BEGIN and COMMIT where these are due. The tag is the last one's.
func (s *pgSession) do(statements ...statement) (tag pgconn.CommandTag, err error) {
	begin, commit := s.due, s.last
	if s.due, s.last = false, false; !begin && !commit && len(statements) == 1 {
		if first := statements[0]; len(first.args) == 0 {
			return s.conn.Exec(context.Background(), first.sql)
		}
		return answer(statements[0], func() (pgx.Rows, error) {
			return s.conn.Query(context.Background(), numbered(statements[0].sql), statements[0].args...)
		})
	}
	all := &pgx.Batch{}
	if begin {
		statements = slices.Concat(s.begin, statements)
	}
	for _, one := range statements {
		all.Queue(numbered(one.sql), one.args...)
	}
	if commit {
		all.Queue("commit")
	}
	results := s.conn.SendBatch(context.Background(), all)
	for _, one := range statements {
		if err == nil {
			tag, err = answer(one, results.Query)
		}
	}
	if err == nil && commit {
		s.ended = &ending{}
		s.ended.tag, s.ended.err = results.Exec()
	}
	if closed := results.Close(); s.ended == nil {
		err = cmp.Or(err, closed)
	}
	return tag, err
}

// answer reads what a statement is answered with.
func answer(to statement, query func() (pgx.Rows, error)) (tag pgconn.CommandTag, err error) {
	rows, err := query()
	if err != nil {
		return tag, err
	}
	defer rows.Close()
	for to.row != nil && rows.Next() {
		if err := to.row(rows); err != nil {
			return tag, err
		}
	}
	rows.Close()
	if tag = rows.CommandTag(); rows.Err() == nil && to.met != nil {
		to.met(tag.RowsAffected())
	}
	return tag, rows.Err()
}

// errRolledBack: a commit of a transaction that had failed before is answered so.
var errRolledBack = &pgconn.PgError{Code: "40001", Severity: "ERROR", Message: "the commit was answered with ROLLBACK"}

func (s *pgSession) Commit(context.Context) error {
	defer s.unwatch()
	var tag pgconn.CommandTag
	var err error
	if s.ended != nil {
		tag, err = s.ended.tag, s.ended.err
	} else {
		tag, err = s.do(statement{sql: "commit"})
	}
	if err == nil && tag.String() != "COMMIT" {
		err = errRolledBack
	}
	return err
}

func (s *pgSession) Abort(context.Context) error {
	defer s.unwatch()
	_, err := s.do(statement{sql: "rollback"})
	return err
}

func (s *pgSession) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	s.conn.Close(ctx)
}
