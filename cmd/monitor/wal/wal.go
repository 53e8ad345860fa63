// Package wal tells where in PostgreSQL's log transactions committed, as PostgreSQL's own logical decoding has it: what
// Debezium's events tell, without Debezium. Rows are not looked at.
//
//	PostgreSQL ──pgoutput──▶ wal ──▶ {"logged":{"xid":"735","lsn":26842696,"db":"shop","log":"73…/1"}}
//
// The LSN is that of the commit: logical decoding sends transactions in this order, each as a whole. The slot is a
// temporary one, gone with the connection, so that the server never keeps its log for a reader that does not come back.
// What committed meanwhile has no place in the log: its records go on without. A standby that is promoted begins another
// log, as what its primary had alone may come again there, under the same numbers.
package wal

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/isowatch/isowatch/ingest/change"
	"github.com/isowatch/isowatch/ingest/source"
	"github.com/isowatch/isowatch/internal/wait"
)

// Options of Run.
type Options struct {
	Source *pgconn.Config
	Logged func(change.Change) // told of each transaction that changed a table of the publication
	Began  func()              // called when what commits from then on is told, by each connection
	Failed func(error)         // told of a connection that broke, or was not made
}

const (
	// publication is that of the tables which records are of.
	publication = "isowatch"
	// pause is how long after a connection broke another is made.
	pause = time.Second
	// standingEvery is how much of its log the server sends before it is told how far that was, and when it asks.
	standingEvery = 1 << 20
)

// Run tells until ctx ends. Its error, a *source.StartupError, is what somebody has to do first; all else is tried
// again.
func Run(ctx context.Context, o Options) error {
	for {
		err := o.follow(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, new(*source.StartupError)):
			return err
		}
		o.Failed(err)
		_ = wait.Sleep(ctx, pause)
	}
}

// follow tells as long as one connection lasts.
func (o *Options) follow(ctx context.Context) error {
	config := o.Source.Copy()
	config.RuntimeParams["replication"] = "database"
	conn, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	system, err := pglogrepl.IdentifySystem(ctx, conn)
	if err != nil {
		return fmt.Errorf("identify the server: %w", err)
	}
	found, err := conn.Exec(ctx, "select from pg_publication where pubname = '"+publication+"'").ReadAll()
	if err != nil {
		return fmt.Errorf("look for the publication: %w", err)
	}
	if len(found) != 1 || found[0].CommandTag.RowsAffected() == 0 {
		return &source.StartupError{What: "database " + system.DBName + " has no publication " + publication,
			Do: "say there: create publication " + publication + " for table …, or, as a superuser, for all tables"}
	}
	slot := fmt.Sprintf("isowatch_%x", rand.Uint64())
	temporary := pglogrepl.CreateReplicationSlotOptions{Temporary: true, SnapshotAction: "NOEXPORT_SNAPSHOT"}
	if _, err := pglogrepl.CreateReplicationSlot(ctx, conn, slot, "pgoutput", temporary); err != nil {
		return &source.StartupError{What: "its log can't be decoded", Err: err,
			Do: "set wal_level = logical and enough max_replication_slots, and give the role REPLICATION"}
	}
	args := []string{"proto_version '1'", "publication_names '" + publication + "'"}
	if err := pglogrepl.StartReplication(ctx, conn, slot, 0,
		pglogrepl.StartReplicationOptions{PluginArgs: args}); err != nil {
		return fmt.Errorf("decode the log: %w", err)
	}
	o.Began()
	return o.read(ctx, conn, system)
}

// read reads what the server sends, and tells it how far that was.
func (o *Options) read(ctx context.Context, conn *pgconn.PgConn, system pglogrepl.IdentifySystemResult) error {
	var reached, told pglogrepl.LSN
	var at change.Change // the transaction whose changes come; without XID: it was told, or none is
	for {
		message, err := conn.ReceiveMessage(ctx)
		if err != nil {
			return err
		}
		if refused, ok := message.(*pgproto3.ErrorResponse); ok {
			return pgconn.ErrorResponseToPgError(refused)
		}
		data, ok := message.(*pgproto3.CopyData)
		if !ok || len(data.Data) == 0 {
			continue
		}
		owed := reached-told >= standingEvery
		switch data.Data[0] {
		case pglogrepl.PrimaryKeepaliveMessageByteID:
			alive, err := pglogrepl.ParsePrimaryKeepaliveMessage(data.Data[1:])
			if err != nil {
				return err
			}
			reached, owed = max(reached, alive.ServerWALEnd), true
		case pglogrepl.XLogDataByteID:
			log, err := pglogrepl.ParseXLogData(data.Data[1:])
			if err != nil {
				return err
			}
			if len(log.WALData) == 0 {
				return errors.New("a message of the log is empty")
			}
			reached = max(reached, log.WALStart)
			switch pglogrepl.MessageType(log.WALData[0]) {
			case pglogrepl.MessageTypeBegin:
				begin := pglogrepl.BeginMessage{}
				if err := begin.Decode(log.WALData[1:]); err != nil {
					return err
				}
				at = change.Change{XID: strconv.FormatUint(uint64(begin.Xid), 10), LSN: int64(begin.FinalLSN),
					DB: system.DBName, Log: fmt.Sprintf("%s/%d", system.SystemID, system.Timeline)}
			case pglogrepl.MessageTypeInsert, pglogrepl.MessageTypeUpdate, pglogrepl.MessageTypeDelete,
				pglogrepl.MessageTypeTruncate:
				if at.XID != "" {
					o.Logged(at)
					at.XID = ""
				}
			}
		}
		if owed {
			standing := pglogrepl.StandbyStatusUpdate{WALWritePosition: reached}
			if err := pglogrepl.SendStandbyStatusUpdate(ctx, conn, standing); err != nil {
				return err
			}
			told = reached
		}
	}
}
