// Package ports finds ports for servers that have to know theirs before they listen, and may
// stop listening for a while, as a broker does that is restarted.
//
// The system hands out ports of a range of its own to whoever asks for any, and to every
// connection that is made: a port of that range that was free a moment ago may be taken when it
// is wanted, and is, now and then, on a busy machine. So these are from below that range.
package ports

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
)

// The ports from which is chosen, unless the system's own begin before lowest.
const (
	lowest  = 18_000
	highest = 32_000
)

// Free are n different ports of 127.0.0.1 at which nobody listens.
func Free(n int) ([]int, error) {
	end := highest
	if b, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		var first, last int
		if _, err := fmt.Sscan(string(b), &first, &last); err == nil && first > lowest {
			end = min(end, first)
		}
	}
	var out []int
	for range 1000 {
		if len(out) == n {
			return out, nil
		}
		port := lowest + rand.IntN(end-lowest)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue // somebody listens there
		}
		defer l.Close() // only when all are found, so that they differ
		out = append(out, port)
	}
	return nil, fmt.Errorf("no %d ports are free from %d to %d of 127.0.0.1", n, lowest, end)
}

// Address is host:port of one such port.
func Address() (string, error) {
	p, err := Free(1)
	if err != nil {
		return "", err
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(p[0])), nil
}
