package life

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/internal/lab/race"
)

const second = int64(time.Second)

// sim drives a life and keeps what there should be.
type sim struct {
	t     *testing.T
	l     *Life
	cfg   Config
	now   int64
	told  []News
	times []int64
	ids   map[string]int // how often each id was told of
	// judged is how much of every database has been; silent: nothing is judged any more.
	judged int64
	silent bool
	ahead  int64 // how far the records' clocks are before the monitor's
}

func newSim(t *testing.T, cfg Config) *sim {
	return &sim{t: t, l: New(cfg), cfg: cfg.withDefaults(), now: 1_800_000_000 * second, ids: map[string]int{}}
}

// next takes all notices that there are now.
func (s *sim) next() (out []News) {
	for {
		n, ok := s.l.Next(s.now)
		if !ok {
			return out
		}
		s.note(n)
		s.times = append(s.times, s.now)
		out = append(out, n)
	}
}

func (s *sim) note(n News) {
	s.told = append(s.told, n)
	for _, id := range n.IDs {
		s.ids[id]++
	}
}

func (s *sim) find(a alerts.Alert) []News { return s.several(a, 1) }

// several: so many detections of it are news.
func (s *sim) several(a alerts.Alert, news int) []News {
	if a.Count == 0 {
		a.Count = news
	}
	if a.At == nil {
		a.At = s.place()
	}
	s.l.Anomaly(a, news, s.now)
	return s.next()
}

// place is how far all is judged.
func (s *sim) place() *alerts.Place {
	return &alerts.Place{History: 1, Transactions: s.judged, Time: s.now + s.ahead}
}

// judge says that more was judged of every database that something was found in.
func (s *sim) judge(l *Life) {
	for db := range l.dbs {
		l.Judged(Progress{DB: db, Place: *s.place(), Levels: []Asked{{Level: "si"}, {Level: "ser"}}}, s.now)
	}
}

// pass lets time pass, as the app does: it wakes when something is due, or judged.
func (s *sim) pass(d time.Duration) (out []News) {
	end := s.now + int64(d)
	for {
		due := max(s.l.Due(), s.now+1)
		s.now = min(due, end, s.now+int64(max(time.Minute, d/100)))
		if !s.silent {
			s.judged += ResolveTransactionsDefault
			s.judge(s.l)
		}
		s.l.Tick(s.now)
		out = append(out, s.next()...)
		if s.now == end {
			return out
		}
	}
}

func lost(id, key string) alerts.Alert {
	return alerts.Alert{ID: id, DB: "shop", Level: "si", Weakest: "si", Name: "lost-update", Aliases: []string{"P4"}, Keys: []string{key}, Severity: name.Critical}
}

// another is lost, of another group for each db.
func another(id, db string) alerts.Alert {
	h := lost(id, "x")
	h.DB = db
	return h
}

// says is a notice in short.
func says(ns []News) string {
	var out []string
	for _, n := range ns {
		out = append(out, fmt.Sprintf("%s/%s groups=%d count=%d ids=%s", n.Kind, n.State, n.Groups, n.Count, strings.Join(n.IDs, ",")))
	}
	return strings.Join(out, "\n")
}

func (s *sim) want(got []News, want string) {
	s.t.Helper()
	if says(got) != want {
		s.t.Errorf("told\n%s\nwant\n%s", says(got), want)
	}
}

func TestGroup(t *testing.T) {
	s := newSim(t, Config{Repeat: time.Hour})
	s.want(s.find(lost("1", "x")), "alert/new groups=1 count=1 ids=1")
	for i := 2; i < 10; i++ {
		s.want(s.find(lost(fmt.Sprint(i), "x")), "")
	}
	s.want(s.find(lost("10", "x")), "ongoing/ongoing groups=1 count=10 ids=2,3,4,5,6,7,8,9,10")
	s.want(s.find(lost("11", "x")), "")
	s.want(s.several(alerts.Alert{ID: "1", DB: "shop", Level: "si", Name: "lost-update", Keys: []string{"x"}, Count: 3}, 2), "")
	s.want(s.find(another("b", "stock")), "alert/new groups=1 count=1 ids=b")
	s.want(s.pass(14*time.Minute), "")
	s.want(s.find(lost("12", "x")), "")
	s.want(s.pass(time.Minute), "resolved/resolved groups=1 count=1 ids=")
	if g := s.l.Snapshot().Groups; len(g) != 2 || g[0].State != alerts.Ongoing || g[0].Count != 14 || g[0].Alerts != 12 || g[1].State != alerts.Resolved {
		t.Errorf("%+v", g)
	}
	s.want(s.pass(14*time.Minute), "resolved/resolved groups=1 count=14 ids=11,12")
	s.want(s.find(lost("13", "x")), "alert/new groups=1 count=1 ids=13")
}

