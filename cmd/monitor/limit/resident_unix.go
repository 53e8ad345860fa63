//go:build freebsd || openbsd || netbsd || darwin

package limit

import (
	"runtime"
	"syscall"
)

// resident is the most of the process that was in memory; how much is now is not
// told.
func resident() (now, peak uint64, ok bool) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, 0, false
	}
	peak = uint64(u.Maxrss)
	if runtime.GOOS != "darwin" { // bytes there, kilobytes elsewhere
		peak *= 1024
	}
	return peak, peak, true
}
