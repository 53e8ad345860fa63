package app

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/google/renameio/v2/maybe"

	"github.com/isowatch/isowatch/alerts/life"
	"github.com/isowatch/isowatch/window/store"
)

// addressFile is, in the folder of the store, where the monitor that uses it can be
// asked: its process and its address, a line each. Commands that find the store in use
// ask there, and so never another monitor that happens to be at the configured address.
const addressFile = "monitor.address"

const addressMax = 1 << 10 // bytes that are read of it

// announce writes the address of http.listen into the folder of the store, or removes one
// that a crash left. Without it commands need an address, which is no reason to stop.
func (a *App) announce() {
	if !a.announces {
		return
	}
	a.unannounce()
	if a.Addr() == "" {
		return
	}
	text := fmt.Sprintf("%d\n%s\n", os.Getpid(), a.localURL())
	if err := maybe.WriteFile(filepath.Join(a.cfg.Store.Path, addressFile), []byte(text), 0o600); err != nil {
		a.log.Debug().Err(err).Msg("the store's folder does not say where its monitor is: monitor alerts needs --config or " +
			"--url")
	}
}

// unannounce removes the address, if there is one.
func (a *App) unannounce() {
	if !a.announces || a.store == nil {
		return // it may be another monitor's
	}
	err := os.Remove(filepath.Join(a.cfg.Store.Path, addressFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		a.log.Debug().Err(err).Msg("the address of this monitor stays in the store's folder")
	}
}

// Address is where the monitor can be asked that uses the store at path, as it says
// itself; empty if it does not, as it has no http.listen, or is no monitor but a command.
func Address(path string) string {
	f, err := os.Open(filepath.Join(path, addressFile))
	if err != nil {
		return ""
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, addressMax))
	if err != nil {
		return ""
	}
	lines := strings.Split(string(text), "\n")
	if len(lines) != 3 || lines[2] != "" {
		return ""
	}
	pid, err := strconv.Atoi(lines[0])
	if err != nil {
		return ""
	}
	if holder := store.Holder(path); holder != 0 && holder != pid {
		return "" // left by a crash: another process uses the store now
	}
	if u, err := url.Parse(lines[1]); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return ""
	}
	return lines[1]
}

// localURL is where this machine reaches the page; empty without one.
func (a *App) localURL() string {
	scheme := "http"
	if a.cfg.HTTP.TLS != nil {
		scheme = "https"
	}
	return LocalURL(scheme, a.Addr())
}

// pageURL is where people reach the page; empty without one.
func (a *App) pageURL() string {
	if a.Addr() != "" && a.cfg.HTTP.BaseURL != "" {
		return a.cfg.HTTP.BaseURL
	}
	return a.localURL()
}

// LocalURL is how a server that listens at an address is reached from its own machine;
// empty if that is no address.
func LocalURL(scheme, listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return ""
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		if host = "127.0.0.1"; ip != nil && ip.To4() == nil {
			host = "::1"
		}
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}

// links are where people read more of what a notice is about, by the alert of that id; none, if nobody knows where
// they reach the page. A notice of several groups leads to the list of all.
func (a *App) links(n life.News, alert string) map[string]string {
	base := strings.TrimSuffix(a.pageURL(), "/")
	if base == "" {
		return map[string]string{}
	}
	out := map[string]string{"page": base + "/"}
	switch {
	case n.Kind == life.KindSummary || n.Groups > 1:
		out["page"] = base + "/#/alerts"
	case n.Of.Representative != "":
		out["alert"] = base + "/#/alerts/" + url.PathEscape(alert)
		out["group"] = base + "/#/alerts?group=" + url.QueryEscape(n.Of.ID)
	}
	return out
}
