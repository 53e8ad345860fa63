package deliver

import (
	"encoding/base64"
	"errors"
	"net/url"
	"strings"

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

// secretMin is the length from which a part of an address is looked for in
// answers: anything shorter is no secret and would be found everywhere.
const secretMin = 4

// scrub makes the beginning of an answer fit for a log: printable, short and
// without the secrets of the address and others, should the receiver have repeated them.
func scrub(answer []byte, u *url.URL, secrets []string) string {
	s := string(answer)
	password, _ := u.User.Password()
	parts := append([]string{u.RequestURI(), u.RawQuery, u.EscapedPath(), u.Path, password, u.Fragment}, strings.Split(u.Path, "/")...)
	if u.User != nil { // as the header Authorization has it
		basic := base64.StdEncoding.EncodeToString([]byte(u.User.Username() + ":" + password))
		parts = append(parts, basic, strings.TrimRight(basic, "="))
	}
	parts = append(parts, secrets...)
	for _, values := range u.Query() {
		parts = append(parts, values...)
	}
	for _, p := range parts {
		if len(p) >= secretMin {
			s = strings.ReplaceAll(s, p, "…")
		}
	}
	if len(s) > shownMax {
		s = strings.ToValidUTF8(s[:shownMax], "") + "…"
	}
	return text.Printable(strings.Join(strings.Fields(s), " "))
}

// shownMax bounds what is shown of an answer, in bytes.
const shownMax = 200
