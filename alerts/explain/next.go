package explain

import (
	_ "embed"
	"slices"
	"strings"
)

// Next says what to look at next for an anomaly: causes that have been behind
// it in real systems, most likely first, with the names of settings where
// databases have one. Of an anomaly that is a phantom, too, what is said of these goes first. Never empty.
func Next(name string, aliases []string) []string {
	n, ok := next[name]
	if !ok {
		n = next["any"]
	}
	if name == phantom || slices.Contains(aliases, phantom) {
		n = slices.Concat(next["@predicate"], n)
	}
	return n
}

// phantom is a name, or an alias, of anomalies that are about what matches a condition.
const phantom = "phantom"

//go:embed next.txt
var nextText string

// next are the sections of next.txt.
var next = func() map[string][]string {
	out, section := map[string][]string{}, ""
	for _, line := range strings.Split(nextText, "\n") {
		said := out[section]
		switch {
		case line == "" || line[0] == '#':
		case strings.HasPrefix(line, "- @"):
			out[section] = slices.Concat(said, out[line[2:]], out[line[3:]])
		case strings.HasPrefix(line, "- "):
			out[section] = append(said, line[2:])
		case line[0] == ' ':
			said[len(said)-1] += line[1:]
		default:
			section = strings.TrimSuffix(line, ":")
		}
	}
	return out
}()
