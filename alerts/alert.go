package alerts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/isowatch/isowatch/alerts/explain"
	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/alerts/shrink"
	"github.com/isowatch/isowatch/alerts/text"
	"github.com/isowatch/isowatch/alerts/veil"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// Version is the version of the JSON form.
const Version = 1

// KeysMax is how many keys an alert names in Keys.
const KeysMax = 16

// State is where an alert is in its life.
type State string

// The states.
const (
	Fresh    State = "new"
	Ongoing  State = "ongoing"
	Resolved State = "resolved"
	// Suspected is of what is kept to be explained when somebody looks; see Suspect.
	Suspected State = "suspected"
)

// Alert is what is stored and delivered; its JSON form is a contract.
type Alert struct {
	Version int    `json:"version"`
	ID      string `json:"id"`
	DB      string `json:"db"`
	// Level is the weakest configured level that is broken, Breaks are all of
	// them, weakest first.
	Level  string   `json:"level"`
	Breaks []string `json:"breaks"`
	// Weakest is the weakest level that is broken, configured or not. Holds are the
	// strongest levels that this anomaly does not break: its evidence satisfies
	// them. Other anomalies may break them, and lin is never among them.
	Weakest string   `json:"weakest"`
	Holds   []string `json:"holds"`
	// Name, Adya and Guarantee are as package name has them; Aliases are what
	// others call it, see name.Aliases.
	Name           string   `json:"name"`
	Adya           string   `json:"adya"`
	Aliases        []string `json:"aliases"`
	Guarantee      string   `json:"guarantee,omitempty"`
	ClockDependent bool     `json:"clock_dependent"`
	// InitialDependent is absent or zero if it is an anomaly only as long as that is not what keys hold before
	// anybody writes them, of which nothing is declared; empty otherwise.
	InitialDependent string        `json:"initial_dependent,omitempty"`
	Severity         name.Severity `json:"severity"`
	State            State         `json:"state"`
	// Group is the id of what it belongs to, see package life; ResolvedAt when that
	// was over, in Unix nanoseconds. Stored alerts have no ResolvedAt: it is laid over
	// them when they are read.
	Group      string `json:"group,omitempty"`
	ResolvedAt int64  `json:"resolved_at,omitempty"`
	// FirstSeen and LastSeen are when the monitor found it, Unix nanoseconds;
	// Count is how often.
	FirstSeen int64 `json:"first_seen"`
	LastSeen  int64 `json:"last_seen"`
	Count     int   `json:"count"`
	// Summary is a sentence or two on one line, Explanation the proof in
	// lines.
	Summary     string `json:"summary"`
	Explanation string `json:"explanation"`
	// Transactions are the ids of those that take part, in the order of the
	// cycle.
	Transactions []string `json:"transactions"`
	// Keys are those that it is about, sorted, at most KeysMax.
	Keys  []string `json:"keys"`
	Cycle []Edge   `json:"cycle"`
	// Cases are, where no order of writes fits, the cycles that the choices
	// run into; absent otherwise.
	Cases [][]Edge `json:"cases,omitempty"`
	// Evidence are records, the header line first, that `monitor check`
	// judges violated at Level.
	Evidence []json.RawMessage `json:"evidence"`
	// Values says how keys and values are hidden: hash or none, or long, as veil.Mode has
	// it; empty if they are as they were recorded.
	Values string            `json:"values,omitempty"`
	Links  map[string]string `json:"links"`
	// At is how far its history had been judged when run found it last; nil of what
	// check finds.
	At *Place `json:"at,omitempty"`
	// Events are those near its transactions. Stored alerts have none: Near lays them over an alert that is
	// shown or told of.
	Events []Nearby `json:"events,omitempty"`
	// Suspicion is what Explained makes an alert of; absent of what is one.
	Suspicion json.RawMessage `json:"suspicion,omitempty"`
}

