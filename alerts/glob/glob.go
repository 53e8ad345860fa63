// Package glob compares texts with patterns: those of the configuration in which nothing
// but * and ? has a meaning of its own.
package glob

import (
	"path"
	"strings"
)

// To package path a / is no character like others, and \ and [ are none either.
var (
	patterns = strings.NewReplacer("/", "\x00", `\`, `\\`, "[", `\[`)
	texts    = strings.NewReplacer("/", "\x00")
)

// Match tells whether all of s is what a pattern stands for: * for any characters, ? for
// one, every other for itself.
func Match(pattern, s string) bool {
	ok, err := path.Match(patterns.Replace(pattern), texts.Replace(s))
	return ok && err == nil
}
