//go:build unix

package file

import (
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// waitsOn gives, if r is a file, a function that waits until there is something to read, which the end
// is too, or that long; it tells whether there was nothing all the time. It is nil if that can't be told.
func waitsOn(r io.Reader) func(time.Duration) bool {
	f, ok := r.(*os.File)
	if !ok {
		return nil
	}
	conn, err := f.SyscallConn()
	if err != nil {
		return nil
	}
	return func(long time.Duration) (nothing bool) {
		err := conn.Control(func(fd uintptr) {
			fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
			n, err := unix.Poll(fds, int(long/time.Millisecond))
			for errors.Is(err, unix.EINTR) {
				n, err = unix.Poll(fds, int(long/time.Millisecond))
			}
			nothing = n == 0 && err == nil
		})
		return err == nil && nothing
	}
}
