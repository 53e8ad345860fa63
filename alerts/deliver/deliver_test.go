package deliver_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/isowatch/isowatch/alerts/deliver"
	"github.com/isowatch/isowatch/internal/lab/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

var errDown = errors.New("down")

// run starts a dispatcher in the test's bubble and returns its stop.
func run(d *deliver.Dispatcher) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		d.Run(ctx)
		close(done)
	}()
	return func() {
		cancel()
		<-done
	}
}

func TestInOrderAndWake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newMemory([]string{"a", "b"}, "1", "2", "3")
		a, b, seen := &answers{}, &answers{}, &events{}
		d := deliver.New(st, map[string]deliver.Receiver{"a": a, "b": b}, deliver.Options{Observe: seen.Observe})
		defer run(d)()
		synctest.Wait()
		st.add("4")
		d.Wake()
		d.Wake() // more than once does no harm
		synctest.Wait()
		for _, r := range []*answers{a, b} {
			if d := cmp.Diff([]string{"1", "2", "3", "4"}, r.ids()); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		}
		if len(st.left("a"))+len(st.left("b")) != 0 || len(seen.outcomes()) != 8 {
			t.Errorf("left %v and %v, events %v", st.left("a"), st.left("b"), seen.outcomes())
		}
	})
}

// An hour of outage: the waits grow to a minute and no further, and everything
// arrives once it is over, in order.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		st := newMemory([]string{"a"}, "1", "2", "3")
		seen := &events{}
		r := &answers{answer: func(int, string) (time.Duration, bool, error) {
			if time.Since(begin) < time.Hour {
				return 0, true, errDown
			}
			return 0, false, nil
		}}
		d := deliver.New(st, map[string]deliver.Receiver{"a": r}, deliver.Options{Observe: seen.Observe})
		defer run(d)()
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if n := len(r.calls); n < 60 || n > 150 {
			t.Errorf("%d attempts in an hour", n)
		}
		for i, e := range seen.all {
			if e.Wait > deliver.WaitMaxDefault || e.Outcome == deliver.Retrying && e.Wait < deliver.WaitMinDefault/2 {
				t.Errorf("attempt %d: waits %v", i, e.Wait)
			}
		}
		if len(st.left("a")) != 0 {
			t.Errorf("left %v", st.left("a"))
		}
		ids := r.ids()
		last := ids[len(ids)-3:]
		slices.Sort(last)
		if d := cmp.Diff([]string{"1", "2", "3"}, last); d != "" {
			t.Errorf("after the outage -want +got:\n%s", d)
		}
	})
}

func TestRetryAfterIsObeyed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &answers{answer: func(n int, _ string) (time.Duration, bool, error) {
			switch n {
			case 1:
				return 7 * time.Minute, true, errDown
			case 2:
				return 100 * time.Hour, true, errDown // more than anybody may ask
			}
			return 0, false, nil
		}}
		d := deliver.New(newMemory([]string{"a"}, "1"), map[string]deliver.Receiver{"a": r}, deliver.Options{})
		defer run(d)()
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		if len(r.calls) != 3 {
			t.Fatalf("%d attempts", len(r.calls))
		}
		if wait := r.calls[1].at.Sub(r.calls[0].at); wait != 7*time.Minute {
			t.Errorf("waited %v, asked for 7m", wait)
		}
		if wait := r.calls[2].at.Sub(r.calls[1].at); wait != time.Hour {
			t.Errorf("waited %v, no more than 1h is granted", wait)
		}
	})
}

// A wake does not cut a wait short: a busy engine does not hammer a dead
// receiver.
func TestWakeDoesNotHammer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newMemory([]string{"a"}, "1")
		r := &answers{answer: func(int, string) (time.Duration, bool, error) { return time.Minute, true, errDown }}
		d := deliver.New(st, map[string]deliver.Receiver{"a": r}, deliver.Options{})
		defer run(d)()
		for range 100 {
			time.Sleep(100 * time.Millisecond)
			d.Wake()
		}
		synctest.Wait()
		if len(r.calls) != 1 {
			t.Errorf("%d attempts in 10 seconds, asked to wait a minute", len(r.calls))
		}
	})
}

func TestDeadReceiverStopsNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newMemory([]string{"dead", "alive"}, "1", "2", "3")
		hang := make(chan struct{})
		dead := &answers{answer: func(int, string) (time.Duration, bool, error) {
			<-hang
			return 0, true, errDown
		}}
		alive := &answers{}
		d := deliver.New(st, map[string]deliver.Receiver{"dead": dead, "alive": alive}, deliver.Options{})
		stop := run(d)
		synctest.Wait()
		if d := cmp.Diff([]string{"1", "2", "3"}, alive.ids()); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
		close(hang)
		stop()
		if d := cmp.Diff([]string{"1", "2", "3"}, st.left("dead")); d != "" {
			t.Errorf("the dead one's outbox -want +got:\n%s", d)
		}
	})
}

// One alert that always fails lets the others pass, and goes on being tried.
func TestPoisonLetsOthersPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newMemory([]string{"a"}, "poison", "1", "2", "3")
		var healed atomic.Bool
		r := &answers{answer: func(_ int, id string) (time.Duration, bool, error) {
			if id == "poison" && !healed.Load() {
				return 0, true, errDown
			}
			return 0, false, nil
		}}
		d := deliver.New(st, map[string]deliver.Receiver{"a": r}, deliver.Options{})
		defer run(d)()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if d := cmp.Diff([]string{"poison"}, st.left("a")); d != "" {
			t.Errorf("left, -want +got:\n%s", d)
		}
		healed.Store(true)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if d := cmp.Diff([]string{}, st.left("a")); d != "" {
			t.Errorf("left, -want +got:\n%s", d)
		}
	})
}

// What is said of one group stays in order, however long the receiver is down: an end
// that overtook its beginning would leave an incident open for ever. A notice that fails
// while others are delivered is at fault itself, and nobody waits for it.
func TestGroupsStayInOrder(t *testing.T) {
	const notices, groups = 150, 8 // more than a batch
	for _, poison := range []string{"", "003"} {
		synctest.Test(t, func(t *testing.T) {
			st := newMemory([]string{"a"})
			about := map[string][]string{}
			for i := range notices {
				id, g := fmt.Sprintf("%03d", i), fmt.Sprint("g", i%groups)
				body := fmt.Sprintf(`{"id":"%d","notification":{"id":"%s","group":"%s"}}`, i, id, g)
				about[id] = []string{g}
				if i%10 == 9 { // an end of several
					other := fmt.Sprint("g", i%groups^1)
					body = fmt.Sprintf(`{"id":"%d","notification":{"id":"%s","kind":"resolved","group":"%s","resolved":["%s","%s"]}}`, i, id, g, g, other)
					about[id] = append(about[id], other)
				}
				st.put(id, body)
			}
			begin := time.Now()
			r := &answers{answer: func(_ int, id string) (time.Duration, bool, error) {
				if since := time.Since(begin); since < 3*time.Hour || id == poison && since < 10*time.Hour {
					return 0, true, errDown
				}
				return 0, false, nil
			}}
			seen := &events{}
			d := deliver.New(st, map[string]deliver.Receiver{"a": r}, deliver.Options{Observe: seen.Observe})
			defer run(d)()
			time.Sleep(4 * time.Hour)
			synctest.Wait()
			if left := strings.Join(st.left("a"), " "); left != poison {
				t.Errorf("after the outage %q are left, want %q", left, poison)
			}
			time.Sleep(7 * time.Hour)
			synctest.Wait()
			last := map[string]string{}
			delivered := 0
			for _, e := range seen.all {
				if e.Outcome != deliver.Delivered {
					continue
				}
				delivered++
				for _, g := range about[e.ID] {
					if e.ID < last[g] && e.ID != poison {
						t.Errorf("of %s, %s came after %s", g, e.ID, last[g])
					}
					last[g] = e.ID
				}
			}
			if delivered != notices || len(st.left("a")) > 0 {
				t.Errorf("%d of %d were delivered, %v are left", delivered, notices, st.left("a"))
			}
		})
	}
}

