package kafka

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/isowatch/isowatch/ingest/source"
	"github.com/isowatch/isowatch/internal/lab/race"
	"github.com/isowatch/isowatch/internal/lab/realkafka"
)

// TestRealKafka runs against Apache Kafka itself; its parts share a broker.
func TestRealKafka(t *testing.T) {
	race.SkipBeforeCI(t)
	t.Parallel()
	b := realkafka.Start(t)
	t.Run("transactions, kill -9, restarts", func(t *testing.T) { realTransactions(t, b) })
	t.Run("deleted records", func(t *testing.T) { realDeleted(t, b) })
	t.Run("topic created anew", func(t *testing.T) { realRecreated(t, b) })
	t.Run("start-up errors", func(t *testing.T) { realStartup(t, b) })
	t.Run("SASL, rights, TLS where none is", func(t *testing.T) { realSecured(t, b) })
	t.Run("producer and a 50 MB message", func(t *testing.T) { realProducer(t, b) })
}

func realOptions(b *realkafka.Broker, topic string) Options {
	return Options{Connection: Connection{Brokers: []string{b.Addr()}}, Topic: topic,
		RetryMin: 10 * time.Millisecond, RetryMax: 200 * time.Millisecond, Refresh: 500 * time.Millisecond}
}

func realContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// readEnd reads a source with UntilEnd to its end and hands on every batch.
func readEnd(t *testing.T, opts Options, each func(source.Batch)) {
	t.Helper()
	opts.UntilEnd = true
	s, err := Open(realContext(t), opts)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for {
		b, err := s.Read(realContext(t))
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		each(b)
	}
}

// realTransactions writes committed and aborted transactions and plain records,
// kills the broker meanwhile, and reads all the time with a reader that is
// itself restarted at stored offsets. Every record whose write was
// acknowledged is read exactly once, no other is.
func realTransactions(t *testing.T, b *realkafka.Broker) {
	const (
		topic      = "transactions"
		partitions = 3
		txns       = 120
		seed       = 1
	)
	b.CreateTopic(t, topic, partitions, nil)
	ctx := realContext(t)

	type outcome uint8
	const (
		committed outcome = iota + 1
		aborted
		unknown // the broker died before it answered
	)
	written := map[string]outcome{}
	killAt, struck, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		rng := rand.New(rand.NewPCG(seed, 0))
		connect := func(id string) *kgo.Client {
			opts := []kgo.Opt{kgo.SeedBrokers(b.Addr()), kgo.DefaultProduceTopic(topic), kgo.RecordPartitioner(kgo.ManualPartitioner()),
				kgo.ProducerBatchCompression(kgo.Lz4Compression(), kgo.NoCompression()), kgo.MetadataMinAge(50 * time.Millisecond)}
			if id != "" {
				opts = append(opts, kgo.TransactionalID(id))
			}
			cl, err := kgo.NewClient(opts...)
			if err != nil {
				panic(err) // the options are constant
			}
			return cl
		}
		plain, txn := connect(""), connect("writer")
		defer func() { plain.Close(); txn.Close() }()
		for i := range txns {
			if i == txns/2 {
				close(killAt)
			}
			if i == txns*3/4 { // however slow the reader is to kill it, it is while there is more to write
				select {
				case <-struck:
				case <-ctx.Done():
				}
			}
			name := fmt.Sprintf("plain-%d", i)
			if err := plain.ProduceSync(ctx, &kgo.Record{Partition: int32(i % partitions), Value: []byte(name)}).FirstErr(); err != nil {
				written[name] = unknown
			} else {
				written[name] = committed
			}
			if err := txn.BeginTransaction(); err != nil {
				t.Errorf("begin of transaction %d: %v", i, err)
				return
			}
			var records []*kgo.Record
			for k := range 1 + rng.IntN(6) {
				records = append(records, &kgo.Record{Partition: int32(rng.IntN(partitions)), Value: fmt.Appendf(nil, "txn-%d-%d", i, k)})
			}
			err := txn.ProduceSync(ctx, records...).FirstErr()
			end, result := kgo.TryCommit, committed
			if err != nil || rng.IntN(2) == 0 {
				end, result = kgo.TryAbort, aborted
			}
			if err := txn.EndTransaction(ctx, end); err != nil {
				t.Logf("end of transaction %d: %v", i, err)
				if result == committed {
					result = unknown
				}
				// A client in an unknown state is replaced; its successor fences it.
				txn.Close()
				txn = connect("writer")
			}
			for _, r := range records {
				written[string(r.Value)] = result
			}
		}
	}()

	read := map[string]int{}
	offsets := map[int]int64{}
	take := func(batch source.Batch) {
		for _, g := range batch.Gaps {
			t.Errorf("a gap where nothing was deleted: %+v", g)
		}
		for _, m := range batch.Messages {
			read[string(m.Value)]++
		}
		offsets[batch.Partition] = batch.Next
	}
	opts := realOptions(b, topic)
	opts.Offsets = offsets
	killed := false
	for ended := false; !ended; {
		s, err := Open(ctx, opts)
		if err != nil {
			t.Fatal(err)
		}
		for range 25 {
			select {
			case <-done:
				ended = true
			case <-killAt:
				if !killed {
					killed = true
					b.Kill()
					close(struck)
					b.Restart(t)
				}
			default:
			}
			if ended {
				break
			}
			readCtx, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
			batch, err := s.Read(readCtx)
			cancel()
			if errors.Is(err, context.DeadlineExceeded) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			take(batch)
		}
		s.Close()
	}
	readEnd(t, opts, take)

	counts := map[outcome]int{}
	for name, o := range written {
		n := read[name]
		delete(read, name)
		counts[o]++
		switch {
		case o == committed && n != 1:
			t.Errorf("%s was committed and read %d times", name, n)
		case o == aborted && n != 0:
			t.Errorf("%s was aborted and read %d times", name, n)
		case n > 1:
			t.Errorf("%s was read %d times", name, n)
		}
	}
	for name := range read {
		t.Errorf("%s was read and never written", name)
	}
	if !killed || counts[committed] == 0 || counts[aborted] == 0 {
		t.Errorf("the test did not test: killed %v, outcomes %v", killed, counts)
	}
	t.Logf("%d committed, %d aborted, %d unknown", counts[committed], counts[aborted], counts[unknown])
}

