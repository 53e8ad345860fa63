package rig

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/isowatch/isowatch/internal/lab/realkafka/node"
	"github.com/isowatch/isowatch/internal/process"
)

// Broker is a broker in a process of its own, so that what it takes can be told from what
// the monitor takes.
type Broker interface {
	// Name says which broker it is, for people.
	Name() string
	Addr() string
	PID() int
	Close() error
}

// Kafka is Apache Kafka.
type Kafka struct{ *node.Broker }

// StartKafka starts Apache Kafka on an empty directory. Where it can't be installed the error
// says what is missing.
func StartKafka(ctx context.Context, dir string) (Kafka, error) {
	// A topic of millions is more than the heap of a test's broker is made for.
	b, err := node.New(ctx, dir, node.Options{HeapMB: 1024, Settings: []string{"log.segment.bytes=268435456"}})
	if err != nil {
		return Kafka{}, err
	}
	return Kafka{b}, b.Start(ctx)
}

// Name implements Broker.
func (Kafka) Name() string { return "Apache Kafka " + node.Version }

// Close implements Broker.
func (k Kafka) Close() error {
	k.Kill()
	return nil
}

// Fake is kfake, which speaks Kafka's protocol and keeps all in memory.
type Fake struct {
	*process.Process
	addr string
	stop io.Closer
}

// ServeFake runs kfake in this process until in ends or a signal comes, and says its address on
// out: what the command that StartFake is given has to do.
func ServeFake(ctx context.Context, in io.Reader, out io.Writer) error {
	c, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		return fmt.Errorf("start kfake: %w", err)
	}
	defer c.Close()
	if _, err := fmt.Fprintln(out, c.ListenAddrs()[0]); err != nil {
		return fmt.Errorf("say where kfake is: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, in) // however it ends, it has
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
	return nil
}

// StartFake starts kfake by a command that calls ServeFake.
func StartFake(cmd *exec.Cmd) (*Fake, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	r, w := io.Pipe()
	cmd.Stdout = w
	p, err := process.Start(cmd)
	if err != nil {
		return nil, err
	}
	go func() {
		<-p.Exited()
		w.Close()
	}()
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		p.Kill()
		return nil, fmt.Errorf("start kfake: it ended: %s", strings.TrimSpace(p.Said()))
	}
	go func() { _, _ = io.Copy(io.Discard, r) }() // it says nothing more
	return &Fake{Process: p, addr: strings.TrimSpace(line), stop: in}, nil
}

// Name implements Broker.
func (*Fake) Name() string { return "kfake" }

// Addr implements Broker.
func (f *Fake) Addr() string { return f.addr }

// Close implements Broker.
func (f *Fake) Close() error {
	err := f.stop.Close()
	select {
	case <-f.Exited():
	case <-time.After(10 * time.Second):
		f.Kill()
	}
	return err
}

// CreateTopic makes a topic with so many partitions.
func CreateTopic(ctx context.Context, b Broker, topic string, partitions int) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Addr()))
	if err != nil {
		return err
	}
	defer cl.Close()
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = 10_000
	rt := kmsg.NewCreateTopicsRequestTopic()
	rt.Topic, rt.NumPartitions, rt.ReplicationFactor = topic, int32(partitions), 1
	policy := "delete"
	rt.Configs = []kmsg.CreateTopicsRequestTopicConfig{{Name: "cleanup.policy", Value: &policy}}
	req.Topics = append(req.Topics, rt)
	resp, err := req.RequestWith(ctx, cl)
	if err == nil {
		err = kerr.ErrorForCode(resp.Topics[0].ErrorCode)
	}
	if err != nil {
		return fmt.Errorf("create topic %s: %w", topic, err)
	}
	return nil
}