func TestReminder(t *testing.T) {
	s := newSim(t, Config{Repeat: 10 * time.Minute})
	s.find(lost("1", "x"))
	s.now += 60 * second
	s.want(s.find(lost("2", "x")), "")
	s.want(s.pass(8*time.Minute), "")
	s.want(s.pass(2*time.Minute), "ongoing/ongoing groups=1 count=2 ids=2")
	every := newSim(t, Config{Repeat: 0})
	for i := range 4 {
		if got := every.find(lost(fmt.Sprint(i), "x")); len(got) != 1 || len(got[0].IDs) != 1 {
			t.Errorf("alert %d: %s", i, says(got))
		}
	}
}

func TestCondition(t *testing.T) {
	s := newSim(t, Config{Repeat: time.Hour})
	c := Condition{Kind: "silent", Text: "nothing comes", Severity: name.Warning}
	raise := func() []News { s.l.Raise(c, s.now); return s.next() }
	s.want(raise(), "operational/new groups=1 count=1 ids=")
	for range 100 {
		s.now += second
		s.want(raise(), "")
	}
	if !s.l.Is(c) || len(s.l.Conditions()) != 1 || s.l.Conditions()[0].Kind != "silent" {
		t.Errorf("conditions %+v", s.l.Conditions())
	}
	s.l.Over(c, s.now)
	s.want(s.pass(10*time.Second), "")
	s.want(raise(), "") // it came back
	s.l.Over(c, s.now)
	s.want(s.pass(31*time.Second), "resolved/resolved groups=1 count=1 ids=")
	if len(s.l.Conditions()) != 0 {
		t.Errorf("conditions %+v", s.l.Conditions())
	}
	raise()
	s.want(s.pass(time.Hour), "operational/new groups=1 count=1 ids=") // it is still so
	e := Condition{Kind: "gap", Of: "partition 3", Event: true, Count: 2, Severity: name.Warning}
	s.l.Raise(e, s.now)
	s.want(s.next(), "operational/new groups=1 count=2 ids=")
	s.want(s.pass(16*time.Minute), "resolved/resolved groups=1 count=2 ids=")
}

func TestStorm(t *testing.T) {
	s := newSim(t, Config{Repeat: 4 * time.Hour})
	const storm = 10_000
	most := 0
	for i := range storm {
		s.now += 6 * second / 1000
		s.l.Tick(s.now)
		s.find(another(fmt.Sprint("a", i), fmt.Sprint("db", i%3000)))
		if i%97 == 0 {
			most = max(most, len(s.l.Append(nil)))
		}
	}
	minute := len(s.told)
	if minute > 5 {
		t.Errorf("%d notices in a minute", minute)
	}
	if most > 2<<20 {
		t.Errorf("the state takes %d bytes", most)
	}
	s.pass(5 * time.Hour)
	for i := range storm {
		if n := s.ids[fmt.Sprint("a", i)]; n != 1 {
			t.Fatalf("alert %d was told of %d times", i, n)
		}
	}
	s.rate()
	if last := s.told[len(s.told)-1]; last.Kind != KindResolved || len(s.l.burst.id) > 0 {
		t.Errorf("the last notice is %s", says(s.told[len(s.told)-1:]))
	}
	resolved := map[string]bool{}
	for _, n := range s.told {
		for _, g := range n.Resolved {
			resolved[g] = true
		}
	}
	for _, n := range s.told {
		if n.Kind != KindResolved && !resolved[n.Group] {
			t.Errorf("nobody was told that %s %s is over", n.Kind, n.Group)
		}
	}
	t.Logf("%d notices in the first minute, %d in all, state at most %d bytes", minute, len(s.told), most)
}

