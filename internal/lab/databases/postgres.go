package databases

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/isowatch/isowatch/internal/servers"
)

// URLs is the address of whichever server of p takes writes.
func URLs(p *servers.Postgres) string {
	if p.Standby == nil {
		return p.URL(p.Primary)
	}
	return "postgres://canary@" + p.Primary.Addr + "," + p.Standby.Addr +
		"/canary?sslmode=disable&target_session_attrs=read-write"
}

// postgresFaults are what may be done to a PostgreSQL that clients are at work on.
var postgresFaults = map[string]func(ctx context.Context, p *servers.Postgres, pause func(time.Duration)) error{
	"kill": func(ctx context.Context, p *servers.Postgres, _ func(time.Duration)) error {
		p.Primary.Kill()
		return p.Primary.Start(ctx)
	},
	"pause": func(_ context.Context, p *servers.Postgres, pause func(time.Duration)) error {
		p.Primary.Pause()
		defer p.Primary.Resume()
		pause(2 * time.Second)
		return nil
	},
	"connections": func(ctx context.Context, p *servers.Postgres, _ func(time.Duration)) error {
		return p.Do(ctx, "postgres", "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'canary'")
	},
	"promote": func(ctx context.Context, p *servers.Postgres, _ func(time.Duration)) error {
		if p.Standby == nil {
			return nil // it was promoted before
		}
		p.Primary.Kill()
		p.Primary, p.Standby = p.Standby, nil
		return p.Do(ctx, "postgres", "do $$ begin if not pg_promote() then raise 'it was not promoted in time'; end if; "+
			"end $$")
	},
}

// PostgresFaults lists what Strike knows, sorted.
func PostgresFaults() []string { return slices.Sorted(maps.Keys(postgresFaults)) }

// Strike harms the servers of p: kill ends the primary with SIGKILL and starts it again, pause stops it for two
// seconds, connections ends those of clients, promote kills it and makes the standby the primary, once. When ctx ends
// nothing is waited for any more, and what was stopped is started.
func Strike(ctx context.Context, p *servers.Postgres, fault string) error {
	strike := postgresFaults[fault]
	if strike == nil {
		return fmt.Errorf("there is no fault %q, but %s", fault, strings.Join(PostgresFaults(), ", "))
	}
	return strike(context.WithoutCancel(ctx), p, func(d time.Duration) {
		select {
		case <-ctx.Done():
		case <-time.After(d):
		}
	})
}
