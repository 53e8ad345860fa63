package deliver

import (
	"encoding/base64"
	"errors"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/isowatch/isowatch/alerts/text"
)

// Redact is an address as it may be logged: scheme and host. What stands before
// and after them often is a secret.
func Redact(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "…"
	}
	return u.Scheme + "://" + u.Host + "/…"
}

// plainError is an error of net/http without the address that it was about.
func plainError(err error) error {
	var u *url.Error
	for errors.As(err, &u) {
		err = u.Err
	}
	if strings.Contains(err.Error(), "Location header") { // and quotes it
		return errors.New("it redirects to an address that can't be parsed")
	}
	return err
}

// secretMin is the length from which a part of an address is looked for in answers:
// anything shorter is no secret and would be found everywhere. Of longer ones any piece of
// pieceMin bytes is, as a receiver may cut what it repeats.
const (
	secretMin = 4
	pieceMin  = 8
)

// shownMax bounds what is shown of an answer, in bytes.
const shownMax = 200

// scrub makes the beginning of an answer fit for a log: printable and short. An answer that repeats something of the
// secrets of the address, or of others, is not shown at all. Spelling counts for nothing: what is escaped for JSON, HTML
// or addresses, in other letters, in base64 or cut is found too.
func scrub(answer []byte, u *url.URL, secrets []string) string {
	s := string(answer)
	if k := keepers(u, secrets); k.repeated(s) {
		return "(its answer is not shown, as it repeats something secret)"
	}
	if len(s) > shownMax {
		s = strings.ToValidUTF8(s[:shownMax], "") + "…"
	}
	return text.Printable(strings.Join(strings.Fields(s), " "))
}

// kept is what must not be shown, as plain has it.
type kept struct {
	short  []string
	pieces map[string]bool // of pieceMin bytes, of those that are not short
}

// keepers are the secrets of an address and others.
func keepers(u *url.URL, secrets []string) kept {
	k := kept{pieces: map[string]bool{}}
	password, _ := u.User.Password()
	k.add(u.RequestURI(), u.RawQuery, u.Path, password, u.Fragment)
	k.add(strings.Split(u.Path, "/")...)
	for _, values := range u.Query() {
		k.add(values...)
	}
	if u.User != nil { // as the header Authorization has it
		k.add(base64.StdEncoding.EncodeToString([]byte(u.User.Username() + ":" + password)))
	}
	for _, s := range secrets {
		k.add(s)
		words := strings.Fields(s)
		if len(words) > 1 { // the first one names a scheme, as in "Bearer …"
			k.add(words[1:]...)
		}
		for _, w := range words {
			for _, decoded := range unbase64(w) {
				if utf8.ValidString(decoded) {
					k.add(decoded)
					k.add(strings.SplitN(decoded, ":", 2)...)
				}
			}
		}
	}
	return k
}

func (k *kept) add(secrets ...string) {
	for _, s := range secrets {
		p := strings.TrimRight(plain(s), "=")
		if len(p) < secretMin {
			continue
		}
		if len(p) < pieceMin {
			k.short = append(k.short, p)
		}
		for i := 0; i+pieceMin <= len(p); i++ {
			if piece := p[i : i+pieceMin]; strings.TrimSpace(piece) == piece {
				k.pieces[piece] = true
			}
		}
	}
}

// repeated tells whether a text has something of the secrets, as it is or in base64.
func (k *kept) repeated(s string) bool {
	if k.holds(plain(s)) {
		return true
	}
	for _, word := range base64Words.FindAllString(s, -1) {
		if slices.ContainsFunc(unbase64(word), func(decoded string) bool { return k.holds(plain(decoded)) }) {
			return true
		}
	}
	return false
}

// holds is repeated for a text as plain has it.
func (k *kept) holds(s string) bool {
	for i := 0; i+pieceMin <= len(s); i++ {
		if k.pieces[s[i:i+pieceMin]] {
			return true
		}
	}
	return slices.ContainsFunc(k.short, func(w string) bool { return strings.Contains(s, w) })
}

// base64Words may be base64 of a secret of secretMin bytes.
var base64Words = regexp.MustCompile(`[A-Za-z0-9+/_-]{6,}`)

// unbase64 is what a word may be base64 of, in either alphabet, from any place in it on:
// something may stand before it.
func unbase64(word string) (out []string) {
	word = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(word, "="))
	for from := range min(4, len(word)) {
		w := word[from:]
		if len(w)%4 == 1 {
			w = w[:len(w)-1]
		}
		if b, err := base64.RawStdEncoding.DecodeString(w); err == nil {
			out = append(out, string(b))
		}
	}
	return out
}

// unescapes is how often a text may be escaped.
const unescapes = 4

// plain is a text without escapes and in small letters.
func plain(s string) string {
	for range unescapes {
		s = escapes.ReplaceAllStringFunc(s, unescape)
	}
	return strings.ToLower(s)
}

// escapes are those of JSON, of addresses and of HTML.
var escapes = regexp.MustCompile(`\\[uU][0-9A-Fa-f]{4}|\\[/"\\]|%[0-9A-Fa-f]{2}|&#?[0-9A-Za-z]{1,10};`)

// unescape is the character that an escape stands for.
func unescape(e string) string {
	switch {
	case e[0] == '&':
		return html.UnescapeString(e)
	case len(e) == 2:
		return e[1:]
	case e[0] == '%':
		c, _ := strconv.ParseUint(e[1:], 16, 8) // there are two digits
		return string([]byte{byte(c)})
	}
	c, _ := strconv.ParseUint(e[2:], 16, 16) // there are four
	return string(rune(c))
}