// rate fails if a window had too many notices.
func (s *sim) rate() {
	s.t.Helper()
	for i := range s.times {
		if j := i + s.cfg.RateMax; j < len(s.times) && s.times[j]-s.times[i] < int64(s.cfg.RatePer) {
			s.t.Fatalf("notices %d to %d are within %v", i, j, time.Duration(s.times[j]-s.times[i]))
		}
	}
}

func TestSilence(t *testing.T) {
	s := newSim(t, Config{Repeat: 0, Silences: []Silence{{DB: "test-*"}}})
	h := lost("1", "x")
	h.DB = "test-7"
	s.want(s.find(h), "")
	for _, bad := range []Silence{{Until: s.now + second}, {DB: "[a", Until: s.now + second}, {DB: "a", Until: s.now}, {DB: "a", Until: s.now + 1, Comment: strings.Repeat("x", 2000)}} {
		if _, err := s.l.Silence(bad, s.now); !errors.Is(err, ErrSilence) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	made, err := s.l.Silence(Silence{Name: "write-skew", Key: "acct:?", Until: s.now + 60*second}, s.now)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.find(lost("2", "acct:1")); len(got) != 1 {
		t.Errorf("it is another name: %s", says(got))
	}
	if err := s.l.Expire(made.ID, s.now); err != nil {
		t.Error(err)
	}
	if err := s.l.Expire(made.ID, s.now); !errors.Is(err, ErrNoSilence) {
		t.Error(err)
	}
	if err := s.l.Expire(s.l.Silences()[0].ID, s.now); !errors.Is(err, ErrConfigured) {
		t.Error(err)
	}
	if _, err := s.l.Silence(Silence{Name: "P4", Key: "acct:?", Until: s.now + 60*second}, s.now); err != nil {
		t.Fatal(err)
	}
	s.want(s.find(lost("3", "acct:2")), "")
	s.want(s.pass(59*time.Second), "")
	s.want(s.pass(time.Second), "")
	s.want(s.find(lost("4", "acct:2")), "ongoing/ongoing groups=1 count=3 ids=4") // it goes on, unsilenced
	if n := s.told[len(s.told)-1]; n.Silenced != 1 {
		t.Errorf("%d silenced", n.Silenced)
	}
	if _, err := s.l.Silence(Silence{Name: "operational/*", Until: s.now + 60*second}, s.now); err != nil {
		t.Fatal(err)
	}
	s.l.Raise(Condition{Kind: "lag", DB: "shop"}, s.now)
	s.want(s.next(), "")
}

// TestRandom: whatever comes, there are never more notices than the rate has, every
// alert is in one notice or counted as silenced, nothing happens before it is due,
// the same input gives the same notices, also over a restart at any point, and what
// is remembered is bounded.
func TestRandom(t *testing.T) {
	seeds := uint64(40)
	if race.Brief() {
		seeds = 6 // of each kind: even and odd, and a third of them
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 9))
		cfg := Config{Repeat: time.Duration(r.IntN(3)) * 20 * time.Minute, ResolveAfter: time.Duration(1+r.IntN(20)) * time.Minute,
			RateMax: 1 + r.IntN(6), RatePer: time.Duration(1+r.IntN(90)) * time.Second, GroupsMax: 1 + r.IntN(8), WithheldMax: 4 + r.IntN(60)}
		s, twin := newSim(t, cfg), New(cfg)
		both := func(f func(l *Life)) {
			f(s.l)
			f(twin)
			if r.IntN(4) == 0 {
				b := twin.Append(nil)
				var err error
				if twin, err = Restore(b, cfg); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				if !bytes.Equal(b, twin.Append(nil)) {
					t.Fatalf("seed %d: restored and written again it is another state", seed)
				}
			}
			got := s.next()
			for _, n := range got {
				m, ok := twin.Next(s.now)
				if !ok || !reflect.DeepEqual(n.Notification, m.Notification) || n.State != m.State || n.Of.ID != m.Of.ID {
					t.Fatalf("seed %d: restored, it says\n%s", seed, cmp.Diff(n, m))
				}
			}
			if _, ok := twin.Next(s.now); ok {
				t.Fatalf("seed %d: restored, it says more", seed)
			}
		}
		brought := map[string]bool{}
		var waiting []alerts.Alert
		id := 0
		for range 400 {
			switch k := r.IntN(20); {
			case k < 11:
				h := alerts.Alert{ID: alerts.Hash("id", fmt.Sprint(id)), DB: fmt.Sprint("db", r.IntN(3)), Level: []string{"si", "ser"}[r.IntN(2)], Name: fmt.Sprint("write-skew", r.IntN(8)), Keys: []string{fmt.Sprint(r.IntN(8))}, Count: 1,
					At: s.place(), Severity: []name.Severity{name.Error, name.Critical}[r.IntN(2)]}
				id++
				waiting = append(waiting, h)
			case k < 12:
				both(func(l *Life) { l.Raise(Condition{Kind: "lag", DB: "0", Text: "t"}, s.now) })
			case k < 13:
				both(func(l *Life) { l.Over(Condition{Kind: "lag", DB: "0"}, s.now) })
			case k < 14 && seed%2 == 0:
				x := Silence{DB: fmt.Sprint("db", r.IntN(3)), Until: s.now + int64(1+r.IntN(600))*second}
				both(func(l *Life) { _, _ = l.Silence(x, s.now) })
			case k < 15:
				s.now += int64(r.IntN(1800)) * second
			default:
				s.now += int64(r.IntN(20)) * second
			}
			s.judged += int64(r.IntN(300))
			both(func(l *Life) {
				s.judge(l)
				l.Tick(s.now)
			})
			for len(waiting) > 0 && !s.l.Full() {
				h := waiting[0]
				waiting = waiting[1:]
				brought[h.ID] = true
				both(func(l *Life) { l.Anomaly(h, 1, s.now) })
			}
			if s.l.withheld > s.cfg.WithheldMax || len(s.l.groups) > 2*s.cfg.GroupsMax+1+conditionsMax+1+resolvedMax {
				t.Fatalf("seed %d: %d are withheld, of %d groups", seed, s.l.withheld, len(s.l.groups))
			}
			// Nothing happens before it is due.
			if due := s.l.Due(); due > s.now+1 && len(waiting) == 0 {
				at := min(due-1, s.now+int64(r.IntN(3600))*second)
				probe, err := Restore(s.l.Append(nil), cfg)
				if err != nil {
					t.Fatal(err)
				}
				before := probe.Snapshot().Groups
				probe.Tick(at)
				if n, ok := probe.Next(at); ok {
					t.Fatalf("seed %d: %s %v before it was due", seed, says([]News{n}), time.Duration(due-at))
				}
				if after := probe.Snapshot().Groups; !reflect.DeepEqual(before, after) {
					t.Fatalf("seed %d: %v before it was due:\n%s", seed, time.Duration(due-at), cmp.Diff(before, after))
				}
			}
		}
		s.rate()
		if seed%3 == 0 {
			for {
				n, ok := s.l.Flush(s.now)
				if !ok {
					break
				}
				s.note(n)
			}
		} else {
			s.pass(48 * time.Hour)
			s.rate()
		}
		if s.l.withheld != 0 {
			t.Fatalf("seed %d: %d are withheld in the end", seed, s.l.withheld)
		}
		silenced := int64(0)
		for _, n := range s.told {
			silenced += n.Silenced
		}
		for id, n := range s.ids {
			if n != 1 || !brought[id] {
				t.Fatalf("seed %d: %s was told of %d times", seed, id, n)
			}
		}
		if missing := len(brought) - len(s.ids); missing > 0 && seed%2 == 1 {
			t.Fatalf("seed %d: %d of %d were not told of", seed, missing, len(brought))
		} else if most := silenced; int64(missing) < most-1000 { // conditions are silenced too
			t.Fatalf("seed %d: %d missing, %d silenced", seed, missing, most)
		}
		known := map[string]bool{}
		for _, n := range s.told {
			if known[n.ID] {
				t.Fatalf("seed %d: two notices are %s", seed, n.ID)
			}
			known[n.ID] = true
		}
	}
}

