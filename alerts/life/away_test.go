package life

import (
	"testing"
	"time"
)

// A monitor that was away for longer than ResolveAfter has not looked: what it
// found before is not over until it has judged, for so long, that database again.
func TestNothingIsOverUnwatched(t *testing.T) {
	s := newSim(t, Config{Repeat: time.Hour})
	s.want(s.find(lost("1", "x")), "alert/new groups=1 count=1 ids=1")
	other := lost("2", "x")
	other.DB = "stock"
	s.want(s.find(other), "alert/new groups=1 count=1 ids=2")

	s.now += int64(30 * time.Minute)
	l, err := Restore(s.l.Append(nil), s.cfg)
	if err != nil {
		t.Fatal(err)
	}
	s.l = l
	s.l.Await()
	s.want(s.pass(time.Hour), "")

	s.l.Judged("shop", s.now)
	s.want(s.pass(14*time.Minute), "")
	s.l.Judged("shop", s.now) // goes on to be
	s.want(s.pass(time.Minute), "resolved/resolved groups=1 count=1 ids=")
	s.want(s.pass(time.Hour), "")

	s.l.Judged("stock", s.now)
	s.want(s.pass(15*time.Minute), "resolved/resolved groups=1 count=1 ids=")
}

// What can't be looked at for a while does not end in it, of all databases or of one; what
// is over before, and what is found meanwhile, is told as ever.
func TestNothingIsOverUnseen(t *testing.T) {
	s := newSim(t, Config{Repeat: time.Hour})
	s.want(s.find(lost("1", "x")), "alert/new groups=1 count=1 ids=1")
	other := lost("2", "x")
	other.DB = "stock"
	s.want(s.find(other), "alert/new groups=1 count=1 ids=2")
	s.want(s.pass(14*time.Minute), "")
	s.l.Await("shop")
	s.want(s.pass(time.Minute), "resolved/resolved groups=1 count=1 ids=") // of stock
	s.want(s.find(other), "alert/new groups=1 count=1 ids=2")
	for range 20 {
		s.l.Await() // goes on to fail
		s.want(s.pass(time.Minute), "")
	}
	s.l.Judged("shop", s.now)
	s.l.Judged("stock", s.now)
	s.want(s.pass(14*time.Minute), "")
	s.want(s.pass(time.Minute), "resolved/resolved groups=2 count=2 ids=")
}
