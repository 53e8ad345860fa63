package store

import (
	"path/filepath"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// PageOut takes the tables of the store at path, as this process maps them, out of
// its resident memory: what is read next comes from the disk. It may be called at any time: what is mapped
// elsewhere meanwhile stays as it is, since this advice never drops what has no other copy, and so does what is
// on its way to the disk, until the next call. Best effort, as not all kernels and sandboxes take the advice
// (Linux 5.4). Cost: O(what is mapped).
func PageOut(path string) {
	dir, err := filepath.Abs(path)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return
	}
	self, err := procfs.Self()
	if err != nil {
		return
	}
	maps, err := self.ProcMaps()
	if err != nil {
		return
	}
	for _, m := range maps {
		if filepath.Dir(m.Pathname) == dir && filepath.Ext(m.Pathname) == tableExt {
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, m.StartAddr, m.EndAddr-m.StartAddr, unix.MADV_PAGEOUT)
		}
	}
}
