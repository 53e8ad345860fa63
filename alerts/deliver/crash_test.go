package deliver_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/isowatch/isowatch/alerts/deliver"
	"github.com/isowatch/isowatch/internal/lab/storetest"
	"github.com/isowatch/isowatch/window/store"
)

// The process dies, or a write fails, at every write there is: after a restart
// every receiver has heard every alert and
// nothing is left.
func TestDeathAtEveryWrite(t *testing.T) {
	ids := []string{"1", "2", "3"}
	options := store.Options{Receivers: []string{"a", "b"}}
	for _, fault := range []storetest.Fault{storetest.Fail, storetest.DieBefore, storetest.DieAfter} {
		for n, fired := 1, true; fired; n++ {
			synctest.Test(t, func(t *testing.T) {
				disk := storetest.NewDisk()
				receivers := map[string]*answers{"a": {}, "b": {}}
				life := func() {
					st, err := disk.Open(options)
					if err != nil {
						t.Fatal(err)
					}
					defer st.Close()
					for _, id := range ids {
						if _, known, err := st.Alert(t.Context(), id); err == nil && !known {
							_ = st.Commit(t.Context(), store.Commit{Alerts: []store.Alert{{ID: id, Body: []byte("{}")}}, Notices: []store.Notice{{ID: id, Body: []byte("{}")}}})
						}
					}
					d := deliver.New(st, map[string]deliver.Receiver{"a": receivers["a"], "b": receivers["b"]}, deliver.Options{})
					ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
					defer cancel()
					stop := run(d)
					_ = d.Flush(ctx)
					stop()
				}
				disk.Plan(n, fault)
				life()
				fired = disk.Fired()
				life()
				for name, r := range receivers {
					var first []string
					for _, id := range r.ids() {
						if !slices.Contains(first, id) {
							first = append(first, id)
						}
					}
					if slices.Sort(first); !slices.Equal(first, ids) {
						t.Errorf("%v at write %d: %s heard %v", fault, n, name, r.ids())
					}
					if len(r.ids()) > len(ids)+1 {
						t.Errorf("%v at write %d: one fault, and %s heard %v", fault, n, name, r.ids())
					}
				}
				st, err := disk.Open(options)
				if err != nil {
					t.Fatal(err)
				}
				for name := range receivers {
					if err := st.Undelivered(t.Context(), name, func(a store.Notice) bool {
						t.Errorf("%v at write %d: %s is left for %s", fault, n, a.ID, name)
						return true
					}); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
}
