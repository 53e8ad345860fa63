package target

import (
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
)

// A Redis that does not answer holds nobody up for longer than its context lasts.
func TestRedisThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pipe := func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go io.Copy(io.Discard, theirs)
			return ours, nil
		}
		dial := func(ctx context.Context) (redis.Conn, error) {
			return redis.DialContext(ctx, "tcp", "", redis.DialContextFunc(pipe), redis.DialReadTimeout(statementMax))
		}
		n := Node{Name: "db-1"}
		r := &redisServer{servers: servers{nodes: []Node{n}}, dials: map[string]func(context.Context) (redis.Conn, error){n.Name: dial}}
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
