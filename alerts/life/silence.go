package life

import (
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/incremental/verdict"
)

// Silence keeps what matches from the receivers. What it keeps is counted, and
// stays in the store.
type Silence struct {
	ID string `json:"id,omitempty"`
	// Patterns; an empty one matches everything. * stands for any text, ? for one
	// character, [ab] for one of several. Name matches what Isowatch or others call it,
	// however that is spelled (see name.Matches), Level the level that it names, too, Key
	// any of the keys.
	DB    string `json:"db,omitempty"`
	Level string `json:"level,omitempty"`
	Name  string `json:"name,omitempty"`
	Key   string `json:"key,omitempty"`
	// Since is when it was made, Until when it ends, in Unix nanoseconds. An Until
	// of 0 is no end, which only the configuration can ask for.
	Since   int64  `json:"-"`
	Until   int64  `json:"until"`
	Comment string `json:"comment"`
	By      string `json:"by,omitempty"`
	// Configured: it is of the configuration, and is ended there.
	Configured bool `json:"fixed,omitempty"`
}

// The limits of silences that are made while the monitor runs.
const (
	SilencesMax = 1024
	textMax     = 1024 // bytes of a pattern, a comment, a name
)

// The reasons why a silence is not made or ended.
var (
	ErrSilence = errors.New("no such silence can be made")
	// ErrNoSilence: there is none of that id.
	ErrNoSilence = errors.New("there is no silence of that id; monitor alerts silence list shows all")
	// ErrConfigured: it is of the configuration.
	ErrConfigured = errors.New("the silence is of the configuration: take it out of alerts.silences")
)

// Validate tells what is wrong with a silence; the error is ErrSilence.
func (s Silence) Validate() error {
	all := true
	for _, p := range []struct{ what, text string }{{"db", s.DB}, {"level", s.Level}, {"name", s.Name}, {"key", s.Key}} {
		if len(p.text) > textMax {
			return fmt.Errorf("%w: %s has %d bytes; at most %d can be", ErrSilence, p.what, len(p.text), textMax)
		}
		if _, err := path.Match(p.text, ""); err != nil {
			return fmt.Errorf("%w: %s: %q is no pattern: write a [ as \\[", ErrSilence, p.what, p.text)
		}
		all = all && p.text == ""
	}
	if len(s.Comment) > textMax || len(s.By) > textMax {
		return fmt.Errorf("%w: comment and by have at most %d bytes", ErrSilence, textMax)
	}
	if all {
		return fmt.Errorf("%w: name a db, level, name or key; db: * is all of them", ErrSilence)
	}
	return nil
}

// named is the silence with an id that says what it is.
func (s Silence) named() Silence {
	s.ID = alerts.Hash("silence", s.DB, s.Level, s.Name, s.Key, fmt.Sprint(s.Since), fmt.Sprint(s.Until), s.Comment, s.By,
		fmt.Sprint(s.Configured))
	return s
}

// holds tells whether it has not ended.
func (s Silence) holds(now int64) bool { return s.Until == 0 || now < s.Until }

// matches tells whether what is of a group and concerns some keys is kept from the
// receivers.
func (s *Silence) matches(g *group, keys []string) bool {
	return s.concerns(g) && (s.Key == "" || slices.ContainsFunc(keys, func(k string) bool { return like(s.Key, k) }))
}

// concerns tells whether it is about a group, or some keys of it.
func (s *Silence) concerns(g *group) bool {
	return like(s.DB, g.DB) && likeLevel(s.Level, g.Level) && likeName(s.Name, g.Name, g.aliases)
}

// likeLevel tells whether a pattern is of a level: one of its names, or a pattern of its
// own.
func likeLevel(pattern, level string) bool {
	if l, err := verdict.FindLevel(pattern); err == nil {
		return l.String() == level
	}
	return like(pattern, level)
}

// likeName tells whether a pattern is of a name or one of its aliases.
func likeName(pattern, of string, aliases []string) bool {
	return like(pattern, of) || slices.ContainsFunc(aliases, func(a string) bool { return like(pattern, a) }) ||
		name.Matches(of, aliases, pattern)
}

