package config

import (
	"net"
	"net/netip"
	"net/url"
	"strings"
)

// tokenMin is the least length of a token.
const tokenMin = 16

// Loopback tells whether an address to listen on, host:port, can be reached from
// this machine only. A name other than localhost may mean anything.
func Loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// Guarded tells whether something proves who asks.
func (h *HTTP) Guarded() bool { return h.TokenFile != "" || h.TLS != nil && h.TLS.ClientCA != "" }

// http checks the monitor's own server: what can be reached from other machines
// must ask who it is.
func (v *validator) http(h *HTTP) {
	for _, l := range []struct{ path, address string }{{"http.listen", h.Listen}, {"http.admin", h.Admin}} {
		if l.address == "" {
			continue
		}
		if err := hostPort(l.address); err != nil {
			v.errorf(l.path, "%v", err)
			continue
		}
		switch {
		case Loopback(l.address):
		case !h.Guarded():
			v.errorf(l.path, "%s can be reached from other machines, and nothing asks who is there: set http.token_file or "+
				"http.tls.client_ca, or listen on 127.0.0.1", l.address)
		case h.TLS == nil:
			v.warnings = append(v.warnings, l.path+": "+l.address+
				" without http.tls sends the token readable by anyone on the way, unless something in front of it speaks TLS")
		}
	}
	if h.Admin != "" && h.Admin == h.Listen && !anyPort(h.Admin) {
		v.errorf("http.admin", "is the same address as http.listen: give it a port of its own")
	}
	if t := h.TLS; t != nil && (t.Cert == "" || t.Key == "") {
		v.errorf("http.tls", "wants both cert and key: the certificate that the monitor shows, and its private key")
	}
	if u, err := url.Parse(h.BaseURL); h.BaseURL != "" &&
		(err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" ||
			u.Fragment != "") {
		v.errorf("http.base_url", "wants an address such as https://isowatch.example.org")
	}
}

// anyPort tells whether an address leaves the choice of a port to the system.
func anyPort(address string) bool { return strings.HasSuffix(address, ":0") }
