package deliver

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/isowatch/isowatch/alerts/life"
)

// Slack's limits, in characters (docs.slack.dev, Block Kit). They are counted in
// UTF-16, which is never less than what Slack counts, and after escaping.
const (
	slackHeaderMax  = 150
	slackTextMax    = 3000
	slackFieldMax   = 2000
	slackFieldsMax  = 10
	slackNoticeMax  = 4000 // of the text that notifications show
	slackContextMax = 1000
)

// slack makes messages for an incoming webhook: blocks, and the same in short as
// text.
func slack(body []byte, plain bool) ([][]byte, error) {
	n, err := parse(body)
	if err != nil {
		return nil, err
	}
	title := n.title()
	m := slackMessage{Text: slackCut(strings.Join(append([]string{title + ". " + lines(n.Summary)}, n.parts()...), "\n• "),
		slackNoticeMax)}
	if !plain {
		m.Blocks = slackBlocks(n, title)
	}
	return [][]byte{encode(m)}, nil
}

type slackMessage struct {
	Text   string       `json:"text"`
	Blocks []slackBlock `json:"blocks,omitempty"`
	// Links are not to be looked up by Slack.
	UnfurlLinks bool `json:"unfurl_links"`
	UnfurlMedia bool `json:"unfurl_media"`
}

type slackBlock struct {
	Type     string      `json:"type"`
	Text     *slackText  `json:"text,omitempty"`
	Fields   []slackText `json:"fields,omitempty"`
	Elements []slackText `json:"elements,omitempty"`
}

type slackText struct {
	Type string `json:"type"`
	Text string `json:"text"`
	// Verbatim keeps Slack from making links of what looks like one.
	Verbatim bool `json:"verbatim,omitempty"`
}

func mrkdwn(s string) slackText { return slackText{Type: "mrkdwn", Text: s, Verbatim: true} }

func slackBlocks(n *notice, title string) []slackBlock {
	// A header is plain text, which knows no escapes and no markup.
	blocks := []slackBlock{{Type: "header",
		Text: &slackText{Type: "plain_text", Text: clip(icon(n)+" "+title, slackHeaderMax, nil)}}}
	if n.Summary != "" {
		t := mrkdwn(slackCut(lines(n.Summary), slackTextMax))
		blocks = append(blocks, slackBlock{Type: "section", Text: &t})
	}
	if f := slackFields(n); len(f) > 0 {
		blocks = append(blocks, slackBlock{Type: "section", Fields: f})
	}
	if parts := n.parts(); len(parts) > 0 {
		t := mrkdwn(slackCut("• "+strings.Join(parts, "\n• "), slackTextMax))
		blocks = append(blocks, slackBlock{Type: "section", Text: &t})
	}
	if n.Explanation != "" && !n.over() {
		const fence = "```"
		// A fence in what clients wrote would end the block.
		code := strings.ReplaceAll(lines(n.Explanation), "`", "'")
		t := mrkdwn(fence + slackCut(code, slackTextMax-2*len(fence)) + fence)
		blocks = append(blocks, slackBlock{Type: "section", Text: &t})
	}
	context := []slackText{mrkdwn(slackCut(references(n), slackContextMax))}
	if l := n.link(); l != "" {
		context = append(context, mrkdwn("<"+strings.ReplaceAll(l, "&", "&amp;")+"|Look at it>"))
	}
	return append(blocks, slackBlock{Type: "context", Elements: context})
}

func slackFields(n *notice) []slackText {
	var out []slackText
	add := func(name, value string) {
		if value != "" && len(out) < slackFieldsMax {
			out = append(out, mrkdwn(slackCut("*"+name+"*\n"+value, slackFieldMax)))
		}
	}
	if n.DB != "" {
		add("Database", listed([]string{n.DB}, 1))
	}
	add("Breaks", listed(n.Breaks, 12))
	add("Still holds", listed(n.Holds, 12))
	add("Severity", lines(string(n.Severity)))
	add("Keys", listed(n.Keys, 16))
	add("Adya", lines(n.Adya))
	if n.Notification.Count > 0 {
		times := fmt.Sprintf("%d times", n.Notification.Count)
		if n.Notification.Count == 1 {
			times = "once"
		}
		add("Found", times)
	}
	if n.Notification.Since > 0 && len(out) < slackFieldsMax {
		// Slack shows this in the reader's time zone; it is no text to be escaped.
		at := n.since()
		out = append(out, mrkdwn(fmt.Sprintf("*Since*\n<!date^%d^{date_num} {time_secs}|%s>", at.Unix(),
			at.Format(time.RFC3339))))
	}
	return out
}

// icon is one sign for how bad it is.
func icon(n *notice) string {
	switch {
	case n.over():
		return "✅"
	case n.Notification.Kind == life.KindTest:
		return "🔔"
	case n.Severity == "critical" || n.Severity == "error":
		return "🔴"
	}
	return "🟠"
}

// references name the alerts and how to look at them.
func references(n *notice) string {
	switch ids := n.Notification.IDs; {
	case n.Notification.Kind == life.KindTest, n.Notification.Kind == life.KindOperational:
		return "Isowatch"
	case len(ids) == 1:
		return "monitor alerts show " + listed(ids, 1)
	case len(ids) > 1:
		return fmt.Sprintf("%d alerts: %s. monitor alerts list shows them all", len(ids), listed(ids, 8))
	}
	return "Group " + listed([]string{n.group()}, 1)
}

// slackCut escapes what Slack takes for its own, and cuts the result.
func slackCut(s string, limit int) string {
	return clip(s, limit, map[rune]string{'&': "&amp;", '<': "&lt;", '>': "&gt;"})
}

// clip replaces runes and keeps the result within limit UTF-16 units. No escape is
// broken.
func clip(s string, limit int, escapes map[rune]string) string {
	var b strings.Builder
	used, fits := 0, 0 // fits is the length in bytes up to which a mark has room too
	for _, r := range s {
		e, ok := escapes[r]
		n := len(e)
		if !ok {
			e, n = string(r), max(utf16.RuneLen(r), 1)
		}
		if used+n > limit {
			return b.String()[:fits] + "…"
		}
		b.WriteString(e)
		if used += n; used < limit {
			fits = b.Len()
		}
	}
	return b.String()
}
