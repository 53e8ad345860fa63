package app

import (
	"fmt"
	"path/filepath"

	"github.com/isowatch/isowatch/alerts/veil"
	"github.com/isowatch/isowatch/config"
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
