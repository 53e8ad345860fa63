package glob

import (
	"regexp"
	"strings"
	"testing"
)

// Patterns match what the regular expressions do that say the same; all short patterns
// and texts of a few characters are tried.
func TestMatch(t *testing.T) {
	texts, patterns := []string{""}, []string{""}
	for i := 0; len(texts) < 300; i++ {
		texts = append(texts, texts[i]+"a", texts[i]+"é", texts[i]+"*")
	}
	for i := 0; len(patterns) < 3000; i++ {
		for _, c := range []string{"a", "é", "*", "?", "["} {
			patterns = append(patterns, patterns[i]+c)
		}
	}
	matched := 0
	for _, p := range patterns {
		r := twin(p)
		for _, s := range texts {
			want := r.MatchString(s)
			if Match(p, s) != want {
				t.Fatalf("Match(%q, %q) is %t", p, s, !want)
			}
			if want {
				matched++
			}
		}
	}
	if matched < 10_000 {
		t.Errorf("only %d matched", matched)
	}
}

func twin(pattern string) *regexp.Regexp {
	r := regexp.QuoteMeta(pattern)
	r = strings.ReplaceAll(strings.ReplaceAll(r, `\*`, `.*`), `\?`, `.`)
	return regexp.MustCompile(`(?s)^` + r + `$`)
}

// A pattern of many stars takes no longer than the product of the lengths.
func FuzzMatch(f *testing.F) {
	f.Add("a*b?c", "axxbyc")
	f.Add(strings.Repeat("*a", 50), strings.Repeat("a", 500)+"b")
	f.Add("\xff*", "\xffx")
	f.Fuzz(func(t *testing.T, pattern, s string) {
		if len(pattern) > 1000 || len(s) > 1000 {
			return
		}
		p, s := strings.ToValidUTF8(pattern, "?"), strings.ToValidUTF8(s, "x")
		if want := twin(p).MatchString(s); Match(p, s) != want {
			t.Errorf("Match(%q, %q) is %t", p, s, !want)
		}
	})
}
