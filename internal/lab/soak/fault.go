//go:build unix

package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Fault is something that goes wrong.
type Fault interface {
	Name() string
	// Possible says why it can't happen in this world; nil if it can.
	Possible(w *World) error
	// Strike lets it happen, and says what did. What ends by itself has ended when it
	// returns, except what the producer does with records that are still to come.
	Strike(ctx context.Context, w *World, rng *rand.Rand) (string, error)
}

// Faults lists all that there are, by name as in FaultsNamed.
func Faults() []Fault {
	return []Fault{kill{}, broker{}, full{}, slow{}, stall{}, clocks{}, again{}, loss{}}
}

// FaultsNamed finds faults by a comma-separated list; "all" are all.
func FaultsNamed(list string) ([]Fault, error) {
	all := Faults()
	if list == "all" {
		return all, nil
	}
	var out []Fault
	for _, name := range strings.Split(list, ",") {
		i := slices.IndexFunc(all, func(f Fault) bool { return f.Name() == name })
		if i < 0 {
			var names []string
			for _, f := range all {
				names = append(names, f.Name())
			}
			return nil, fmt.Errorf("fault %q: use some of %s, or all", name, strings.Join(names, ","))
		}
		out = append(out, all[i])
	}
	return out, nil
}

// wait lets time pass.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// between is a random duration.
func between(rng *rand.Rand, from, to time.Duration) time.Duration {
	return from + time.Duration(rng.Int64N(int64(to-from)))
}

// kill ends the monitor with SIGKILL; it is started again at once. Every other time, by
// chance, it waits until the monitor is ready, so that one that is slow to restart comes further.
type kill struct{}

func (kill) Name() string          { return "kill" }
func (kill) Possible(*World) error { return nil }

// readyMax bounds that wait; a machine with much to do may take long to start a process.
const readyMax = 3 * time.Minute

func (kill) Strike(ctx context.Context, w *World, rng *rand.Rand) (string, error) {
	what := "SIGKILL of the monitor, whatever it was doing"
	if rng.IntN(2) == 0 {
		what = "SIGKILL of the monitor when it was ready"
		until := time.Now().Add(readyMax)
		for !w.monitor.ready(ctx) && time.Now().Before(until) {
			if err := wait(ctx, 20*time.Millisecond); err != nil {
				return "", err
			}
		}
	}
	w.monitor.kill()
	return what, nil
}

// broker ends the broker with SIGKILL and starts it again a moment later.
type broker struct{}

func (broker) Name() string { return "broker" }

func (broker) Possible(w *World) error {
	if w.opt.Restart == nil {
		return fmt.Errorf("the broker keeps nothing when it ends")
	}
	return nil
}

func (broker) Strike(ctx context.Context, w *World, _ *rand.Rand) (string, error) {
	return "SIGKILL of the broker", w.opt.Restart(ctx)
}

// full leaves no room on the disk for a while.
type full struct{}

func (full) Name() string { return "full" }

func (full) Possible(w *World) error {
	if _, ok := w.opt.Disk.(Finite); !ok {
		return fmt.Errorf("the store is on no disk that may be filled")
	}
	return nil
}

func (full) Strike(ctx context.Context, w *World, rng *rand.Rand) (string, error) {
	d := between(rng, time.Second, 3*time.Second)
	disk, ok := w.opt.Disk.(Finite)
	if !ok {
		return "", full{}.Possible(w)
	}
	n, err := disk.Fill()
	if err != nil {
		return "", err
	}
	err = wait(ctx, d)
	if free := disk.Free(); err == nil {
		err = free
	}
	return fmt.Sprintf("the disk is full for %v (its last %d kB)", d.Round(time.Millisecond), n>>10), err
}

// slow has the disk take its time.
type slow struct{}

func (slow) Name() string { return "slow" }

func (slow) Possible(w *World) error {
	if _, ok := w.opt.Disk.(Slow); !ok {
		return fmt.Errorf("the store is on no disk that may be slow")
	}
	return nil
}

func (slow) Strike(ctx context.Context, w *World, rng *rand.Rand) (string, error) {
	d, most := between(rng, time.Second, 3*time.Second), between(rng, 5*time.Millisecond, 100*time.Millisecond)
	disk, ok := w.opt.Disk.(Slow)
	if !ok {
		return "", slow{}.Possible(w)
	}
	disk.Delay(most)
	defer disk.Delay(0)
	return fmt.Sprintf("each write of the disk takes up to %v more, for %v", most.Round(time.Millisecond),
		d.Round(time.Millisecond)), wait(ctx, d)
}

// stall holds the monitor's process again and again, as by a machine that
// has other things to do: nothing of it runs, its clock goes on.
type stall struct{}

func (stall) Name() string          { return "stall" }
func (stall) Possible(*World) error { return nil }

func (stall) Strike(ctx context.Context, w *World, rng *rand.Rand) (string, error) {
	n, held := 3+rng.IntN(8), time.Duration(0)
	for range n {
		pid := w.monitor.pid()
		if pid == 0 {
			return "there is no monitor to be held", nil
		}
		d := between(rng, 20*time.Millisecond, 300*time.Millisecond)
		err := syscall.Kill(pid, syscall.SIGSTOP)
		if errors.Is(err, syscall.ESRCH) {
			break // it has ended by itself, which is told elsewhere
		}
		if err != nil {
			return "", fmt.Errorf("hold the monitor: %w", err)
		}
		err = wait(ctx, d)
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
			return "", fmt.Errorf("let the monitor go on: %w", err)
		}
		if err != nil {
			return "", err
		}
		held += d
		if err := wait(ctx, between(rng, 5*time.Millisecond, 50*time.Millisecond)); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("the monitor is held %d times, %v in all", n, held.Round(time.Millisecond)), nil
}

// clocks lets the clock of one client step for a while.
type clocks struct{}

// steps are by how much: within lateness and beyond, within what is taken for possible
// and beyond.
var steps = []time.Duration{-time.Hour, -5 * time.Second, -500 * time.Millisecond, 500 * time.Millisecond,
	5 * time.Second, time.Hour}

func (clocks) Name() string          { return "clock" }
func (clocks) Possible(*World) error { return nil }

func (clocks) Strike(_ context.Context, w *World, rng *rand.Rand) (string, error) {
	by, n := steps[rng.IntN(len(steps))], 20+rng.IntN(200)
	session := fmt.Sprintf("s%d", rng.IntN(sessions))
	w.producer.order(func(p *producer) { p.step = clockStep{session, by, n} })
	return fmt.Sprintf("the clock of %s is wrong by %v for %d transactions", session, by, n), nil
}

// again lets the producer send once more what it has just sent, as after an answer that was
// lost.
type again struct{}

func (again) Name() string          { return "redelivery" }
func (again) Possible(*World) error { return nil }

func (again) Strike(_ context.Context, w *World, rng *rand.Rand) (string, error) {
	n := 1 + rng.IntN(recentMax)
	w.producer.order(func(p *producer) { p.again = n })
	return fmt.Sprintf("the last %d records are sent again", n), nil
}

// loss lets records of the workload disappear before they come to the broker.
type loss struct{}

func (loss) Name() string          { return "loss" }
func (loss) Possible(*World) error { return nil }

func (loss) Strike(_ context.Context, w *World, rng *rand.Rand) (string, error) {
	n := 1 + rng.IntN(50)
	w.producer.order(func(p *producer) { p.lose = n })
	return fmt.Sprintf("%d records are lost", n), nil
}
