//go:build linux || freebsd || openbsd || netbsd || darwin

package judge

import (
	"runtime"
	"syscall"
)

// peakResident is the greatest resident size that the process has had.
func peakResident() (uint64, bool) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, false
	}
	if runtime.GOOS == "darwin" { // bytes there, kilobytes elsewhere
		return uint64(u.Maxrss), true
	}
	return uint64(u.Maxrss) * 1024, true
}
