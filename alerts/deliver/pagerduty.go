package deliver

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/isowatch/isowatch/alerts/life"
	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/alerts/text"
)

// PagerDuty's limits (developer.pagerduty.com, Events API v2); the rest keeps an event
// far below its 512 KB.
const (
	pagerSummaryMax = 1024
	pagerKeyMax     = 255
	pagerTextMax    = 16 << 10
	pagerListMax    = 50
)

// pagerDuty makes events: a notice resolves the incidents of the groups that are over by
// it, and triggers that of its own unless this is over as well.
type pagerDuty struct{ routingKey string }

type pagerEvent struct {
	RoutingKey string        `json:"routing_key"`
	Action     string        `json:"event_action"`
	DedupKey   string        `json:"dedup_key"`
	Client     string        `json:"client,omitempty"`
	ClientURL  string        `json:"client_url,omitempty"`
	Links      []pagerLink   `json:"links,omitempty"`
	Payload    *pagerPayload `json:"payload,omitempty"`
}

type pagerLink struct {
	Href string `json:"href"`
	Text string `json:"text"`
}

type pagerPayload struct {
	Summary   string         `json:"summary"`
	Source    string         `json:"source"`
	Severity  string         `json:"severity"`
	Timestamp string         `json:"timestamp,omitempty"`
	Component string         `json:"component,omitempty"`
	Group     string         `json:"group,omitempty"`
	Class     string         `json:"class,omitempty"`
	Details   map[string]any `json:"custom_details,omitempty"`
}

func (p pagerDuty) bodies(body []byte, plain bool) ([][]byte, error) {
	n, err := parse(body)
	if err != nil {
		return nil, err
	}
	if n.over() {
		return p.resolve(n.about()), nil
	}
	// First what can't be refused.
	out := append(p.resolve(n.Notification.Resolved), encode(p.trigger(n, plain)))
	if n.Notification.Kind == life.KindTest { // nobody is to have to close it
		out = append(out, p.resolve([]string{n.group()})...)
	}
	return out, nil
}

func (p pagerDuty) resolve(groups []string) [][]byte {
	out := make([][]byte, 0, len(groups))
	for _, g := range groups {
		out = append(out, encode(pagerEvent{RoutingKey: p.routingKey, Action: "resolve", DedupKey: dedupKey(g)}))
	}
	return out
}

func (p pagerDuty) trigger(n *notice, plain bool) pagerEvent {
	e := pagerEvent{RoutingKey: p.routingKey, Action: "trigger", DedupKey: dedupKey(n.group()), Client: "Isowatch",
		ClientURL: n.link(),
		Payload: &pagerPayload{Summary: text.Cut(oneLine(n.title()+": "+n.Summary), pagerSummaryMax),
			Source: pagerSource(n), Severity: pagerSeverity(n)}}
	if plain {
		e.ClientURL = ""
		return e
	}
	for _, name := range slices.Sorted(maps.Keys(n.Links)) {
		if l := n.Links[name]; webLink(l) && len(e.Links) < pagerListMax {
			e.Links = append(e.Links, pagerLink{Href: l, Text: text.Cut(lines(name), pagerKeyMax)})
		}
	}
	if n.Notification.Since > 0 {
		e.Payload.Timestamp = n.since().Format(time.RFC3339Nano)
	}
	e.Payload.Component, e.Payload.Class, e.Payload.Group = text.Cut(lines(n.DB), pagerKeyMax),
		text.Cut(lines(n.Name), pagerKeyMax), text.Cut(n.group(), pagerKeyMax)
	e.Payload.Details = details(n)
	return e
}

// details is what a person looks at first, each part bounded.
func details(n *notice) map[string]any {
	d := map[string]any{"kind": n.Notification.Kind, "count": n.Notification.Count, "clock_dependent": n.ClockDependent}
	say := func(name, value string) {
		if value != "" {
			d[name] = text.Cut(lines(value), pagerTextMax)
		}
	}
	list := func(name string, all []string) {
		if len(all) > 0 {
			d[name] = listed(all, pagerListMax)
		}
	}
	say("alert", n.ID)
	say("level", n.Level)
	say("adya", n.Adya)
	say("explanation", n.Explanation)
	say("parts", strings.Join(n.parts(), "\n"))
	list("breaks", n.Breaks)
	list("holds", n.Holds)
	list("keys", n.Keys)
	list("transactions", n.Transactions)
	list("alerts", n.Notification.IDs)
	return d
}

// dedupKey is the group, short enough.
func dedupKey(group string) string {
	if len(group) <= pagerKeyMax {
		return group
	}
	sum := sha256.Sum256([]byte(group))
	return "isowatch-" + hex.EncodeToString(sum[:])
}

func pagerSource(n *notice) string {
	if n.DB == "" {
		return "isowatch"
	}
	return text.Cut("isowatch/"+lines(n.DB), pagerKeyMax)
}

// pagerSeverity is one of the four words that PagerDuty knows, which are ours.
func pagerSeverity(n *notice) string {
	switch {
	case n.Notification.Kind == life.KindTest:
		return "info"
	case slices.Contains(name.Severities(), n.Severity):
		return string(n.Severity)
	}
	return "error"
}

func oneLine(s string) string { return lines(strings.ReplaceAll(s, "\n", " ")) }
