package deliver_test

import (
	"encoding/base64"
	"encoding/json"
	"html"
	"net/url"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/alerts/deliver"
	"github.com/isowatch/isowatch/alerts/text"
)

// TestScrub: however a receiver spells the secrets that it repeats, they are not shown, and
// what it says itself is.
func TestScrub(t *testing.T) {
	u, err := url.Parse("https://us%65r:PWSEC%2FRETCCCC@host/hook/PATHSECRET%2BAA?token=QSEC%2FRETBBBB")
	if err != nil {
		t.Fatal(err)
	}
	key, bearer := "KEY+SECRET/EEEE==", "Bearer ABCDEFGH1234"
	basic := base64.StdEncoding.EncodeToString([]byte("user:PWSEC/RETCCCC"))
	all := []string{"PATHSECRET+AA", "PATHSECRET%2BAA", "QSEC/RETBBBB", "PWSEC/RETCCCC", "KEY+SECRET/EEEE", "ABCDEFGH1234", basic}
	secrets := []string{key, bearer, "Basic " + base64.StdEncoding.EncodeToString([]byte("other:OTHERSECRET"))}
	all = append(all, "OTHERSECRET")
	const hidden = "(its answer is not shown, as it repeats something secret)"
	spellings := map[string]func(string) string{
		"as it is": func(s string) string { return s },
		"small":    strings.ToLower,
		"json": func(s string) string {
			b, _ := json.Marshal(s)
			return string(b)
		},
		"php":          func(s string) string { return strings.ReplaceAll(s, "/", `\/`) },
		"json in json": func(s string) string { return strings.ReplaceAll(s, "/", `\\\/`) },
		"unicode": func(s string) string {
			return strings.NewReplacer("/", `\u002f`, "+", `\u002B`, "S", `\u0053`).Replace(s)
		},
		"percent":       url.QueryEscape,
		"percent twice": func(s string) string { return url.QueryEscape(url.QueryEscape(s)) },
		"html":          func(s string) string { return html.EscapeString(strings.ReplaceAll(s, "/", "&#x2F;")) },
		"base64":        func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
		"base64 of more": func(s string) string {
			return base64.URLEncoding.EncodeToString([]byte("not: " + s + "?>?"))
		},
		"cut":    func(s string) string { return s[:min(len(s), 11)] },
		"beyond": func(s string) string { return "x" + s + "x" },
	}
	for name, spell := range spellings {
		for _, secret := range all {
			said := "not in " + spell(secret) + " here"
			got := deliver.Scrub([]byte(said), u, secrets)
			if got != hidden {
				t.Errorf("%s: of %q is shown %q", name, said, got)
			}
		}
	}
	for said, want := range map[string]string{
		"quota exceeded": "quota exceeded",
		`{"error":"invalid_payload","retry":false}`: `{"error":"invalid_payload","retry":false}`,
		"100% of PATHSE": "100% of PATHSE", // too short a piece to be told from anything else
	} {
		if got := deliver.Scrub([]byte(said), u, secrets); got != want {
			t.Errorf("of %q is shown %q, want %q", said, got, want)
		}
	}
}

// FuzzScrub: whatever a receiver answers, a secret is not in what is shown of it.
func FuzzScrub(f *testing.F) {
	f.Add([]byte("no hook SECRET1234 here"), "SECRET1234")
	f.Add([]byte(`{"path":"\/hook\/secret1234"}`), "SECRET1234")
	f.Add([]byte("%2553ECRET1234 &#83;ECRET1234 U0VDUkVUMTIzNA=="), "SECRET1234")
	f.Add([]byte(`\u0053ECRET12`), "SECRET1234")
	u := &url.URL{Scheme: "https", Host: "host", Path: "/"}
	f.Fuzz(func(t *testing.T, answer []byte, secret string) {
		secret = strings.Map(func(r rune) rune {
			if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
				return r
			}
			return -1
		}, secret)
		if text.Printable(string(answer)) != string(answer) {
			return // what is not printable is spelled in digits, which may come to anything
		}
		got := deliver.Scrub(answer, u, []string{secret})
		if len(secret) >= 4 && strings.Contains(strings.ToLower(got), strings.ToLower(secret)) {
			t.Errorf("%q is shown of %q", got, answer)
		}
		if decoded, err := url.QueryUnescape(got); len(secret) >= 4 && err == nil && strings.Contains(strings.ToLower(decoded), strings.ToLower(secret)) {
			t.Errorf("%q is shown of %q", got, answer)
		}
	})
}