func TestOverlay(t *testing.T) {
	s := newSim(t, Config{})
	a := alerts.Alert{ID: "1", DB: "shop", Level: "si", Name: "lost-update", Keys: []string{"x"}, State: alerts.Fresh, FirstSeen: s.now, LastSeen: s.now, Count: 1}
	var none *Snapshot
	if got := none.Overlay(a); got.State != alerts.Fresh {
		t.Errorf("without a life: %+v", got)
	}
	s.find(a)
	if got := s.l.Snapshot().Overlay(a); got.State != alerts.Fresh || got.Group != groupID("shop", "si", "lost-update") || len(open(s.l)) != 1 {
		t.Errorf("new: %+v", got)
	}
	s.pass(15 * time.Minute)
	over := s.now
	if got := s.l.Snapshot().Overlay(a); got.State != alerts.Resolved || got.ResolvedAt != over {
		t.Errorf("over: %+v", got)
	}
	later := a
	later.LastSeen = s.now + 1 // it is pending
	if got := s.l.Snapshot().Overlay(later); got.State != alerts.Fresh {
		t.Errorf("not brought yet: %+v", got)
	}
	for i := range resolvedMax + 2 {
		s.now += second
		s.find(another(fmt.Sprint("o", i), fmt.Sprint("db", i)))
		s.pass(15 * time.Minute)
	}
	if got := s.l.Snapshot().Overlay(a); got.State != alerts.Resolved || len(s.l.groups) > resolvedMax+1 {
		t.Errorf("forgotten: %+v of %d groups", got, len(s.l.groups))
	}
}