// A receiver is down for 10,000 notices: they wait on the disk, of which the lane holds
// no more than a batch, and all arrive in their order when it is back.
func TestLongOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const notices, size = 10_000, 1 << 10
		st := newMemory([]string{"a", "b"})
		st.measure = true
		pad := strings.Repeat("x", size)
		for i := range notices {
			st.put(fmt.Sprintf("%05d", i), fmt.Sprintf(`{"id":"%d","summary":"%s","notification":{"id":"%05d","group":"g%d"}}`, i, pad, i, i%20))
		}
		st.put("large", `{"id":"large","summary":"`+strings.Repeat("x", 6<<20)+`","notification":{"group":"large"}}`)
		var down atomic.Bool
		down.Store(true)
		r, other := &answers{answer: func(int, string) (time.Duration, bool, error) {
			if down.Load() {
				return 0, true, errDown
			}
			return 0, false, nil
		}}, &answers{}
		seen := &events{}
		d := deliver.New(st, map[string]deliver.Receiver{"a": r, "b": other}, deliver.Options{Observe: seen.Observe})
		defer run(d)()
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if n := len(st.left("b")); n > 0 {
			t.Errorf("%d are left for the receiver that is there", n)
		}
		if n := len(st.left("a")); n != notices+1 {
			t.Errorf("%d are left for the receiver that is down, want %d", n, notices+1)
		}
		down.Store(false)
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := len(st.left("a")); n > 0 {
			t.Errorf("%d are left when it is back", n)
		}
		times, back, last := map[string]int{}, 0, ""
		for _, e := range seen.all {
			if e.Receiver == "a" && e.Outcome == deliver.Delivered {
				if times[e.ID]++; e.ID < last {
					back++
				}
				last = e.ID
			}
		}
		if back > 1 { // the first one was tried out of its turn
			t.Errorf("%d times an older one came after a younger one", back)
		}
		for i := range notices {
			if id := fmt.Sprintf("%05d", i); times[id] != 1 {
				t.Fatalf("%s was delivered %d times", id, times[id])
			}
		}
		if st.most > deliver.ScanMax || st.mostBytes > deliver.ScanMax*(size+200)+7<<20 {
			t.Errorf("%d notices were looked at for a batch, of %d bytes", st.most, st.mostBytes)
		}
	})
}

// A batch has no more bytes than it may, but for a notice that is larger by itself.
func TestBatchBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newMemory([]string{"a"})
		st.measure = true
		for i := range 40 {
			st.put(fmt.Sprint(i), `{"id":"`+fmt.Sprint(i)+`","summary":"`+strings.Repeat("x", 1<<20)+`"}`)
		}
		st.put("large", `{"id":"large","summary":"`+strings.Repeat("x", 9<<20)+`"}`)
		r := &answers{}
		d := deliver.New(st, map[string]deliver.Receiver{"a": r}, deliver.Options{})
		defer run(d)()
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := len(st.left("a")); n > 0 || len(r.ids()) != 41 {
			t.Errorf("%d are left, %d came", n, len(r.ids()))
		}
		// The one that did not fit was looked at.
		if st.mostBytes > 4<<20+10<<20 || st.most > 5 {
			t.Errorf("%d bytes of %d notices were read at once", st.mostBytes, st.most)
		}
	})
}

// More alerts than a batch holds fail for good: the later ones get through.
func TestManyPoisonous(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newMemory([]string{"a"})
		for i := range 200 {
			st.add("poison" + string(rune('A'+i)))
		}
		st.add("good")
		r := &answers{answer: func(_ int, id string) (time.Duration, bool, error) {
			return 0, id != "good", map[bool]error{true: errDown}[id != "good"]
		}}
		d := deliver.New(st, map[string]deliver.Receiver{"a": r}, deliver.Options{})
		defer run(d)()
		for range 7 * 24 {
			time.Sleep(time.Hour)
			synctest.Wait()
			if !slices.Contains(st.left("a"), "good") {
				return
			}
		}
		t.Errorf("not delivered in %d attempts", len(r.calls))
	})
}

func TestRefusedIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, seen := newMemory([]string{"a"}, "bad", "good"), &events{}
		r := &answers{answer: func(_ int, id string) (time.Duration, bool, error) {
			if id == "bad" {
				return 0, false, errors.New("400")
			}
			return 0, false, nil
		}}
		d := deliver.New(st, map[string]deliver.Receiver{"a": r}, deliver.Options{Observe: seen.Observe})
		defer run(d)()
		synctest.Wait()
		if d := cmp.Diff([]string{"bad", "good"}, r.ids()); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
		if d := cmp.Diff([]deliver.Outcome{deliver.Refused, deliver.Delivered}, seen.outcomes()); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
		if len(st.left("a")) != 0 || seen.all[0].Err == nil {
			t.Errorf("left %v, events %+v", st.left("a"), seen.all)
		}
	})
}

