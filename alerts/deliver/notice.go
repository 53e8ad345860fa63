package deliver

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/life"
	"github.com/isowatch/isowatch/alerts/text"
)

// notice is what receivers show of a notice. Every field may hold anything: it came from a
// database.
type notice struct{ life.Notice }

func parse(body []byte) (*notice, error) {
	n := &notice{}
	if err := json.Unmarshal(body, &n.Notice); err != nil {
		return nil, fmt.Errorf("the notice can't be read, and is given up: %w", err)
	}
	return n, nil
}

// over tells whether the notice says that something has ended.
func (n *notice) over() bool {
	return n.Notification.Kind == life.KindResolved || n.State == alerts.Resolved
}

// group is what notices about the same thing have in common; never empty.
func (n *notice) group() string {
	return cmp.Or(n.Notification.Group, n.ID, n.Notification.ID, "isowatch")
}

// about are the groups that something is said of: its own, and those that are over.
func (n *notice) about() []string {
	all := []string{n.group()}
	for _, g := range n.Notification.Resolved {
		if g != "" && !slices.Contains(all[:1], g) {
			all = append(all, g)
		}
	}
	return all
}

// title is the notice on one line of some words, without markup.
func (n *notice) title() string {
	what := called(n.Name, n.DB, n.Level)
	if n.Weakest != "" && n.Weakest != n.Level { // there is a group for each
		what += ", and already " + text.Printable(n.Weakest)
	}
	switch k := n.Notification; {
	case k.Kind == life.KindTest:
		return "Test of Isowatch's alerts: nothing is wrong"
	case n.over() && k.Groups > 1:
		return fmt.Sprintf("Over: %d groups, the worst: %s", k.Groups, what)
	case n.over():
		return "Over: " + what
	case k.Kind == life.KindSummary:
		return n.several(what)
	case k.Kind == life.KindOngoing:
		return "Still: " + what
	}
	return what
}

// several is the title of a summary: what goes on, and how much is over.
func (n *notice) several(what string) string {
	k := n.Notification
	anomalies, conditions, over := len(k.IDs), 0, 0
	for _, p := range k.Parts {
		if isOperational(p) {
			conditions += p.Groups
		}
	}
	for _, p := range k.Over {
		over += p.Groups
		anomalies -= p.Alerts
	}
	groups := k.Groups - conditions
	var out string
	switch {
	case groups <= 0 && conditions <= 1, groups == 1 && anomalies <= 1:
		out = what
	case groups <= 0:
		out = fmt.Sprintf("%d conditions, the worst: %s", conditions, what)
	case anomalies < groups:
		out = fmt.Sprintf("%d groups of anomalies, the worst: %s", groups, what)
	default:
		out = fmt.Sprintf("%s in %s, the worst: %s", text.Count(anomalies, "anomaly", "anomalies"),
			text.Count(groups, "group", "groups"), what)
	}
	if groups > 0 && conditions > 0 {
		out += fmt.Sprintf("; and %s of the monitor", text.Count(conditions, "condition", "conditions"))
	}
	if over = max(over, len(k.Resolved)); over > 0 {
		out += fmt.Sprintf("; over: %s", text.Count(over, "group", "groups"))
	}
	return out
}

func isOperational(p life.Part) bool { return strings.HasPrefix(p.Name, life.Operational) }

// conditions are those names in words.
var conditions = map[string]string{
	"silent": "No records come", "source-failing": "The source can't be read", "store-full": "The store is full",
	"lag":   "Alerts come late",
	"stuck": "Nothing is judged any more", "overloaded": "More records than can be judged",
	"sampling": "Sessions are left out", "gap": "Records are missing",
	"loss": "Something may be missing in the input", "coverage-lost": "Not every write is known any more",
	"dead-letters": "Records can't be used", "alert-unproved": "An anomaly is not told",
}

// called is an anomaly or a condition in some words.
func called(name, db, level string) string {
	what := text.Printable(name)
	if name == "" {
		what = "what summaries told of"
	}
	if kind, ok := strings.CutPrefix(name, life.Operational); ok {
		if words, ok := conditions[kind]; ok {
			what = words + " (" + name + ")"
		}
	}
	if db != "" {
		what += " in " + text.Name(db)
	}
	if level != "" {
		what += ", which breaks " + text.Printable(level)
	}
	return what
}

