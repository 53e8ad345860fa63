//go:build !(linux || freebsd || openbsd || netbsd || darwin)

package judge

func peakResident() (uint64, bool) { return 0, false }
