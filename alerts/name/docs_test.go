package name_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/incremental/verdict"
)

// The documentation lists every name there is, of anomalies and of levels, and its table the levels that each may break.
func TestDocumented(t *testing.T) {
	text := func(file string) string {
		b, err := os.ReadFile("../../docs/" + file)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	alerts, levels := text("alerts.md"), text("levels.md")
	ordered := append(name.Ordered(), verdict.LIN)
	levelOf := func(s string) int {
		return slices.IndexFunc(ordered, func(l verdict.Level) bool { return l.String() == s })
	}
	quoted := regexp.MustCompile("`([^`]+)`")
	for _, n := range name.Names() {
		row := regexp.MustCompile("(?m)^\\|[^|]*`" + n + "`[^|]*(\\|.*)$").FindStringSubmatch(alerts)
		var may []verdict.Level
		if row != nil {
			cell := strings.Split(row[1], "|")[3]
			for _, m := range quoted.FindAllStringSubmatch(cell, -1) {
				at := levelOf(m[1])
				if strings.Contains(cell, " to ") && len(may) == 1 {
					may = append(may, ordered[levelOf(may[0].String())+1:at]...)
				}
				may = append(may, ordered[at])
			}
		}
		if d := cmp.Diff(name.Broken[n], may); d != "" {
			t.Errorf("docs/alerts.md has other levels of %s: -code +docs:\n%s", n, d)
		}
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
