package present

import (
	"fmt"
	"strings"

	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/alerts/text"
	"github.com/rivo/uniseg"
)

// printer collects lines.
type printer struct {
	opt Options
	b   strings.Builder
}

func (p *printer) line(format string, args ...any) {
	p.b.WriteString(strings.TrimRight(fmt.Sprintf(format, args...), " "))
	p.b.WriteByte('\n')
}

func (p *printer) section(title string) {
	p.line("")
	p.line("  %s", p.style(bold, title))
}

// indented writes lines that are indented themselves, wrapped.
func (p *printer) indented(lines string) {
	for line := range strings.Lines(lines) {
		line = strings.TrimRight(line, "\n")
		body := strings.TrimLeft(line, " ")
		indent := strings.Repeat(" ", 2+len(line)-len(body))
		p.wrap(indent, indent+"  ", text.Printable(body))
	}
}

// wrap writes words after a first indent, and after the rest on later lines.
func (p *printer) wrap(first, rest, words string) { p.wrapStyled(first, width(first), rest, words, 0) }

// wrapStyled is wrap where first has n columns, styles not counted, and the
// words have a style.
func (p *printer) wrapStyled(first string, n int, rest, words string, s style) {
	lines := text.Wrap(strings.Fields(words), Width-n, Width-width(rest))
	if len(lines) == 0 {
		p.line("%s", first)
	}
	for _, line := range lines {
		p.line("%s%s", first, p.style(s, line))
		first = rest
	}
}

// width is the number of columns that a terminal needs for s.
func width(s string) int { return uniseg.StringWidth(s) }

// style is an SGR code of ECMA-48; 0 for none.
type style int

const (
	bold    style = 1
	faint   style = 2
	red     style = 31
	yellow  style = 33
	blue    style = 34
	magenta style = 35
	cyan    style = 36
)

func (p *printer) style(s style, words string) string {
	if !p.opt.Color || s == 0 || words == "" {
		return words
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", s, words)
}

func severityStyle(s name.Severity) style {
	if s == name.Critical {
		return red
	}
	return yellow
}

// typeStyle tells the kinds of edges apart.
func typeStyle(t string) style {
	switch t {
	case "rw":
		return red
	case "ww":
		return magenta
	case "wr":
		return cyan
	}
	return blue
}
