// Package pgxtap records what an application does through pgx, alone or under database/sql, by one line where it
// connects:
//
//	tap, err := pgxtap.Open(ctx, rec, url, postgres.Options{})
//	config.AfterNetConnect = tap.Connection       // of a pgx.ConnConfig, or of a pgxpool.Config's ConnConfig
//
// The connection is listened to behind TLS, so that all rows are seen and what COMMIT answered is known for certain.
// Nothing is added to what goes over it. What becomes of statements is said in package postgres.
package pgxtap

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/isowatch/isowatch/recorder"
	"github.com/isowatch/isowatch/recorder/postgres"
)

// Tap listens to an application's connections to one database.
type Tap struct{ Capture *postgres.Capture }

// Open asks the database at url for its tables, by a connection of its own, and records with rec. options.Load is set,
// and so is options.Prefix if it is empty: whoever reads the records may have some of an earlier run.
func Open(ctx context.Context, rec *recorder.Recorder, url string, options postgres.Options) (*Tap, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	options.Load = Load(config)
	options.Prefix = cmp.Or(options.Prefix, strconv.FormatInt(time.Now().UnixMilli(), 36)+"/")
	c, err := postgres.New(ctx, rec, options)
	if err != nil {
		return nil, err
	}
	return &Tap{c}, nil
}

// Load is postgres.Options.Load for the database at an address.
func Load(config *pgx.ConnConfig) func(context.Context) (*postgres.Catalog, error) {
	return func(ctx context.Context) (*postgres.Catalog, error) {
		conn, err := pgx.ConnectConfig(ctx, config)
		if err != nil {
			return nil, fmt.Errorf("connect to ask for the tables: %w", err)
		}
		defer conn.Close(context.WithoutCancel(ctx))
		return postgres.Load(ctx, conn)
	}
}

// Connection is for pgconn.Config.AfterNetConnect.
func (t *Tap) Connection(_ context.Context, _ *pgconn.Config, conn net.Conn) (net.Conn, error) {
	return &tapped{conn, t.Capture.Connect()}, nil
}

// tapped is a connection that is listened to.
type tapped struct {
	net.Conn
	listener *postgres.Connection
}

func (t *tapped) Write(b []byte) (int, error) {
	t.listener.FromClient(b)
	return t.Conn.Write(b)
}

func (t *tapped) Read(b []byte) (int, error) {
	n, err := t.Conn.Read(b)
	t.listener.FromServer(b[:n])
	return n, err
}

func (t *tapped) Close() error {
	t.listener.Close()
	return t.Conn.Close()
}
