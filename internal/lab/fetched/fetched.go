// Package fetched is what tests need from registries (jars, modules of Python and Node): fetched once, into the user's
// cache.
package fetched

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// What is fetched comes over a network, which may fail now and then.
const (
	tries  = 3
	tryMax = 10 * time.Minute // of all tries
)

// pause is how long is waited before the second try, before the third twice that.
var pause = 5 * time.Second

// Cache is the folder of this name in the user's cache.
func Cache(name string) (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(base, "isowatch", name), nil
}

// Once is the folder of this name in dir. Unless it is there, fetch makes one of that name in another folder, work.
// Several processes may call it at once, as tests of several packages do: one fetches, as Maven's local repository does
// not stand several at once, and the others wait for it.
func Once(ctx context.Context, dir, name string, fetch func(ctx context.Context, work string) error) (string, error) {
	made := filepath.Join(dir, name)
	if _, err := os.Stat(made); err == nil {
		return made, nil // without the lock, for which the folder would have to be writable
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	unlock, err := lock(filepath.Join(dir, "lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(made); err == nil {
		return made, nil // another was first
	}
	work, err := os.MkdirTemp(dir, "fetch-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	ctx, cancel := context.WithTimeout(ctx, tryMax)
	defer cancel()
	for n := 1; ; n++ {
		if err = fetch(ctx, work); err == nil || n == tries || errors.Is(err, exec.ErrNotFound) {
			break
		}
		select {
		case <-time.After(time.Duration(n) * pause):
		case <-ctx.Done():
			return "", err
		}
	}
	if err != nil {
		return "", err
	}
	if err := os.Rename(filepath.Join(work, name), made); err != nil {
		if _, there := os.Stat(made); there != nil {
			return "", err
		}
	}
	return made, nil
}
