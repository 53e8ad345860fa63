// Package race tells tests whether the race detector is on, and how much they are to do.
//
// Some tests prove something by sheer numbers: thousands of random histories, a fault at each
// write of hundreds. Where VOLUME is set in the environment, as make volume sets it,
// they run in full. Else they run what shows that they still can, so that to run all tests is a matter
// of minutes; and so they do under the race detector, with which they take ten times as long, and which finds
// nothing in their one goroutine. Where CI is not set either, random tests draw a third of these few, and the
// longest of those that need servers are skipped.
package race

import (
	"flag"
	"os"
	"testing"
)

// Brief tells whether a test that proves something by numbers is to do with few.
func Brief() bool { return Enabled || os.Getenv("VOLUME") == "" }

// Few is how many a test is to do with: all of them, or few where it is brief.
func Few(few, all int) int {
	if Brief() {
		return few
	}
	return all
}

// CI tells whether all is to be tried that takes no more than some minutes.
func CI() bool { return os.Getenv("CI") != "" || !Brief() }

// Draws is how many random cases a test draws, from few as in Few, of which it draws a third where it is not for CI.
func Draws(few, all int) int {
	if CI() {
		return Few(few, all)
	}
	return (few + 2) / 3
}

// Named tells whether tests were asked for by name: then these are not skipped for what they take.
func Named() bool { return flag.Lookup("test.run").Value.String() != "" }

// SkipBeforeCI skips a test that takes servers and a while, and of which others have the gist, unless it is for CI or
// asked for by name.
func SkipBeforeCI(t testing.TB) {
	if !CI() && !Named() {
		t.Skip("SKIPPED: CI=true go test, or -run by name")
	}
}
