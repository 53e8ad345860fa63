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
	g, err := generate.New(generate.Config{Level: verdict.StrongSI, Workload: generate.BlindW, Transactions: n, Seed: 7})
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

// BenchmarkAlerts is a database that gives si and is watched at ser: 3,000 transactions on 300
// keys, of which nearly each hundred has three anomalies, most of them cycles that were found
// by search. Each is proved by itself and made small.
func BenchmarkAlerts(b *testing.B) {
	path := filepath.Join(b.TempDir(), "h.jsonl")
	g, err := generate.New(generate.Config{Level: verdict.SI, Transactions: 3000, Keys: 300, Seed: 5})
	if err != nil {
		b.Fatal(err)
	}
	var file []byte
	for t := range g.Transactions() {
		file = append(codec.AppendJSON(file, &t), '\n')
	}
	if err := os.WriteFile(path, file, 0o600); err != nil {
		b.Fatal(err)
	}
	c := config.Default()
	c.Source.File = &config.File{Path: path}
	c.Levels = []verdict.Level{verdict.SER}
	c.HTTP.Listen = ""
	told := 0
	for b.Loop() {
		store := newMemStore()
		a, err := New(Options{Config: c, Log: zerolog.Nop(), UntilEnd: true, Store: store})
		if err != nil {
			b.Fatal(err)
		}
		if err := a.Run(context.Background()); err != nil {
			b.Fatal(err)
		}
		if told = len(store.alerts); told < 50 {
			b.Fatalf("%d alerts", told)
		}
	}
	b.ReportMetric(b.Elapsed().Seconds()*1000/float64(b.N)/float64(told), "ms/alert")
}
