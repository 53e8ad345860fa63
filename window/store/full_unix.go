//go:build unix

package store

import (
	"io/fs"
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
