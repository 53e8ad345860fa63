//go:build unix

package soak

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/ingest/generate"
	"github.com/isowatch/isowatch/internal/lab/mounts"
	"github.com/isowatch/isowatch/internal/lab/race"
	"github.com/isowatch/isowatch/internal/lab/realkafka/node"
	"github.com/isowatch/isowatch/internal/lab/rig"
)

// The flags of the soak; `make soak` sets them.
var (
	soakTransactions = flag.Int64("soak.transactions", 0, "how many transactions TestSoak sends; 0: it is skipped")
	soakRate         = flag.Float64("soak.rate", 10_000, "of how many a second")
	soakEvery        = flag.Int64("soak.every", 0, "an anomaly after so many; 0: a hundred in all")
	soakFaults       = flag.String("soak.faults", "all", "what goes wrong: names, comma-separated, or all")
	soakFaultEvery   = flag.Duration("soak.fault-every", 2*time.Second, "after how much time the next fault is due")
	soakSeed         = flag.Uint64("soak.seed", 1, "of the input and of the faults")
	soakEncoding     = flag.String("soak.encoding", "json", "the form of the records")
	soakShared       = flag.Bool("soak.shared", false, "plant on keys that others use too")
	soakUnknown      = flag.Float64("soak.unknown", 0.0005, "the share of transactions whose outcome is never learned")
	soakDisk         = flag.String("soak.disk", "full", "what the store's disk may be: full or slow")
)

// TestMain makes the monitor's program, which all tests start.
func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "isowatch-soak-")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		path, err := rig.Build(context.Background(), dir)
		if err != nil {
			panic(err)
		}
		monitor = rig.Program(path)
		return m.Run()
	}())
}

var monitor rig.Command

// logger writes lines into a test's log.
type logger struct{ t *testing.T }

