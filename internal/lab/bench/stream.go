package bench

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/isowatch/isowatch/ingest/generate"
	"github.com/isowatch/isowatch/internal/lab/endless"
	"github.com/isowatch/isowatch/internal/lab/rig"
)

// The peers of all of a stream's figures.
var (
	peerAION     = Peer{"AION about 12,000/s for 15 s, 48 GB heap; bounded 3,000 (ser), 1,200 (si). Cobra 2,000 to 3,000 (ser)", "AION, Cobra"}
	peerLatency  = Peer{"", "none states one"}
	levelsOfBoth = "si,ser"
)

// The stream that all rows have, and what is asked of it: half of the rate is what
// alerts are timed at.
const (
	streamRate       = 120_000
	streamPartitions = 4
	latenessDefault  = 2 * time.Second
)

// streams is the suite of the monitor as it runs: Kafka, decoding, engine, store, alerts.
func streams() Suite {
	s := Suite{Name: "stream", About: "`monitor run` as a process of its own, reading a topic of BlindW-RW: 8 operations, 24 sessions, 4 partitions. " +
		"The broker runs on the same machine and shares its cores; its part is listed apart", Head: (*Env).head, Runs: 1} // a run takes half a minute
	for _, b := range []string{brokerKafka, brokerFake} {
		for _, v := range []struct {
			name, work string
			cfg        endless.Config
			target     Target
		}{
			{"10k", "10,000 keys", endless.Config{}, Target{PerSecond: streamRate, MB: 300, Flat: 1.05, Even: 1.10}},
			{"1m", "1,000,000 keys", endless.Config{Keys: 1_000_000}, Target{}},
			{"zipf", "10,000 keys, Zipfian (0.99)", endless.Config{Distribution: generate.Zipf}, Target{}},
		} {
			for _, l := range []struct{ name, level string }{{"ser", "ser"}, {"si", "si"}, {"both", levelsOfBoth}} {
				row := Row{Name: b + "-" + v.name + "-" + l.name, Work: v.work, Level: l.level, Target: v.target, Measure: throughput(b, v.name, v.cfg, l.level)}
				if v.name == "10k" {
					row.Peer = peerAION
				}
				if l.level == levelsOfBoth {
					row.Target = Target{}
				}
				s.Rows = append(s.Rows, row)
			}
		}
		s.Rows = append(s.Rows,
			Row{Name: b + "-latency", Work: "an alert after the anomaly's last record, 60,000/s", Level: levelsOfBoth, Peer: peerLatency,
				Target: Target{Latency: (500 * time.Millisecond).Seconds()}, Measure: alertLatency(b)},
			Row{Name: b + "-restart", Work: "ready and reading after kill -9 with a full window", Level: levelsOfBoth, Peer: peerLatency,
				Target: Target{Seconds: 3}, Measure: restart(b)})
	}
	return s
}

// head says how streams are measured.
func (e *Env) head() string {
	head := fmt.Sprintf(". Records in %s, %s", e.encoding.Name, strings.Join(e.opt.Set, ", "))
	if e.opt.Reading > 0 {
		head += fmt.Sprintf("; each row reads for %v at most, and is of the transactions that were judged by then", e.opt.Reading)
	}
	return head
}

// Streamed are the figures of a stream beyond those that all rows have.
type Streamed struct {
	Broker       string  `json:"broker"`
	Encoding     string  `json:"encoding"`
	Transactions int64   `json:"transactions"`       // in the topic
	Measured     int64   `json:"measured,omitempty"` // that were judged meanwhile
	RecordBytes  float64 `json:"record_bytes"`       // of each, on average
	// Memory is resident bytes, CPU seconds of all cores for a transaction, each on average over
	// the second tenth of the stream and the last.
	Memory *Tenths `json:"memory,omitempty"`
	CPU    *Tenths `json:"cpu,omitempty"`
	// Waited is the longest that reading waited at once for what was read before to be judged, seconds.
	Waited float64 `json:"waited"`
	// BrokerCPU is what the broker took meanwhile, seconds of all cores for a transaction.
	BrokerCPU float64 `json:"broker_cpu,omitempty"`
	// Forgotten is what the monitor says that it gave up, by cause.
	Forgotten map[string]float64 `json:"forgotten,omitempty"`
	Latency   *Latency           `json:"latency,omitempty"`
	Restart   *Restart           `json:"restart,omitempty"`
	// Planted anomalies, and of these those that were alerted; Invented alerts are of none.
	Planted  int `json:"planted"`
	Found    int `json:"found"`
	Invented int `json:"invented"`
}

