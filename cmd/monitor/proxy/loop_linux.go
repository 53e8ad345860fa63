package proxy

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"unsafe"
)

// loop passes on what comes over many connections, by one goroutine: where each side has its own, Go's scheduler takes
// two turns for a message. It is for sockets alone, without TLS.
type loop struct {
	mu    sync.Mutex
	ways  map[int]*way // by from; while there are some it runs
	epoll int          // while it runs
	room  []byte
	again bool // there may be more to be had than was
}

// way is what one side of a connection says to the other.
type way struct {
	from, to int // sockets
	heard    func([]byte) func()
	back     *way          // the other way
	left     []byte        // what is to be sent on before more is read
	waits    bool          // left waits for heard
	asked    uint32        // what epoll is asked for of from
	over     chan struct{} // closed when the connection is over; both ways have it
}

func newLoop() *loop { return &loop{ways: map[int]*way{}, room: make([]byte, buffered)} }

// pass passes on between two sockets until one is closed, or ctx ends. It is false where they are none: then nothing
// was done.
func (l *loop) pass(ctx context.Context, client, server net.Conn, fromClient, fromServer func([]byte) func()) bool {
	a, b := own(client), own(server)
	defer closeAll(a, b)
	if a < 0 || b < 0 {
		return false
	}
	client.Close() // Go would wait for it as well
	server.Close()
	there := &way{from: a, to: b, heard: fromClient, over: make(chan struct{})}
	there.back = &way{from: b, to: a, heard: fromServer, over: there.over, back: there}
	if l.add(there) == nil {
		select {
		case <-there.over:
		case <-ctx.Done():
			there.shut() // so that its end is read
			<-there.over
		}
	}
	return true
}

// shut makes what is read of both sockets end, and what is sent fail.
func (w *way) shut() {
	_ = syscall.Shutdown(w.from, syscall.SHUT_RDWR)
	_ = syscall.Shutdown(w.to, syscall.SHUT_RDWR)
}

// own is the socket of a connection, and this package's to close; -1: it has none.
func own(c net.Conn) int {
	fd := -1
	if s, is := c.(syscall.Conn); is {
		if raw, err := s.SyscallConn(); err == nil {
			_ = raw.Control(func(of uintptr) {
				if n, _, failed := syscall.Syscall(syscall.SYS_FCNTL, of, syscall.F_DUPFD_CLOEXEC, 0); failed == 0 {
					fd = int(n)
				}
			})
		}
	}
	return fd
}

func closeAll(fds ...int) {
	for _, fd := range fds {
		if fd >= 0 {
			syscall.Close(fd)
		}
	}
}

// add takes on a connection. The error is the kernel's, who has no room for it.
func (l *loop) add(w *way) (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	runs := len(l.ways) > 0
	if !runs {
		if l.epoll, err = syscall.EpollCreate1(syscall.EPOLL_CLOEXEC); err == nil {
			err = syscall.SetNonblock(l.epoll, true)
		}
		if err != nil {
			return err
		}
	}
	if err = errors.Join(l.ask(w), l.ask(w.back)); err == nil {
		l.ways[w.from], l.ways[w.to] = w, w.back
	}
	switch {
	case runs:
	case err == nil:
		go l.run(os.NewFile(uintptr(l.epoll), "epoll"))
	default:
		syscall.Close(l.epoll)
	}
	return err
}

// run works while there are connections. Between two turns it waits as Go does for a file that is read, and system
// calls are raw, as none of them blocks: what Go does about those that may costs as much as they do.
func (l *loop) run(epoll *os.File) {
	defer epoll.Close()
	raw, err := epoll.SyscallConn()
	if err != nil {
		panic(err) // it is open
	}
	var events [64]syscall.EpollEvent
	_ = raw.Read(func(fd uintptr) (over bool) {
		for {
			n, _, failed := syscall.RawSyscall6(syscall.SYS_EPOLL_PWAIT, fd, uintptr(unsafe.Pointer(&events)),
				uintptr(len(events)), 0, 0, 0)
			if n == 0 || failed != 0 {
				return false
			}
			l.mu.Lock()
			l.again = int(n) == len(events)
			for _, e := range events[:n] {
				if w := l.ways[int(e.Fd)]; w != nil && !l.serve(w, e.Events) {
					l.end(w)
				}
			}
			over = len(l.ways) == 0
			again := l.again && !over
			l.mu.Unlock()
			if !again {
				return over
			}
		}
	})
}

// serve takes what epoll says of the socket from which w reads, and to which its way back writes. It is false if the
// connection is over.
func (l *loop) serve(w *way, events uint32) bool {
	if back := w.back; len(back.left) > 0 && !back.waits && !l.send(back, back.left) {
		return false
	}
	if len(w.left) > 0 || events&^syscall.EPOLLOUT == 0 {
		return true
	}
	n, err := transfer(syscall.SYS_RECVFROM, w.from, l.room)
	if err != 0 || n == 0 {
		return err == syscall.EAGAIN
	}
	l.again = l.again || n == len(l.room)
	wait := w.heard(l.room[:n])
	if wait == nil {
		return l.send(w, l.room[:n])
	}
	w.left, w.waits = append(w.left, l.room[:n]...), true
	go func() {
		wait()
		l.mu.Lock()
		defer l.mu.Unlock()
		w.waits = false
		if l.ways[w.from] == w && !l.send(w, w.left) { // which run finds when it reads
			w.shut()
			w.left = nil
			_ = errors.Join(l.ask(w), l.ask(w.back))
		}
	}()
	return l.ask(w) == nil
}

// send sends b, of which what has no room is left. It is false if the connection is over.
func (l *loop) send(w *way, b []byte) bool {
	n, err := transfer(syscall.SYS_SENDTO, w.to, b)
	if err != 0 && err != syscall.EAGAIN {
		return false
	}
	w.left = append(w.left[:0], b[n:]...)
	return errors.Join(l.ask(w), l.ask(w.back)) == nil
}

// transfer receives or sends, and says how many bytes.
func transfer(what uintptr, fd int, b []byte) (int, syscall.Errno) {
	n, _, err := syscall.RawSyscall6(what, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), 0, 0, 0)
	if err != 0 {
		n = 0
	}
	return int(n), err
}

// ask asks epoll for what is needed next of the socket that w reads from.
func (l *loop) ask(w *way) error {
	var need uint32
	if len(w.left) == 0 {
		need |= syscall.EPOLLIN
	}
	if len(w.back.left) > 0 && !w.back.waits {
		need |= syscall.EPOLLOUT
	}
	how := syscall.EPOLL_CTL_MOD
	switch {
	case need == w.asked:
		return nil
	case w.asked == 0:
		how = syscall.EPOLL_CTL_ADD
	case need == 0: // or it would tell of the end again and again
		how = syscall.EPOLL_CTL_DEL
	}
	w.asked = need
	return syscall.EpollCtl(l.epoll, how, w.from, &syscall.EpollEvent{Events: need, Fd: int32(w.from)})
}

// end ends a connection.
func (l *loop) end(w *way) {
	for _, fd := range []int{w.from, w.to} {
		delete(l.ways, fd)
		_ = syscall.EpollCtl(l.epoll, syscall.EPOLL_CTL_DEL, fd, nil)
	}
	w.shut()
	close(w.over)
}
