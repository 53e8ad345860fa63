package proxy_test

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/isowatch/isowatch/internal/lab/databases"
)

var recordTraffic = flag.String("traffic", "", "record into this folder what drivers and PostgreSQL say to each other: recorder/postgres/testdata")

// unrecorded are programs that record nothing of their own but whose traffic is recorded.
var unrecorded = []program{
	{name: "psql", run: `{ echo 'create table account (id int primary key, n int); begin;'
echo 'insert into account values (0, 0); insert into account values (1, 0); end;'
for i in $(seq 0 $(($4 - 1))); do echo 'begin;'
echo "select n, n + 1 as more from account where id = $((i % 2)) \\gset"
echo "update account set n = :more where id = $((i % 2)); end;"; done; } | psql -qX`},
	{name: "pgx", run: `go run ../../../examples/go`},
}

// TestTraffic records what is played in the tests of recorder/postgres: a client that adds seven times, so that statements
// are prepared which a driver prepares when they were used five times.
func TestTraffic(t *testing.T) {
	if *recordTraffic == "" {
		t.Skip("nothing is recorded without -traffic FOLDER")
	}
	p := databases.StartPostgres(t)
	for _, app := range append(unrecorded, programs...) {
		t.Run(app.name, func(t *testing.T) {
			if err := p.Do(t.Context(), "canary", "drop table if exists account"); err != nil {
				t.Fatal(err)
			}
			env := []string(nil)
			if app.folder != "" {
				env = app.install(t)
			}
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			heard := &traffic{}
			var open sync.WaitGroup
			open.Go(func() { heard.serve(l, p.Primary.Addr, &open) })
			if _, err := shell(t.Context(), ".", env, app.run+` "$@"`, app.address(l.Addr().String(), "serializable"), os.DevNull, "1", "7"); err != nil {
				t.Fatal(err)
			}
			l.Close()
			open.Wait()
			oid := oidOf(t, strings.Replace(p.URL(p.Primary), "canary@", "postgres@", 1))
			text := fmt.Sprintf("oid %d\n%s", oid, heard.text.String())
			if err := os.WriteFile(filepath.Join(*recordTraffic, app.name+".txt"), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// oidOf is the number that PostgreSQL has for the table.
func oidOf(t *testing.T, url string) (oid uint32) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	if err := c.QueryRow(t.Context(), "select 'account'::regclass::oid").Scan(&oid); err != nil {
		t.Fatal(err)
	}
	return oid
}

// traffic is what goes over connections, a message a line: the connection's number, the way, the message's kind (startup
// has none), what is in it.
type traffic struct {
	mu          sync.Mutex
	text        strings.Builder
	connections int
}

// serve passes connections on until l is closed.
func (h *traffic) serve(l net.Listener, to string, open *sync.WaitGroup) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", to)
		if err != nil {
			client.Close()
			continue
		}
		h.connections++
		n := h.connections
		open.Go(func() { h.pass(fmt.Sprint(n, ">"), server, client, true) })
		open.Go(func() { h.pass(fmt.Sprint(n, "<"), client, server, false) })
	}
}

func (h *traffic) pass(who string, to, from net.Conn, isUntyped bool) {
	defer to.Close()
	var held []byte
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		h.mu.Lock()
		held = append(held, b[:n]...)
		for {
			head := 5
			if isUntyped {
				head = 4
			}
			if len(held) < head {
				break
			}
			size := head - 4 + int(binary.BigEndian.Uint32(held[head-4:]))
			if len(held) < size {
				break
			}
			kind := "startup"
			if !isUntyped {
				kind = string(held[0])
			}
			fmt.Fprintf(&h.text, "%s %s %q\n", who, kind, held[head:size])
			held, isUntyped = held[size:], false
		}
		h.mu.Unlock()
		if _, err := to.Write(b[:n]); err != nil {
			return
		}
	}
}
