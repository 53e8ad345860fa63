package pgxtap_test

import (
	"context"
	"fmt"
	"os"

	"github.com/jackc/pgx/v5"

	"github.com/isowatch/isowatch/recorder"
	"github.com/isowatch/isowatch/recorder/pgxtap"
	"github.com/isowatch/isowatch/recorder/postgres"
)

// An application records what its transactions read and wrote, by one line where it connects. It is the only one that writes these
// tables, and says so by Complete; then monitor check --initial absent --coverage complete judges the file.
func Example() {
	ctx, url := context.Background(), os.Getenv("DATABASE_URL")
	file, err := os.Create("records.jsonl")
	if err != nil {
		panic(err)
	}
	rec := recorder.New(recorder.Lines(file), recorder.Options{DB: "shop"})
	defer rec.Close(ctx)
	tap, err := pgxtap.Open(ctx, rec, url, postgres.Options{Complete: true})
	if err != nil {
		panic(err)
	}

	config, err := pgx.ParseConfig(url)
	if err != nil {
		panic(err)
	}
	config.AfterNetConnect = tap.Connection // the line
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		panic(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "update accounts set balance = $1 where id = $2", 90, 7); err != nil {
		panic(err)
	}

	for _, u := range tap.Capture.Unclear() { // what was not understood
		fmt.Println(u.Count, u.Reason, u.Text)
	}
}