// Place is how far a history is judged.
type Place struct {
	// History is the entry of the input with which it began. A changed configuration, or
	// another input, begins another one, whose transactions are counted anew.
	History uint64 `json:"history"`
	// Transactions have been judged since then.
	Transactions int64 `json:"transactions"`
	// Time is up to when, by the records' clock, in Unix nanoseconds; of an alert, when the
	// last of its transactions ended. Where records have no times it is when they came.
	Time int64 `json:"time"`
	// From is, of anomalies that were only counted and are found with an alert, when the first of them ended; of a
	// database, when its history began; else 0.
	From int64 `json:"from,omitempty"`
}

// Edge is one step of a cycle.
type Edge struct {
	From string `json:"from"`
	To   string `json:"to"`
	Type string `json:"type"` // so, rt, wr, ww or rw
	Key  string `json:"key"`  // empty for so and rt
	Why  string `json:"why"`  // a sentence
	// Basis is how the edge is known, as verdict.Why has it: session, clock, value,
	// overwrite, initial, order, elimination or list; or case, if it is supposed.
	Basis string `json:"basis,omitempty"`
}

// Context is what an alert is made in.
type Context struct {
	DB string
	// Levels are those that the database promises.
	Levels             []verdict.Level
	record.Assumptions // under which it was found
	// OneKey: no transaction of the history touches several keys, so that lin can
	// be asked of it.
	OneKey bool
	// Lookup finds the records of the engine's transactions.
	Lookup name.Lookup
	// Found, if there is one, is how many rows statements found.
	Found explain.Found
	// Judge proves the evidence. Without one it is neither proved nor made
	// small.
	Judge shrink.Judge
	// Find, if there is one, says what is left when the evidence is made so small that it
	// is another anomaly, so that this one is told.
	Find Finder
	// Budget is what Judge and Find draw from; nil: as much as they want.
	Budget Budget
	// Veil hides keys and values in all that the alert says.
	Veil veil.Veil
	Now  int64 // Unix nanoseconds
}

func (c Context) asked() name.Asked {
	return name.Asked{Levels: c.Levels, Clock: c.Clock}
}

// Budget bounds what is spent on one alert. What is proved stays; when all is spent nothing more is tried to make it
// smaller.
type Budget interface {
	// Over tells that all is spent.
	Over() bool
	// Cut tells whether anything was not judged to the end.
	Cut() bool
}

// over tells whether nothing more is to be tried.
func (c Context) over() bool { return c.Budget != nil && c.Budget.Over() }

// ErrUnproved is returned by New, beside a usable alert, when the evidence is
// not a violation by itself. That is a bug of the monitor, unless it is ErrUnjudged: a judge did not say.
var (
	ErrUnproved = errors.New("the alert's evidence does not prove it")
	ErrUnjudged = fmt.Errorf("%w as far as it was judged, which took more steps than a proof has", ErrUnproved)
)

// New makes an alert of a violation. The alert is complete even if the error is
// not nil; the error says that its evidence proves nothing (ErrUnproved) or that
// records of it are no longer there.
func New(v verdict.Violation, ctx Context) (Alert, error) {
	ctx = ctx.remembering()
	open := v.Open
	if ctx.Judge != nil && len(v.Open) > 0 {
		ctx.Judge = leaving(v.Open, ctx.Judge)
	}
	v = name.Plain(v, ctx.Lookup)
	s := story{v: v, n: name.Of(v, ctx.Lookup, ctx.asked()), lookup: ctx.Lookup}
	var err error
	s.p, err = prove(v, &s.n, ctx)
	if err == nil {
		s = s.told(ctx)
	}
	v, n, p := s.v, s.n, s.p
	ctx.Lookup = s.lookup
	weakest, holds := reach(n, p, err == nil, ctx)
	if n.Weakest = weakest; ctx.Find != nil { // else it stays what it is
		n.Fit(weakest)
	}
	// Of what is told, as it was recorded: however much of it is shown, and whatever it was
	// found by.
	id := identifier{lookup: ctx.Lookup}.alert(ctx.DB, "", n, v)
	if err == nil && ctx.Judge != nil && len(p.txns) <= reachMax && n.MayNeedSessions() && needsSessions(weakest, p, ctx) {
		n.NeedsSessions()
	}
	if err == nil {
		n.Unless = unless(n.Breaks[0], p, ctx)
	}
	ids := identifier{lookup: ctx.Lookup}
	v, p, lookup := hide(v, p, ctx)
	found := ctx.Found
	if ctx.Veil.Mode() != veil.Full { // registers have other names
		found = nil
	}
	v.Open = open // whatever it is told as
	e := explain.Explain(v, n, lookup, found)
	a := begun(id, n, v, ctx)
	a.Weakest, a.Holds, a.State = weakest.String(), verdict.Names(holds), Fresh
	a.Summary, a.Explanation, a.Evidence = e.Summary, e.Text, p.lines()
	a.Cycle = edges(v, cycle(v, lookup), ids, lookup)
	for _, c := range v.Cases {
		a.Cases = append(a.Cases, edges(v, c, ids, lookup))
	}
	if n.Unless != record.InitialAny {
		a.InitialDependent = n.Unless.String()
	}
	if p.large || err == nil && ctx.Budget != nil && ctx.Budget.Cut() {
		a = a.Unfinished()
	}
	return a, err
}

