package bench

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Text writes the report for people.
func (r *Report) Text(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s: %s\n", r.Suite, r.About)
	fmt.Fprintf(&b, "%d cores, %s/%s, %s; median of %d runs", r.Machine.CPUs, r.Machine.OS, r.Machine.Arch, r.Machine.Go,
		r.Runs)
	if r.Scale != 1 {
		fmt.Fprintf(&b, "; at %v of the size, which no target is for", r.Scale)
	}
	b.WriteString("\n")
	rows(&b, r.Rows)
	streamed(&b, r.Rows)
	remarks(&b, r)
	_, err := w.Write(b.Bytes())
	return err
}

// Line is a result in a line, for who waits for the table.
func (r *Result) Line() string {
	line := r.Name + ": " + string(r.Status)
	if m := r.Measured; m != nil {
		line += ", " + m.figure(r.Target)
		if m.PeakBytes > 0 {
			line += ", " + whole(float64(m.PeakBytes)/1e6) + " MB"
		}
		if m.Stream != nil && m.Stream.Measured > 0 {
			line += fmt.Sprintf(", %d transactions", m.Stream.Measured)
		}
	}
	if r.Why != "" {
		line += ": " + r.Why
	}
	return line
}

func table(b *bytes.Buffer) *tabwriter.Writer { return tabwriter.NewWriter(b, 0, 0, 2, ' ', 0) }

// line writes cells; tabwriter's errors are those of the buffer, which has none.
func line(t *tabwriter.Writer, cells ...string) { fmt.Fprintln(t, strings.Join(cells, "\t")) }

func rows(b *bytes.Buffer, rs []Result) {
	if len(rs) == 0 {
		return
	}
	b.WriteString("\n")
	t := table(b)
	head := []string{"name", "work", "level", "time", "target", "peak MB", "target", "status", "verdicts", "paper"}
	beside := slices.ContainsFunc(rs, func(r Result) bool { return r.Measured != nil && r.Measured.Peer != nil })
	if beside {
		head = append(head, "side by side")
	}
	line(t, head...)
	for _, r := range rs {
		figure, peak, verdicts, other := "-", "-", "-", "-"
		if m := r.Measured; m != nil {
			figure, verdicts, other = m.figure(r.Target), count(m.Verdicts), m.Peer.text()
			if m.PeakBytes > 0 {
				peak = whole(float64(m.PeakBytes) / 1e6)
			}
		}
		cells := []string{r.Name, r.Work, r.Level, figure, r.Target.text(), peak, limit(r.Target.MB, whole), string(r.Status),
			verdicts, r.Peer.text()}
		if beside {
			cells = append(cells, other)
		}
		line(t, cells...)
	}
	t.Flush()
}

// figure is the one of the figures that the target is about, else the seconds.
func (m *Measured) figure(t Target) string {
	switch {
	case t.Growth > 0:
		return times(m.Growth)
	case t.Exponent > 0:
		return power(m.Exponent)
	case t.Share > 0:
		return percent(m.Share)
	case t.PerSecond > 0 || m.PerSecond > 0:
		return rate(m.PerSecond)
	case m.Stream != nil && m.Stream.Latency != nil:
		return "p99 " + seconds3(m.Stream.Latency.P99)
	}
	return seconds3(m.Seconds)
}

func (t Target) text() string {
	switch {
	case t.Growth > 0:
		return times(t.Growth)
	case t.Exponent > 0:
		return limit(t.Exponent, power)
	case t.Share > 0:
		return limit(t.Share, percent)
	case t.PerSecond > 0:
		return "≥ " + rate(t.PerSecond)
	case t.Latency > 0:
		return limit(t.Latency, seconds3)
	}
	return limit(t.Seconds, seconds3)
}

func times(x float64) string   { return "×" + strconv.FormatFloat(x, 'f', 2, 64) }
func power(x float64) string   { return "n^" + strconv.FormatFloat(x, 'f', 2, 64) }
func percent(x float64) string { return whole(100*x) + "% of the sum" }
func rate(x float64) string    { return whole(x) + "/s" }

// text is what the other checker took.
func (p *PeerRun) text() string {
	if p == nil {
		return "-"
	}
	return fmt.Sprintf("%s %s s, %s MB, exit %d", p.Program, seconds3(p.Seconds), whole(float64(p.PeakBytes)/1e6),
		p.Status)
}

// remarks says why there are no figures, once for each reason.
func remarks(b *bytes.Buffer, r *Report) {
	var order []string
	names := map[string][]string{}
	add := func(name string, status, why string) {
		if why == "" {
			return
		}
		why = status + ": " + why
		if names[why] == nil {
			order = append(order, why)
		}
		names[why] = append(names[why], name)
	}
	for _, row := range r.Rows {
		add(row.Name, string(row.Status), row.Why)
	}
	if len(order) > 0 {
		b.WriteString("\n")
	}
	for _, why := range order {
		fmt.Fprintf(b, "%s: %s\n", strings.Join(names[why], ", "), why)
	}
}

func seconds3(s float64) string { return strconv.FormatFloat(s, 'f', 3, 64) }
func whole(x float64) string    { return strconv.FormatFloat(x, 'f', 0, 64) }

func limit(x float64, format func(float64) string) string {
	if x == 0 {
		return "-"
	}
	return "≤ " + format(x)
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// count is "3 satisfied, 1 unknown"; of a single history just the verdict.
func count(verdicts map[string]int) string {
	var parts []string
	for _, v := range slices.Sorted(maps.Keys(verdicts)) {
		if verdicts[v] == 1 && len(verdicts) == 1 {
			return v
		}
		parts = append(parts, fmt.Sprintf("%d %s", verdicts[v], v))
	}
	return dash(strings.Join(parts, ", "))
}

func (p Peer) text() string {
	if p.Figure == "" {
		return dash(p.Source)
	}
	return p.Figure + " (" + p.Source + ")"
}
