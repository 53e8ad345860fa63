package certificate

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// Version is the version of the file format.
const Version = 1

// Certificate proves that one history satisfies some levels.
type Certificate struct {
	Assumed Options // under which they are satisfied
	Records Records // of which history
	Proofs  []Proof // one a level
}

// Records say which history a certificate is of.
type Records struct {
	Transactions int    // of every outcome
	Sessions     int    // different ones
	Operations   int    // of all transactions
	SHA256       string // of the records in canonical form, in hexadecimal; see Describe
}

// Proof is the order that proves one level.
type Proof struct {
	Level verdict.Level
	Steps []Step
	Line  int // of the file, at which the section begins; 0 if it was not read from one
}

// Step is one line of an order.
type Step struct {
	Txn Name
	// Start and Commit say what happens. A step with both is a transaction of
	// which nothing stands between the two. In an order of transactions, or of
	// commits, every step is so.
	Start, Commit bool
}

// Name names a transaction: by its id, or, if that is empty, by its place among
// all of its session, from 0.
type Name struct {
	ID      string
	Session string
	Place   int
}

// New makes a certificate of a history, as yet without proofs. The transactions
// of a session stand in session order.
func New(txns []record.Transaction, opt Options) *Certificate {
	return &Certificate{Assumed: opt, Records: Describe(txns)}
}

// Add adds the proof of a level: an order as Replay takes it, which is not
// checked here beyond naming transactions that are there. The transactions
// are those that New was given.
func (c *Certificate) Add(level verdict.Level, order []verdict.Event, txns []record.Transaction) error {
	kind := KindOf(level)
	if kind == NoOrder {
		return fault("level %v has no order to prove it", level)
	}
	names := namesOf(txns)
	p := Proof{Level: level, Steps: make([]Step, 0, len(order))}
	for i, e := range order {
		if int64(e.Txn) >= int64(len(txns)) {
			err := fault("transaction %d of %d", e.Txn, len(txns))
			err.Event = i
			return err
		}
		last := len(p.Steps) - 1
		if kind == Events && e.Commit && i > 0 && order[i-1] == (verdict.Event{Txn: e.Txn}) {
			p.Steps[last].Commit = true
			continue
		}
		p.Steps = append(p.Steps, Step{Txn: names(int(e.Txn)), Start: kind != Events || !e.Commit, Commit: e.Commit})
	}
	c.Proofs = append(c.Proofs, p)
	return nil
}

// Levels are those that the certificate proves.
func (c *Certificate) Levels() []verdict.Level {
	var out []verdict.Level
	for _, p := range c.Proofs {
		out = append(out, p.Level)
	}
	return out
}

// header is the first line of a file. Pointers tell what is missing.
type header struct {
	Version     *int     `json:"certificate"`
	Description string   `json:"description"`
	Assumes     *assumes `json:"assumes"`
	Records     *facts   `json:"records"`
	Levels      []string `json:"levels"`
}

type assumes struct {
	Initial  string `json:"initial"`
	Sessions string `json:"sessions"`
	Clock    string `json:"clock"`
	Coverage string `json:"coverage"`
	MaxSkew  *int64 `json:"max_skew"` // nanoseconds
}

type facts struct {
	Transactions *int   `json:"transactions"`
	Sessions     *int   `json:"sessions"`
	Operations   *int   `json:"operations"`
	SHA256       string `json:"sha256"`
}

// section is the line before the steps of a level.
type section struct {
	Level string `json:"level"`
	Kind  string `json:"kind"`
	Steps *int   `json:"steps"`
}

const description = "orders of the transactions of a history that show that it satisfies the levels: replay each against an empty database, and compare what was read"

// Write writes a certificate as a file of lines. The same certificate gives the
// same bytes.
func Write(w io.Writer, c *Certificate) error {
	out := bufio.NewWriter(w)
	version := Version
	h := header{Version: &version, Description: description,
		Assumes: &assumes{c.Assumed.Initial.String(), c.Assumed.Sessions.String(), c.Assumed.Clock.String(), c.Assumed.Coverage.String(), &c.Assumed.MaxSkew},
		Records: &facts{&c.Records.Transactions, &c.Records.Sessions, &c.Records.Operations, c.Records.SHA256},
		Levels:  []string{}}
	for _, p := range c.Proofs {
		h.Levels = append(h.Levels, p.Level.String())
	}
	if err := writeJSON(out, h); err != nil {
		return err
	}
	var line []byte
	for _, p := range c.Proofs {
		n := len(p.Steps)
		if err := writeJSON(out, section{p.Level.String(), KindOf(p.Level).String(), &n}); err != nil {
			return err
		}
		for i, s := range p.Steps {
			var err error
			if line, err = s.append(line[:0]); err != nil {
				return fmt.Errorf("certificate of %v, step %d: %w", p.Level, i, err)
			}
			if _, err := out.Write(append(line, '\n')); err != nil {
				return err
			}
		}
	}
	return out.Flush()
}

func writeJSON(out *bufio.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = out.Write(append(b, '\n'))
	return err
}

// append appends the line of a step.
func (s Step) append(b []byte) ([]byte, error) {
	switch {
	case !s.Start && !s.Commit:
		return nil, fmt.Errorf("transaction %q neither starts nor commits", s.Txn.ID)
	case !s.Commit:
		b = append(b, "start "...)
	case !s.Start:
		b = append(b, "commit "...)
	}
	if s.Txn.ID != "" {
		return appendName(b, s.Txn.ID)
	}
	b = strconv.AppendInt(append(b, '@'), int64(s.Txn.Place), 10)
	return appendName(append(b, ' '), s.Txn.Session)
}

// appendName appends a name as it is if that can't be taken for anything else,
// else as a JSON string.
func appendName(b []byte, s string) ([]byte, error) {
	if !utf8.ValidString(s) {
		return nil, fmt.Errorf("the name %q is not UTF-8, and can't be written", s)
	}
	if len(s) > nameMax {
		return nil, fmt.Errorf("a name has %d bytes, more than the limit of %d", len(s), nameMax)
	}
	if isBare(s) {
		return append(b, s...), nil
	}
	return record.AppendJSONString(b, s), nil
}

// isBare tells whether a name may stand without quotes.
func isBare(s string) bool {
	return s != "" && !strings.ContainsRune(`"@{`, rune(s[0])) &&
		strings.IndexFunc(s, func(c rune) bool { return c == ' ' || c == utf8.RuneError || !strconv.IsPrint(c) }) < 0
}

// namesOf returns what names each transaction: its id, or its place in its
// session if it has none or shares it with another.
func namesOf(txns []record.Transaction) func(int) Name {
	count := make(map[string]int8, len(txns))
	plain := true
	for n := range txns {
		id := txns[n].ID
		if count[id] < 2 {
			count[id]++
		}
		plain = plain && id != "" && count[id] == 1
	}
	var place []int
	if !plain {
		next := map[string]int{}
		place = make([]int, len(txns))
		for n := range txns {
			place[n] = next[txns[n].Session]
			next[txns[n].Session]++
		}
	}
	return func(n int) Name {
		if t := &txns[n]; plain || t.ID != "" && count[t.ID] == 1 {
			return Name{ID: t.ID}
		}
		return Name{Session: txns[n].Session, Place: place[n]}
	}
}