// A store that fails delays, and makes nobody hear an alert twice while the
// monitor lives.
func TestStoreFails(t *testing.T) {
	for fail := range 6 {
		synctest.Test(t, func(t *testing.T) {
			st, seen := newMemory([]string{"a"}, "1", "2"), &events{}
			r := &answers{answer: func(n int, id string) (time.Duration, bool, error) {
				if n == 1 {
					st.fail(fail) // from the first record on
				}
				if id == "2" {
					return 0, false, errors.New("400") // a refusal is remembered just so
				}
				return 0, false, nil
			}}
			d := deliver.New(st, map[string]deliver.Receiver{"a": r}, deliver.Options{Observe: seen.Observe})
			defer run(d)()
			time.Sleep(time.Hour)
			synctest.Wait()
			if d := cmp.Diff([]string{"1", "2"}, r.ids()); d != "" {
				t.Errorf("%d failures: -want +got:\n%s", fail, d)
			}
			outcomes := seen.outcomes()
			want := append(slices.Repeat([]deliver.Outcome{deliver.StoreFailed}, fail), deliver.Delivered, deliver.Refused)
			if d := cmp.Diff(want, outcomes); d != "" {
				t.Errorf("%d failures: -want +got:\n%s", fail, d)
			}
			if len(st.left("a")) != 0 {
				t.Errorf("%d failures: left %v", fail, st.left("a"))
			}
		})
	}
}

// What was not recorded before the end comes again after a restart, with the
// same id.
func TestAtLeastOnceOverRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, r := newMemory([]string{"a"}, "1", "2"), &answers{}
		r.answer = func(n int, _ string) (time.Duration, bool, error) {
			if n == 1 {
				st.fail(1000) // the process is about to die
			}
			return 0, false, nil
		}
		stop := run(deliver.New(st, map[string]deliver.Receiver{"a": r}, deliver.Options{}))
		synctest.Wait()
		stop()
		st.fail(0)
		defer run(deliver.New(st, map[string]deliver.Receiver{"a": r}, deliver.Options{}))()
		synctest.Wait()
		if d := cmp.Diff([]string{"1", "1", "2"}, r.ids()); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
	})
}

// stubborn ignores the end of the context until it is given up.
type stubborn struct{ began, ended chan struct{} }

func (r stubborn) Close() error { return nil }

func (r stubborn) Notify(ctx context.Context, _ []byte, _ string) (time.Duration, bool, error) {
	close(r.began)
	defer close(r.ended)
	select {
	case <-ctx.Done():
		return 0, true, ctx.Err()
	case <-time.After(3 * time.Second):
		return 0, false, nil
	}
}

// A stop lets an attempt in progress finish within the grace period, and
// records it; not longer.
func TestGrace(t *testing.T) {
	for _, c := range []struct {
		grace time.Duration
		left  []string
	}{{5 * time.Second, []string{"2"}}, {time.Second, []string{"1", "2"}}} {
		synctest.Test(t, func(t *testing.T) {
			st := newMemory([]string{"a"}, "1", "2")
			r := stubborn{make(chan struct{}), make(chan struct{})}
			stop := run(deliver.New(st, map[string]deliver.Receiver{"a": r}, deliver.Options{Grace: c.grace}))
			<-r.began
			begin := time.Now()
			stop()
			if d := cmp.Diff(c.left, st.left("a")); d != "" {
				t.Errorf("grace %v: left, -want +got:\n%s", c.grace, d)
			}
			if took := time.Since(begin); took > c.grace {
				t.Errorf("grace %v: stopped after %v", c.grace, took)
			}
			<-r.ended
		})
	}
}

func TestFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newMemory([]string{"a", "b"}, "1", "2")
		slow := &answers{answer: func(n int, _ string) (time.Duration, bool, error) {
			time.Sleep(time.Second)
			if n < 3 {
				return 0, true, errDown
			}
			return 0, false, nil
		}}
		d := deliver.New(st, map[string]deliver.Receiver{"a": slow, "b": &answers{}}, deliver.Options{})
		stop := run(d)
		if err := d.Flush(context.Background()); err != nil {
			t.Error(err)
		}
		if len(st.left("a"))+len(st.left("b")) != 0 {
			t.Errorf("flushed, and yet left are %v and %v", st.left("a"), st.left("b"))
		}
		if err := d.Flush(context.Background()); err != nil { // of nothing
			t.Error(err)
		}
		stop()
		if err := d.Flush(context.Background()); !errors.Is(err, deliver.ErrStopped) {
			t.Errorf("after the stop: %v", err)
		}
	})
}

func TestFlushGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newMemory([]string{"a"}, "1")
		r := &answers{answer: func(int, string) (time.Duration, bool, error) { return 0, true, errDown }}
		d := deliver.New(st, map[string]deliver.Receiver{"a": r}, deliver.Options{})
		defer run(d)()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := d.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
	})
}
