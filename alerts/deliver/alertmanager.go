package deliver

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/isowatch/isowatch/alerts/life"
	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/alerts/text"
)

// HoldDefault is how long an Alertmanager keeps an alert that it is not told of
// again: some times ResendDefault, so that a restart of the monitor ends nothing.
const HoldDefault = 15 * time.Minute

// The most that an Alertmanager is told of one alert, in bytes, and at once.
const (
	labelMax      = 1024
	annotationMax = 4 << 10
	postsMax      = 256
)

// Active is a group of anomalies, or a condition, that is not over.
type Active struct {
	Group     string
	DB, Level string
	Severity  name.Severity
	Breaks    []string // the configured levels that it breaks; may be empty: then Level alone counts
	// Notice makes the notice that says what there is to say of it now.
	Notice func(context.Context) ([]byte, error)
}

// Resender is a Receiver that wants to be told again and again what is active.
type Resender interface {
	Receiver
	// Resend tells of all that is active, and by what is missing of what is over. It
	// may be called while Notify is.
	Resend(ctx context.Context, active []Active) (retryAfter time.Duration, err error)
}

// Alertmanager tells Prometheus' Alertmanager of notices by its API v2. It keeps alerts
// only as long as somebody tells of them: see Resend.
type Alertmanager struct {
	*poster
	hold time.Duration

	mu sync.Mutex
	// told are the alerts that are not over, as they were told last, by their labels.
	told map[string]amAlert
}

// amAlert is postableAlert of Alertmanager's OpenAPI. Its labels are what it is.
type amAlert struct {
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations,omitempty"`
	StartsAt     time.Time         `json:"startsAt"`
	EndsAt       time.Time         `json:"endsAt"`
	GeneratorURL string            `json:"generatorURL,omitempty"`
}

const amPath = "/api/v2/alerts"

// NewAlertmanager makes a receiver that is an Alertmanager. The address may be that of
// its page, or of its API.
func NewAlertmanager(opt WebhookOptions) (*Alertmanager, error) {
	p, err := newPoster("alertmanager", opt)
	if err != nil {
		return nil, err
	}
	if !strings.HasSuffix(p.url.Path, amPath) {
		p.url = p.url.JoinPath(amPath)
	}
	opt.Hold = cmp.Or(opt.Hold, HoldDefault)
	return &Alertmanager{poster: p, hold: opt.Hold, told: map[string]amAlert{}}, nil
}

// Notify implements Receiver.
func (a *Alertmanager) Notify(ctx context.Context, body []byte, _ string) (time.Duration, bool, error) {
	n, err := parse(body)
	if err != nil {
		return 0, false, fmt.Errorf("%s: %w", a, err)
	}
	now := time.Now().UTC()
	alert := a.alert(n, now)
	out := append([]amAlert{alert}, a.others(n, alert, now)...)
	if after, recoverable, err := a.send(ctx, out); err != nil {
		return after, recoverable, err
	}
	a.remember(out, now)
	return 0, false, nil
}

// alert is a notice as an alert.
func (a *Alertmanager) alert(n *notice, now time.Time) amAlert {
	out := amAlert{
		Labels: labels(n), Annotations: annotations(n),
		StartsAt: n.since(), EndsAt: now.Add(a.hold), GeneratorURL: n.link(),
	}
	if n.Notification.Since == 0 {
		out.StartsAt = now
	}
	switch {
	case n.Notification.Kind == life.KindTest:
		out.EndsAt = now.Add(time.Minute)
	case n.over():
		out.EndsAt = n.endedAt(now)
	}
	if out.EndsAt.Before(out.StartsAt) { // clocks
		out.StartsAt = out.EndsAt
	}
	return out
}

