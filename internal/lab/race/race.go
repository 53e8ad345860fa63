// Package race tells tests whether the race detector is on, and how much they are to do.
//
// Some tests prove something by sheer numbers: thousands of random histories, a fault at each
// write of hundreds. Where VOLUME is set in the environment, as make volume sets it, and .ci/run for faults,
// they run in full. Else they run what shows that they still can, so that to run all tests is a matter
// of minutes; and so they do under the race detector, with which they take ten times as long, and which finds
// nothing in their one goroutine.
package race

import "os"

// Brief tells whether a test that proves something by numbers is to do with few.
func Brief() bool { return Enabled || os.Getenv("VOLUME") == "" }

// Few is how many a test is to do with: all of them, or few where it is brief.
func Few(few, all int) int {
	if Brief() {
		return few
	}
	return all
}
