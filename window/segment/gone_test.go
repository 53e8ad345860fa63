package segment

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
)

// What sessions did that were given up to make room is not known to precede anything: a cut
// after it is not complete, the next one is.
func TestSessionsGivenUpAreNotForgottenSilently(t *testing.T) {
	opt := small
	opt.NoClock, opt.MaxSessions = true, 6
	f := newFeed(opt, 4)
	once := func(session string, fence bool) {
		x := f.txn(w(session, 1))
		if fence {
			x = f.fence()
		}
		x.Session = session
		f.add(x)
	}
	fenced(f, 21)
	once("q1", false)
	once("q2", false)
	fenced(f, 1)
	once("q3", true) // the seventh: three are given up, q1 and q2 among them
	if f.c.sessions.by["q1"] != nil || f.c.sessions.by["q2"] != nil || f.c.sessions.by["q3"] == nil {
		t.Fatal("not the scenario")
	}
	fenced(f, 41)
	if k := f.c.Cut(); k.Kind != Fence || k.Complete || k.Straddlers != 0 {
		t.Errorf("who was given up is not counted: %+v", k)
	}
	fenced(f, 41)
	if k := f.c.Cut(); k.Kind != Fence || !k.Complete {
		t.Errorf("after that: %+v", k)
	}
}

// A Cutter that follows many keys and sessions says the same, byte by byte, and lists what
// straddles in the order of the stream.
func TestCutsInOrder(t *testing.T) {
	opt := small
	opt.NoClock, opt.SnapshotKeys = true, 64
	f := newFeed(opt, 4)
	keys := 12
	all := func() {
		x := f.txn()
		for k := range keys {
			x.Ops = append(x.Ops, r(fmt.Sprint("k", k), int64(k)))
		}
		f.add(x)
	}
	for round := range 3 {
		for k := range keys {
			f.add(f.txn(r(fmt.Sprint("v", k), 0), w(fmt.Sprint("v", k), int64(round*keys+k+1))))
		}
	}
	first := f.c.Snapshot(nil)
	for range 20 {
		if !bytes.Equal(first, f.c.Snapshot(nil)) {
			t.Fatal("two snapshots of one state differ")
		}
	}
	g := newFeed(opt, 4)
	f = g
	for k := range keys { // each key is written by two that know nothing of each other
		f.add(f.txn(w(fmt.Sprint("k", k), int64(100+k))))
		f.add(f.txn(w(fmt.Sprint("k", k), int64(k))))
	}
	for range 80 {
		all()
	}
	k := f.c.Cut()
	if k.Kind != Snapshot || k.Complete || len(k.Straddling) != keys || !slices.IsSorted(k.Straddling) {
		t.Errorf("%+v", k)
	}
}
