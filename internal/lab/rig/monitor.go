package rig

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/isowatch/isowatch/internal/ports"
	"github.com/isowatch/isowatch/internal/process"
)

// Command makes a command of the monitor's, not started yet.
type Command func(args ...string) *exec.Cmd

// Program is the monitor in a file.
func Program(path string) Command {
	return func(args ...string) *exec.Cmd { return exec.Command(path, args...) }
}

// Build makes the monitor's program in dir, from the source that the working directory lies in.
func Build(ctx context.Context, dir string) (path string, err error) {
	path = filepath.Join(dir, "monitor")
	out, err := exec.CommandContext(ctx, "go", "build", "-o", path, "github.com/isowatch/isowatch/cmd/monitor").
		CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the monitor: %w\n%s", err, out)
	}
	return path, nil
}

// MonitorOptions say what is watched and how.
type MonitorOptions struct {
	Command Command
	// Dir holds the configuration that is written; Store is the store's folder.
	Dir, Store string
	Brokers    []string
	Topic      string
	Levels     string   // comma-separated
	Webhook    string   // URL; empty: none
	Set        []string // key=value, over all others
}

// Monitor is a `monitor run` that was started.
type Monitor struct {
	*process.Process
	addr   string
	client http.Client
}

// StartMonitor starts a monitor that watches until it is told to stop. args are further
// flags.
func StartMonitor(o MonitorOptions, args ...string) (*Monitor, error) {
	addr, err := ports.Address()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(o.Dir, "monitor.yaml")
	if err := os.WriteFile(file, []byte(o.config(addr)), 0o644); err != nil {
		return nil, fmt.Errorf("configure the monitor: %w", err)
	}
	flags := []string{"run", "--config", file}
	for _, s := range o.Set {
		flags = append(flags, "--set", s)
	}
	p, err := process.Start(o.Command(append(flags, args...)...))
	if err != nil {
		return nil, err
	}
	return &Monitor{Process: p, addr: addr, client: http.Client{Timeout: 5 * time.Second}}, nil
}

// config is the configuration as a person would write it: what has a default keeps it,
// but that every alert is told of by itself.
func (o *MonitorOptions) config(addr string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "source:\n  kafka: {brokers: [%s], topic: %q}\n", strings.Join(o.Brokers, ", "), o.Topic)
	fmt.Fprintf(&b, "levels: [%s]\nunique_attempts: true\n", o.Levels) // generated values are never written again
	fmt.Fprintf(&b, "store: {path: %q}\n", o.Store)
	if o.Webhook != "" {
		fmt.Fprintf(&b, "alerts: {repeat: 0s, rate: {max: 10000, per: 1s}, webhooks: [{url: %q}]}\n", o.Webhook)
	}
	fmt.Fprintf(&b, "http: {listen: %q}\nlog: {format: json}\n", addr)
	return b.String()
}

// Stop asks the monitor to end, and kills it if it takes longer than patience. It returns the exit
// status, -1 if it had to be killed.
func (m *Monitor) Stop(patience time.Duration) int {
	m.Signal(syscall.SIGTERM)
	select {
	case <-m.Exited():
	case <-time.After(patience):
		m.Kill()
	}
	return m.Status()
}

// Ready tells whether /readyz says so.
func (m *Monitor) Ready(ctx context.Context) bool {
	resp, err := m.get(ctx, "/readyz")
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

func (m *Monitor) get(ctx context.Context, path string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+m.addr+path, nil)
	if err != nil {
		return nil, err
	}
	return m.client.Do(req)
}

// Metrics are what /metrics said.
type Metrics map[string]*dto.MetricFamily

// Metrics asks the monitor.
func (m *Monitor) Metrics(ctx context.Context) (Metrics, error) {
	resp, err := m.get(ctx, "/metrics")
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(io.LimitReader(resp.Body, metricsMax))
}

// metricsMax bounds what /metrics may say.
const metricsMax = 16 << 20

// Sum adds up the values of a counter or gauge, whatever its labels; 0 if there is none.
func (m Metrics) Sum(name string) float64 {
	total := 0.0
	for _, v := range m.By(name, "") {
		total += v
	}
	return total
}

// By adds up the values of a counter or gauge by one of its labels.
func (m Metrics) By(name, label string) map[string]float64 {
	out := map[string]float64{}
	for _, x := range m[name].GetMetric() {
		key := ""
		for _, l := range x.GetLabel() {
			if l.GetName() == label {
				key = l.GetValue()
			}
		}
		out[key] += x.GetCounter().GetValue() + x.GetGauge().GetValue()
	}
	return out
}
