// Package target is the databases that a canary works on: one file each. A database shows itself as
// nodes, to which sessions connect, and a session runs one transaction at a time:
//
//	db, err := target.Open("postgres://…", target.Options{Replicas: […], Isolation: "repeatable-read"})
//	err = db.Prepare(ctx)                         // makes what is needed, in a place of its own
//	s, err := db.Connect(ctx, db.Nodes()[0], "")  // a connection
//	err = s.Begin(ctx)
//	err = s.Do(ctx, &target.Op{Kind: record.Write, Item: target.Item{Name: "7.3"}, Value: 41})
//	err = s.Commit(ctx)
//	fault := db.Fault(err)                        // what the error says, and whether the database said it
//
// A database is added by a file with a type that implements Database and a line in drivers. All that a
// canary writes lies in a schema, database, key prefix or folder named Space, which Prepare makes and Cleanup
// removes; a Space that something else has made is refused.
package target

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/isowatch/isowatch/ingest/generate"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/wait"
)

// Space is the name of what holds everything that a canary writes.
const Space = "isowatch_canary"

// Item is an object of the database: a register that holds an integer, or a list of integers, an array where it is to
// be one and the database has them.
type Item struct {
	Name        string
	List, Array bool
}

// Node is a server of the database.
type Node struct {
	Name    string // as records have it
	Replica bool   // takes no writes
	address string
	option  string // that gave the address, as on the command line
}

// Session is a connection. One goroutine uses it. Its methods return soon after the ctx ends that Begin was given.
// After an error of any method but Abort, the transaction is to be aborted; after one of Abort or Commit the session
// is of no more use unless Fault says that the database answered.
type Session interface {
	Begin(ctx context.Context) error
	// Do does operations one after the other, and may ask for several before the first is answered. That one found nothing
	// to change is no error.
	Do(ctx context.Context, ops ...*Op) error
	// Scan returns what registers hold, in their order: those of a range of names, all of which are given. A database that
	// has reads of ranges does one.
	Scan(ctx context.Context, registers []Item) ([]record.Value, error)
	Commit(ctx context.Context) error
	Abort(ctx context.Context) error
	Close()
}

// Op is an operation on one item. What it finds is meaningful once it is done.
type Op struct {
	Kind record.OpKind // Read, Write or Append
	// Create makes what is not there, a register or an empty list; else what is not there is Missing, and stays so.
	Create  bool
	Sole    string // where it makes a row and is not empty: of all that have it there may be one
	Item    Item
	Value   int64        // that it writes
	Read    record.Value // an integer, a list, or record.Null for what is not there
	Missing bool         // it found nothing to change
}

// Ender is a Session that sends the commit along with the last operations, where it is told which these are.
type Ender interface {
	// Last says that the next call is the transaction's last operations. Unless that fails, Commit is called after it as
	// always, and says what became of the transaction. An error that the database did not answer leaves that open
	// already, and where something is Missing the rest is committed all the same.
	Last()
}

// Asker is a Session of a database that tells which rows a statement with a condition met.
type Asker interface {
	// Where returns what those registers hold, or held before they were deleted, for which the condition is true; Null
	// for the others. What they are given is all that is told of those that are given something.
	Where(ctx context.Context, c Condition) ([]record.Value, error)
}

// Condition is what a statement asks of rows, and does to them: it returns them, unless there is something that they
// are given, or they are deleted. With Take it returns one alone that no other is about to take, and takes it; with
// Insert it gives the row that has Sole something, or inserts one.
type Condition struct {
	Registers []Item         // in whose range of names there is no other
	Low, High generate.Tuple // as a step has them
	Set       int64          // 0: nothing
	Delete    bool
	Take      bool
	Insert    Item
	Sole      string
}

// What a register holds may have columns, in its low bits: the first one lowest.
const (
	ColumnBits  = 14
	ColumnsBits = 2 * ColumnBits
)

