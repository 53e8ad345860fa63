package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/isowatch/isowatch/internal/ports"
	"github.com/isowatch/isowatch/internal/process"
)

// Options say what a broker is like.
type Options struct {
	// Settings are further lines for its server.properties.
	Settings []string
	// HeapMB is how much memory Java may use for objects; 320.
	HeapMB int
}

// Broker is a Kafka node, running or not. Its methods are for one goroutine.
type Broker struct {
	java, libs, dir  string
	port, controller int
	secured          int // port of the SASL listener
	opt              Options

	process *process.Process // the last that was started
	runs    bool
}

// startMax bounds how long a broker may take to answer.
const startMax = 4 * time.Minute

// New installs Kafka if need be and formats a data directory in dir, which must be
// empty. The broker does not run yet.
func New(ctx context.Context, dir string, opt Options) (*Broker, error) {
	b := &Broker{dir: dir, opt: opt}
	var err error
	if b.java, err = java(); err != nil {
		return nil, err
	}
	if b.libs, err = install(ctx); err != nil {
		return nil, err
	}
	free, err := ports.Free(3)
	if err != nil {
		return nil, err
	}
	b.port, b.controller, b.secured = free[0], free[1], free[2]
	logging, err := files.ReadFile("log4j2.yaml")
	if err != nil {
		return nil, err
	}
	if err := errors.Join(os.WriteFile(b.path("log4j2.yaml"), logging, 0o644),
		os.WriteFile(b.path("server.properties"), []byte(b.properties()), 0o644)); err != nil {
		return nil, err
	}
	format := b.command(ctx, "kafka.tools.StorageTool", "format", "--standalone",
		"--cluster-id", "aXNvd2F0Y2gtdGVzdC0wMQ", "--config", b.path("server.properties"),
		"--add-scram", "SCRAM-SHA-256=[name="+User+",password="+Password+"]",
		"--add-scram", "SCRAM-SHA-512=[name="+User+",password="+Password+"]")
	if out, err := format.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("formatting Kafka's storage: %w: %s", err, out)
	}
	return b, nil
}

func (b *Broker) path(name string) string { return filepath.Join(b.dir, name) }

// properties is the configuration of a single node: broker and controller in
// one, everything replicated once, small and quick.
func (b *Broker) properties() string {
	lines := append([]string{
		"process.roles=broker,controller",
		"node.id=1",
		fmt.Sprintf("controller.quorum.bootstrap.servers=127.0.0.1:%d", b.controller),
		fmt.Sprintf("listeners=PLAINTEXT://127.0.0.1:%d,SECURED://127.0.0.1:%d,CONTROLLER://127.0.0.1:%d", b.port, b.secured,
			b.controller),
		"listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SECURED:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
		"inter.broker.listener.name=PLAINTEXT",
		"controller.listener.names=CONTROLLER",
		"sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
		"listener.name.secured.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required" +
			" user_" + User + "=\"" + Password + "\" user_" + Stranger + "=\"" + Password + "\";",
		"listener.name.secured.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule " +
			"required;",
		"listener.name.secured.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule " +
			"required;",
		"authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
		"super.users=User:ANONYMOUS;User:" + User,
		"log.dirs=" + b.path("data"),
		"auto.create.topics.enable=false",
		"offsets.topic.replication.factor=1",
		"offsets.topic.num.partitions=1",
		"transaction.state.log.replication.factor=1",
		"transaction.state.log.min.isr=1",
		"transaction.state.log.num.partitions=1",
		"share.coordinator.state.topic.replication.factor=1",
		"share.coordinator.state.topic.min.isr=1",
		"group.initial.rebalance.delay.ms=0",
		"num.network.threads=2",
		"num.io.threads=2",
		"num.recovery.threads.per.data.dir=1",
		"log.cleaner.dedupe.buffer.size=4194304",
		// A killed broker's session has to end before it may register again.
		"broker.session.timeout.ms=3000",
		"broker.heartbeat.interval.ms=500",
		"controlled.shutdown.enable=false",
	}, b.opt.Settings...)
	return strings.Join(lines, "\n") + "\n"
}

// command runs a main class of Kafka's.
func (b *Broker) command(ctx context.Context, class string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, b.java, append([]string{
		"-Xms128m", fmt.Sprintf("-Xmx%dm", cmp.Or(b.opt.HeapMB, 320)), "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-Xshare:auto", "-Djava.awt.headless=true",
		"-Dlog4j2.configurationFile=" + b.path("log4j2.yaml"),
		"-cp", filepath.Join(b.libs, "*"), class}, args...)...)
	cmd.Dir = b.dir
	return cmd
}

// The users of the secured listener. User, with PLAIN and SCRAM, may do
// everything; Stranger, with PLAIN, nothing.
const (
	User     = "watcher"
	Stranger = "stranger"
	Password = "secret"
)

// SecuredAddr is the host:port of a listener that asks for SASL, without TLS.
func (b *Broker) SecuredAddr() string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(b.secured))
}

// Addr is the broker's host:port, where everybody may do everything. It stays
// the same over restarts.
func (b *Broker) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(b.port)) }

