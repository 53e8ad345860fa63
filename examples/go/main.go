// Command go is an application that adds to accounts: go run ./examples/go ADDRESS RECORDS CLIENTS TRANSACTIONS
package main

import (
	"context"
	"errors"
	"log"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/isowatch/isowatch/recorder"
	"github.com/isowatch/isowatch/recorder/pgxtap"
	"github.com/isowatch/isowatch/recorder/postgres"
)

func main() {
	ctx, address, clients, transactions := context.Background(), os.Args[1], number(os.Args[3]), number(os.Args[4])
	config, err := pgx.ParseConfig(address)
	check(err)
	file, err := os.Create(os.Args[2])
	check(err)
	rec := recorder.New(recorder.Lines(file), recorder.Options{DB: "shop"})
	defer rec.Close(ctx)
	tap, err := pgxtap.Open(ctx, rec, address, postgres.Options{Complete: true})
	check(err)
	config.AfterNetConnect = tap.Connection
	conn, err := pgx.ConnectConfig(ctx, config)
	check(err)
	_, err = conn.Exec(ctx, "create table account (id int primary key, n int)")
	check(err)
	_, err = conn.Exec(ctx, "insert into account values (0, 0), (1, 0)")
	check(err)
	check(conn.Close(ctx))

	var working sync.WaitGroup
	for client := range clients {
		working.Go(func() {
			conn, err := pgx.ConnectConfig(ctx, config)
			check(err)
			for done := 0; done < transactions; {
				err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return add(ctx, tx, (client+done)%2) })
				if failed := (*pgconn.PgError)(nil); errors.As(err, &failed) && failed.Code == "40001" {
					continue // again
				}
				check(err)
				done++
			}
			check(conn.Close(ctx))
		})
	}
	working.Wait()
}

// add adds 1 to an account.
func add(ctx context.Context, tx pgx.Tx, account int) error {
	var n int
	if err := tx.QueryRow(ctx, "select n from account where id = $1", account).Scan(&n); err != nil {
		return err
	}
	time.Sleep(2 * time.Millisecond) // the application thinks
	_, err := tx.Exec(ctx, "update account set n = $1 where id = $2", n+1, account)
	return err
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	check(err)
	return n
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
