package app

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/isowatch/isowatch/config"
)

// certificates are what the monitor shows under TLS, and whose certificates it
// takes. They are read again when the files change, without a restart.
type certificates struct {
	cfg     config.ServerTLS
	current atomic.Pointer[tls.Config]
	expires atomic.Int64 // when the monitor's own is no longer valid; Unix seconds

	mu   sync.Mutex
	read [3][]byte // cert, key and client_ca, as they were read last
}

func newCertificates(c config.ServerTLS) (*certificates, error) {
	s := &certificates{cfg: c}
	_, err := s.load()
	return s, err
}

// load reads the files, and tells whether anything has changed. After an error all
// stays as it was.
func (s *certificates) load() (changed bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var read [3][]byte
	for i, f := range []struct{ key, path string }{{"cert", s.cfg.Cert}, {"key", s.cfg.Key},
		{"client_ca", s.cfg.ClientCA}} {
		if f.path == "" {
			continue
		}
		if read[i], err = os.ReadFile(f.path); err != nil {
			return false, config.Errors{{Path: "http.tls." + f.key, Msg: err.Error()}}
		}
	}
	if s.current.Load() != nil && bytes.Equal(read[0], s.read[0]) && bytes.Equal(read[1], s.read[1]) &&
		bytes.Equal(read[2], s.read[2]) {
		return false, nil
	}
	pair, err := tls.X509KeyPair(read[0], read[1])
	if err != nil {
		return false, config.Errors{{Path: "http.tls",
			Msg: fmt.Sprintf("%s and %s are not a certificate and its key: %v", s.cfg.Cert, s.cfg.Key, err)}}
	}
	next := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair},
		NextProtos: []string{"h2", "http/1.1"}}
	if s.cfg.ClientCA != "" {
		next.ClientCAs = x509.NewCertPool()
		if !next.ClientCAs.AppendCertsFromPEM(read[2]) {
			return false, config.Errors{{Path: "http.tls.client_ca", Msg: s.cfg.ClientCA + " holds no certificate in PEM"}}
		}
		next.ClientAuth = tls.VerifyClientCertIfGiven // the guard wants one where nothing else is shown
	}
	s.current.Store(next)
	s.expires.Store(pair.Leaf.NotAfter.Unix())
	s.read = read
	return true, nil
}

// server is the configuration of a listener: each connection gets what is current.
func (s *certificates) server() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			c := s.current.Load()
			if c == nil {
				return nil, errors.New("can't happen, because the certificates are read before anybody can ask")
			}
			return c, nil
		}}
}

// certificatesEvery is how often it is looked whether files have changed.
const certificatesEvery = time.Minute

// watch reads the files again every now and then until stop is closed, and says
// what came of it where that is news.
func (s *certificates) watch(stop <-chan struct{}, tell func(changed bool, err error)) {
	t := time.NewTicker(certificatesEvery)
	defer t.Stop()
	for failed := false; ; {
		select {
		case <-stop:
			return
		case <-t.C:
		}
		changed, err := s.load()
		if changed || err != nil && !failed {
			tell(changed, err)
		}
		failed = err != nil
	}
}
