package store

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"

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
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return
	}
	for line := range bytes.Lines(maps) {
		// from-to rwxp offset device inode path
		span, _, _ := bytes.Cut(line, []byte(" "))
		at := bytes.IndexByte(line, '/')
		if at < 0 {
			continue
		}
		file := string(bytes.TrimSuffix(line[at:], []byte("\n")))
		if filepath.Dir(file) != dir || filepath.Ext(file) != tableExt {
			continue
		}
		a, b, _ := bytes.Cut(span, []byte("-"))
		from, err := strconv.ParseUint(string(a), 16, 64)
		if err != nil {
			continue
		}
		to, err := strconv.ParseUint(string(b), 16, 64)
		if err != nil || to <= from {
			continue
		}
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, uintptr(from), uintptr(to-from), unix.MADV_PAGEOUT)
	}
}