// TestClockSetBack: a clock that is set back by a year stops nothing.
func TestClockSetBack(t *testing.T) {
	s := newSim(t, Config{})
	for i := range 6 {
		s.find(another(fmt.Sprint(i), fmt.Sprint(i)))
	}
	s.now -= int64(365 * 24 * time.Hour)
	s.ahead += int64(365 * 24 * time.Hour)
	s.find(lost("late", "late"))
	s.pass(2 * time.Minute)
	for _, id := range []string{"0", "1", "2", "3", "4", "5", "late"} {
		if s.ids[id] != 1 {
			t.Errorf("%s was told of %d times", id, s.ids[id])
		}
	}
	s.pass(20 * time.Minute)
	if g := s.l.Snapshot().Groups; slices.ContainsFunc(g, func(g Group) bool { return g.State != alerts.Resolved }) {
		t.Errorf("not over: %+v", g)
	}
}

func FuzzRestore(f *testing.F) {
	s := newSim(f2t(f), Config{RateMax: 2})
	f.Add(s.l.Append(nil))
	for i := range 8 {
		s.find(lost(fmt.Sprint("a", i), fmt.Sprint(i/2)))
	}
	s.find(lost(alerts.Hash("x"), "z"))
	_, _ = s.l.Silence(Silence{Key: "z*", Until: s.now + second}, s.now)
	s.l.Raise(Condition{Kind: "lag", DB: "d", Text: "t"}, s.now)
	f.Add(s.l.Append(nil))
	s.pass(20 * time.Minute)
	f.Add(s.l.Append(nil))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := Restore(b, Config{})
		if err != nil {
			if !errors.Is(err, errState) {
				t.Fatal(err)
			}
			return
		}
		l.Snapshot()
		now := l.now
		for i := range 20 {
			l.Anomaly(lost(fmt.Sprint("new", i), "q"), 1, now)
			now += 30 * second
			l.Tick(now)
			for {
				n, ok := l.Next(now)
				if !ok {
					break
				}
				Notice{Notification: n.Notification}.JSON()
			}
			if due := l.Due(); due < 0 && now > 0 {
				now++
			}
		}
		l.Flush(now)
		if _, err := Restore(l.Append(nil), Config{}); err != nil {
			t.Fatalf("what was read, and gone on with, is not read again: %v", err)
		}
	})
}

// f2t is a T for what helps both tests and fuzz targets; it fails nothing.
func f2t(*testing.F) *testing.T { return &testing.T{} }

// open are the groups that are not over.
func open(l *Life) (out []Group) {
	for _, g := range l.Snapshot().Groups {
		if g.State != alerts.Resolved {
			out = append(out, g)
		}
	}
	return out
}
