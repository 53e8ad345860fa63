package target

import (
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
)

// A Redis that does not answer holds nobody up for longer than its context lasts.
func TestRedisThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial := func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go io.Copy(io.Discard, theirs)
			return ours, nil
		}
		// An address without a name, as looking one up leaves the test's bubble.
		o := &redis.Options{Addr: "127.0.0.1:6379", Dialer: dial, MaxRetries: -1, ReadTimeout: statementMax, ContextTimeoutEnabled: true}
		n := Node{Name: "db-1"}
		r := &redisServer{servers: servers{nodes: []Node{n}}, options: map[string]*redis.Options{n.Name: o}, clients: map[string]*redis.Client{n.Name: redis.NewClient(o)}}
		defer r.Close()
		for what, ask := range map[string]func(context.Context) error{
			"discarding": func(ctx context.Context) error { return r.Discard(ctx, n, []Item{{Name: "a"}}) },
			"observing":  func(ctx context.Context) error { _, err := r.Observe(ctx, n); return err },
			"connecting": func(ctx context.Context) error { _, err := r.Connect(ctx, n, nil); return err },
		} {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			began := time.Now()
			if err := ask(ctx); err == nil || time.Since(began) != time.Second {
				t.Errorf("%s: %v after %v", what, err, time.Since(began))
			}
		}
		time.Sleep(time.Minute) // who asked ends
	})
}