func realDeleted(t *testing.T, b *realkafka.Broker) {
	const topic = "deleted"
	b.CreateTopic(t, topic, 1, nil)
	p := realProducerOpen(t, b, topic)
	for i := range 10 {
		if err := p.Send(realContext(t), source.Message{Key: []byte("s"), Value: fmt.Append(nil, i)}); err != nil {
			t.Fatal(err)
		}
	}
	b.DeleteRecords(t, topic, 0, 6)
	opts := realOptions(b, topic)
	opts.Offsets = map[int]int64{0: 2}
	var text []string
	readEnd(t, opts, func(b source.Batch) {
		for _, g := range b.Gaps {
			text = append(text, fmt.Sprintf("gap %d-%d", g.From, g.To))
		}
		for _, m := range b.Messages {
			text = append(text, fmt.Sprintf("%d:%s", m.Pos.Offset, m.Value))
		}
	})
	if got, want := strings.Join(text, " "), "gap 2-6 6:6 7:7 8:8 9:9"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func realRecreated(t *testing.T, b *realkafka.Broker) {
	const topic = "recreated"
	send := func(values ...string) {
		p := realProducerOpen(t, b, topic)
		defer p.Close()
		for _, v := range values {
			if err := p.Send(realContext(t), source.Message{Key: []byte("s"), Value: []byte(v)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	b.CreateTopic(t, topic, 1, nil)
	send("a", "b")
	s, err := Open(realContext(t), realOptions(b, topic))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var text []string
	until := func(last string) {
		for len(text) == 0 || text[len(text)-1] != last {
			batch, err := s.Read(realContext(t))
			if err != nil {
				t.Fatal(err, text)
			}
			for _, g := range batch.Gaps {
				text = append(text, fmt.Sprintf("gap %d-%d", g.From, g.To))
			}
			for _, m := range batch.Messages {
				text = append(text, fmt.Sprintf("%d:%s", m.Pos.Offset, m.Value))
			}
		}
	}
	until("1:b")
	b.DeleteTopic(t, topic)
	b.CreateTopic(t, topic, 1, nil)
	send("c", "d", "e", "f")
	until("3:f")
	if got, want := strings.Join(text, " "), "0:a 1:b gap 2-2 0:c 1:d 2:e 3:f"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func realStartup(t *testing.T, b *realkafka.Broker) {
	b.CreateTopic(t, "compacted", 1, map[string]string{"cleanup.policy": "compact,delete"})
	for topic, says := range map[string]string{"missing": "no such topic", "compacted": "is compacted"} {
		_, err := Open(realContext(t), realOptions(b, topic))
		var se *source.StartupError
		if !errors.As(err, &se) || !strings.Contains(err.Error(), says) || se.Do == "" {
			t.Errorf("topic %s: got %v, want a start-up error saying %q", topic, err, says)
		}
	}
}

func realSecured(t *testing.T, b *realkafka.Broker) {
	const topic = "secured"
	b.CreateTopic(t, topic, 1, nil)
	as := func(mechanism, user, password string) Options {
		opts := realOptions(b, topic)
		opts.Brokers = []string{b.SecuredAddr()}
		opts.SASL = &SASL{Mechanism: mechanism, Username: user, Password: password}
		return opts
	}
	for _, m := range []string{Plain, ScramSHA256, ScramSHA512} {
		readEnd(t, as(m, realkafka.User, realkafka.Password), func(source.Batch) {})
		refused(t, as(m, realkafka.User, "wrong"), "refuses the credentials")
	}
	refused(t, as(Plain, realkafka.Stranger, realkafka.Password), "no right to read it")
	none := as(Plain, "", "")
	none.SASL = nil
	refused(t, none, "expects SASL", "SCRAM-SHA-512")
	_, _, ca, _, _ := authority(t)
	tls := realOptions(b, topic)
	tls.TLS = &TLS{CA: ca}
	refused(t, tls, "does not speak TLS")
	open := realOptions(b, topic)
	open.SASL = as(Plain, realkafka.User, realkafka.Password).SASL
	refused(t, open, "does not expect SASL")
}

func realProducerOpen(t *testing.T, b *realkafka.Broker, topic string) *Producer {
	t.Helper()
	p, err := OpenProducer(realContext(t), ProducerOptions{Connection: Connection{Brokers: []string{b.Addr()}}, Topic: topic, Partitions: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func realProducer(t *testing.T, b *realkafka.Broker) {
	const topic = "produced"
	b.CreateTopic(t, topic, 2, map[string]string{"max.message.bytes": fmt.Sprint(60 << 20)})
	p := realProducerOpen(t, b, topic)
	var messages []source.Message
	for i := range 1000 {
		messages = append(messages, source.Message{Key: fmt.Append(nil, "session-", i%7), Value: fmt.Append(nil, i), ContentType: "application/json"})
		if i == 500 {
			messages = append(messages, source.Message{Key: []byte("session-0"), Value: make([]byte, 50<<20)})
		}
	}
	if err := p.Send(realContext(t), messages...); err != nil {
		t.Fatal(err)
	}
	n, oversize := 0, 0
	last := map[string]int{}  // value by session
	where := map[string]int{} // partition by session
	readEnd(t, realOptions(b, topic), func(b source.Batch) {
		if len(b.Gaps) > 0 {
			t.Errorf("gaps %v", b.Gaps)
		}
		for _, m := range b.Messages {
			key := string(m.Key)
			if p, ok := where[key]; ok && p != b.Partition {
				t.Errorf("session %s in two partitions", key)
			}
			where[key] = b.Partition
			if m.Oversize > 0 {
				oversize++
				if m.Oversize != 50<<20 || key != "session-0" || last[key] > 500 {
					t.Errorf("oversize %d of %s after %d", m.Oversize, key, last[key])
				}
				continue
			}
			n++
			var v int
			if _, err := fmt.Sscan(string(m.Value), &v); err != nil {
				t.Fatalf("%q: %v", m.Value, err)
			}
			if v < last[key] || m.ContentType != "application/json" {
				t.Errorf("%s: %d after %d, %q", key, v, last[key], m.ContentType)
			}
			last[key] = v
		}
	})
	if n != 1000 || oversize != 1 || len(where) != 7 {
		t.Errorf("%d records, %d oversize, %d sessions", n, oversize, len(where))
	}
}
