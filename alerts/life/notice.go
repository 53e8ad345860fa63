package life

import (
	"encoding/json"
	"fmt"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/alerts/text"
)

// Kind is what a notice is about; a closed set.
type Kind string

// The kinds.
const (
	KindAlert       Kind = "alert"       // a group's first alert
	KindOngoing     Kind = "ongoing"     // a group goes on: there is more of it, or still
	KindSummary     Kind = "summary"     // several groups, which the rate did not let out one by one
	KindResolved    Kind = "resolved"    // groups are over
	KindOperational Kind = "operational" // the monitor itself, or its input, is in trouble
	KindTest        Kind = "test"        // a person tries the way to a receiver
)

// Notification is what a notice says beside the alert that stands for it.
type Notification struct {
	// ID names the notice: the same when it is delivered again.
	ID   string `json:"id"`
	Kind Kind   `json:"kind"`
	// Group is what it is about; of a summary the burst, which has an id of its own
	// and is resolved like a group.
	Group string `json:"group"`
	// IDs are the alerts that it is the news of, none of which any earlier notice
	// had. Empty for what is operational or over.
	IDs []string `json:"ids"`
	// Groups counts the groups that it is about, Count how often the anomalies, or
	// the condition, of these were found since they began, Since is when the first
	// of them began, in Unix nanoseconds. What a summary only says to be over is not
	// among them.
	Groups int   `json:"groups"`
	Count  int64 `json:"count"`
	Since  int64 `json:"since"`
	// Silenced counts what a silence kept from the receivers since the last notice
	// of these groups.
	Silenced int64 `json:"silenced"`
	// Resolved are the groups, and bursts, that are over by this notice: those that
	// a notice was about before.
	Resolved []string `json:"resolved,omitempty"`
	// Parts say what a summary is made of: anomalies, the most frequent first, then
	// conditions, the worst first; of each at most partsMax.
	Parts []Part `json:"parts,omitempty"`
	// Over says in the same way what is over by it, if that is more than the notice
	// itself is about.
	Over []Part `json:"over,omitempty"`
}

// Part is a share of a notice: anomalies of one name, or a condition.
type Part struct {
	Group    string        `json:"group"` // the first of its groups
	DB       string        `json:"db"`
	Level    string        `json:"level"`
	Name     string        `json:"name"`
	Severity name.Severity `json:"severity"` // the worst
	Groups   int           `json:"groups"`
	Alerts   int           `json:"alerts"` // ids of the notice
	// Text is what a condition says.
	Text string `json:"text,omitempty"`
}

// Notice is what receivers get: the alert that stands for it, or something of that
// shape, and what else there is to say.
type Notice struct {
	alerts.Alert
	Notification Notification `json:"notification"`
}

// JSON is the notice's JSON form on one line, without markup escapes.
func (n Notice) JSON() []byte {
	n.Alert = filled(n.Alert)
	if n.Notification.IDs == nil {
		n.Notification.IDs = []string{}
	}
	b, err := text.JSON(n)
	if err != nil {
		panic(fmt.Sprintf("notice %s: %v; can't happen, because evidence was JSON before and the rest is plain",
			n.Notification.ID, err))
	}
	return b
}

// filled is an alert whose lists are there, if empty.
func filled(a alerts.Alert) alerts.Alert {
	for _, list := range []*[]string{&a.Breaks, &a.Holds, &a.Aliases, &a.Keys, &a.Transactions} {
		if *list == nil {
			*list = []string{}
		}
	}
	if a.Cycle == nil {
		a.Cycle = []alerts.Edge{}
	}
	if a.Evidence == nil {
		a.Evidence = []json.RawMessage{}
	}
	if a.Links == nil {
		a.Links = map[string]string{}
	}
	return a
}

// Parse reads the JSON form of a notice.
func Parse(b []byte) (Notice, error) {
	var n Notice
	if err := json.Unmarshal(b, &n); err != nil {
		return Notice{}, fmt.Errorf("notice: %w", err)
	}
	if n.Version != alerts.Version {
		return Notice{}, fmt.Errorf("notice %s: version %d, this program reads %d; use the version of monitor that wrote it",
			n.Notification.ID, n.Version, alerts.Version)
	}
	return n, nil
}
