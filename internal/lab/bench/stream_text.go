package bench

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// streamed writes what there is to say of streams: a line for each row that has one.
func streamed(b *bytes.Buffer, rs []Result) {
	if !slices.ContainsFunc(rs, func(r Result) bool { return r.Measured != nil && r.Measured.Stream != nil }) {
		return
	}
	b.WriteString("\n")
	t := table(b)
	line(t, "name", "broker", "transactions", "measured", "bytes each", "MB, 2nd tenth", "last", "", "CPU µs, 2nd tenth",
		"last", "", "broker's µs", "reading waited s",
		"alert p50 s", "p99", "max", "ready s", "reading s", "found", "invented", "forgotten")
	for _, r := range rs {
		if r.Measured == nil || r.Measured.Stream == nil {
			continue
		}
		s := r.Measured.Stream
		cells := []string{r.Name, s.Broker, fmt.Sprintf("%d %s", s.Transactions, s.Encoding),
			dash(positive(float64(s.Measured), 0)), whole(s.RecordBytes)}
		cells = append(cells, s.Memory.cells(1e-6, 0)...)
		cells = append(cells, s.CPU.cells(1e6, 2)...)
		cells = append(cells, dash(positive(s.BrokerCPU*1e6, 2)), dash(positive(s.Waited, 3)))
		if l := s.Latency; l != nil {
			cells = append(cells, seconds3(l.P50), seconds3(l.P99), seconds3(l.Max))
		} else {
			cells = append(cells, "-", "-", "-")
		}
		if x := s.Restart; x != nil {
			cells = append(cells, seconds3(x.Ready), seconds3(x.Reading))
		} else {
			cells = append(cells, "-", "-")
		}
		found := "-"
		if s.Planted > 0 {
			found = fmt.Sprintf("%d of %d", s.Found, s.Planted)
		}
		line(t, append(cells, found, strconv.Itoa(s.Invented), dash(s.forgotten()))...)
	}
	t.Flush()
}

// cells are both tenths, in another unit, and by how much the last is more.
func (t *Tenths) cells(unit float64, digits int) []string {
	if t == nil {
		return []string{"-", "-", ""}
	}
	return []string{positive(t.Second*unit, digits), positive(t.Last*unit, digits), times(t.growth())}
}

// positive is empty for nothing.
func positive(x float64, digits int) string {
	if x <= 0 {
		return ""
	}
	return strconv.FormatFloat(x, 'f', digits, 64)
}

// forgotten is what was given up, by cause.
func (s *Streamed) forgotten() string {
	var parts []string
	for _, why := range slices.Sorted(maps.Keys(s.Forgotten)) {
		if n := s.Forgotten[why]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %.0f", why, n))
		}
	}
	return strings.Join(parts, ", ")
}
