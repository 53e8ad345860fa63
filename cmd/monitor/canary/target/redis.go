package target

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net/url"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/isowatch/isowatch/ingest/record"
)

// redisServer is Redis, or what speaks its protocol: one primary and any number of replicas. A transaction reads what
// it needs, under WATCH or not, keeps its writes to itself, and sends them between MULTI and EXEC.
type redisServer struct {
	servers
	options map[string]*redis.Options // by node
	clients map[string]*redis.Client  // by node
	watch   bool
}

// silent keeps the client from writing what it also returns.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func openRedis(ctx context.Context, o Options) (Database, error) {
	watch, err := isolation(o.Isolation, map[string]string{"watch": "yes", "multi": "no"})
	if err != nil {
		return nil, err
	}
	redis.SetLogger(silent{})
	r := &redisServer{servers: servers{nodes: nodesOf(o)}, options: map[string]*redis.Options{},
		clients: map[string]*redis.Client{},
		watch:   watch == "yes"}
	for _, n := range r.nodes {
		c, err := redis.ParseURL(n.address)
		if err != nil {
			r.Close()
			if u := new(url.Error); errors.As(err, &u) { // its text has the password in it
				err = u.Err
			}
			return nil, &Error{Option: n.option, What: "the address can't be read", Err: err,
				Do: "write it as redis://user:password@host:6379/0"}
		}
		c.MaxRetries = -1 // what failed is told, not tried again
		c.DialTimeout, c.ReadTimeout, c.WriteTimeout, c.ContextTimeoutEnabled = connectMax, statementMax, statementMax, true
		r.options[n.Name], r.clients[n.Name] = c, redis.NewClient(c)
	}
	if err := r.lookAt(ctx, r.look); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
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
		r.has.Store(n.Name, fmt.Sprint(said["master_replid"], "/", r.options[n.Name].DB))
	}
	return nil
}

// info is what a node says of itself.
func (r *redisServer) info(ctx context.Context, n Node) (map[string]string, error) {
	info, err := soon(ctx, func() (string, error) { return r.clients[n.Name].Info(ctx).Result() })
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

func (r *redisServer) Close() {
	for _, c := range r.clients {
		c.Close()
	}
}

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
	c := r.clients[r.first.Name]
	all := func() *redis.ScanIterator { return c.Scan(ctx, 0, Space+":*", 1000).Iterator() }
	if err := unused(ctx, func(ctx context.Context) (int64, error) {
		keys, state := all(), fnv.New64a()
		for keys.Next(ctx) {
			fmt.Fprint(state, keys.Val(), c.Dump(ctx, keys.Val()).Val())
		}
		return int64(state.Sum64() - fnv.New64a().Sum64()), keys.Err() // 0 without a key
	}); err != nil {
		return r.may(err)
	}
	keys := all()
	for keys.Next(ctx) {
		if err := c.Unlink(ctx, keys.Val()).Err(); err != nil {
			return r.may(err)
		}
	}
	return r.may(keys.Err())
}

func (r *redisServer) Discard(ctx context.Context, at Node, items []Item) error {
	keys := make([]string, 0, len(items))
	for _, i := range items {
		keys = append(keys, redisKey(i))
	}
	_, err := soon(ctx, func() (int64, error) { return r.clients[at.Name].Unlink(ctx, keys...).Result() })
	return err
}

// soon asks, and waits for the answer no longer than ctx lasts: the client looks at ctx before it asks, and not while
// it waits.
func soon[T any](ctx context.Context, ask func() (T, error)) (T, error) {
	type answer struct {
		T   T
		err error
	}
	answers := make(chan answer, 1)
	go func() {
		var a answer
		a.T, a.err = ask()
		answers <- a
	}()
	select {
	case a := <-answers:
		return a.T, a.err
	case <-ctx.Done():
		return *new(T), ctx.Err()
	}
}

func redisKey(i Item) string { return Space + ":" + i.Name }

func (r *redisServer) Connect(ctx context.Context, at Node, settings []Setting) (Session, error) {
	if len(settings) > 0 {
		return nil, &Error{Option: "--session-settings", What: "a session of Redis has none", Do: "leave them out"}
	}
	client := redis.NewClient(r.options[at.Name]) // of its own, as ending it ends what it waits for
	s := &redisSession{client: client, conn: client.Conn(), watch: r.watch}
	defer s.endWith(ctx)()
	if err := s.conn.Ping(ctx).Err(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Fault reads the word that an error of Redis begins with.
func (r *redisServer) Fault(err error) Fault {
	var said redis.Error
	switch {
	case errors.Is(err, redis.TxFailedErr):
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
	client  *redis.Client
	conn    *redis.Conn
	watch   bool
	writes  []redisWrite
	unwatch func() bool // of endWith the context that the transaction began in
}

// redisWrite is a write, or an append, to be sent with EXEC.
type redisWrite struct {
	item  Item
	value int64
}

func (s *redisSession) Begin(ctx context.Context) error {
	s.writes = s.writes[:0]
	s.unwatch = s.endWith(ctx)
	return nil
}

// endWith closes the connection when ctx ends, unless it was undone before: see soon.
func (s *redisSession) endWith(ctx context.Context) (undo func() bool) {
	return context.AfterFunc(ctx, func() { _ = s.client.Close() })
}

// read asks the server, and adds what the transaction has written itself.
func (s *redisSession) read(ctx context.Context, item Item) (record.Value, error) {
	if s.watch {
		if err := s.conn.Do(ctx, "WATCH", redisKey(item)).Err(); err != nil {
			return record.Null, err
		}
	}
	if item.List {
		elements, err := s.conn.LRange(ctx, redisKey(item), 0, -1).Result()
		for _, w := range s.writes {
			if w.item == item {
				elements = append(elements, strconv.FormatInt(w.value, 10))
			}
		}
		return listOf(strings.Join(elements, ",")), err
	}
	value, err := s.conn.Get(ctx, redisKey(item)).Int64()
	found := err == nil
	if errors.Is(err, redis.Nil) {
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
	defer s.unwatch()
	_, err := s.conn.TxPipelined(ctx, func(p redis.Pipeliner) error {
		for _, w := range s.writes {
			if w.item.List {
				p.RPush(ctx, redisKey(w.item), w.value)
			} else {
				p.Set(ctx, redisKey(w.item), w.value, 0)
			}
		}
		p.Echo(ctx, "")
		return nil
	})
	return err
}

func (s *redisSession) Abort(ctx context.Context) error {
	defer s.unwatch()
	return s.conn.Do(ctx, "UNWATCH").Err()
}

func (s *redisSession) Close() {
	_ = s.conn.Close()
	_ = s.client.Close()
}
