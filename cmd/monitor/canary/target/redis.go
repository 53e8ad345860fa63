package target

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/gomodule/redigo/redis"

	"github.com/isowatch/isowatch/ingest/record"
)

// redisServer is Redis, or what speaks its protocol: one primary and any number of replicas. A transaction reads what
// it needs, under WATCH or not, keeps its writes to itself, and sends them between MULTI and EXEC.
type redisServer struct {
	servers
	// dials connect to a node, by its name. What is then asked with a context waits no longer than that lasts, and the
	// connection ends with it.
	dials map[string]func(context.Context) (redis.Conn, error)
	watch bool
}

func openRedis(ctx context.Context, o Options) (Database, error) {
	watch, err := isolation(o.Isolation, map[string]string{"watch": "yes", "multi": "no"})
	if err != nil {
		return nil, err
	}
	r := &redisServer{servers: servers{nodes: nodesOf(o)}, watch: watch == "yes",
		dials: map[string]func(context.Context) (redis.Conn, error){}}
	for _, n := range r.nodes {
		u, err := url.Parse(n.address)
		if said := new(url.Error); errors.As(err, &said) { // its text has the password in it
			err = said.Err
		}
		if err == nil {
			_, err = strconv.Atoi(redisDatabase(n))
		}
		if err != nil || u.Opaque != "" {
			return nil, &Error{Option: n.option, What: "the address can't be read", Err: err,
				Do: "write it as redis://user:password@host:6379/0"}
		}
		dial := (&net.Dialer{Timeout: connectMax}).DialContext
		if u.Scheme == "rediss" {
			u.Scheme, dial = "redis", (&tls.Dialer{NetDialer: &net.Dialer{Timeout: connectMax}}).DialContext
		}
		r.dials[n.Name] = func(ctx context.Context) (redis.Conn, error) {
			return redis.DialURLContext(ctx, u.String(), redis.DialContextFunc(dial),
				redis.DialReadTimeout(statementMax), redis.DialWriteTimeout(statementMax))
		}
	}
	return r, r.lookAt(ctx, r.look)
}

// redisDatabase is the number of the database that a node's address ends with.
func redisDatabase(n Node) string {
	_, path, _ := strings.Cut(n.address, "://")
	_, number, _ := strings.Cut(path, "/")
	return cmp.Or(number, "0")
}

// ask asks a node by a connection of its own.
func (r *redisServer) ask(ctx context.Context, n Node, command string, args ...any) (any, error) {
	c, err := r.dials[n.Name](ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return redis.DoContext(c, ctx, command, args...)
}

// look connects to a node and checks that it is what the options say.
func (r *redisServer) look(ctx context.Context, n Node) error {
	said, err := r.info(ctx, n)
	switch {
	case err != nil && (strings.HasPrefix(err.Error(), "NOAUTH") || strings.HasPrefix(err.Error(), "WRONGPASS") ||
		strings.HasPrefix(err.Error(), "NOPERM")):
		return &Error{Option: n.option, What: n.Name + " does not let the account in", Err: err,
			Do: "check user and password"}
	case err != nil && strings.Contains(err.Error(), "DB index is out of range"):
		return &Error{Option: n.option, What: n.Name + " has no such database", Err: err,
			Do: "name one that is there: redis://host:6379/0"}
	case err != nil:
		return unanswered(n, err, r.Fault(err))
	}
	switch replica := said["role"] == "slave"; {
	case replica && !n.Replica:
		return &Error{Option: "--target", What: n.Name + " is a replica, which takes no writes",
			Do: "give its primary, and it with --replica"}
	case !replica && n.Replica:
		return &Error{Option: "--replica", What: n.Name + " is no replica",
			Do: "give it with --target, or the replica that is meant"}
	}
	r.version.Store("Redis " + said["redis_version"])
	if !n.Replica || said["master_link_status"] == "up" { // else it may not know yet
		r.has.Store(n.Name, said["master_replid"]+"/"+redisDatabase(n))
	}
	return nil
}

// info is what a node says of itself.
func (r *redisServer) info(ctx context.Context, n Node) (map[string]string, error) {
	info, err := redis.String(r.ask(ctx, n, "INFO"))
	said := map[string]string{}
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		said[name] = value
	}
	return said, err
}

// Observe implements Observer.
func (r *redisServer) Observe(ctx context.Context, at Node) (State, error) {
	said, err := r.info(ctx, at)
	role := map[string]string{"master": "primary", "slave": "replica"}[said["role"]]
	return State{Role: role, Age: -1}, err
}

// Close has nothing to do: a connection belongs to who dialled it.
func (r *redisServer) Close() {}

func (r *redisServer) Prepare(ctx context.Context) error { return r.Cleanup(ctx) }

// may is err, which may say that the account may not do something.
func (r *redisServer) may(err error) error {
	if r.Fault(err).Reason == Denied {
		return &Error{Option: "--target", What: "the account may not do what a canary does", Err: err,
			Do: "ACL SETUSER it ~" + Space + ":* +@read +@write +@transaction +@connection +info"}
	}
	return err
}

