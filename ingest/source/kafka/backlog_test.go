package kafka_test

import (
	"errors"
	"io"
	"runtime"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/isowatch/isowatch/ingest/decode"
	"github.com/isowatch/isowatch/ingest/source/kafka"
	"github.com/isowatch/isowatch/internal/lab/endless"
	"github.com/isowatch/isowatch/internal/lab/rig"
	"github.com/isowatch/isowatch/window/order"
)

// backlog fills a topic of four partitions with a stream of 24 sessions, which do
// not spread evenly.
func backlog(b *testing.B, transactions int) kafka.Options {
	b.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(4, "t"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(cluster.Close)
	enc, err := rig.EncodingNamed("json")
	if err != nil {
		b.Fatal(err)
	}
	addr := cluster.ListenAddrs()[0]
	feed, err := rig.NewFeed(addr, "t", enc)
	if err != nil {
		b.Fatal(err)
	}
	defer feed.Close()
	stream, err := endless.New(endless.Config{})
	if err != nil {
		b.Fatal(err)
	}
	for range transactions {
		t, _ := stream.Next()
		if err := feed.Send(b.Context(), feed.Encode(t)); err != nil {
			b.Fatal(err)
		}
	}
	if err := feed.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
	return kafka.Options{Connection: kafka.Connection{Brokers: []string{addr}}, Topic: "t", UntilEnd: true}
}

// A million transactions wait in the topic. What is reported beside the rate is
// how many of them wait in the order at most, and how much memory source and
// decoder hold once nobody reads on.
func BenchmarkBacklog(b *testing.B) {
	const transactions = 1_000_000
	opts := backlog(b, transactions)
	b.ResetTimer()
	for b.Loop() {
		peak, held := 0, int64(0)
		before := heap()
		src, err := kafka.Open(b.Context(), opts)
		if err != nil {
			b.Fatal(err)
		}
		stage := decode.New(src, decode.Options{})
		b.StopTimer()
		for was := int64(-1 << 30); held > was+1<<18; { // until it is full
			was = held
			time.Sleep(200 * time.Millisecond)
			held = heap() - before
		}
		b.StartTimer()
		o := order.New(order.Options{Lateness: 2 * time.Second, IdleAfter: time.Minute, MaxBuffered: 2_000_000, Partitions: []int{0, 1, 2, 3}})
		for ref := uint64(0); ; {
			batch, err := stage.Read(b.Context())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				b.Fatal(err)
			}
			for i := range batch.Len() {
				h := batch.Head(i)
				o.Add(batch.Partition, &h, ref, batch.Arrivals[i])
				ref++
			}
			peak = max(peak, o.Held())
			for {
				if _, ok := o.Next(); !ok {
					break
				}
			}
		}
		b.ReportMetric(float64(peak), "waiting")
		b.ReportMetric(float64(held)/(1<<20), "MiB-held")
		stage.Close()
		src.Close()
	}
	b.ReportMetric(transactions*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}

// heap is what is reachable.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