// Tenths compares the second tenth of a stream with its last.
type Tenths struct {
	Second float64 `json:"second"`
	Last   float64 `json:"last"`
}

func (t *Tenths) growth() float64 {
	if t == nil || t.Second == 0 {
		return 0
	}
	return t.Last / t.Second
}

// Latency is how long alerts take, seconds.
type Latency struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// Restart is how long it takes after the start of a monitor whose predecessor was killed,
// seconds, until /readyz says so and until the first record was read after.
type Restart struct {
	Ready   float64 `json:"ready"`
	Reading float64 `json:"reading"`
}

// wrong says what the monitor found that is not there, or missed.
func (s *Streamed) wrong() string {
	switch {
	case s == nil:
		return ""
	case s.Invented > 0:
		return fmt.Sprintf("%d alerts are of nothing that was planted", s.Invented)
	case s.Found < s.Planted:
		return fmt.Sprintf("%d of %d planted anomalies were not alerted", s.Planted-s.Found, s.Planted)
	}
	return ""
}

// The brokers.
const (
	brokerKafka = "kafka"
	brokerFake  = "kfake"
)

// broker starts a broker when it is first asked for.
func (e *Env) broker(ctx context.Context, kind string) (rig.Broker, error) {
	if b := e.brokers[kind]; b != nil {
		return b, nil
	}
	e.opt.Progress("starting " + kind)
	var b rig.Broker
	if kind == brokerFake {
		path, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("find the running program: %w", err)
		}
		own := exec.Command(path, "broker")
		own.Args[0] = os.Args[0] // a test is the command that it is called by
		f, err := rig.StartFake(own)
		if err != nil {
			return nil, err
		}
		b = f
	} else {
		dir := filepath.Join(e.dir, "kafka")
		if err := os.Mkdir(dir, 0o755); err != nil {
			return nil, err
		}
		k, err := rig.StartKafka(ctx, dir)
		if err != nil {
			return nil, skipf("Apache Kafka can't be run here: %v", err)
		}
		b = k
	}
	e.brokers[kind] = b
	return b, nil
}

// topic is a topic that holds a stream.
type topic struct {
	broker       rig.Broker
	name         string
	transactions int64
	bytes        float64 // of a record
	rate         float64 // of the stream's time
}

// topicOf fills a topic when it is first asked for: the same stream for all levels.
func (e *Env) topicOf(ctx context.Context, kind, variant string, cfg endless.Config) (topic, error) {
	name := "stream-" + variant
	if t, ok := e.topics[kind+" "+name]; ok {
		return t, nil
	}
	b, err := e.broker(ctx, kind)
	if err != nil {
		return topic{}, err
	}
	n := max(int64(math.Round(float64(e.opt.Transactions)*e.opt.Scale)), 100)
	// A short stream is slower in its own time, so that it is longer than what waits for late records.
	cfg.Rate = min(streamRate, float64(n)/20)
	cfg.Seed = 1
	t := topic{broker: b, name: name, transactions: n, rate: cfg.Rate}
	if err := rig.CreateTopic(ctx, b, name, streamPartitions); err != nil {
		return t, err
	}
	s, err := endless.New(cfg)
	if err != nil {
		return t, err
	}
	f, err := rig.NewFeed(b.Addr(), name, e.encoding)
	if err != nil {
		return t, err
	}
	defer f.Close()
	for i := range n {
		x, _ := s.Next()
		if err := f.Send(ctx, f.Encode(x)); err != nil {
			return t, err
		}
		if i%100_000 == 0 {
			e.opt.Progress(fmt.Sprintf("filling topic %s of %s, %d%%", name, kind, 100*i/n))
		}
	}
	if err := f.Flush(ctx); err != nil {
		return t, err
	}
	t.bytes = float64(f.Bytes()) / float64(n)
	e.topics[kind+" "+name] = t
	return t, nil
}

// EncodingList names the encodings that a topic can have.
func EncodingList() string {
	var names []string
	for _, enc := range rig.Encodings() {
		names = append(names, enc.Name)
	}
	return strings.Join(names, ", ")
}

