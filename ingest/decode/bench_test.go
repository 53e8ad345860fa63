package decode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/source"
	"github.com/isowatch/isowatch/ingest/source/kafka"
)

// blindW are n records as a busy topic has them: 24 sessions, 8 reads or 8 writes
// on 10,000 keys, unique integers, times.
func blindW(n int) []record.Transaction {
	rng := rand.New(rand.NewPCG(1, 2))
	value := int64(1_000_000)
	out := make([]record.Transaction, n)
	for i := range out {
		t := &out[i]
		*t = record.Transaction{DB: "default", Session: fmt.Sprintf("s%d", i%24), Seq: 1000 + int64(i/24), HasSeq: true, HasTimes: true}
		t.ID = fmt.Sprintf("%s#%d", t.Session, t.Seq)
		t.Start = 1732160000000000000 + int64(i)*8333
		t.End = t.Start + 1_000_000 + rng.Int64N(1_000_000)
		for range 8 {
			op := record.Op{Kind: record.OpKind(i % 2), Key: fmt.Sprintf("k:%d", rng.IntN(10_000)), Value: record.Int(value - rng.Int64N(40_000))}
			if op.Kind == record.Write {
				value++
				op.Value = record.Int(value)
			}
			t.Ops = append(t.Ops, op)
		}
	}
	return out
}

// messages are records as messages of one partition.
func messages(txns []record.Transaction) []source.Message {
	out := make([]source.Message, len(txns))
	for i := range txns {
		out[i] = source.Message{Pos: record.Position{Source: "t", Kafka: true, Offset: int64(i)}, Key: []byte(txns[i].Session),
			Value: codec.AppendJSON(nil, &txns[i]), Time: txns[i].End}
	}
	return out
}

// cpu is the processor time of this process so far, of all goroutines: what the
// throughput of a core is reckoned from.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// perCore reports records a second of processor time.
func perCore(b *testing.B, records int, began time.Duration) {
	spent := cpu(b) - began
	b.ReportMetric(float64(records)/spent.Seconds(), "records/s/core")
	b.ReportMetric(float64(records)/b.Elapsed().Seconds(), "records/s")
}

// From messages to batches, with and without their bytes for the journal.
func BenchmarkStage(b *testing.B) {
	batch := source.Batch{Messages: messages(blindW(3000)), Next: 3000}
	for _, c := range []struct {
		name    string
		workers int
		marshal bool
	}{{"1 worker", 1, false}, {"2 workers", 2, false}, {"2 workers, marshalled", 2, true}} {
		b.Run(c.name, func(b *testing.B) {
			src := &repeat{batch: batch}
			s := New(src, Options{Workers: c.workers})
			defer s.Close()
			ctx := b.Context()
			b.ReportAllocs()
			began, records := cpu(b), 0
			var bytes []byte
			for b.Loop() {
				out, err := s.Read(ctx)
				if err != nil {
					b.Fatal(err)
				}
				records += out.Len()
				if c.marshal {
					bytes = out.Marshal(bytes[:0])
				}
			}
			perCore(b, records, began)
			if c.marshal {
				b.ReportMetric(float64(len(bytes))/3000, "bytes/record")
			}
		})
	}
}

// repeat is a source that hands out the same batch for ever.
type repeat struct{ batch source.Batch }

func (r *repeat) Read(ctx context.Context) (source.Batch, error) { return r.batch, ctx.Err() }
func (r *repeat) Partitions() int                                { return 1 }
func (r *repeat) Close() error                                   { return nil }

// From a broker in this process, whose work is counted too, to batches and their
// bytes for the journal.
func BenchmarkKafka(b *testing.B) {
	const partitions, each = 4, 30_000
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(partitions, "t"))
	if err != nil {
		b.Fatal(err)
	}
	defer cluster.Close()
	conn := kafka.Connection{Brokers: cluster.ListenAddrs()}
	p, err := kafka.OpenProducer(b.Context(), kafka.ProducerOptions{Connection: conn, Topic: "t"})
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	if err := p.Send(b.Context(), messages(blindW(partitions*each))...); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	began, records := cpu(b), 0
	var bytes []byte
	for b.Loop() {
		src, err := kafka.Open(b.Context(), kafka.Options{Connection: conn, Topic: "t", UntilEnd: true})
		if err != nil {
			b.Fatal(err)
		}
		s := New(src, Options{Workers: 2})
		for {
			out, err := s.Read(b.Context())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				b.Fatal(err)
			}
			records += out.Len()
			bytes = out.Marshal(bytes[:0])
		}
		s.Close()
		src.Close()
	}
	perCore(b, records, began)
}
