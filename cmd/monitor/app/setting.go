package app

import (
	"github.com/rs/zerolog"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/page"
	"github.com/isowatch/isowatch/alerts/veil"
	"github.com/isowatch/isowatch/config"
)

// setting is what every stage has and none changes: what it is asked for, and where it tells how it is doing. Whatever
// else passes between stages is a field or an argument of theirs.
type setting struct {
	cfg     *config.Config
	log     zerolog.Logger
	metrics *metrics
	ready   readiness
	pulse   pulse
	tuning  tuning
	version string // of the program
	// untilEnd: the input ends where it ends now.
	untilEnd bool
	// name is what positions and reports call the input, origin what the store
	// does; empty for an input that can't be read again.
	name, origin string
	canary       func() page.Canary // nil: there is none
	found        func(alerts.Alert) // Options.Found
	// veil hides keys and values in alerts, from Run on.
	veil veil.Veil
}