// begun is what an alert says of an anomaly whether it is proved or not. v is hidden as the context's veil asks.
func begun(id string, n name.Name, v verdict.Violation, ctx Context) Alert {
	a := Alert{
		Version: Version, ID: id, DB: ctx.DB, Level: n.Breaks[0].String(), Breaks: verdict.Names(n.Breaks),
		Name: n.Name, Adya: n.Phenomenon(), Aliases: n.Aliases(), Guarantee: n.Guarantee, ClockDependent: n.ClockDependent,
		Severity: n.Severity, FirstSeen: ctx.Now, LastSeen: ctx.Now, Count: 1,
		Transactions: []string{}, Keys: keys(v), Links: map[string]string{},
	}
	part := map[string]bool{} // there may be a hundred thousand
	for _, t := range v.Txns {
		if of := (identifier{lookup: ctx.Lookup}).of(t); !part[of] {
			part[of] = true
			a.Transactions = append(a.Transactions, of)
		}
	}
	if m := ctx.Veil.Mode(); m != veil.Full {
		a.Values = m.String()
	}
	return a
}

// maySmaller ends the explanation of an alert of whose evidence more might be left out.
const maySmaller = "The evidence may be smaller: it was not tried of each part of it whether the proof can do " +
	"without, as that would have taken too long."

// Unfinished is an alert that says that making its evidence smaller was ended before
// everything was tried.
func (a Alert) Unfinished() Alert {
	if !strings.HasSuffix(a.Explanation, maySmaller) {
		a.Explanation = strings.TrimRight(a.Explanation, "\n") + "\n\n" + maySmaller
	}
	return a
}

// hide hides what the context's veil does, in all that the words of an alert are made of. Names and values are others,
// and equal where they were: the proof proves the same.
func hide(v verdict.Violation, p proof, ctx Context) (verdict.Violation, proof, name.Lookup) {
	if ctx.Veil.Mode() == veil.Full {
		return v, p, ctx.Lookup
	}
	h := ctx.Veil.Alert(ctx.Initial, p.header.Tables)
	txns := make([]record.Transaction, len(p.txns))
	for i := range p.txns { // first, so that pseudonyms count along the evidence
		txns[i] = *h.Transaction(&p.txns[i])
	}
	p.txns, p.header.Tables = txns, h.Tables()
	return h.Violation(v), p, h.Lookup(ctx.Lookup)
}