// Cleanup removes the keys that begin with Space and a colon.
func (r *redisServer) Cleanup(ctx context.Context) error {
	c, err := r.dials[r.first.Name](ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := unused(ctx, func(ctx context.Context) (int64, error) {
		state := fnv.New64a()
		err := each1000(ctx, c, func(keys []any) error {
			for _, key := range keys {
				value, _ := redis.DoContext(c, ctx, "DUMP", key)
				fmt.Fprintf(state, "%s%s", key, value)
			}
			return nil
		})
		return int64(state.Sum64() - fnv.New64a().Sum64()), err // 0 without a key
	}); err != nil {
		return r.may(err)
	}
	return r.may(each1000(ctx, c, func(keys []any) error {
		_, err := redis.DoContext(c, ctx, "UNLINK", keys...)
		return err
	}))
}

// each1000 tells the keys that begin with Space and a colon, about a thousand at a time.
func each1000(ctx context.Context, c redis.Conn, f func(keys []any) error) error {
	for next := "0"; ; {
		found, err := redis.Values(redis.DoContext(c, ctx, "SCAN", next, "MATCH", Space+":*", "COUNT", 1000))
		if err != nil {
			return err
		}
		var keys []any
		if _, err := redis.Scan(found, &next, &keys); err != nil {
			return err
		}
		if len(keys) > 0 {
			err = f(keys)
		}
		if err != nil || next == "0" {
			return err
		}
	}
}

func (r *redisServer) Discard(ctx context.Context, at Node, items []Item) error {
	keys := make([]any, 0, len(items))
	for _, i := range items {
		keys = append(keys, redisKey(i))
	}
	_, err := r.ask(ctx, at, "UNLINK", keys...)
	return err
}

func redisKey(i Item) string { return Space + ":" + i.Name }

func (r *redisServer) Connect(ctx context.Context, at Node, settings []Setting) (Session, error) {
	if len(settings) > 0 {
		return nil, &Error{Option: "--session-settings", What: "a session of Redis has none", Do: "leave them out"}
	}
	c, err := r.dials[at.Name](ctx)
	if err != nil {
		return nil, err
	}
	s := &redisSession{conn: c, watch: r.watch}
	if _, err := redis.DoContext(c, ctx, "PING"); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Fault reads the word that an error of Redis begins with.
func (r *redisServer) Fault(err error) Fault {
	var said redis.Error
	switch {
	case errors.Is(err, errChanged):
		return Fault{Conflict, true}
	case !errors.As(err, &said):
		return Fault{Lost, false}
	}
	switch word, _, _ := strings.Cut(said.Error(), " "); word {
	case "READONLY":
		return Fault{ReadOnly, true}
	case "LOADING", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "NOREPLICAS":
		return Fault{Down, true}
	case "NOAUTH", "WRONGPASS":
		return Fault{Denied, true}
	case "NOPERM": // EXEC does the rest where rights were taken after a write had been queued
		return Fault{Denied, false}
	case "EXECABORT", "OOM", "MISCONF": // the last two refuse to queue a write, and EXEC then does nothing
		return Fault{AnythingElse, true}
	case "UNBLOCKED":
		return Fault{Down, false}
	}
	return Fault{AnythingElse, false} // what a command in EXEC failed with, when the others were done
}

// redisSession is a connection, with what its transaction has not sent yet.
type redisSession struct {
	conn   redis.Conn
	watch  bool
	writes []redisWrite
}

// redisWrite is a write, or an append, to be sent with EXEC.
type redisWrite struct {
	item  Item
	value int64
}

func (s *redisSession) Begin(context.Context) error {
	s.writes = s.writes[:0]
	return nil
}

// read asks the server, and adds what the transaction has written itself.
func (s *redisSession) read(ctx context.Context, item Item) (record.Value, error) {
	if s.watch {
		if _, err := redis.DoContext(s.conn, ctx, "WATCH", redisKey(item)); err != nil {
			return record.Null, err
		}
	}
	if item.List {
		elements, err := redis.Strings(redis.DoContext(s.conn, ctx, "LRANGE", redisKey(item), 0, -1))
		for _, w := range s.writes {
			if w.item == item {
				elements = append(elements, strconv.FormatInt(w.value, 10))
			}
		}
		return listOf(strings.Join(elements, ",")), err
	}
	value, err := redis.Int64(redis.DoContext(s.conn, ctx, "GET", redisKey(item)))
	found := err == nil
	if errors.Is(err, redis.ErrNil) {
		err = nil
	}
	for _, w := range s.writes {
		if w.item == item {
			value, found = w.value, true
		}
	}
	if err != nil || !found {
		return record.Null, err
	}
	return record.Int(value), nil
}

func (s *redisSession) Scan(ctx context.Context, registers []Item) ([]record.Value, error) {
	return each(ctx, s, registers)
}

// Do asks for what is read; an empty list is one that is not there.
func (s *redisSession) Do(ctx context.Context, ops ...*Op) (err error) {
	for _, op := range ops {
		switch {
		case op.Kind == record.Read:
			if op.Read, err = s.read(ctx, op.Item); err != nil {
				return err
			}
		case !op.Create || !op.Item.List:
			s.writes = append(s.writes, redisWrite{op.Item, op.Value})
		}
	}
	return nil
}

// Commit sends the writes; without any, EXEC still says whether what was read has changed.
func (s *redisSession) Commit(ctx context.Context) error {
	err := s.conn.Send("MULTI")
	for _, w := range s.writes {
		command := "SET"
		if w.item.List {
			command = "RPUSH"
		}
		err = cmp.Or(err, s.conn.Send(command, redisKey(w.item), w.value))
	}
	if err != nil {
		return err
	}
	switch done, err := redis.Values(redis.DoContext(s.conn, ctx, "EXEC")); {
	case errors.Is(err, redis.ErrNil):
		return errChanged
	case err != nil:
		return err
	default:
		for _, d := range done {
			if err, failed := d.(redis.Error); failed {
				return err
			}
		}
		return nil
	}
}

func (s *redisSession) Abort(ctx context.Context) error {
	_, err := redis.DoContext(s.conn, ctx, "UNWATCH")
	return err
}

func (s *redisSession) Close() { _ = s.conn.Close() }