func (l logger) Write(p []byte) (int, error) {
	l.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

func check(t *testing.T, r *Report, err error) {
	t.Helper()
	if r != nil {
		t.Log(r.Text())
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, what := range r.Wrong() {
		t.Error(what)
	}
}

// The monitor is killed every few seconds during a replay with 20 planted anomalies: the
// receiver gets exactly 20 distinct alerts, each of an anomaly that was planted.
func TestKill(t *testing.T) {
	t.Parallel()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(4, "transactions"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	n, kills := int64(race.Few(50_000, 100_000)), race.Few(3, 6)
	r, err := Run(t.Context(), Options{Command: monitor, Broker: c.ListenAddrs()[0], Topic: "transactions", Dir: t.TempDir(), Seed: 3,
		Transactions: n, Every: n/20 - 20, Rate: 6000, Levels: "si,ser", Encoding: rig.Encodings()[0], Faults: []Fault{kill{}}, FaultEvery: 2500 * time.Millisecond,
		Log: logger{t}})
	check(t, r, err)
	if r.Planted != 20 || r.Found != 20 || r.Struck["kill"] != kills {
		t.Errorf("%d planted, %d found, %d kills; want 20, 20 and %d", r.Planted, r.Found, r.Struck["kill"], kills)
	}
}

// Everything goes wrong for as long as the flags say.
func TestSoak(t *testing.T) {
	if *soakTransactions == 0 {
		t.Skip("it is run by make soak")
	}
	faults, err := FaultsNamed(*soakFaults)
	if err != nil {
		t.Fatal(err)
	}
	enc, err := rig.EncodingNamed(*soakEncoding)
	if err != nil {
		t.Fatal(err)
	}
	kafka, err := node.New(t.Context(), t.TempDir(), node.Options{HeapMB: 1024})
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("can't run Apache Kafka: %v", err)
		}
		t.Skipf("SKIPPED, Apache Kafka can't be run here: %v", err)
	}
	defer kafka.Kill()
	if err := errors.Join(kafka.Start(t.Context()), kafka.CreateTopic(t.Context(), "transactions", 4, nil)); err != nil {
		t.Fatal(err)
	}
	o := Options{Command: monitor, Broker: kafka.Addr(), Topic: "transactions", Dir: t.TempDir(), Seed: *soakSeed, Transactions: *soakTransactions,
		Every: *soakEvery, Shared: *soakShared, Unknown: *soakUnknown, Rate: *soakRate, Levels: "si,ser", Encoding: enc, Faults: faults, FaultEvery: *soakFaultEvery, Log: logger{t},
		Restart: func(ctx context.Context) error {
			kafka.Kill()
			return kafka.Start(ctx)
		}}
	if o.Every == 0 {
		o.Every = max(o.Transactions/100, 1)
	}
	if o.Disk = disk(t); o.Disk != nil {
		defer func() {
			if err := o.Disk.Close(); err != nil {
				t.Error(err)
			}
		}()
	}
	r, err := Run(t.Context(), o)
	check(t, r, err)
	if least := int(o.Transactions/o.Every) - 1; r.Planted < least {
		t.Errorf("%d planted, want at least %d", r.Planted, least)
	}
}

// disk makes the disk that the flags ask for; nil where it can't be.
func disk(t *testing.T) Disk {
	t.Helper()
	var d Disk
	var err error
	switch *soakDisk {
	case "full":
		// All of it is memory once it is full. The store takes far less.
		d, err = NewFinite(t.TempDir(), min(2<<30, 256<<20+*soakTransactions<<12))
	case "slow":
		d, err = NewSlow(t.TempDir())
	default:
		t.Fatalf("-soak.disk: wants full or slow, not %q", *soakDisk)
	}
	if err != nil {
		t.Logf("the disk will be well: %v", err)
		return nil // not d, which may be a nil pointer in an interface
	}
	return d
}

// What was missed, told twice, invented, or named otherwise is told apart.
func TestJudge(t *testing.T) {
	w := &World{monitor: &supervisor{exits: []Exit{{4, "no room"}}}, producer: &producer{planted: []generate.Planting{
		{Anomaly: "lost-update", Transactions: []string{"a#1", "b#1"}}, {Anomaly: "write-skew", Transactions: []string{"a#2", "b#2"}},
		{Anomaly: "long-fork", Transactions: []string{"a#3", "b#3"}}}}}
	alert := func(id, name string, ids ...string) rig.Receipt {
		return rig.Receipt{Deliveries: 2, Alert: alerts.Alert{ID: id, Name: name, Transactions: ids}}
	}
	var r Report
	w.judge(&r, []rig.Receipt{alert("1", "lost-update", "b#1", "a#1"), alert("2", "lost-update", "a#1"), alert("3", "g2", "a#2", "b#2"),
		alert("4", "write-skew", "a#2", "b#1"), alert("5", "write-skew", "a#2", "c#9"), alert("6", "write-skew")})
	if r.Planted != 3 || r.Found != 2 || len(r.Missing) != 1 || len(r.Doubled) != 1 || len(r.Invented) != 3 || len(r.Misnamed) != 1 || r.Deliveries != 12 {
		t.Errorf("%+v", r)
	}
	if got := r.Wrong(); len(got) != 6 {
		t.Errorf("%q", got)
	}
}

// A disk is full when it is filled, and has room again when that is taken back.
func TestFinite(t *testing.T) {
	d, err := NewFinite(t.TempDir(), 1<<20)
	if err != nil {
		mounts.Failed(t, "SKIPPED", err)
	}
	defer d.Close()
	write := func() error { return os.WriteFile(filepath.Join(d.Path(), "f"), make([]byte, 1<<12), 0o644) }
	for range 2 {
		if err := write(); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(d.Path(), "f")); err != nil {
			t.Fatal(err)
		}
		if n, err := d.Fill(); err != nil || n < 1<<19 {
			t.Fatalf("%d bytes filled it, %v", n, err)
		}
		if err := write(); err == nil {
			t.Error("there is room on a full disk")
		}
		_ = os.Remove(filepath.Join(d.Path(), "f"))
		if err := d.Free(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFaultsNamed(t *testing.T) {
	if fs, err := FaultsNamed("kill,loss"); err != nil || len(fs) != 2 || fs[1].Name() != "loss" {
		t.Errorf("%v, %v", fs, err)
	}
	if fs, err := FaultsNamed("all"); err != nil || len(fs) != len(Faults()) {
		t.Errorf("%v, %v", fs, err)
	}
	if _, err := FaultsNamed("kill,flood"); err == nil || !strings.Contains(err.Error(), `"flood"`) {
		t.Error(err)
	}
}

// A slow disk keeps what is written, through maps too, and hands it on to its directory only
// after a while: what is waited for is told by the disk.
func TestSlow(t *testing.T) {
	d, err := NewSlow(t.TempDir())
	if err != nil {
		if _, gone := os.Stat("/dev/fuse"); gone != nil {
			t.Skipf("SKIPPED, there is no /dev/fuse: %v", err)
		}
		mounts.Failed(t, "SKIPPED", err)
	}
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}()
	d.Delay(time.Millisecond)
	dir := filepath.Join(d.Path(), "a", "b")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "f"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString("written"); err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(1 << 16); err != nil {
		t.Fatal(err)
	}
	m, err := syscall.Mmap(int(f.Fd()), 0, 1<<16, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	copy(m[4096:], "mapped")
	if err := syscall.Munmap(m); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(filepath.Dir(d.Path()), "behind", "a", "b", "f"))
	if err != nil || string(got[:7]) != "written" || string(got[4096:4102]) != "mapped" {
		t.Errorf("%d bytes are behind the disk, %v", len(got), err)
	}
}
