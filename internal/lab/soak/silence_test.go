//go:build unix

package soak

import (
	"context"
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/source/kafka"
	"github.com/isowatch/isowatch/internal/lab/race"
	"github.com/isowatch/isowatch/internal/lab/realkafka"
	"github.com/isowatch/isowatch/internal/lab/rig"
	"github.com/isowatch/isowatch/recorder"
	"github.com/isowatch/isowatch/recorder/kafkasink"
)

// A topic that falls silent and a monitor whose process is stopped, both for several times as long as a silent
// partition is waited for, cost no coverage: each aborted read after that is told.
func TestSilenceCostsNothing(t *testing.T) {
	race.SkipBeforeCI(t)
	t.Parallel()
	const (
		topic      = "transactions"
		idle       = time.Second
		silence    = 3 * idle
		each       = 4
		background = 48 // sessions, so that each of three partitions has some
	)
	b := realkafka.Start(t)
	b.CreateTopic(t, topic, 3, nil)
	hook, err := rig.NewReceiver()
	if err != nil {
		t.Fatal(err)
	}
	defer hook.Close()
	dir := t.TempDir()
	m, err := rig.StartMonitor(rig.MonitorOptions{Command: monitor, Dir: dir, Store: filepath.Join(dir, "store"), Brokers: []string{b.Addr()},
		Topic: topic, Levels: "rc", Webhook: hook.URL, Set: []string{"coverage=complete", "initial=absent", "window.lateness=200ms",
			"window.max_transaction=" + idle.String(), "window.idle_after=" + idle.String()}})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Kill()
	p, err := kafka.OpenProducer(t.Context(), kafka.ProducerOptions{
		Connection: kafka.Connection{Brokers: []string{b.Addr()}}, Topic: topic})
	if err != nil {
		t.Fatal(err)
	}
	rec := recorder.New(&kafkasink.Topic{Producer: p}, recorder.Options{Wait: true, Failed: func(err error) { t.Error(err) }})
	defer rec.Close(context.WithoutCancel(t.Context()))

	var sessions []*recorder.Session
	for i := range background {
		sessions = append(sessions, rec.Session(fmt.Sprint("s", i)))
	}
	value := int64(0)
	work := func() {
		for i, s := range sessions {
			value++
			x := s.Begin()
			x.Write(fmt.Sprint("k", i), record.Int(value))
			x.End(record.Committed)
		}
	}
	abortedReads := func() {
		for i := range each {
			value++
			key := fmt.Sprint("aborted", value)
			x := sessions[2*i].Begin()
			x.Write(key, record.Int(value))
			x.End(record.Aborted)
			x = sessions[2*i+1].Begin()
			x.Read(key, record.Int(value))
			x.End(record.Committed)
		}
	}
	// until waits for a sum of the monitor's metrics to be reached.
	until := func(name string, least int64) rig.Metrics {
		t.Helper()
		for {
			if now, err := m.Metrics(t.Context()); err == nil && now.Sum(name) >= float64(least) {
				return now
			}
			select {
			case <-m.Exited():
				t.Fatalf("the monitor has ended: %s", m.Said())
			case <-t.Context().Done():
				t.Fatalf("in vain waited for %s", name)
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	pause := func() {
		if err := wait(t.Context(), silence); err != nil {
			t.Fatal(err)
		}
	}
	sent := int64(0)
	for round, hold := range []func(){
		pause,
		func() {
			m.Signal(syscall.SIGSTOP)
			defer m.Signal(syscall.SIGCONT)
			work()
			sent += background
			pause()
		},
	} {
		work()
		sent += background
		until("isowatch_records_total", sent)
		hold()
		abortedReads()
		work()
		sent += background + 2*each
		now := until("isowatch_transactions_total", sent)
		if now.Sum("isowatch_coverage_complete") != 1 || now.Sum("isowatch_losses_total") != 0 {
			t.Fatalf("coverage is not complete: %v", now.By("isowatch_losses_total", "why"))
		}
		until("isowatch_alerts_total", int64(each*(round+1)))
	}
	receipts, err := hook.Receipts()
	if err != nil {
		t.Error(err)
	}
	got := until("isowatch_alerts_total", 2*each).By("isowatch_alerts_total", "name")
	if got["aborted-read"] != 2*each || len(got) != 1 || len(receipts) == 0 {
		t.Errorf("alerts %v, want %d of aborted reads", got, 2*each)
	}
}
