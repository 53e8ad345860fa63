// Package mounts says what becomes of a test that needs a file system of its own, to
// fill it up or to slow it down, and can't have one.
//
// Mounting takes the capability CAP_SYS_ADMIN. A process without it can't mount, on any
// machine: its tests are skipped, loudly. One that has it, as root has outside of most containers,
// can; if that fails under CI the test fails, or nobody would notice that full disks are not
// tested any more.
package mounts

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// Failed ends a test that could not mount a file system because of err; what says what
// is not tested. Under CI (the environment variable CI) it fails if the process may
// mount; otherwise it is skipped.
func Failed(t testing.TB, what string, err error) {
	t.Helper()
	status, _ := os.ReadFile("/proc/self/status")
	if os.Getenv("CI") != "" && allowed(string(status)) {
		t.Fatalf("%s: no file system can be mounted (%v), though the process has CAP_SYS_ADMIN", what, err)
	}
	t.Skipf("%s: no file system can be mounted here (%v); run the tests as root", what, err)
}

// allowed tells whether a process may mount, given its status as Linux shows it.
func allowed(status string) bool {
	const sysAdmin = 21
	for line := range strings.Lines(status) {
		if caps, ok := strings.CutPrefix(line, "CapEff:"); ok {
			bits, err := strconv.ParseUint(strings.TrimSpace(caps), 16, 64)
			return err == nil && bits&(1<<sysAdmin) != 0
		}
	}
	return false
}
