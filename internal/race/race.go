// Package race tells tests whether the race detector is on.
//
// Some tests prove something by sheer numbers: thousands of random histories, a fault at each
// write of hundreds. They have one goroutine, in which the detector finds nothing, and
// with it they take ten times as long. Without it they run in full; with it they run
// what shows that they still can.
package race

import "testing"

// Brief tells whether a test that proves something by numbers is to do with few: under the
// race detector, and with -short.
func Brief() bool { return Enabled || testing.Short() }
