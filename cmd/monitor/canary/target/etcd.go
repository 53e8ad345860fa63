package target

import (
	"context"
	"errors"
	"net/url"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"

	"github.com/isowatch/isowatch/ingest/record"
)

// etcdCluster is etcd. A transaction reads at the revision of its first read, keeps its writes to itself, and sends
// them with comparisons of what may not have changed since.
type etcdCluster struct {
	servers
	configs  map[string]clientv3.Config // by node
	clients  sync.Map                   // of *clientv3.Client, by node
	compares string                     // what a commit compares: reads, writes
	stale    bool                       // reads ask the node alone
}

func openEtcd(ctx context.Context, o Options) (Database, error) {
	level, err := isolation(o.Isolation, map[string]string{"serializable": "reads", "snapshot": "writes",
		"serializable-stale-reads": "stale"})
	if err != nil {
		return nil, err
	}
	if len(o.Replicas) > 0 {
		return nil, &Error{Option: "--replica", What: "every member of etcd takes writes", Do: "give it with --target"}
	}
	e := &etcdCluster{servers: servers{nodes: nodesOf(o)}, configs: map[string]clientv3.Config{}, compares: level}
	if level == "stale" {
		e.compares, e.stale = "reads", true
	}
	for _, n := range e.nodes {
		u, err := url.Parse(n.address)
		if err != nil || u.Host == "" {
			return nil, &Error{Option: n.option, What: "the address can't be read",
				Do: "write it as etcd://user:password@host:2379"}
		}
		if err := parametersOf(n.option, u, "tls"); err != nil {
			return nil, err
		}
		c := clientv3.Config{Endpoints: []string{"http://" + u.Host}, DialTimeout: connectMax,
			Context: context.WithoutCancel(ctx), Logger: zap.NewNop()}
		if u.Query().Get("tls") == "true" {
			c.Endpoints[0] = "https://" + u.Host
		}
		c.Username = u.User.Username()
		c.Password, _ = u.User.Password()
		e.configs[n.Name] = c
	}
	if err := e.lookAt(ctx, e.look); err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

// look asks a node for its version.
func (e *etcdCluster) look(ctx context.Context, n Node) error {
	client, err := e.client(n)
	if err == nil {
		var said *clientv3.StatusResponse
		if said, err = client.Status(ctx, client.Endpoints()[0]); err == nil {
			e.version.Store("etcd " + said.Version)
			return nil
		}
	}
	return letIn(n, err, unanswered(n, err, e.Fault(err)))
}

// client is a node's, made when first asked for, and again after that failed: one with an account asks the node for a
// token then.
func (e *etcdCluster) client(n Node) (*clientv3.Client, error) {
	if made, there := e.clients.Load(n.Name); there {
		return made.(*clientv3.Client), nil
	}
	client, err := clientv3.New(e.configs[n.Name])
	if err != nil {
		return nil, err
	}
	if made, there := e.clients.LoadOrStore(n.Name, client); there {
		return made.(*clientv3.Client), client.Close()
	}
	return client, nil
}

func (e *etcdCluster) Close() {
	e.clients.Range(func(_, c any) bool { _ = c.(*clientv3.Client).Close(); return true })
}

func (e *etcdCluster) Prepare(ctx context.Context) error { return e.Cleanup(ctx) }

// codeOf is the code of an answer, which the client wraps in an error of its own where it knows the text.
func codeOf(err error) codes.Code {
	var known interface{ Code() codes.Code }
	if errors.As(err, &known) {
		return known.Code()
	}
	return status.Code(err)
}

// letIn is otherwise, unless err says that the account is not known or may not do what was asked.
func letIn(n Node, err, otherwise error) error {
	switch codeOf(err) {
	case codes.PermissionDenied:
		return &Error{Option: n.option, What: "the account at " + n.Name + " may not read and write keys that begin with " +
			Space + "/", Err: err,
			Do: "etcdctl role grant-permission ROLE --prefix readwrite " + Space + "/"}
	case codes.Unauthenticated, codes.InvalidArgument:
		// the last is how it says that a name or password is missing, or wrong
		return &Error{Option: n.option, What: n.Name + " does not let the account in", Err: err,
			Do: "check user and password"}
	}
	return otherwise
}

// Cleanup removes the keys that begin with Space and a slash.
func (e *etcdCluster) Cleanup(ctx context.Context) error {
	client, err := e.client(e.first)
	if err == nil {
		err = unused(ctx, func(ctx context.Context) (int64, error) {
			last, err := client.Get(ctx, Space+"/", clientv3.WithLastRev()...)
			if err != nil || len(last.Kvs) == 0 {
				return 0, err
			}
			return last.Kvs[0].ModRevision, nil
		})
	}
	if err == nil {
		_, err = client.Delete(ctx, Space+"/", clientv3.WithPrefix())
	}
	return letIn(e.first, err, err)
}

func (e *etcdCluster) Discard(ctx context.Context, at Node, items []Item) error {
	client, err := e.client(at)
	for _, i := range items {
		if err == nil {
			_, err = client.Delete(ctx, etcdKey(i))
		}
	}
	return err
}

func etcdKey(i Item) string { return Space + "/" + i.Name }

// Connect asks the node for something: its client connects by itself, and says nothing of a node that is not there.
func (e *etcdCluster) Connect(ctx context.Context, at Node, settings []Setting) (Session, error) {
	if len(settings) > 0 {
		return nil, &Error{Option: "--session-settings", What: "a session of etcd has none", Do: "leave them out"}
	}
	ctx, cancel := context.WithTimeout(ctx, connectMax)
	defer cancel()
	if _, err := e.Observe(ctx, at); err != nil {
		return nil, err
	}
	client, err := e.client(at)
	return &etcdSession{client: client, compares: e.compares, stale: e.stale}, err
}

// Observe implements Observer: a member has nothing to say of itself, but answers. The client waits for a connection,
// so that a short outage shows in the state of that alone.
func (e *etcdCluster) Observe(ctx context.Context, at Node) (State, error) {
	client, err := e.client(at)
	if err != nil {
		return State{}, err
	}
	if client.ActiveConnection().GetState() == connectivity.TransientFailure {
		return State{}, errors.New("the connection is lost, and none can be made")
	}
	_, err = client.Get(ctx, Space+"/", clientv3.WithCountOnly(), clientv3.WithLimit(1), clientv3.WithSerializable())
	return State{Age: -1}, err
}

// errChanged: the comparisons of a commit failed.
var errChanged = errors.New("what was read, or is to be written, has changed")

// Fault reads the status of the call.
func (e *etcdCluster) Fault(err error) Fault {
	if errors.Is(err, errChanged) {
		return Fault{Conflict, true}
	}
	switch codeOf(err) {
	case codes.PermissionDenied, codes.Unauthenticated:
		return Fault{Denied, true}
	case codes.OutOfRange, codes.InvalidArgument, codes.FailedPrecondition:
		return Fault{AnythingElse, true}
	case codes.ResourceExhausted:
		return Fault{TooMany, true}
	case codes.DeadlineExceeded:
		return Fault{Slow, false}
	}
	return Fault{Lost, false}
}

// etcdSession is a client of one member, with what its transaction has read and not sent yet.
type etcdSession struct {
	client   *clientv3.Client
	compares string
	stale    bool

	revision int64           // of the reads; 0: none yet
	read     map[string]bool // keys
	writes   map[Item]string // what is to be stored
	order    []Item          // of the writes
}

func (s *etcdSession) Begin(context.Context) error {
	*s = etcdSession{client: s.client, compares: s.compares, stale: s.stale, read: map[string]bool{},
		writes: map[Item]string{}}
	return nil
}

// get is what is stored of an item at the transaction's revision, or what the transaction stores itself.
func (s *etcdSession) get(ctx context.Context, item Item) (text string, found bool, err error) {
	if text, ours := s.writes[item]; ours {
		return text, true, nil
	}
	key := etcdKey(item)
	var options []clientv3.OpOption
	if s.revision > 0 {
		options = append(options, clientv3.WithRev(s.revision))
	}
	if s.stale {
		options = append(options, clientv3.WithSerializable())
	}
	r, err := s.client.Get(ctx, key, options...)
	if err != nil {
		return "", false, err
	}
	if s.revision == 0 {
		s.revision = r.Header.Revision
	}
	s.read[key] = true
	if len(r.Kvs) == 0 {
		return "", false, nil
	}
	return string(r.Kvs[0].Value), true, nil
}

// Do reads a list that is appended to, so that its commit compares it whatever the isolation.
func (s *etcdSession) Do(ctx context.Context, ops ...*Op) error {
	return overTexts(ops, func(item Item) (string, bool, error) { return s.get(ctx, item) }, s.put)
}

func (s *etcdSession) Scan(ctx context.Context, registers []Item) ([]record.Value, error) {
	return each(ctx, s, registers)
}

// put notes what is to be stored.
func (s *etcdSession) put(item Item, text string) error {
	if _, again := s.writes[item]; !again {
		s.order = append(s.order, item)
	}
	s.writes[item] = text
	return nil
}

// Commit sends the writes. What was read at one revision and writes nothing needs no answer, unless reads may be stale
// and are to be as they were said to be.
func (s *etcdSession) Commit(ctx context.Context) error {
	if len(s.order) == 0 {
		return nil
	}
	var compare []clientv3.Cmp
	var puts []clientv3.Op
	unchanged := func(key string) {
		compare = append(compare, clientv3.Compare(clientv3.ModRevision(key), "<", s.revision+1))
	}
	if s.revision > 0 && s.compares == "reads" {
		for key := range s.read {
			unchanged(key)
		}
	}
	for _, item := range s.order {
		key := etcdKey(item)
		if s.revision > 0 && (item.List || s.compares == "writes") {
			unchanged(key)
		}
		puts = append(puts, clientv3.OpPut(key, s.writes[item]))
	}
	r, err := s.client.Txn(ctx).If(compare...).Then(puts...).Commit()
	if err == nil && !r.Succeeded {
		err = errChanged
	}
	return err
}

func (s *etcdSession) Abort(context.Context) error { return nil }
func (s *etcdSession) Close()                      {}
