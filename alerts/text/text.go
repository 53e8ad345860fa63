// Package text makes strings that came from a database safe to show to a
// person: in a terminal, a log line, a chat message. Keys, values, sessions and
// ids are whatever clients wrote; they may hold control characters that move
// the cursor, marks that turn the reading direction round, or megabytes.
//
// Everything here but Cut returns printable text on one line; all but Printable bound its
// length.
// Markup is not its business: who writes HTML escapes it in addition.
package text

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"

	"github.com/isowatch/isowatch/ingest/predicate"
	"github.com/isowatch/isowatch/ingest/record"
)

// The most that is shown of a value or a name, in runes.
const (
	ValueMax = 60
	NameMax  = 80
)

// Value is a value as JSON, cut after ValueMax runes with the length said:
// "aaaa…" (1048576 bytes).
func Value(v record.Value) string {
	text := v.Text
	switch v.Kind {
	case record.KindNull:
		return "null"
	case record.KindInt:
		return strconv.FormatInt(v.Num, 10)
	case record.KindString:
		if s, cut := head(text, ValueMax); cut {
			return quote(s+"…") + size(len(text))
		}
		return quote(text)
	}
	s, cut := head(text, ValueMax)
	if cut {
		s += "…"
	}
	s = Printable(s)
	if cut {
		s += size(len(text))
	}
	return s
}

// Name is a key, session or id: as it is when nobody could mistake it for
// anything else, quoted otherwise; cut in its middle after NameMax runes, as
// what tells ids apart often stands at their end.
func Name(s string) string {
	if start, cut := head(s, NameMax); cut {
		start, _ = head(start, NameMax-NameMax/3)
		s = start + "…" + tail(s, NameMax/3)
	}
	if plain(s) {
		return s
	}
	return quote(s)
}

// Row is what a register of a predicate tells of its row, as package predicate names it: "t:1 matching v == 2", with
// the columns that were seen, or "t:1 not matching v == 2". false: the key is no register.
func Row(key string, v record.Value) (string, bool) {
	row, where, is := predicate.Register(key)
	switch {
	case !is:
		return "", false
	case v.IsNull():
		return Name(row) + " not matching " + Name(where), true
	case v.Kind == record.KindObject:
		return Name(row) + " matching " + Name(where) + " with " + Value(v), true
	}
	return Name(row) + " matching " + Name(where), true
}

// Cut is the beginning of s, with an ellipsis at its end if that is not all: at most so many
// bytes, which are at least those of the ellipsis. No character is cut in two. It is for
// what is made printable elsewhere.
func Cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most-len(ellipsis)], "") + ellipsis
}

const ellipsis = "…"

// Printable replaces what is not printable in s by escapes, and leaves the rest
// as it is. It does not cut.
func Printable(s string) string {
	for _, r := range s {
		if r == utf8.RuneError || !strconv.IsPrint(r) {
			q := quote(s)
			// Only the escapes of what can't be printed are wanted; quotes and
			// backslashes were fine.
			return unescape(q[1 : len(q)-1])
		}
	}
	return s
}

// quote is strconv.Quote: printable Unicode stays, the rest is escaped,
// invalid UTF-8 as \x.
func quote(s string) string { return strconv.Quote(s) }

// unescape takes back the escapes of quotes and backslashes.
func unescape(s string) string {
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && (s[i+1] == '"' || s[i+1] == '\\') {
			i++
		}
		b = append(b, s[i])
	}
	return string(b)
}

// plain tells whether a name needs no quotes: printable, without spaces and
// quotes, not empty.
func plain(s string) bool {
	if s == "" {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool {
		return r == ' ' || r == '"' || r == utf8.RuneError || !strconv.IsPrint(r)
	})
}

// head is the first n runes of s, and whether s has more. It looks at no more
// than that.
func head(s string, n int) (string, bool) {
	at := 0
	for range n {
		if at == len(s) {
			return s, false
		}
		_, size := utf8.DecodeRuneInString(s[at:])
		at += size
	}
	return s[:at], at < len(s)
}

// tail is the last n runes of s.
func tail(s string, n int) string {
	at := len(s)
	for range n {
		_, size := utf8.DecodeLastRuneInString(s[:at])
		at -= size
	}
	return s[at:]
}

// Wrap puts words on lines of at most so many columns, the first line and the others; a word that is wider has one of
// its own.
func Wrap(words []string, first, rest int) []string {
	var lines []string
	left := 0 // of the last of them
	for _, word := range words {
		w := uniseg.StringWidth(word)
		switch {
		case len(lines) > 0 && w < left:
			lines[len(lines)-1] += " " + word
			left -= 1 + w
			continue
		case len(lines) > 0:
			first = rest
		}
		lines, left = append(lines, word), first-w
	}
	return lines
}

// Count is a number of things: "1 key", "7 keys".
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// JSON is v as JSON on one line, without markup escapes.
func JSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimRight(b.Bytes(), "\n"), err
}

func size(n int) string { return " (" + strconv.Itoa(n) + " bytes)" }

// Session is whose transaction t is, and where it ran if that is known: api-3/7 at db-2.
func Session(t *record.Transaction) string {
	if t.Node == "" {
		return Name(t.Session)
	}
	return Name(t.Session) + " at " + Name(t.Node)
}