// watch starts a monitor on a topic, with a store of its own unless one is given, and a
// receiver for its alerts.
func (e *Env) watch(t topic, level, store string, r *rig.Receiver) (*rig.Monitor, error) {
	dir := store + ".d"
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return rig.StartMonitor(rig.MonitorOptions{Command: rig.Program(e.opt.Monitor), Dir: dir, Store: store, Brokers: []string{t.broker.Addr()}, Topic: t.name, Levels: level,
		Webhook: r.URL, Set: e.opt.Set})
}

// store is the folder of a new store.
func (e *Env) store() string {
	e.stores++
	return filepath.Join(e.dir, fmt.Sprintf("store-%d", e.stores))
}

// removeStore makes room again.
func removeStore(path string) {
	_ = os.RemoveAll(path)        // the directory that it is in goes
	_ = os.RemoveAll(path + ".d") // away in the end anyhow
}

// The metrics that are followed.
const (
	metricJudged    = "isowatch_transactions_total"
	metricRead      = "isowatch_records_total"
	metricBehind    = "isowatch_source_lag_records"
	metricRejected  = "isowatch_rejected_total"
	metricForgotten = "isowatch_forgotten_total"
	metricWaited    = "isowatch_overload_blocked_longest_seconds"
)

// stallMax is how long a monitor that is being watched may do nothing.
const stallMax = 3 * time.Minute

// sampleEvery is how often a running monitor is looked at.
const sampleEvery = 200 * time.Millisecond

// sample is one look.
type sample struct {
	at     float64 // seconds since the monitor was started
	read   float64 // records
	judged float64 // transactions
	memory float64 // bytes
	cpu    float64 // seconds
}

// throughput measures how fast a monitor reads a topic from its beginning, with what memory and
// at what cost.
func throughput(kind, variant string, cfg endless.Config, level string) func(context.Context, *Env) (Measured, error) {
	return func(ctx context.Context, e *Env) (Measured, error) {
		t, err := e.topicOf(ctx, kind, variant, cfg)
		if err != nil {
			return Measured{}, err
		}
		var runs []Measured
		for run := range e.opt.Runs {
			m, err := e.readThrough(ctx, t, level, fmt.Sprintf("%s of %s at %s, run %d of %d", t.name, kind, level, run+1, e.opt.Runs))
			if err != nil {
				return m, err
			}
			runs = append(runs, m)
		}
		slices.SortFunc(runs, func(a, b Measured) int { return int(a.PerSecond - b.PerSecond) })
		m := runs[len(runs)/2]
		m.Runs = len(runs)
		return m, nil
	}
}

// readThrough is one run of throughput.
func (e *Env) readThrough(ctx context.Context, t topic, level, label string) (m Measured, err error) {
	r, err := rig.NewReceiver()
	if err != nil {
		return m, err
	}
	defer r.Close()
	store := e.store()
	defer removeStore(store)
	brokerBefore, err := rig.UsageOf(t.broker.PID())
	if err != nil {
		return m, skipf("%v", err)
	}
	mon, err := e.watch(t, level, store, r)
	if err != nil {
		return m, err
	}
	defer mon.Kill()
	goal := e.reachable(t)
	samples, metrics, err := e.follow(ctx, mon, func(s sample) bool {
		e.opt.Progress(fmt.Sprintf("%s, %d%%", label, int(100*s.judged/goal)))
		return s.judged >= goal || e.enough(s)
	})
	if err != nil {
		return m, err
	}
	goal = min(goal, samples[len(samples)-1].judged)
	use, err := rig.UsageOf(mon.PID())
	if err != nil {
		return m, err
	}
	brokerAfter, err := rig.UsageOf(t.broker.PID())
	if err != nil {
		return m, err
	}
	stream := e.streamed(t)
	stream.Measured, stream.Waited = int64(goal), metrics.Sum(metricWaited)
	stream.Forgotten = metrics.By(metricForgotten, "why")
	stream.tenths(samples, goal)
	stream.BrokerCPU = (brokerAfter.CPU - brokerBefore.CPU).Seconds() / samples[len(samples)-1].read
	began := beginning(samples)
	took := crossing(samples, goal).at - began
	m = Measured{Histories: 1, Runs: 1, Seconds: took, PerSecond: goal / took, PeakBytes: use.Peak, Stream: stream,
		How: fmt.Sprintf("monitor run --level %s on a topic of %d transactions", level, t.transactions)}
	got, err := r.Receipts()
	stream.Invented = len(got)
	return m, err
}

