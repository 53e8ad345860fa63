package app

import (
	"fmt"
	"path/filepath"
	"regexp"

	"github.com/isowatch/isowatch/alerts/veil"
	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/ingest/reject"
)

// saltFile is, in the folder of the store, the salt of hashes in alerts, where none is
// configured. It goes with the alerts: a folder that is set aside takes it along.
const saltFile = "alerts.salt"

// newVeil is what alerts.values asks for. The store is open, and its folder is there.
func newVeil(c *config.Config) (veil.Veil, error) {
	switch c.Alerts.Values {
	case config.ValuesNone:
		return veil.New(veil.None, nil), nil
	case config.ValuesHash:
		if c.Alerts.Salt != "" {
			return veil.New(veil.Hash, []byte(c.Alerts.Salt)), nil
		}
		salt, err := veil.OwnSalt(filepath.Join(c.Store.Path, saltFile))
		if err != nil {
			return veil.Veil{}, fmt.Errorf("the salt of alerts.values: hash: %w", err)
		}
		return veil.New(veil.Hash, salt), nil
	}
	return veil.Veil{}, nil
}

// sayable is what may be said outside of the store of a record that can't be used. The
// detail quotes it, and so does the name of a field that no record has: where data is
// hidden, there is the reason in general, and the place as far as it is one of the format.
func (a *setting) sayable(e *reject.Error) *reject.Error {
	if a.veil.Mode() == veil.Full {
		return e
	}
	out := &reject.Error{Pos: e.Pos, Reason: e.Reason}
	if place := formatPlace.FindStringSubmatch(e.Field); place != nil {
		out.Field = place[1]
	}
	return out
}

// formatPlace is the beginning of a field's path that is of the format: fields of
// records, events and headers, and what they are made of. Fields of objects that are
// values are data.
var formatPlace = regexp.MustCompile(`^((?:(?:transaction|begin|step|end)\.)?(?:db|session|seq|id|start|end|status|event|txn|n|count|history|ops?)(?:\[\d+\])*(?:\.(?:table|where))?)(?:\W|$)`)
