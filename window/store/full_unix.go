//go:build unix

package store

import "golang.org/x/sys/unix"

// available returns what of the disk of path may still be written.
func available(path string) (uint64, bool) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return 0, false
	}
	return uint64(st.Bavail) * uint64(st.Bsize), true //nolint:unconvert // the types differ between systems
}
