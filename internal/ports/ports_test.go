package ports

import (
	"fmt"
	"net"
	"os"
	"testing"
)

// Ports that are found differ, can be listened at, and are not of the system's range.
func TestFree(t *testing.T) {
	got, err := Free(50)
	if err != nil {
		t.Fatal(err)
	}
	first, last := 0, 0
	if b, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		if _, err := fmt.Sscan(string(b), &first, &last); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[int]bool{}
	for _, p := range got {
		if seen[p] || first > lowest && p >= first && p <= last {
			t.Errorf("port %d comes twice, or is of the system's, %d to %d", p, first, last)
		}
		seen[p] = true
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", p))
		if err != nil {
			t.Error(err)
			continue
		}
		defer l.Close()
	}
	// Those are taken now.
	more, err := Free(50)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range more {
		if seen[p] {
			t.Errorf("port %d is free though somebody listens there", p)
		}
	}
}

// What was handed out is not handed out again, although nobody listens there yet.
func TestFreeIsNotGivenTwice(t *testing.T) {
	const from, end = lowest - 400, lowest // so few that it would be
	t.Cleanup(func() {
		held.mu.Lock()
		defer held.mu.Unlock()
		for _, c := range held.ports {
			c.Close()
		}
		held.ports = nil
	})
	seen := map[int]bool{}
	for range 8 {
		got, err := free(20, from, end)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range got {
			if seen[p] || p < from || p >= end {
				t.Errorf("port %d, of %d to %d, comes twice", p, from, end)
			}
			seen[p] = true
		}
	}
}
