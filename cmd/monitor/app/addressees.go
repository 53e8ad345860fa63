package app

import (
	"io"
	"maps"
	"reflect"
	"slices"
	"sync"

	"github.com/rs/zerolog"

	"github.com/isowatch/isowatch/alerts/deliver"
	"github.com/isowatch/isowatch/config"
)

// addressees are the receivers that are told. A reload replaces one whose configuration changes, or what a file of
// its certificates holds. A store keeps its outboxes as long as it is open: one more receiver, or one less, takes a
// restart.
type addressees struct {
	log        zerolog.Logger
	stdout     io.Writer
	dispatcher *deliver.Dispatcher

	mu     sync.Mutex
	now    []*Receiver
	closed bool
}

// receiverKeys are what of a configuration makes receivers.
var receiverKeys = []string{"alerts.webhooks", "alerts.kafka", "alerts.resolve_after"}

// stale tells whether a file of a receiver's certificates holds something else.
func (d *addressees) stale() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.closed && slices.ContainsFunc(d.now, (*Receiver).changed)
}

// replace puts into effect what changed of the receivers that there are, and says which
// are there only in one of both configurations.
func (d *addressees) replace(next *config.Config) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	made, err := Receivers(next, d.stdout)
	if err != nil {
		return err
	}
	var unused []*Receiver
	for _, r := range made {
		i := d.find(d.now, r)
		switch {
		case i < 0:
			d.log.Warn().Str("receiver", r.Name).Str("key", r.Key).Msg("a new receiver is told of alerts from the next start on")
			unused = append(unused, r)
		case reflect.DeepEqual(r.from, d.now[i].from) && maps.Equal(r.files, d.now[i].files):
			unused = append(unused, r)
		default:
			d.dispatcher.Replace(r.Name, r.Receiver, r.Filter)
			unused = append(unused, d.now[i])
			d.now[i] = r
			d.log.Info().Str("receiver", r.Name).Msg("a receiver is reached as the configuration says now")
		}
	}
	for _, r := range d.now {
		if d.find(made, r) < 0 {
			d.log.Warn().Str("receiver", r.Name).Str("was", r.Key).
				Msg("a receiver that is not configured any more is told of alerts until the next start")
		}
	}
	if err := CloseReceivers(unused); err != nil {
		d.log.Warn().Err(err).Msg("a connection to a receiver could not be closed properly")
	}
	return nil
}

func (d *addressees) find(in []*Receiver, r *Receiver) int {
	return slices.IndexFunc(in, func(x *Receiver) bool { return x.Name == r.Name })
}

// Close gives all of them up, for good.
func (d *addressees) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	return CloseReceivers(d.now)
}
