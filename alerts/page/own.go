package page

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// Refuse answers a request that is not let pass. WriteError is one.
type Refuse func(w http.ResponseWriter, status int, code, message, hint string)

// Own lets those requests pass that can't be another site's doing. It is the one place
// that decides this, for the page and for whatever else the monitor serves.
//
// What changes something has to come from a page of the host that it is sent to, or of
// base, which is where people reach the monitor (nil: only there); a program says nothing of the
// kind, and passes. With named, requests are only answered under a name that can't be somebody
// else's: an address, localhost, or the host of base. So a site whose name was made to
// point here (DNS rebinding) reads nothing of a monitor that asks for no token.
func Own(next http.Handler, base *url.URL, named bool, refuse Refuse) http.Handler {
	origin := http.NewCrossOriginProtection()
	if base != nil {
		_ = origin.AddTrustedOrigin(base.Scheme + "://" + base.Host) // an origin for certain, as the configuration is valid
	}
	const hint = "set http.base_url to the address that people use"
	origin.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusForbidden, "cross-origin", "the request comes from another site",
			"open the monitor's own page, or "+hint)
	}))
	return origin.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if named && !names(r.Host, base) {
			refuse(w, http.StatusMisdirectedRequest, "foreign-host", "the monitor is not known by the name "+quote(r.Host),
				"use its address, or "+hint)
			return
		}
		next.ServeHTTP(w, r)
	}))
}

// names tells whether a Host header can't be a foreign name for this machine.
func names(hostport string, base *url.URL) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	if _, err := netip.ParseAddr(host); err == nil || strings.EqualFold(host, "localhost") {
		return true
	}
	return base != nil && strings.EqualFold(host, base.Hostname())
}
