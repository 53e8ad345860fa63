// Package leak fails tests that leave goroutines behind.
//
// It is goleak with more patience: that looks for less than half a second, in which the
// goroutines of a client that was closed need not have ended on a machine with much to do. What
// is left for good is found all the same, only later.
package leak

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience is how long goroutines may take to end.
const patience = time.Minute

func find(patience time.Duration, opts []goleak.Option) error {
	for end := time.Now().Add(patience); ; {
		if err := goleak.Find(opts...); err == nil || time.Now().After(end) {
			return err
		}
	}
}

// Main runs the tests of a package and ends the process, with status 1 if goroutines are left
// after tests that succeeded. It is for TestMain.
func Main(m *testing.M, opts ...goleak.Option) {
	status := m.Run()
	if status == 0 {
		if err := find(patience, opts); err != nil {
			fmt.Fprintln(os.Stderr, "after the tests:", err)
			status = 1
		}
	}
	os.Exit(status)
}

// None fails a test after which goroutines are left.
func None(t testing.TB, opts ...goleak.Option) {
	t.Helper()
	if err := find(patience, opts); err != nil {
		t.Error(err)
	}
}