// keys are those that a violation itself names: of its read, or of the edges of
// its cycles, not of their reasons. The first ones in order, at most KeysMax.
func keys(v verdict.Violation) []string {
	out := []string{}
	if v.Key != "" {
		out = append(out, v.Key)
	}
	for _, c := range append([][]verdict.Edge{v.Cycle}, v.Cases...) {
		for _, e := range c {
			if e.Key != "" {
				out = append(out, e.Key)
			}
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	return out[:min(len(out), KeysMax)]
}

// cycle is a violation's cycle. Two transactions that overwrote one version make
// one as well: each read what the other overwrote.
func cycle(v verdict.Violation, lookup name.Lookup) []verdict.Edge {
	if a, b, ok := name.Overwriters(v, lookup); ok {
		return []verdict.Edge{
			{From: a, To: b, Type: verdict.RW, Key: v.Key, Why: verdict.ByOverwrite},
			{From: b, To: a, Type: verdict.RW, Key: v.Key, Why: verdict.ByOverwrite},
		}
	}
	return v.Cycle
}

func edges(v verdict.Violation, c []verdict.Edge, ids identifier, lookup name.Lookup) []Edge {
	out := make([]Edge, 0, len(c))
	for _, e := range c {
		out = append(out, Edge{From: ids.of(e.From), To: ids.of(e.To), Type: e.Type.String(), Key: e.Key,
			Why: explain.Edge(v, e, lookup), Basis: e.Why.String()})
	}
	return out
}

// Again is the alert after the same anomaly was found once more.
func (a Alert) Again(now int64) Alert {
	a.Count++
	a.LastSeen = max(a.LastSeen, now)
	a.State = Ongoing
	return a
}

// After is an alert made of an anomaly that has one already: that one, found once more.
// If keys and values were shown otherwise then, or it Widens, it has the words of the new one.
func (a Alert) After(before Alert) Alert {
	again := before.Again(a.LastSeen)
	again.At = a.At
	if before.Values == a.Values && !a.Widens(before) {
		return again
	}
	return a.InPlaceOf(again)
}

// Widens tells whether an alert breaks levels of which the one before it does not say so, as they were not asked for.
func (a Alert) Widens(before Alert) bool {
	return slices.ContainsFunc(a.Breaks, func(level string) bool { return !slices.Contains(before.Breaks, level) })
}

// Repeats tells whether an alert is of the very records that the one before it is of: judged again, not done again.
func (a Alert) Repeats(before Alert) bool {
	return len(a.Evidence) > 0 && len(before.Evidence) > 0 &&
		slices.EqualFunc(a.Evidence[1:], before.Evidence[1:], func(a, b json.RawMessage) bool { return bytes.Equal(a, b) })
}

// InPlaceOf is an alert of what has one already, found as often and at the same times, and breaking what that does too.
func (a Alert) InPlaceOf(before Alert) Alert {
	breaks := slices.DeleteFunc(verdict.Names(append(name.Ordered(), verdict.LIN)), func(level string) bool {
		return !slices.Contains(a.Breaks, level) && !slices.Contains(before.Breaks, level)
	})
	if len(breaks) > 0 {
		a.Level, a.Breaks = breaks[0], breaks
	}
	a.State, a.Count, a.FirstSeen, a.LastSeen, a.Group = before.State, before.Count, before.FirstSeen, before.LastSeen,
		before.Group
	return a
}

// JSON is the alert's JSON form on one line, without markup escapes.
func (a Alert) JSON() []byte {
	b, err := text.JSON(a)
	if err != nil {
		panic(fmt.Sprintf("alert %s: %v; can't happen, because evidence is made by codec and the rest is plain", a.ID, err))
	}
	return b
}

// EvidenceFile is what a file of the alert's evidence is called. Ids are hexadecimal; what is not is no name of a file.
func (a Alert) EvidenceFile() string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r == '-' {
			return r
		}
		return '_'
	}, a.ID) + ".jsonl"
}

// EvidenceText is what such a file holds, which monitor check takes.
func (a Alert) EvidenceText() []byte {
	var b bytes.Buffer
	for _, line := range a.Evidence {
		b.Write(line)
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// Parse reads the JSON form back, as from the store.
func Parse(b []byte) (Alert, error) {
	var a Alert
	if err := json.Unmarshal(b, &a); err != nil {
		return Alert{}, fmt.Errorf("alert: %w", err)
	}
	if a.Version != Version {
		return Alert{}, fmt.Errorf("alert %s: version %d, this program reads %d; use the version of monitor that wrote it",
			a.ID, a.Version, Version)
	}
	return a, nil
}
