package config

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// Secret is text that must not be shown. It prints as [redacted].
type Secret string

// String hides the secret; convert to string to use it.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "[redacted]"
}

// GoString hides the secret from %#v.
func (s Secret) GoString() string { return strconv.Quote(s.String()) }

// StartAt is a kind of place in a topic.
type StartAt uint8

// The places where reading a topic may begin.
const (
	StartStored StartAt = iota // the stored offset, else the earliest
	StartEarliest
	StartLatest
	StartTime
)

// Start is where to begin in a partition without a stored offset.
type Start struct {
	At   StartAt
	Time time.Time // for StartTime
}

var startNames = [...]string{"stored", "earliest", "latest"}

func (s Start) String() string {
	if int(s.At) < len(startNames) {
		return startNames[s.At]
	}
	return s.Time.Format(time.RFC3339Nano)
}

// parseStart is the inverse of String.
func parseStart(s string) (Start, error) {
	if at, ok := record.Named[StartAt](startNames[:], s); ok {
		return Start{At: at}, nil
	}
	t, ok := parseTime(s)
	if !ok {
		return Start{}, fmt.Errorf("wants stored, earliest, latest or a time such as 2026-01-31T12:00:00Z, not %q", s)
	}
	return Start{At: StartTime, Time: t}, nil
}

// parseTime reads a time; false if it is none, or not within the years that nanoseconds
// since 1970 have in 64 bits.
func parseTime(s string) (time.Time, bool) {
	t, err := time.Parse(time.RFC3339Nano, s)
	return t, err == nil && time.Unix(0, t.UnixNano()).Equal(t)
}

// The possibilities of alerts.values: what alerts show of the data.
const (
	ValuesFull = "full" // as they are
	ValuesHash = "hash" // a short hash: equal values stay equal
	ValuesNone = "none" // nothing
)

// The possibilities of overload: what is done about input that is too much.
const (
	OverloadBlock  = "block"           // reading pauses
	OverloadSample = "sample-sessions" // whole sessions are left out
)

// Bytes is an amount of memory or of disk.
type Bytes int64

// byteUnits are the units in which Bytes are written.
var byteUnits = []struct {
	name string
	size int64
}{
	{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3},
}

// String writes the amount in the unit in which it is a whole number of the
// fewest digits: 300MiB, 10GB.
func (b Bytes) String() string {
	out, digits := strconv.FormatInt(int64(b), 10), math.MaxInt
	for _, u := range byteUnits {
		if n := strconv.FormatInt(int64(b)/u.size, 10); b != 0 && int64(b)%u.size == 0 && len(n) < digits {
			out, digits = n+u.name, len(n)
		}
	}
	return out
}

// ParseBytes is the inverse of String. A number without a unit is of bytes.
func ParseBytes(s string) (Bytes, error) {
	n, err := humanize.ParseBytes(strings.ReplaceAll(s, "_", ""))
	if err != nil || n > math.MaxInt64 {
		return 0, fmt.Errorf("wants an amount such as 300MiB or 10GB, not %q", s)
	}
	return Bytes(n), nil
}

// scalar is how a type is written in one YAML scalar.
type scalar struct {
	name  string // for the table of keys
	parse func(string) (any, error)
	print func(any) string
	words []string // that there are; nil: any
}

// own makes a scalar of a type with a form of its own.
func own[T fmt.Stringer](name string, parse func(string) (T, error), words ...string) scalar {
	return scalar{name: name, words: words, parse: func(s string) (any, error) { return parse(s) },
		print: func(v any) string { return v.(T).String() }}
}

// enum makes a scalar of a type with a parser that only says yes or no.
func enum[T fmt.Stringer](parse func(string) (T, bool), of ...string) scalar {
	return own("word", func(s string) (T, error) {
		v, ok := parse(s)
		if !ok {
			return v, fmt.Errorf("wants %s, not %q", english.WordSeries(of, "or"), s)
		}
		return v, nil
	}, of...)
}

// scalars are the types that have a written form of their own; strings, bools
// and ints are handled by the decoder.
var scalars = map[reflect.Type]scalar{
	reflect.TypeFor[time.Duration](): {
		name:  "duration",
		parse: func(s string) (any, error) { return ParseDuration(s) },
		print: func(v any) string { return printDuration(v.(time.Duration)) },
	},
	reflect.TypeFor[Bytes]():   own("amount", ParseBytes),
	reflect.TypeFor[Address](): own("address", parseAddress),
	reflect.TypeFor[Start]():   own("place", parseStart),
	reflect.TypeFor[time.Time](): {
		name: "time",
		parse: func(s string) (any, error) {
			if s == "" {
				return time.Time{}, nil
			}
			t, ok := parseTime(s)
			if !ok {
				return nil, fmt.Errorf("wants a time such as 2026-01-31T12:00:00Z, not %q", s)
			}
			return t, nil
		},
		print: func(v any) string {
			if t := v.(time.Time); !t.IsZero() {
				return t.Format(time.RFC3339Nano)
			}
			return ""
		},
	},
	reflect.TypeFor[verdict.Level]():   own("level", verdict.FindLevel, verdict.Names(verdict.Levels())...),
	reflect.TypeFor[record.Clock]():    enum(record.ParseClock, "prune", "enforce", "ignore", "database"),
	reflect.TypeFor[record.Coverage](): enum(record.ParseCoverage, "partial", "complete"),
	reflect.TypeFor[record.Initial]():  enum(record.ParseInitial, "any", "absent", "zero"),
}

// DurationMax is how long any duration of a configuration, and of a flag, may be: sums of
// several, and a time of our days, stay far below the 292 years that nanoseconds have in 64
// bits.
const DurationMax = 20 * 365 * 24 * time.Hour

// durationForm is what a duration looks like, however long it is.
var durationForm = regexp.MustCompile(`^[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$`)

// ParseDuration is time.ParseDuration of what is at most DurationMax, either way. Errors
// say what is wanted.
func ParseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	switch {
	case err != nil && !durationForm.MatchString(s):
		return 0, fmt.Errorf("wants a duration with its unit, such as 250ms, 2s or 24h, not %q", s)
	case err != nil || d > DurationMax || d < -DurationMax:
		return 0, fmt.Errorf("must be at most %s, which is 20 years, not %s", printDuration(DurationMax), s)
	}
	return d, nil
}

// printDuration writes 24h0m0s as 24h.
func printDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
