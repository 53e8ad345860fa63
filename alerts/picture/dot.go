package picture

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/text"
)

// Dot is the alert's cycle in the language of Graphviz: a digraph, with a cluster
// for every case. Several in one file are several graphs.
func Dot(a alerts.Alert) []byte {
	s := newScene(a)
	d := &dot{scene: s}
	fmt.Fprintf(&d.b, "digraph %s {\n", quoted(text.Name(a.Name)))
	fmt.Fprintf(&d.b, "  label=%s; labelloc=t; fontname=monospace; rankdir=%s;\n",
		quoted(strings.Join(wrap(printable(a.Summary, 600), captionCols), "\n")), direction(s.rings))
	d.b.WriteString("  node [shape=box, style=rounded, fontname=monospace, fontsize=11];\n  edge [fontname=monospace, " +
		"fontsize=11];\n")
	for i, r := range slices.Backward(s.rings) { // from left to right, Graphviz puts what comes first at the bottom
		d.ring(i, r, len(s.rings) > 1)
	}
	d.b.WriteString("}\n")
	return d.b.Bytes()
}

// acrossMax is how many transactions of a cycle are laid out in a row.
const acrossMax = 5

// direction is from left to right, unless that is wider than a screen.
func direction(rings [][]edge) string {
	if slices.ContainsFunc(rings, func(r []edge) bool { return len(r) > acrossMax }) {
		return "TB"
	}
	return "LR"
}

// DotNothing is a graph that says so, for Graphviz to draw.
func DotNothing(title string) []byte {
	return fmt.Appendf(nil, "digraph isowatch {\n  node [shape=plaintext, fontname=monospace];\n  n [label=%s];\n}\n",
		quoted(printable(title, 600)))
}

type dot struct {
	*scene
	b bytes.Buffer
}

func (d *dot) ring(i int, r []edge, cluster bool) {
	indent := "  "
	if cluster {
		fmt.Fprintf(&d.b, "  subgraph cluster_%d {\n    label=%s;\n", i, quoted(strings.Join(d.captions(i), "\n")))
		indent = "    "
		defer d.b.WriteString("  }\n")
	}
	names := map[string]string{}
	for j, e := range r {
		if j == nodesMax {
			break
		}
		for _, id := range []string{e.From, e.To} {
			if _, ok := names[id]; ok || id == "" && e.single && !e.nobody {
				continue
			}
			names[id] = fmt.Sprintf("c%dn%d", i, len(names))
			fmt.Fprintf(&d.b, "%s%s [label=%s%s];\n", indent, names[id], d.box(id, e), dotStyle(id))
		}
	}
	for j, e := range r {
		if j == nodesMax {
			fmt.Fprintf(&d.b, "%s// %d more edges are in the alert\n", indent, len(r)-j)
			break
		}
		from, to := names[e.From], names[e.To]
		if from == "" || to == "" {
			continue
		}
		fmt.Fprintf(&d.b, "%s%s -> %s [label=%s, tooltip=%s, %s];\n", indent, from, to, quoted(edgeLabel(e)),
			quoted(edgeTip(e)), dotLine[kindOf(e)])
	}
}

// box is the label of a node.
func (d *dot) box(id string, e edge) string {
	if id == "" {
		if e.nobody {
			return quoted("nobody")
		}
		return quoted("(a writer that was not recorded)")
	}
	n := d.node(id)
	ls := []string{n.id, n.under}
	for _, l := range n.lines {
		s := l.text
		if l.wrong {
			s += " ✗"
		}
		ls = append(ls, s)
	}
	if n.more > 0 {
		ls = append(ls, fmt.Sprintf("… %d more", n.more))
	}
	return quoted(strings.Join(ls, "\n"))
}

func dotStyle(id string) string {
	if id == "" {
		return `, style="rounded,dashed"`
	}
	return ""
}

// dotLine tells the kinds of edges apart, also without colour.
var dotLine = map[string]string{
	"wr": `color="#0969a8", style=solid`,
	"ww": `color="#7a3db8", style=bold`,
	"rw": `color="#b42318", style=dashed`,
	"so": `color="#5a6573", style=dotted`,
	"rt": `color="#8a5a00", style="dashed,bold"`,
	"xx": `color="#b42318", style=bold`,
}

// quoted is a string of the language: quotes and backslashes escaped, \n between
// lines. Nothing else means anything in it, as labels in <> are not used.
func quoted(s string) string {
	r := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", " ", "\x00", " ")
	return `"` + r.Replace(s) + `"`
}