// others are the alerts beside alert that are over by a notice: of the groups that it
// says to be over, and of its own group where it was told with other labels.
func (a *Alertmanager) others(n *notice, alert amAlert, now time.Time) []amAlert {
	if n.over() {
		now = alert.EndsAt
	}
	over := map[string]bool{}
	for _, g := range n.about() {
		over[clean(g)] = true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []amAlert
	for _, key := range sortedAlerts(a.told) {
		t := a.told[key]
		if over[t.Labels["group"]] && key != identity(alert) {
			t.EndsAt = later(now, t.StartsAt)
			out = append(out, t)
		}
	}
	return out
}

// Resend implements Resender.
func (a *Alertmanager) Resend(ctx context.Context, active []Active) (time.Duration, error) {
	now := time.Now().UTC()
	out := make([]amAlert, 0, len(active))
	for _, g := range active {
		alert, known := a.knows(g)
		if alert.EndsAt = now.Add(a.hold); !known { // since the start: a notice told of it before that
			body, err := g.Notice(ctx)
			if err != nil {
				return 0, fmt.Errorf("%s: %w", a, err)
			}
			n, err := parse(body)
			if err != nil {
				return 0, fmt.Errorf("%s: %w", a, err)
			}
			alert = a.alert(n, now)
		}
		out = append(out, alert)
	}
	a.mu.Lock()
	rest := map[string]bool{}
	for key := range a.told {
		rest[key] = true
	}
	for _, alert := range out {
		delete(rest, identity(alert))
	}
	for _, key := range sortedAlerts(a.told) {
		t := a.told[key]
		switch {
		case !rest[key]:
		case t.Labels["kind"] == string(life.KindSummary) || t.Labels["kind"] == string(life.KindTest):
			// Not among the groups: these end by a notice, or by themselves.
			if t.EndsAt.Before(now) {
				delete(a.told, key)
			}
		default:
			t.EndsAt = later(now, t.StartsAt)
			out = append(out, t)
		}
	}
	a.mu.Unlock()
	if len(out) == 0 {
		return 0, nil
	}
	if after, _, err := a.send(ctx, out); err != nil {
		return after, err
	}
	a.remember(out, now)
	return 0, nil
}

// knows is a group as an alert, as it was told last.
func (a *Alertmanager) knows(g Active) (amAlert, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, key := range sortedAlerts(a.told) {
		l := a.told[key].Labels
		if l["group"] == clean(g.Group) && l["severity"] == clean(string(g.Severity)) && l["kind"] == "" {
			return a.told[key], true
		}
	}
	return amAlert{}, false
}

// remember keeps what was told as long as it is not over.
func (a *Alertmanager) remember(out []amAlert, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, alert := range out {
		if alert.EndsAt.After(now) {
			a.told[identity(alert)] = alert
		} else {
			delete(a.told, identity(alert))
		}
	}
}

// send posts alerts, some at a time.
func (a *Alertmanager) send(ctx context.Context, alerts []amAlert) (time.Duration, bool, error) {
	for len(alerts) > 0 {
		n := min(len(alerts), postsMax)
		if r := a.post(ctx, encode(alerts[:n]), nil); r != nil {
			return r.after, r.recoverable, r.err
		}
		alerts = alerts[n:]
	}
	return 0, false, nil
}

// labels are what an alert is, as Alertmanager sees it: nothing in them changes from
// one notice about a group to the next, but for its severity. Empty ones are left out,
// as an Alertmanager does.
func labels(n *notice) map[string]string {
	l := map[string]string{"alertname": alertName(n.Name)}
	for label, value := range map[string]string{"group": n.group(), "db": n.DB, "level": n.Level, "name": n.Name,
		"severity": string(n.Severity)} {
		if value != "" {
			l[label] = clean(value)
		}
	}
	if kind := n.Notification.Kind; kind == life.KindSummary || kind == life.KindTest {
		l["alertname"], l["kind"] = "Isowatch"+camel(string(kind)), string(kind)
		delete(l, "name") // of one of many
	}
	return l
}

func annotations(n *notice) map[string]string {
	out := map[string]string{}
	for name, value := range map[string]string{"title": n.title(), "parts": strings.Join(n.parts(), "\n"),
		"summary": n.Summary, "description": n.Explanation, "alert": n.ID, "keys": listed(n.Keys, 16)} {
		if value != "" {
			out[name] = text.Cut(lines(value), annotationMax)
		}
	}
	if count := n.Notification.Count; count > 0 {
		out["count"] = fmt.Sprint(count)
	}
	return out
}

// clean is a value of a label: UTF-8, of bounded length.
func clean(s string) string { return text.Cut(lines(s), labelMax) }

// alertName makes IsowatchLostUpdate of lost-update.
func alertName(name string) string { return "Isowatch" + camel(name) }

func camel(name string) string {
	var b strings.Builder
	up := true
	for _, r := range name {
		switch {
		case r >= 'a' && r <= 'z' && up:
			b.WriteRune(r - 'a' + 'A')
			up = false
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			b.WriteRune(r)
			up = false
		default:
			up = true
		}
	}
	return text.Cut(b.String(), labelMax/2)
}

func later(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }

// identity is an alert's labels as one text.
func identity(a amAlert) string { return string(encode(a.Labels)) }

func sortedAlerts(m map[string]amAlert) []string { return slices.Sorted(maps.Keys(m)) }