// parts says what a notice is made of, and what is over by it, a line each.
func (n *notice) parts() []string {
	out := make([]string, 0, len(n.Notification.Parts)+len(n.Notification.Over))
	add := func(before string, all []life.Part) {
		for _, p := range all {
			line := before + called(p.Name, p.DB, p.Level)
			if p.Alerts > 0 {
				line = before + fmt.Sprintf("%d × ", p.Alerts) + called(p.Name, p.DB, p.Level)
			}
			switch {
			case isOperational(p) && p.Text != "" && before == "":
				line += ": " + text.Printable(p.Text)
			case !isOperational(p) || p.Groups > 1:
				line += ", " + text.Count(p.Groups, "group", "groups")
			}
			out = append(out, line)
		}
	}
	add("", n.Notification.Parts)
	add("over: ", n.Notification.Over)
	return out
}

// link is the address of more about it; empty if there is none.
func (n *notice) link() string {
	for _, name := range []string{"alert", "page"} {
		if l := n.Links[name]; webLink(l) {
			return l
		}
	}
	for _, name := range slices.Sorted(maps.Keys(n.Links)) {
		if l := n.Links[name]; webLink(l) {
			return l
		}
	}
	return ""
}

// webLink tells whether s is an address of the web as receivers insist on it: RFC
// 3986, nothing that wants escaping.
func webLink(s string) bool {
	if len(s) > linkMax || !webAddress.MatchString(s) {
		return false
	}
	u, err := url.Parse(s)
	return err == nil && u.Host != ""
}

var webAddress = regexp.MustCompile(`^https?://[0-9A-Za-z._~:/?#\[\]@!$&'()*+,;=%-]+$`)

// linkMax bounds an address that is sent along, in bytes.
const linkMax = 2000

func (n *notice) since() time.Time { return time.Unix(0, n.Notification.Since).UTC() }

// endedAt is when it was over; now, if it does not say.
func (n *notice) endedAt(now time.Time) time.Time {
	if n.ResolvedAt > 0 {
		return time.Unix(0, n.ResolvedAt).UTC()
	}
	return now.UTC()
}

// lines makes each line of s printable; the lines stay.
func lines(s string) string {
	if !strings.Contains(s, "\n") {
		return text.Printable(s)
	}
	all := strings.Split(s, "\n")
	for i, l := range all {
		all[i] = text.Printable(l)
	}
	return strings.Join(all, "\n")
}

// listed are the first of all, made fit to be shown, and how many are left out.
func listed(all []string, limit int) string {
	var shown []string
	for _, s := range all[:min(len(all), limit)] {
		shown = append(shown, text.Name(s))
	}
	out := strings.Join(shown, ", ")
	if left := len(all) - len(shown); left > 0 {
		out += fmt.Sprintf(" and %d more", left)
	}
	return out
}

// withoutEvidence is a notice without what makes it long, and with
// "truncated":true; the stored alert has all of it.
func withoutEvidence(body []byte) ([]byte, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, fmt.Errorf("the notice can't be read, and is given up: %w", err)
	}
	if fields == nil {
		fields = map[string]json.RawMessage{}
	}
	fields["evidence"] = json.RawMessage("[]")
	fields["truncated"] = json.RawMessage("true")
	for _, long := range []string{"explanation", "cycle", "cases", "transactions"} {
		if len(fields[long]) > plainMax {
			delete(fields, long)
		}
	}
	return encode(fields), nil
}

// merged is a JSON object with some fields replaced; nil takes one away.
func merged(body []byte, fields map[string]any) []byte {
	all := map[string]any{}
	var before map[string]json.RawMessage
	if json.Unmarshal(body, &before) == nil {
		for name, value := range before {
			all[name] = value
		}
	}
	for name, value := range fields {
		if all[name] = value; value == nil {
			delete(all, name)
		}
	}
	return encode(all)
}

// plainMax bounds a part of a notice without evidence, in bytes.
const plainMax = 64 << 10

// encode is v as JSON on one line, without markup escapes.
func encode(v any) []byte {
	b, err := text.JSON(v)
	if err != nil {
		panic("can't happen, because what is sent is made of text, numbers and JSON that was read: " + err.Error())
	}
	return b
}
