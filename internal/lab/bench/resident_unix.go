//go:build unix

package bench

import (
	"os"
	"runtime"
	"syscall"
)

// maxResident is the greatest resident size of a process that ended, in bytes; 0
// if the system does not tell.
func maxResident(p *os.ProcessState) uint64 {
	usage, ok := p.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	return residentBytes(usage)
}

// ownMaxResident is that of this process.
func ownMaxResident() uint64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return residentBytes(&usage)
}

// residentBytes takes the unit into account, which is kibibytes but on Darwin.
func residentBytes(usage *syscall.Rusage) uint64 {
	if runtime.GOOS == "darwin" || runtime.GOOS == "ios" {
		return uint64(usage.Maxrss)
	}
	return uint64(usage.Maxrss) << 10
}
