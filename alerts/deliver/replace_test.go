package deliver_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/isowatch/isowatch/alerts/deliver"
)

// TestReplace: what waits for a receiver that asked to be left alone goes out at once by
// another way, with its filter; the old way is not used again.
func TestReplace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		st := newMemory([]string{"a", "b"}, "1", "2")
		old := &answers{answer: func(int, string) (time.Duration, bool, error) { return time.Hour, true, errDown }}
		d := deliver.New(st, map[string]deliver.Receiver{"a": old, "b": &answers{}}, deliver.Options{})
		defer run(d)()
		time.Sleep(time.Minute)
		synctest.Wait()
		next := &answers{}
		if !d.Replace("a", next, deliver.Filter{}) || d.Replace("c", next, deliver.Filter{}) {
			t.Error("a is there and c is not")
		}
		synctest.Wait()
		if got := next.ids(); !slices.Equal(got, []string{"1", "2"}) || len(st.left("a")) > 0 || time.Since(begin) > time.Minute {
			t.Errorf("by the new way: %v after %v, left %v", got, time.Since(begin), st.left("a"))
		}
		last := &answers{}
		d.Replace("a", last, deliver.Filter{DBs: []string{"another"}})
		st.mu.Lock()
		st.boxes["a"] = append(st.boxes["a"], item("3", []byte(`{"id":"3","db":"shop"}`)))
		st.mu.Unlock()
		d.Wake()
		synctest.Wait()
		if n := len(old.ids()); n != 1 || len(next.ids()) != 2 || len(last.ids()) != 0 || len(st.left("a")) != 0 {
			t.Errorf("%d by the first way, %v by the second, %v by the last, left %v", n, next.ids(), last.ids(), st.left("a"))
		}
	})
}

// TestReplaceInTheMiddle: what fails since its receiver was closed under it is delivered
// by the new one.
func TestReplaceInTheMiddle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newMemory([]string{"a"}, "1")
		closed := make(chan struct{})
		old := &answers{answer: func(int, string) (time.Duration, bool, error) {
			<-closed
			return 0, true, errDown
		}}
		d := deliver.New(st, map[string]deliver.Receiver{"a": old}, deliver.Options{})
		defer run(d)()
		synctest.Wait()
		next := &answers{}
		d.Replace("a", next, deliver.Filter{})
		close(closed)
		begin := time.Now()
		if err := d.Flush(context.Background()); err != nil {
			t.Fatal(err)
		}
		if got := next.ids(); !slices.Equal(got, []string{"1"}) || time.Since(begin) > 0 {
			t.Errorf("by the new way: %v after %v", got, time.Since(begin))
		}
	})
}

// counting is a Resender that counts how often it is told.
type counting struct {
	answers
	resent atomic.Int64
}

func (c *counting) Resend(context.Context, []deliver.Active) (time.Duration, error) {
	c.resent.Add(1)
	return 0, nil
}

// TestReplaceResender: what is active is told again to one that takes the place of a
// receiver that did not want to hear, and no more to one that was replaced.
func TestReplaceResender(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &counting{}
		d := deliver.New(newMemory([]string{"a"}), map[string]deliver.Receiver{"a": &answers{}},
			deliver.Options{Active: func() []deliver.Active { return []deliver.Active{{Group: "g"}} }})
		defer run(d)()
		time.Sleep(time.Hour)
		d.Replace("a", r, deliver.Filter{})
		synctest.Wait()
		if n := r.resent.Load(); n != 1 {
			t.Fatalf("told %d times at once", n)
		}
		time.Sleep(deliver.ResendDefault + time.Second)
		synctest.Wait()
		if n := r.resent.Load(); n != 2 {
			t.Fatalf("told %d times after a round", n)
		}
		d.Replace("a", &answers{}, deliver.Filter{})
		time.Sleep(time.Hour)
		if n := r.resent.Load(); n != 2 {
			t.Errorf("told %d times since it was replaced", n-2)
		}
	})
}
