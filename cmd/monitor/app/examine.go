package app

import (
	"errors"
	"io"
	"time"

	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/ingest/source/file"
	"github.com/isowatch/isowatch/window/store"
)

// Examine looks at what Run would look at before it reads records, without asking anybody on the network:
// certificates, authorities, the file of the input, the folder of the store, silences. What can't work is an error,
// what can work and does nothing is a warning. Of what is known to be wrong nothing more is said.
func Examine(l *config.Loaded, known config.Errors) (warnings []string, errs config.Errors) {
	c := l.Config
	failed := func(path string, err error) {
		var several config.Errors
		switch {
		case err == nil:
		case errors.As(err, &several):
			for _, e := range several {
				if !known.About(e.Path) {
					errs = append(errs, &config.Error{Place: l.Place(e.Path), Path: e.Path, Msg: e.Msg})
				}
			}
		case known.About(path):
		default: // it names the key itself
			errs = append(errs, &config.Error{Place: l.Place(path), Msg: err.Error()})
		}
	}
	if k := c.Source.Kafka; k != nil {
		of := Connection("source.kafka", k.Brokers, k.TLS, k.SASL)
		failed("source.kafka.tls", of.Check())
	}
	if f := c.Source.File; f != nil {
		src, err := file.Open(file.Options{Path: f.Path, Follow: f.Follow})
		if err == nil {
			err = src.Close()
		}
		failed("source.file.path", err)
	}
	receivers, err := Receivers(c, io.Discard)
	failed("alerts", errors.Join(err, CloseReceivers(receivers)))
	if c.HTTP.TLS != nil {
		_, err := newCertificates(*c.HTTP.TLS)
		failed("http.tls", err)
	}
	failed("store.path", store.Usable(c.Store.Path))
	_, idle := silences(c, time.Now())
	for i := range idle {
		idle[i].Place = l.Place(idle[i].Path)
		warnings = append(warnings, "a silence can't match anything: "+idle[i].Error())
	}
	return warnings, errs
}
