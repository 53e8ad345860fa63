// Package ports finds ports for servers that have to know theirs before they listen, and may
// stop listening for a while, as a broker does that is restarted.
//
// The system hands out ports of a range of its own to whoever asks for any, and to every
// connection that is made: a port of that range that was free a moment ago may be taken when it
// is wanted, and is, now and then, on a busy machine. So these are from below that range, and one
// that was handed out is not handed out again, by any process, while the one that got it runs,
// whether somebody listens there already or not.
package ports

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
)

// The ports from which is chosen, unless the system's own begin before lowest.
const (
	lowest  = 18_000
	highest = 32_000
)

// heldMax is how many ports a process has for itself at most: who asks for more, as a long soak
// does that starts monitor after monitor, is done with the oldest.
const heldMax = 200

// held keeps others that look for ports from those that were handed out: who has the UDP port
// of a number, for which nobody else has a use, has the number.
var held struct {
	mu    sync.Mutex
	ports []net.PacketConn
}

// hold takes a number, unless somebody has it.
func hold(port int) bool {
	c, err := net.ListenPacket("udp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	held.mu.Lock()
	defer held.mu.Unlock()
	if held.ports = append(held.ports, c); len(held.ports) > heldMax {
		held.ports[0].Close()
		held.ports = held.ports[1:]
	}
	return true
}

// Free are n different ports of 127.0.0.1 at which nobody listens, and that nobody else is given.
func Free(n int) ([]int, error) {
	end := highest
	if b, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		var first, last int
		if _, err := fmt.Sscan(string(b), &first, &last); err == nil && first > lowest {
			end = min(end, first)
		}
	}
	return free(n, lowest, end)
}

// free are n ports from one on and before another.
func free(n, from, end int) ([]int, error) {
	var out []int
	for range 1000 {
		if len(out) == n {
			return out, nil
		}
		port := from + rand.IntN(end-from)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue // somebody listens there
		}
		l.Close()
		if hold(port) {
			out = append(out, port)
		}
	}
	return nil, fmt.Errorf("no %d ports are free from %d to %d of 127.0.0.1", n, from, end)
}

// Address is host:port of one such port.
func Address() (string, error) {
	p, err := Free(1)
	if err != nil {
		return "", err
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(p[0])), nil
}