// enough tells whether a monitor has read for so long that what it has judged is to be measured.
func (e *Env) enough(s sample) bool {
	return e.opt.Reading > 0 && s.at >= e.opt.Reading.Seconds() && s.judged > 0
}

func (e *Env) streamed(t topic) *Streamed {
	return &Streamed{Broker: t.broker.Name(), Encoding: e.encoding.Name, Transactions: t.transactions, RecordBytes: t.bytes}
}

// reachable is how many of a topic's transactions are judged for certain while nothing more
// comes: the others wait for records that may be late.
func (e *Env) reachable(t topic) float64 {
	n := float64(t.transactions)
	return max(n-1.25*t.rate*e.lateness().Seconds(), n/2)
}

// lateness is what the monitor is configured with.
func (e *Env) lateness() time.Duration {
	for _, s := range slices.Backward(e.opt.Set) {
		if v, ok := strings.CutPrefix(s, "window.lateness="); ok {
			if d, err := time.ParseDuration(v); err == nil {
				return d
			}
		}
	}
	return latenessDefault
}

// follow looks at a monitor again and again until done says so.
func (e *Env) follow(ctx context.Context, mon *rig.Monitor, done func(sample) bool) ([]sample, rig.Metrics, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, e.opt.Timeout, &lateError{e.opt.Timeout})
	defer cancel()
	began := time.Now()
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	var samples []sample
	moved := 0 // the sample in which something was last seen to happen
	for {
		select {
		case <-tick.C:
		case <-mon.Exited():
			return samples, nil, fmt.Errorf("the monitor ended with status %d: %s", mon.Status(), lastLine(mon.Said()))
		case <-ctx.Done():
			return samples, nil, context.Cause(ctx)
		}
		use, err := rig.UsageOf(mon.PID())
		if err != nil {
			continue // it has just ended
		}
		metrics, err := mon.Metrics(ctx)
		if err != nil {
			continue // it does not listen yet
		}
		s := sample{at: time.Since(began).Seconds(), read: metrics.Sum(metricRead), judged: metrics.Sum(metricJudged),
			memory: float64(use.Resident), cpu: use.CPU.Seconds()}
		samples = append(samples, s)
		if done(s) {
			return samples, metrics, nil
		}
		n := len(samples) - 1
		if last := samples[moved]; s.read > last.read || s.judged > last.judged {
			moved = n
		}
		if stood := s.at - samples[moved].at; stood > stallMax.Seconds() {
			return samples, metrics, fmt.Errorf("the monitor has stopped: %.0f records read, %.0f set aside, %.0f transactions judged, and nothing more for %.0f s",
				s.read, metrics.Sum(metricRejected), s.judged, stood)
		}
	}
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// beginning is when the first record had not been read yet.
func beginning(samples []sample) float64 {
	at := 0.0
	for _, s := range samples {
		if s.read > 0 {
			break
		}
		at = s.at
	}
	return at
}

// crossing is the state at which so many were judged, between two samples.
func crossing(samples []sample, judged float64) sample {
	for i, s := range samples {
		if s.judged < judged {
			continue
		}
		if i == 0 || s.judged == samples[i-1].judged {
			return s
		}
		p := samples[i-1]
		f := (judged - p.judged) / (s.judged - p.judged)
		between := func(a, b float64) float64 { return a + f*(b-a) }
		return sample{at: between(p.at, s.at), read: between(p.read, s.read), judged: judged, memory: between(p.memory, s.memory), cpu: between(p.cpu, s.cpu)}
	}
	return samples[len(samples)-1]
}

// tenths compares the second tenth with the last.
func (s *Streamed) tenths(samples []sample, goal float64) {
	cost := func(from, to float64) float64 {
		return (crossing(samples, to*goal).cpu - crossing(samples, from*goal).cpu) / ((to - from) * goal)
	}
	memory := func(from, to float64) float64 {
		a, b := crossing(samples, from*goal), crossing(samples, to*goal)
		sum, n := a.memory+b.memory, 2.0
		for _, x := range samples {
			if x.at > a.at && x.at < b.at {
				sum, n = sum+x.memory, n+1
			}
		}
		return sum / n
	}
	s.CPU = &Tenths{cost(0.1, 0.2), cost(0.9, 1)}
	s.Memory = &Tenths{memory(0.1, 0.2), memory(0.9, 1)}
}
