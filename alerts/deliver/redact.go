package deliver

import (
	"bytes"
	"encoding/base64"
	"errors"
	"html"
	"net/url"
	"regexp"
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

// scrub makes the beginning of an answer fit for a log: printable, short and without the
// secrets of the address and others, should the receiver have repeated them. Spelling
// counts for nothing: what is escaped for JSON, HTML or addresses, in other letters, in
// base64 or cut is found too.
func scrub(answer []byte, u *url.URL, secrets []string) string {
	k := keepers(u, secrets)
	s := k.hide(string(answer))
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
		p := strings.TrimRight(string(plain(s).text), "=")
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

// hide puts a mark in the place of what must not be shown.
func (k *kept) hide(s string) string {
	hidden := make([]bool, len(s)+1)
	p := plain(s)
	for _, at := range k.find(string(p.text)) {
		for i := p.at[at[0]]; i < p.at[at[1]]; i++ {
			hidden[i] = true
		}
	}
	for _, at := range base64Words.FindAllStringIndex(s, -1) {
		for _, decoded := range unbase64(s[at[0]:at[1]]) {
			if len(k.find(string(plain(decoded).text))) > 0 {
				for i := at[0]; i < at[1]; i++ {
					hidden[i] = true
				}
			}
		}
	}
	var b strings.Builder
	for i := range len(s) {
		switch {
		case !hidden[i]:
			b.WriteByte(s[i])
		case i == 0 || !hidden[i-1]:
			b.WriteString("…")
		}
	}
	return b.String()
}

// find is where a text, as plain has it, holds secrets, from and to.
func (k *kept) find(s string) (out [][2]int) {
	for _, w := range k.short {
		for from := 0; ; {
			i := strings.Index(s[from:], w)
			if i < 0 {
				break
			}
			out = append(out, [2]int{from + i, from + i + len(w)})
			from += i + 1
		}
	}
	for i := 0; i+pieceMin <= len(s); i++ {
		if k.pieces[s[i:i+pieceMin]] {
			out = append(out, [2]int{i, i + pieceMin})
		}
	}
	return out
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

// plainly is a text without escapes, in small letters, and where each byte of it began in
// the text that it was made of; at its end, how long that was.
type plainly struct {
	text []byte
	at   []int
}

// unescapes is how often a text may be escaped.
const unescapes = 4

func plain(s string) plainly {
	p := plainly{text: []byte(s), at: make([]int, len(s)+1)}
	for i := range p.at {
		p.at[i] = i
	}
	for range unescapes {
		var next plainly
		for i := 0; i < len(p.text); {
			b, n := unescape(p.text[i:])
			for _, c := range b {
				next.text, next.at = append(next.text, c), append(next.at, p.at[i])
			}
			i += n
		}
		next.at = append(next.at, p.at[len(p.text)])
		if p, s = next, string(p.text); string(p.text) == s {
			break
		}
	}
	return p
}

// unescape is the first character of a text, and how many bytes of the text it is: an
// escape of JSON, of addresses or of HTML, or a byte.
func unescape(s []byte) (char []byte, n int) {
	switch {
	case s[0] == '\\' && len(s) > 1 && strings.IndexByte(`/"\`, s[1]) >= 0:
		return s[1:2], 2
	case s[0] == '\\' && len(s) > 5 && (s[1] == 'u' || s[1] == 'U'):
		if c, err := strconv.ParseUint(string(s[2:6]), 16, 16); err == nil {
			return bytes.ToLower([]byte(string(rune(c)))), 6
		}
	case s[0] == '%' && len(s) > 2:
		if c, err := strconv.ParseUint(string(s[1:3]), 16, 8); err == nil {
			return lower(byte(c)), 3
		}
	case s[0] == '&':
		if end := bytes.IndexByte(s[:min(len(s), 12)], ';'); end > 0 {
			if c := html.UnescapeString(string(s[:end+1])); c != string(s[:end+1]) {
				return bytes.ToLower([]byte(c)), end + 1
			}
		}
	}
	return lower(s[0]), 1
}

// lower is a byte as a small letter. Other letters than ASCII's stay: they are no part of
// what is drawn at random.
func lower(c byte) []byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return []byte{c}
}