// ColumnsOf is what a register's columns hold, for one number.
func ColumnsOf(value int64) int64 { return value & (1<<ColumnsBits - 1) }

// each is Scan for a database that has no reads of ranges.
func each(ctx context.Context, s Session, registers []Item) ([]record.Value, error) {
	ops, out := make([]*Op, len(registers)), absent(registers)
	for i, r := range registers {
		ops[i] = &Op{Kind: record.Read, Item: r}
	}
	err := s.Do(ctx, ops...)
	for i, op := range ops {
		out[i] = op.Read
	}
	return out, err
}

// overTexts does operations on what is stored as texts: a number, or a list as listOf reads it.
func overTexts(ops []*Op, get func(Item) (string, bool, error), put func(Item, string) error) error {
	for _, op := range ops {
		var text string
		found, err, value := true, error(nil), strconv.FormatInt(op.Value, 10)
		if op.Kind != record.Write {
			text, found, err = get(op.Item)
		}
		switch {
		case err != nil:
		case !found:
			op.Missing = op.Kind == record.Append
		case op.Kind == record.Read:
			op.Read, err = op.Item.stored(text)
		case op.Kind == record.Append:
			err = put(op.Item, text+value+",")
		case op.Item.List:
			err = put(op.Item, "")
		default:
			err = put(op.Item, value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// absent is what a scan returns that finds nothing.
func absent(registers []Item) []record.Value {
	out := make([]record.Value, len(registers))
	for i := range out {
		out[i] = record.Null
	}
	return out
}

// Database is a database under watch. Its methods are safe for concurrent use, and return soon after their ctx ends.
type Database interface {
	// Nodes lists the servers, those that take writes first.
	Nodes() []Node
	// Describe says what it is, with its version, for a person.
	Describe() string
	// Prepare makes the Space, or finds it as it was made before, and empties it, at the first node that takes writes and
	// answered.
	Prepare(ctx context.Context) error
	// Connect begins a session at a node with settings of its own, such as synchronous_commit=off.
	Connect(ctx context.Context, at Node, settings []Setting) (Session, error)
	// Discard removes items that nobody uses any more, at a node that takes writes.
	Discard(ctx context.Context, at Node, items []Item) error
	// Cleanup removes the Space. As Prepare, it refuses one that another canary is at work in.
	Cleanup(ctx context.Context) error
	// Fault tells what an error of a session means.
	Fault(err error) Fault
	Close()
}

// State is what a node says of itself.
type State struct {
	Role     string // primary or standby; empty: the database has no such roles
	ReadOnly bool
	Server   string // whom the connection leads to, of an address that may lead to several; empty: that is not known
	Cluster  string // the node's state in its cluster, as the database calls it; empty: in none
	// Age is how old the newest transaction is that a replica has applied, and -1 where that is not known. It grows
	// also while there is nothing to apply, which Position shows: how far the node's log goes, 0 if that is not known.
	Age      time.Duration
	Position uint64
}

// Observer is a Database that can say how its nodes are doing.
type Observer interface {
	// Observe asks a node; one goroutine at a time does for each.
	Observe(ctx context.Context, at Node) (State, error)
}

// Setting is a setting of a session, as the database calls it.
type Setting struct{ Name, Value string }

// ParseSettings reads what sessions take in turn: settings with commas between them, and semicolons
// between one session's and the next's.
func ParseSettings(text string) ([][]Setting, error) {
	var out [][]Setting
	for _, session := range strings.Split(text, ";") {
		settings := []Setting{}
		for _, s := range strings.Split(session, ",") {
			if s = strings.TrimSpace(s); s == "" {
				continue
			}
			name, value, ok := strings.Cut(s, "=")
			if name = strings.TrimSpace(name); !ok || !plain(name) {
				return nil, fmt.Errorf("%q is no setting; write name=value, a comma before the next setting, a semicolon before "+
					"the next session's", s)
			}
			settings = append(settings, Setting{name, strings.TrimSpace(value)})
		}
		out = append(out, settings)
	}
	return out, nil
}

// plain tells whether a name of a setting can stand in a statement as it is.
func plain(name string) bool {
	return name != "" && strings.IndexFunc(name, func(r rune) bool {
		return !(r == '_' || r == '.' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z')
	}) < 0
}

// Reason says why a transaction did not go through: a closed set, which metrics and reports use.
type Reason string

// The reasons.
const (
	Conflict     Reason = "conflict"        // the database refused one of two that collide: it keeps its promise so
	Deadlock     Reason = "deadlock"        // two waited for each other
	LockTimeout  Reason = "lock-timeout"    // a lock was waited for too long
	Slow         Reason = "timeout"         // a statement took too long
	ReadOnly     Reason = "read-only"       // the node takes no writes (any more)
	TooMany      Reason = "connections"     // no connection is to be had
	Lost         Reason = "connection-lost" // no answer
	Down         Reason = "shutdown"        // the server goes down, or is not ready
	Missing      Reason = "not-there"       // a row that another node has is not there yet
	Denied       Reason = "denied"          // rights are missing
	AnythingElse Reason = "other"
)

// Reasons lists them.
func Reasons() []Reason {
	return []Reason{Conflict, Deadlock, LockTimeout, Slow, ReadOnly, TooMany, Lost, Down, Missing, Denied, AnythingElse}
}

// Fault is what an error means.
type Fault struct {
	Reason Reason
	// Answered: the database said itself that what was asked for did not happen. Otherwise it is not known, and a
	// commit may have taken effect, or may yet.
	Answered bool
}

// Options of a database.
type Options struct {
	// Targets are the addresses of nodes that take writes, one at least; Replicas of those that don't.
	Targets, Replicas []string
	// Isolation is the level that transactions ask for, by the database's name with hyphens:
	// repeatable-read. Empty: Standard.
	Isolation string
	// AllowSuperuser takes an account that may do anything.
	AllowSuperuser bool
}

// Error is an option that can't be used, or does not fit the database, and what to do about it.
type Error struct {
	Option string // as on the command line: --target
	What   string
	Do     string
	Err    error // the cause; may be nil. It holds no password.
}

func (e *Error) Error() string {
	s := e.Option + ": " + e.What
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	if e.Do != "" {
		s += "; " + e.Do
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// drivers are the databases by the schemes of their addresses.
var drivers = []struct {
	schemes []string
	example string
	// isolation is asked for where none is given, whatever the server's settings say.
	isolation string
	open      func(context.Context, Options) (Database, error)
}{
	{[]string{"postgres", "postgresql"}, "postgres://canary@db-1:5432/shop", "read-committed", openPostgres},
	{[]string{"mysql", "mariadb"}, "mysql://canary@db-1:3306/", "repeatable-read", openMySQL},
	{[]string{"etcd"}, "etcd://db-1:2379", "serializable", openEtcd},
	{[]string{"redis", "rediss"}, "redis://db-1:6379/0", "watch", openRedis},
	{[]string{"sqlite"}, "sqlite:///var/lib/shop/canary.db", "serializable", openSQLite},
	{[]string{"badger"}, "badger:///var/lib/shop/canary", "serializable", openBadger},
}

// Open finds out which database the options speak of, connects to each node once, and checks that they are what the
// options say; one that takes writes has to answer. The error is an *Error where an option is at fault, else the
// environment's.
func Open(ctx context.Context, o Options) (Database, error) {
	if len(o.Targets) == 0 {
		return nil, &Error{Option: "--target", What: "which database is to be watched?",
			Do: "give its address, such as " + drivers[0].example}
	}
	scheme := schemeOf(o.Targets[0])
	for _, other := range slices.Concat(o.Targets[1:], o.Replicas) {
		if schemeOf(other) != scheme {
			return nil, &Error{Option: "--target",
				What: "all nodes have to be of one database, and the addresses begin with " + scheme + ": and " + schemeOf(other) +
					":",
				Do: "watch another database with another canary"}
		}
	}
	var known []string
	for _, d := range drivers {
		if slices.Contains(d.schemes, scheme) {
			o.Isolation = cmp.Or(o.Isolation, d.isolation)
			return d.open(ctx, o)
		}
		known = append(known, d.example)
	}
	return nil, &Error{Option: "--target", What: "no database is known by " + scheme + ":",
		Do: "give an address such as " + strings.Join(known, ", ")}
}

// Standard is the isolation level that is asked for at an address where none is given.
func Standard(address string) string {
	for _, d := range drivers {
		if slices.Contains(d.schemes, schemeOf(address)) {
			return d.isolation
		}
	}
	return ""
}

func schemeOf(address string) string {
	scheme, _, ok := strings.Cut(address, ":")
	if !ok {
		return ""
	}
	return strings.ToLower(scheme)
}

// hostOf is what a node is called: its host and port, or all of several.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "node"
	}
	hosts, ports := strings.Split(u.Query().Get("host"), ","), strings.Split(u.Query().Get("port"), ",")
	for i, h := range hosts {
		if port := ports[min(i, len(ports)-1)]; h != "" && port != "" {
			hosts[i] = net.JoinHostPort(h, port)
		}
	}
	return cmp.Or(u.Host, strings.Join(hosts, ","), "node")
}

// servers are the nodes of a database that may have several.
type servers struct {
	nodes   []Node
	first   Node         // where it is prepared
	version atomic.Value // of a node
	has     sync.Map     // which database, by node
}

func (s *servers) Nodes() []Node    { return s.nodes }
func (s *servers) Describe() string { return fmt.Sprint(s.version.Load()) }

// nodesOf names the nodes of options by their addresses.
func nodesOf(o Options) []Node {
	var out []Node
	add := func(option string, addresses []string) {
		for _, a := range addresses {
			name := hostOf(a)
			for n := 2; slices.ContainsFunc(out, func(other Node) bool { return other.Name == name }); n++ {
				name = fmt.Sprintf("%s-%d", hostOf(a), n)
			}
			out = append(out, Node{Name: name, Replica: option == "--replica", address: a, option: option})
		}
	}
	add("--target", o.Targets)
	add("--replica", o.Replicas)
	return out
}

// unanswered says of which option the node is that can't be asked what it is; an option at fault says so itself.
func unanswered(n Node, err error, f Fault) error {
	if f.Reason == TooMany {
		return fmt.Errorf("%s: %s has no connection left: %w; end some, or raise its limit", n.option, n.Name, err)
	}
	var lookup *net.DNSError
	var dial *net.OpError
	switch {
	case errors.As(err, new(*Error)):
		return err
	case errors.As(err, &lookup):
		err = lookup
	case errors.As(err, &dial):
		err = dial
	}
	return fmt.Errorf("%s: %s does not answer: %w; check the address, and that the server is up, is %s, and lets this "+
		"machine in",
		n.option, n.Name, oneLine{err}, schemeOf(n.address))
}

// lookAt looks at all nodes, and finds the first that takes writes and answers. The error is an *Error where an
// option does not fit one of them, or some have another database, where both are known; that others do not answer is
// one only where none that takes writes does.
func (s *servers) lookAt(ctx context.Context, look func(context.Context, Node) error) error {
	errs := make([]error, len(s.nodes))
	var looking sync.WaitGroup
	for i, n := range s.nodes {
		looking.Go(func() {
			attempt, cancel := context.WithTimeout(ctx, connectMax)
			defer cancel()
			errs[i] = look(attempt, n)
		})
	}
	looking.Wait()
	for i := len(s.nodes) - 1; i >= 0; i-- {
		switch {
		case errors.As(errs[i], new(*Error)):
			return errs[i]
		case errs[i] == nil && !s.nodes[i].Replica:
			s.first = s.nodes[i]
		}
	}
	if s.first.Name == "" {
		return errs[0]
	}
	its, _ := s.has.Load(s.first.Name)
	for _, n := range s.nodes {
		if other, known := s.has.Load(n.Name); known && its != nil && other != its {
			return &Error{Option: n.option, What: n.Name + " has another database than " + s.first.Name,
				Do: "give nodes of one database"}
		}
	}
	return nil
}

// oneLine is an error on one line.
type oneLine struct{ error }

func (e oneLine) Error() string { return strings.Join(strings.Fields(e.error.Error()), " ") }
func (e oneLine) Unwrap() error { return e.error }

// storeOf is the address of an embedded store, a file or folder: one, of a canary's own.
func storeOf(o Options, what, example string, parameters ...string) (*url.URL, error) {
	refused := func(is, do string) error { return &Error{Option: "--target", What: is, Do: do} }
	u, err := url.Parse(o.Targets[0])
	switch {
	case len(o.Targets) > 1 || len(o.Replicas) > 0:
		return nil, refused("a "+what+" is one node", "give one --target and no --replica")
	case err != nil || u.Path == "" || u.Host != "":
		return nil, refused("the address names no "+what, "write it as "+example)
	case !strings.Contains(filepath.Base(u.Path), "canary"):
		return nil, refused(u.Path+" may be somebody's data", "name a "+what+" of the canary's own, with canary in its name")
	}
	return u, parametersOf("--target", u, parameters...)
}

// parametersOf checks that an address has no other parameters than those that there are.
func parametersOf(option string, u *url.URL, known ...string) error {
	for name := range u.Query() {
		if !slices.Contains(known, name) {
			return &Error{Option: option, What: fmt.Sprintf("there is no parameter %q", name),
				Do: cmp.Or(strings.Join(known, ", "), "none") + " there is"}
		}
	}
	return nil
}

// Rehearse does at each node, by hand, what sessions do, and removes it. The error is an *Error where the account may
// not, a node that takes writes does not take settings that sessions have, or does not show what is written at
// another; what else fails may work later.
func Rehearse(ctx context.Context, db Database, settings [][]Setting) error {
	all := servers{nodes: db.Nodes()}
	err := all.lookAt(ctx, func(ctx context.Context, n Node) error {
		var err error
		for i := 0; err == nil && !n.Replica && i < len(settings); i++ {
			var s Session
			if s, err = db.Connect(ctx, n, settings[i]); err == nil {
				s.Close()
			}
		}
		if err == nil {
			err = rehearse(ctx, db, n)
		}
		if err != nil && !errors.As(err, new(*Error)) && db.Fault(err).Reason == Denied {
			return &Error{Option: n.option, What: "the account at " + n.Name + " may not do what a canary does", Err: err,
				Do: "give it the rights that docs/canary.md lists"}
		}
		return err
	})
	for _, n := range all.nodes {
		if err == nil && n != all.first && !n.Replica {
			err = shows(ctx, db, n, all.first)
		}
	}
	if errors.As(err, new(*Error)) {
		return err
	}
	return nil
}

// shows checks that a node shows within some seconds what is written at another. Others' servers would look like a
// database that loses it.
func shows(ctx context.Context, db Database, at, written Node) error {
	register, value := Item{Name: "rehearsal"}, time.Now().UnixNano()
	err := inOne(ctx, db, written, func(ctx context.Context, s Session) error {
		return s.Do(ctx, &Op{Kind: record.Write, Create: true, Item: register, Value: value})
	})
	if err == nil {
		defer func() { _ = db.Discard(ctx, written, []Item{register}) }()
	}
	seen := false
	for until := time.Now().Add(connectMax); err == nil && !seen; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(until) {
			return &Error{Option: at.option, What: at.Name + " does not show what is written at " + written.Name,
				Do: "give nodes of one database"}
		}
		err = inOne(ctx, db, at, func(ctx context.Context, s Session) error {
			read := &Op{Kind: record.Read, Item: register}
			err := s.Do(ctx, read)
			seen = err == nil && read.Read.Num == value
			return err
		})
	}
	return err
}

func rehearse(ctx context.Context, db Database, n Node) error {
	name := fmt.Sprintf("rehearsal.%d", slices.Index(db.Nodes(), n)) // of its own, as all are asked at once
	register, list := Item{Name: name}, Item{Name: name + ".list", List: true}
	read := func(ctx context.Context, s Session) error {
		_, err := s.Scan(ctx, []Item{register})
		if err == nil {
			err = s.Do(ctx, &Op{Kind: record.Read, Item: list})
		}
		return err
	}
	if n.Replica {
		return inOne(ctx, db, n, read)
	}
	if err := inOne(ctx, db, n, func(ctx context.Context, s Session) error {
		return s.Do(ctx, &Op{Kind: record.Write, Create: true, Item: register, Value: 1},
			&Op{Kind: record.Write, Create: true, Item: list}, &Op{Kind: record.Write, Item: register, Value: 2},
			&Op{Kind: record.Append, Item: list, Value: 1})
	}, read); err != nil {
		return err
	}
	return db.Discard(ctx, n, []Item{register, list})
}

// inOne takes steps in one transaction of a session of its own.
func inOne(ctx context.Context, db Database, n Node, steps ...func(context.Context, Session) error) error {
	ctx, cancel := context.WithTimeout(ctx, connectMax)
	defer cancel()
	s, err := db.Connect(ctx, n, nil)
	if err != nil {
		return err
	}
	defer s.Close()
	err = s.Begin(ctx)
	for i := 0; err == nil && i < len(steps); i++ {
		err = steps[i](ctx, s)
	}
	if err == nil {
		err = s.Commit(ctx)
	}
	return err
}

// watchFor is for how long what a Space holds has to stay as it is before it is emptied or removed: longer than a
// canary's pauses. What the statements of one that was just killed still do is over by then, and the next has to stay
// as it is for five times as long.
const watchFor = 2 * time.Second

// unused refuses a Space that another canary is at work in, as emptying it would look as if the database had lost what
// that one wrote. state is 0 for one that is empty, and else changes with what is there.
func unused(ctx context.Context, state func(context.Context) (int64, error)) error {
	before, err := state(ctx)
	for _, quiet := range []time.Duration{watchFor, 5 * watchFor} {
		if err != nil || before == 0 {
			return err
		}
		if err := wait.Sleep(ctx, quiet); err != nil {
			return err
		}
		var after int64
		if after, err = state(ctx); after == before {
			return err
		}
		before = after
	}
	return cmp.Or(err, error(&Error{Option: "--target", What: "another canary is at work in " + Space + " there",
		Do: "stop it first, or use another database"}))
}

// stateOf is the state of a Space, in SQL: values and lists only grow.
func stateOf(table, elements string) string {
	return "select count(*) + coalesce(max(value), 0) + coalesce(sum(length(" + elements + ")), 0) from " + table
}

// tooOld refuses a node whose version begins with a lower number than the oldest that is known to work.
func tooOld(n Node, product, version string, oldest int) error {
	number, _, _ := strings.Cut(version, ".")
	if major, err := strconv.Atoi(number); err != nil || major >= oldest {
		return nil
	}
	return &Error{Option: n.option, What: n.Name + " is " + product + " " + version,
		Do: fmt.Sprintf("%d is the oldest that is known to work", oldest)}
}

// isolation finds what a database calls a level.
func isolation(asked string, levels map[string]string) (string, error) {
	sql, ok := levels[strings.ToLower(strings.ReplaceAll(asked, " ", "-"))]
	if !ok {
		var names []string
		for n := range levels {
			names = append(names, n)
		}
		slices.Sort(names)
		return "", &Error{Option: "--isolation", What: fmt.Sprintf("the database has no level %q", asked),
			Do: "use one of " + strings.Join(names, ", ")}
	}
	return sql, nil
}
