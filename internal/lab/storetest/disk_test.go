package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/isowatch/isowatch/window/store"
)

func TestConformance(t *testing.T) {
	for _, split := range []bool{false, true} {
		t.Run(fmt.Sprintf("split=%v", split), func(t *testing.T) {
			Run(t, func(t *testing.T) Place {
				d := NewDisk()
				d.Split = split
				return Place{Open: d.Open}
			})
		})
	}
}

// TestEveryWriteFails does what the monitor does, commit by commit from the
// stored offset on, with a fault at every write there is: in the end the store
// holds the same as without.
func TestEveryWriteFails(t *testing.T) {
	opt := store.Options{Receivers: []string{"web"}}
	const commits = 5
	ctx := context.Background()
	input := func(offset int64) store.Commit {
		return store.Commit{
			Offsets:     map[string]map[int]int64{"topic": {0: offset + 1}},
			DeadLetters: []store.DeadLetter{Letter(offset, "x"), Letter(offset, "y")},
			Alerts:      []store.Alert{NewAlert(fmt.Sprint("a", offset)), NewAlert(fmt.Sprint("b", offset/2))},
		}
	}
	work := func(t *testing.T, d *Disk) Dump {
		for range 10 {
			s, err := d.Open(opt)
			if err != nil {
				t.Fatal(err)
			}
			for {
				stored, err := s.Offsets(ctx, "topic")
				if errors.Is(err, ErrDied) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				if stored[0] == commits {
					dump, err := Read(s, []string{"topic"}, opt.Receivers)
					if err != nil {
						t.Fatal(err)
					}
					return dump
				}
				if err := s.Commit(ctx, input(stored[0])); err != nil && !errors.Is(err, ErrDied) && !errors.Is(err, ErrFault) {
					t.Fatal(err)
				}
			}
		}
		t.Fatal("the work does not end")
		return Dump{}
	}
	for _, split := range []bool{false, true} {
		clean := NewDisk()
		clean.Split = split
		want := work(t, clean)
		if split == (clean.Writes() == commits) {
			t.Fatalf("split=%v: %d writes", split, clean.Writes())
		}
		for _, fault := range []Fault{Fail, DieBefore, DieAfter} {
			n := 1
			for ; ; n++ {
				d := NewDisk()
				d.Split = split
				d.Plan(n, fault)
				got := work(t, d)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("split=%v, %v at write %d (-want +got)\n%s", split, fault, n, diff)
				}
				if !d.Fired() {
					break
				}
			}
			if n-1 != clean.Writes() {
				t.Errorf("split=%v, %v: %d writes were tried of %d", split, fault, n-1, clean.Writes())
			}
		}
	}
}
