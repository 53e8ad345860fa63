package app

import (
	"net"
	"strings"
	"testing"
)

// TestSilentBroker: the log begins with which monitor it is and where its page is, and a broker that
// takes connections and does not answer is told long before a request to it fails.
func TestSilentBroker(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := testConfig([]string{l.Addr().String()})
	c.HTTP.Listen = "127.0.0.1:0"
	r := start(t, c, newMemStore(), false)
	page := `"page":"http://` + r.Addr() + `"`
	eventually(t, "the broker is named", func() bool { return strings.Contains(r.log.String(), "no broker of "+l.Addr().String()) })
	if first, _, _ := strings.Cut(r.log.String(), "\n"); !strings.Contains(first, page) || !strings.Contains(first, `"version":`) {
		t.Errorf("the log begins with %s, want %s", first, page)
	}
	if got := get(t, r.Addr(), "/readyz"); !strings.Contains(got, l.Addr().String()) {
		t.Errorf("/readyz: %s", got)
	}
	r.stop(t)
}
