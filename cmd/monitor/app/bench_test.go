package app

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/rs/zerolog"

	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/generate"
	"github.com/isowatch/isowatch/ingest/record"
)

// BenchmarkRun is everything but Kafka and the disk: a file of 100,000 BlindW-RW
// transactions with times, 8 operations, 24 sessions, 10,000 keys, is decoded, put
// in order and checked at si as a stream, to its end.
func BenchmarkRun(b *testing.B) {
	const n = 100_000
	path := filepath.Join(b.TempDir(), "h.jsonl")
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	g, err := generate.New(generate.Config{Level: generate.StrongSI, Workload: generate.BlindW, Transactions: n, Seed: 7})
	if err != nil {
		b.Fatal(err)
	}
	w := bufio.NewWriter(f)
	var line []byte
	for t := range g.Transactions() {
		line = append(codec.AppendJSON(line[:0], &t), '\n')
		if _, err := w.Write(line); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	c := config.Default()
	c.Source.File = &config.File{Path: path}
	c.Levels = []verdict.Level{verdict.SI}
	c.Coverage = record.CoverageComplete
	c.HTTP.Listen = ""
	for b.Loop() {
		a, err := New(Options{Config: c, Log: zerolog.Nop(), UntilEnd: true, Store: newMemStore()})
		if err != nil {
			b.Fatal(err)
		}
		if err := a.Run(context.Background()); err != nil {
			b.Fatal(err)
		}
		if got := a.Reports()[0].Results[0].Verdict; got != "satisfied" {
			b.Fatalf("the verdict is %s", got)
		}
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "txn/s")
}
