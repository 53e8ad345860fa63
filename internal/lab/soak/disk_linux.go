package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// tmpfs is a file system of a fixed size, which has to be mounted.
type tmpfs struct{ path string }

// NewFinite mounts a disk of so many bytes on a new directory in dir. The error says
// that this may not be done here.
func NewFinite(dir string, size int64) (Finite, error) {
	path := filepath.Join(dir, "disk")
	if err := os.Mkdir(path, 0o755); err != nil {
		return nil, err
	}
	if err := syscall.Mount("tmpfs", path, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		return nil, fmt.Errorf("mount a small disk: %w", err)
	}
	return &tmpfs{path}, nil
}

func (d *tmpfs) Path() string    { return d.path }
func (d *tmpfs) ballast() string { return filepath.Join(d.path, "ballast") }

func (d *tmpfs) Fill() (n int64, err error) {
	f, err := os.Create(d.ballast())
	if err != nil {
		if errors.Is(err, syscall.ENOSPC) {
			return 0, nil // it is full already
		}
		return 0, err
	}
	defer f.Close()
	for chunk := make([]byte, 1<<20); len(chunk) > 0; {
		k, err := f.Write(chunk)
		n += int64(k)
		if err != nil {
			if !errors.Is(err, syscall.ENOSPC) {
				return n, err
			}
			chunk = chunk[:len(chunk)/2] // the last pages too
		}
	}
	return n, nil
}

func (d *tmpfs) Free() error {
	err := os.Remove(d.ballast())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

func (d *tmpfs) Close() error { return syscall.Unmount(d.path, syscall.MNT_DETACH) }

// slowDisk is a file system in this process that hands everything on to a directory, after
// a while.
type slowDisk struct {
	path   string
	server *fuse.Server
	most   atomic.Int64 // nanoseconds
}

// NewSlow mounts a disk that may be slow on a new directory in dir. The error says that
// this may not be done here.
func NewSlow(dir string) (Slow, error) {
	behind := filepath.Join(dir, "behind")
	d := &slowDisk{path: filepath.Join(dir, "slow")}
	for _, path := range []string{behind, d.path} {
		if err := os.Mkdir(path, 0o755); err != nil {
			return nil, err
		}
	}
	root, err := fs.NewLoopbackRoot(behind)
	if err != nil {
		return nil, err
	}
	loop, ok := root.(*fs.LoopbackNode)
	if !ok {
		return nil, fmt.Errorf("can't happen, because a loopback file system consists of its nodes: %T", root)
	}
	second := time.Second
	d.server, err = fs.Mount(d.path, &slowNode{loop, d},
		&fs.Options{MountOptions: fuse.MountOptions{DirectMount: true, FsName: "slow"},
			EntryTimeout: &second, AttrTimeout: &second})
	if err != nil {
		return nil, fmt.Errorf("mount a slow disk: %w", err)
	}
	return d, nil
}

func (d *slowDisk) Path() string             { return d.path }
func (d *slowDisk) Delay(most time.Duration) { d.most.Store(int64(most)) }
func (d *slowDisk) Close() error             { return d.server.Unmount() }

// wait is how slow the disk is. How long exactly each time is no part of what the seed
// decides.
func (d *slowDisk) wait() {
	if most := d.most.Load(); most > 0 {
		time.Sleep(time.Duration(rand.Int64N(most)))
	}
}

// slowNode is a file or directory of it.
type slowNode struct {
	*fs.LoopbackNode
	disk *slowDisk
}

// WrapChild implements fs.NodeWrapChilder.
func (n *slowNode) WrapChild(_ context.Context, ops fs.InodeEmbedder) fs.InodeEmbedder {
	if loop, ok := ops.(*fs.LoopbackNode); ok {
		return &slowNode{loop, n.disk}
	}
	return ops
}

// Write implements fs.NodeWriter.
func (n *slowNode) Write(ctx context.Context, f fs.FileHandle, data []byte, off int64) (uint32, syscall.Errno) {
	n.disk.wait()
	if w, ok := f.(fs.FileWriter); ok {
		return w.Write(ctx, data, off)
	}
	return 0, syscall.EBADF
}

// Fsync implements fs.NodeFsyncer.
func (n *slowNode) Fsync(ctx context.Context, f fs.FileHandle, flags uint32) syscall.Errno {
	n.disk.wait()
	if s, ok := f.(fs.FileFsyncer); ok {
		return s.Fsync(ctx, flags)
	}
	return 0 // of a directory: what is behind keeps it
}
