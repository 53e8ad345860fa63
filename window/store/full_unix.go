//go:build unix

package store

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// available returns what of the disk of path may still be written.
func available(path string) (uint64, bool) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return 0, false
	}
	return uint64(st.Bavail) * uint64(st.Bsize), true //nolint:unconvert // the types differ between systems
}

// allocated is what a file takes on disk, which is less than its size if it has
// holes.
func allocated(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int64(st.Blocks) * 512 //nolint:unconvert // the types differ between systems
	}
	return info.Size()
}

// opened returns how many files the process has open and how many it may have, unless these are many.
func opened() (open, most uint64) {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil || uint64(l.Cur) >= 1<<16 { //nolint:unconvert // as above
		return 0, math.MaxUint64
	}
	all, err := os.ReadDir("/dev/fd")
	switch {
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE): // which looking takes itself
		return uint64(l.Cur), uint64(l.Cur) //nolint:unconvert // as above
	case err != nil:
		return 0, math.MaxUint64
	}
	return uint64(len(all)), uint64(l.Cur) //nolint:unconvert // as above
}