// Start starts the broker on its data directory and returns when it answers. It must
// not be running.
func (b *Broker) Start(ctx context.Context) error {
	p, err := process.Start(b.command(context.WithoutCancel(ctx), "kafka.Kafka", b.path("server.properties")))
	if err != nil {
		return fmt.Errorf("starting Kafka: %w", err)
	}
	b.process, b.runs = p, true
	if err := b.ready(ctx); err != nil {
		b.Kill()
		return fmt.Errorf("starting Kafka: %w\n%s", err, b.Output())
	}
	return nil
}

// PID is the broker's process; 0 when it does not run.
func (b *Broker) PID() int {
	if !b.runs {
		return 0
	}
	return b.process.PID()
}

// Output is the end of what the broker has printed since it was started.
func (b *Broker) Output() string {
	if b.process == nil {
		return ""
	}
	return b.process.Said()
}

// ready waits until the broker leads what it stores.
func (b *Broker) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startMax)
	defer cancel()
	cl, err := b.client()
	if err != nil {
		return err
	}
	defer cl.Close()
	for tick := time.NewTicker(50 * time.Millisecond); ; {
		req := kmsg.NewPtrMetadataRequest()
		if resp, err := req.RequestWith(ctx, cl); err == nil && len(resp.Brokers) == 1 && led(resp) {
			tick.Stop()
			return nil
		}
		select {
		case <-tick.C:
		case <-b.process.Exited():
			return errors.New("it exited")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// led tells whether every partition has a leader.
func led(resp *kmsg.MetadataResponse) bool {
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if p.Leader < 0 {
				return false
			}
		}
	}
	return true
}

func (b *Broker) client() (*kgo.Client, error) {
	return kgo.NewClient(kgo.SeedBrokers(b.Addr()), kgo.MetadataMinAge(10*time.Millisecond))
}

// Kill ends the broker with SIGKILL and waits until it is gone. It may be called
// when it is gone already.
func (b *Broker) Kill() {
	if b.runs {
		b.process.Kill()
		b.runs = false
	}
}

// adminMillis is how long a broker may take for what it is asked: whoever asks waits for
// the answer anyway.
const adminMillis = 100_000

// CreateTopic creates a topic with so many partitions. One of the name must not be there.
func (b *Broker) CreateTopic(ctx context.Context, name string, partitions int, configs map[string]string) error {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = adminMillis
	rt := kmsg.NewCreateTopicsRequestTopic()
	rt.Topic, rt.NumPartitions, rt.ReplicationFactor = name, int32(partitions), 1
	for k, v := range configs {
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		c.Name, c.Value = k, &v
		rt.Configs = append(rt.Configs, c)
	}
	req.Topics = append(req.Topics, rt)
	if err := b.do(ctx, func(ctx context.Context, cl *kgo.Client) error {
		resp, err := req.RequestWith(ctx, cl)
		if err == nil {
			err = kerr.ErrorForCode(resp.Topics[0].ErrorCode)
		}
		return err
	}); err != nil {
		return err
	}
	// The topic is there when it has leaders, which is soon after.
	return b.ready(ctx)
}

// DeleteTopic deletes a topic.
func (b *Broker) DeleteTopic(ctx context.Context, name string) error {
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.TimeoutMillis = adminMillis
	req.TopicNames = []string{name}
	rt := kmsg.NewDeleteTopicsRequestTopic()
	rt.Topic = &name
	req.Topics = append(req.Topics, rt)
	return b.do(ctx, func(ctx context.Context, cl *kgo.Client) error {
		resp, err := req.RequestWith(ctx, cl)
		if err == nil {
			err = kerr.ErrorForCode(resp.Topics[0].ErrorCode)
		}
		return err
	})
}

// DeleteRecords deletes the records of a partition before an offset, as
// retention would.
func (b *Broker) DeleteRecords(ctx context.Context, topic string, partition int, before int64) error {
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.TimeoutMillis = adminMillis
	rt := kmsg.NewDeleteRecordsRequestTopic()
	rt.Topic = topic
	rp := kmsg.NewDeleteRecordsRequestTopicPartition()
	rp.Partition, rp.Offset = int32(partition), before
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	return b.do(ctx, func(ctx context.Context, cl *kgo.Client) error {
		resp, err := req.RequestWith(ctx, cl)
		if err == nil {
			err = kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode)
		}
		return err
	})
}

// do makes an administrative request. While the node is fenced, as it is when the machine
// let it go without a heartbeat for the time of a session, it has no room for a replica: that passes.
func (b *Broker) do(ctx context.Context, f func(context.Context, *kgo.Client) error) error {
	cl, err := b.client()
	if err != nil {
		return err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	err = f(ctx, cl)
	for errors.Is(err, kerr.InvalidReplicationFactor) && ctx.Err() == nil {
		select {
		case <-time.After(100 * time.Millisecond):
			err = f(ctx, cl)
		case <-ctx.Done():
		}
	}
	if err != nil {
		return fmt.Errorf("%w\nthe broker says:\n%s", err, b.Output())
	}
	return nil
}
