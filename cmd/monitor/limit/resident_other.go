//go:build !(linux || freebsd || openbsd || netbsd || darwin)

package limit

func resident() (now, peak uint64, ok bool) { return 0, 0, false }
