package life

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

// A silence takes whatever name a person knows an anomaly or a level by, however it is
// spelled; one that nothing can match is not made.
func TestSilencesTakeAnySpelling(t *testing.T) {
	for _, s := range []Silence{
		{Name: "lost-update"}, {Name: "Lost Update"}, {Name: "LostUpdate"}, {Name: "p4"}, {Name: ":P4"}, {Name: "lost_upd*"}, {Name: "[kl]ost-update"}, {Name: "*"},
		{Level: "si"}, {Level: "SI"}, {Level: "snapshot-isolation"}, {Level: "Snapshot Isolation"}, {Level: "PL-SI"}, {Level: "s?"}, {Level: "*"},
		{Name: "P4", Level: "PL-SI"},
	} {
		x := newSim(t, Config{Repeat: time.Hour})
		s.Until = x.now + int64(time.Hour)
		if _, err := x.l.Silence(s, x.now); err != nil {
			t.Errorf("%+v: %v", s, err)
		}
		if got := x.find(lost("1", "x")); len(got) != 0 {
			t.Errorf("%+v: told is %s", s, says(got))
		}
	}
	for _, s := range []Silence{{Name: "P4", Level: "ser"}, {Name: "write-skew"}, {Level: "serializable"}, {Level: "s"}, {Name: "operational/lag"}} {
		x := newSim(t, Config{Repeat: time.Hour})
		s.Until = x.now + int64(time.Hour)
		if _, err := x.l.Silence(s, x.now); s.Level != "s" && err != nil {
			t.Errorf("%+v: %v", s, err)
		}
		if got := x.find(lost("1", "x")); len(got) != 1 {
			t.Errorf("%+v: told is %s", s, says(got))
		}
	}
	for what, s := range map[string]Silence{`no anomaly is called "no-such-name"`: {Name: "no-such-name"}, `no level is called "nosuch"`: {Level: "nosuch"}} {
		x := newSim(t, Config{})
		s.Until = x.now + int64(time.Hour)
		if _, err := x.l.Silence(s, x.now); !errors.Is(err, ErrSilence) || !strings.Contains(err.Error(), what) {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

// A silence of any end that is taken is there after a restart, with all else.
func TestSilencesOfAnyEndSurvive(t *testing.T) {
	for _, until := range []int64{1, int64(time.Hour), math.MaxInt64 / 4, math.MaxInt64/4 + 1, time.Date(2099, 12, 31, 0, 0, 0, 0, time.UTC).UnixNano(), math.MaxInt64} {
		s := newSim(t, Config{})
		if until <= s.now {
			until += s.now
		}
		s.want(s.find(lost("1", "x")), "alert/new groups=1 count=1 ids=1")
		made, err := s.l.Silence(Silence{DB: "*", Until: until}, s.now)
		if err != nil {
			t.Fatal(err)
		}
		l, err := Restore(s.l.Append(nil), s.cfg)
		if err != nil {
			t.Errorf("until %d: %v", until, err)
			continue
		}
		if got := l.Silences(); len(got) != 1 || got[0] != made || len(l.Snapshot().Groups) != 1 {
			t.Errorf("until %d: %+v, %d groups", until, got, len(l.Snapshot().Groups))
		}
		l.Tick(s.now + 1)
		if l.Due() < s.now {
			t.Errorf("until %d: it is due at %d", until, l.Due())
		}
	}
}