// Known tells what is wrong with a silence that can't match anything, whatever is found;
// the error is ErrSilence. Such a one keeps nobody's telephone from ringing. Nor does one of a level that is not among
// those that are asked for, if they are said.
func (s Silence) Known(asked ...verdict.Level) error {
	anyOf := func(pattern string) bool { return pattern == "" || strings.ContainsAny(pattern, `*?[\`) }
	if _, err := verdict.FindLevel(s.Level); err != nil && !anyOf(s.Level) {
		return fmt.Errorf("%w: level: %w", ErrSilence, err)
	}
	if len(asked) > 0 && s.Level != "" && !slices.ContainsFunc(asked,
		func(l verdict.Level) bool { return likeLevel(s.Level, l.String()) }) {
		return fmt.Errorf("%w: level: %q is none of the levels that are asked for, %v", ErrSilence, s.Level, asked)
	}
	if !anyOf(s.Name) && !name.Known(s.Name) && !strings.HasPrefix(s.Name, Operational) {
		return fmt.Errorf("%w: name: no anomaly is called %q: want %s, the names that others have for them, or %s…",
			ErrSilence, s.Name, strings.Join(name.Names(), ", "), Operational)
	}
	return nil
}

// like tells whether text matches a pattern. A / is a character like any other.
func like(pattern, text string) bool {
	if pattern == "" {
		return true
	}
	plain := func(s string) string { return strings.ReplaceAll(s, "/", "\x00") }
	ok, err := path.Match(plain(pattern), plain(text))
	return err == nil && ok
}

// Silence adds one that ends at s.Until, and returns it with its id. What it matches
// and no notice has told of yet counts as silenced, but for what waits of a group of which
// it is about some keys only. Errors are ErrSilence.
func (l *Life) Silence(s Silence, now int64) (Silence, error) {
	l.advance(now)
	s.Configured, s.Since = false, l.now
	if err := errors.Join(s.Validate(), s.Known()); err != nil {
		return Silence{}, err
	}
	if s.Until <= l.now {
		return Silence{}, fmt.Errorf("%w: it would be over already; give an end that is to come", ErrSilence)
	}
	if len(l.silences) >= SilencesMax {
		return Silence{}, fmt.Errorf("%w: there are %d; end one of them first", ErrSilence, len(l.silences))
	}
	s = s.named()
	if !slices.ContainsFunc(l.silences, func(o Silence) bool { return o.ID == s.ID }) {
		l.silences = append(l.silences, s)
	}
	l.mute()
	return s, nil
}

// Expire ends a silence that was made at run time. Errors are ErrNoSilence and
// ErrConfigured.
func (l *Life) Expire(id string, now int64) error {
	l.advance(now)
	if slices.ContainsFunc(l.cfg.Silences, func(s Silence) bool { return s.ID == id }) {
		return ErrConfigured
	}
	i := slices.IndexFunc(l.silences, func(s Silence) bool { return s.ID == id })
	if i < 0 {
		return ErrNoSilence
	}
	l.silences = slices.Delete(l.silences, i, i+1)
	l.mute()
	return nil
}

// Silences are those that hold: of the configuration, then others in the order in
// which they were made.
func (l *Life) Silences() []Silence {
	var out []Silence
	for _, s := range slices.Concat(l.cfg.Silences, l.silences) {
		if s.holds(l.now) {
			out = append(out, s)
		}
	}
	return out
}

// mute finds out anew which groups are silenced.
func (l *Life) mute() {
	l.silences = slices.DeleteFunc(l.silences, func(s Silence) bool { return !s.holds(l.now) })
	l.silenceEnds = math.MaxInt64
	for _, s := range l.Silences() {
		if s.Until > 0 {
			l.silenceEnds = min(l.silenceEnds, s.Until)
		}
	}
	for _, g := range l.groups {
		g.Muted = l.muted(g)
		if !g.Muted {
			continue
		}
		n := int64(len(g.unsaid)) // of a condition Raise counts
		l.withheld -= len(g.unsaid)
		g.unsaid = nil
		g.kept += n
		g.Silenced += n
		g.due = false
		if g.State == alerts.Resolved {
			g.farewell = g.farewell && g.told
		}
	}
	l.wanting = slices.DeleteFunc(l.wanting, func(g *group) bool { return !g.due })
	if len(l.wanting) == 0 {
		l.backlog = 0
	}
}

// muted tells whether a silence holds for all of a group.
func (l *Life) muted(g *group) bool {
	keys := g.Keys
	if !g.operational() {
		keys = nil // anomalies of other keys may be of it
	}
	return l.silenced(func(s *Silence) bool { return s.matches(g, keys) })
}

// hushed tells whether a silence holds for some keys of a group.
func (l *Life) hushed(g *group) bool {
	return l.silenced(func(s *Silence) bool { return s.concerns(g) })
}

// silenced tells whether there is such a silence, and it holds.
func (l *Life) silenced(such func(*Silence) bool) bool {
	for _, all := range [][]Silence{l.cfg.Silences, l.silences} {
		for i := range all {
			if all[i].holds(l.now) && such(&all[i]) {
				return true
			}
		}
	}
	return false
}
