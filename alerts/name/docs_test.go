package name_test

import (
	"os"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/incremental/verdict"
)

// The documentation lists every name there is, of anomalies and of levels.
func TestDocumented(t *testing.T) {
	text := func(file string) string {
		b, err := os.ReadFile("../../docs/" + file)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	alerts, levels := text("alerts.md"), text("levels.md")
	for _, n := range name.Names() {
		if !strings.Contains(alerts, "`"+n+"`") {
			t.Errorf("docs/alerts.md does not have %s", n)
		}
		for _, a := range (name.Name{Name: n, Divergence: n == "lost-update"}).Aliases() {
			if !strings.Contains(alerts, a) {
				t.Errorf("docs/alerts.md does not have %s, which is %s", a, n)
			}
		}
	}
	for _, l := range verdict.Levels() {
		for _, a := range l.Aliases() {
			if !strings.Contains(levels, a) {
				t.Errorf("docs/levels.md does not have %s, which is %v", a, l)
			}
		}
	}
}
