package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"flag"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/isowatch/isowatch/ingest/source"
	"github.com/isowatch/isowatch/ingest/source/kafka"
	"github.com/isowatch/isowatch/internal/lab/realkafka/node"
	"github.com/isowatch/isowatch/internal/lab/scripts"
)

// TestMain lets scripts call the monitor as a command: the test binary runs as
// `monitor` when it is started under that name.
//
// Scripts wait for servers most of the time, and so do it beside each other, whatever the number of processors.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	testscript.Main(m, map[string]func(){"monitor": main})
}

// TestScripts runs testdata/*.txtar: command lines with their exit status and
// what they print. UPDATE=1 rewrites expected files.
func TestScripts(t *testing.T) {
	t.Parallel()
	p := scripts.Params("testdata")
	p.Setup = func(env *testscript.Env) error {
		recorded, err := filepath.Abs(filepath.Join("judge", "testdata"))
		env.Setenv("RECORDED", recorded)
		return err
	}
	maps.Copy(p.Cmds, map[string]func(*testscript.TestScript, bool, []string){"truncate": truncate, "broker": broker, "produce": produce,
		"endless": endless, "timeless": timeless, "swap": swap, "head": head, "firstid": firstID})
	testscript.Run(t, p)
}

// truncate writes the first half of a file, compressed, to another:
//
//	truncate whole half.gz
func truncate(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: truncate FILE HALF.gz")
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write([]byte(strings.Repeat(ts.ReadFile(args[0]), 10)))
	ts.Check(err)
	ts.Check(w.Close())
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), b.Bytes()[:b.Len()/2], 0o644))
}

// broker starts a broker in this process for the rest of the script and puts its
// address into $BROKER. A secured one has a topic transactions, and wants TLS, whose authority is in ca.pem then, and user
// canary with password sesame77; a refusing one takes no record, as if each were too large; a real one is Apache Kafka in a process
// of its own, and its topic transactions has three partitions:
//
//	broker [secured | refusing | real]
func broker(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 1 || len(args) == 1 && args[0] != "secured" && args[0] != "refusing" && args[0] != "real" {
		ts.Fatalf("usage: broker [secured | refusing | real]")
	}
	if slices.Contains(args, "real") {
		dir, err := os.MkdirTemp("", "isowatch-kafka-")
		ts.Check(err)
		ts.Defer(func() { ts.Check(os.RemoveAll(dir)) })
		b, err := node.New(context.Background(), dir, node.Options{})
		ts.Check(err)
		ts.Defer(b.Kill)
		ts.Check(b.Start(context.Background()))
		ts.Check(b.CreateTopic(context.Background(), "transactions", 3, nil))
		ts.Setenv("BROKER", b.Addr())
		return
	}
	options := []kfake.Opt{kfake.NumBrokers(1)}
	if slices.Contains(args, "secured") {
		s := httptest.NewTLSServer(nil) // for its certificate
		defer s.Close()
		ts.Check(os.WriteFile(ts.MkAbs("ca.pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600))
		options = append(options, kfake.SeedTopics(1, "transactions"), kfake.TLS(&tls.Config{Certificates: s.TLS.Certificates, MinVersion: tls.VersionTLS12}),
			kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-256", "canary", "sesame77"))
	}
	c, err := kfake.NewCluster(options...)
	ts.Check(err)
	ts.Defer(c.Close)
	if slices.Contains(args, "refusing") {
		c.ControlKey(kmsg.Produce.Int16(), func(q kmsg.Request) (kmsg.Response, error, bool) {
			c.KeepControl()
			return refused(q.(*kmsg.ProduceRequest)), nil, true
		})
	}
	ts.Setenv("BROKER", c.ListenAddrs()[0])
}

func refused(q *kmsg.ProduceRequest) *kmsg.ProduceResponse {
	resp := q.ResponseKind().(*kmsg.ProduceResponse)
	for _, t := range q.Topics {
		topic := kmsg.NewProduceResponseTopic()
		topic.Topic, topic.TopicID = t.Topic, t.TopicID
		for _, p := range t.Partitions {
			partition := kmsg.NewProduceResponseTopicPartition()
			partition.Partition, partition.ErrorCode = p.Partition, kerr.MessageTooLarge.Code
			topic.Partitions = append(topic.Partitions, partition)
		}
		resp.Topics = append(resp.Topics, topic)
	}
	return resp
}

// produce sends messages to a topic, whatever they are:
//
//	produce TOPIC MESSAGE…
func produce(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: produce TOPIC MESSAGE…")
	}
	p, err := kafka.OpenProducer(context.Background(), kafka.ProducerOptions{
		Connection: kafka.Connection{Brokers: []string{ts.Getenv("BROKER")}}, Topic: args[0]})
	ts.Check(err)
	var msgs []source.Message
	for _, m := range args[1:] {
		msgs = append(msgs, source.Message{Key: []byte("k"), Value: []byte(m)})
	}
	ts.Check(p.Send(context.Background(), msgs...))
	ts.Check(p.Close())
}

// endless makes a file from which the lines come again and again until the script
// ends; without any nothing comes, and no end either:
//
//	endless FILE [LINE…]
func endless(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: endless FILE [LINE…]")
	}
	name := ts.MkAbs(args[0])
	if err := os.Remove(name); err != nil && !os.IsNotExist(err) {
		ts.Fatalf("%v", err)
	}
	pipe, err := fifo(name)
	ts.Check(err)
	ts.Defer(func() { ts.Check(pipe.Close()) })
	lines := []byte(strings.Repeat(strings.Join(args[1:], "\n")+"\n", 1000))
	go func() {
		for len(args) > 1 {
			if _, err := pipe.Write(lines); err != nil {
				return // closed
			}
		}
	}()
}

// seconds are what may differ from run to run.
var seconds = regexp.MustCompile(`("(?:seconds|decode|construct|prune|solve|explain|peak_bytes)":)[0-9.e+-]+|[0-9.]+ s$`)

// timeless copies a file, or stdout, without what may differ from run to run:
//
//	timeless FROM TO
func timeless(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: timeless FROM TO")
	}
	var out strings.Builder
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		out.WriteString(seconds.ReplaceAllString(strings.TrimSuffix(line, "\n"), "${1}0") + "\n")
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(out.String()), 0o644))
}

// swap exchanges two lines of a file, counted from 1:
//
//	swap FILE 3 4
func swap(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: swap FILE LINE LINE")
	}
	lines := strings.SplitAfter(ts.ReadFile(args[0]), "\n")
	i, err := strconv.Atoi(args[1])
	ts.Check(err)
	j, err := strconv.Atoi(args[2])
	ts.Check(err)
	lines[i-1], lines[j-1] = lines[j-1], lines[i-1]
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Join(lines, "")), 0o644))
}

// head copies the first line of a file:
//
//	head FROM TO
func head(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: head FROM TO")
	}
	line, _, _ := strings.Cut(ts.ReadFile(args[0]), "\n")
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(line+"\n"), 0o644))
}

// firstID puts the beginning of the id of a store's latest alert into a variable, of those that options of
// alerts list leave:
//
//	firstid STORE VARIABLE [OPTION…]
func firstID(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: firstid STORE VARIABLE [OPTION…]")
	}
	list := []string{"alerts", "list", "--store", args[0], "--output", "json", "--limit", "1"}
	ts.Check(ts.Exec("monitor", append(list, args[2:]...)...))
	var a struct{ ID string }
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &a))
	ts.Setenv(args[1], a.ID[:8])
}
