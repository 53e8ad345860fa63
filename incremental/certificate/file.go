package certificate

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
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
	Kind  Kind // of the order: that of Level, or of a stronger one
	Steps []Step
	Reads []Source // in the order of their steps; only in orders of commits
	Line  int      // of the file, at which the section begins; 0 if it was not read from one
}

// Source says whom a read is from of which the order leaves that open.
type Source struct {
	Step    int // of the reader, from 0
	Op      int // the operation in the transaction, from 0
	Writer  Name
	Initial bool // it is from the initial state; Writer is empty
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

// Add adds the proof of a satisfied verdict, as Replay takes it. The transactions
// are those that New was given. That it names transactions that are there is checked, and nothing else.
func (c *Certificate) Add(v verdict.Result, txns []record.Transaction) error {
	kind, order := KindOf(v.ProvedBy), v.Order
	if !kind.proves(v.Level) {
		return fault("an order of kind %s does not prove level %v", kind, v.Level)
	}
	names := namesOf(txns)
	p := Proof{Level: v.Level, Kind: kind, Steps: make([]Step, 0, len(order))}
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
	if err := p.choose(v.Sources, order, names, txns); err != nil {
		return err
	}
	c.Proofs = append(c.Proofs, p)
	return nil
}

// choose adds the writers of reads.
func (p *Proof) choose(sources []verdict.Source, order []verdict.Event, names func(int) Name,
	txns []record.Transaction) error {
	if len(sources) == 0 {
		return nil
	}
	stepOf := make(map[verdict.TxnID]int, len(order))
	for i, e := range order {
		stepOf[e.Txn] = i
	}
	for _, s := range sources {
		step, ok := stepOf[s.Txn]
		if !ok || p.Kind != Commits || s.Writer != verdict.NoTxn && int64(s.Writer) >= int64(len(txns)) {
			return fault("transaction %d reads from transaction %d, of %d, in an order of kind %s", s.Txn, s.Writer, len(txns),
				p.Kind)
		}
		rd := Source{Step: step, Initial: s.Writer == verdict.NoTxn}
		if !rd.Initial {
			rd.Writer = names(int(s.Writer))
		}
		for _, rd.Op = range operationsOf(s, &txns[s.Txn]) {
			p.Reads = append(p.Reads, rd)
		}
	}
	slices.SortFunc(p.Reads, func(a, b Source) int { return cmp.Or(cmp.Compare(a.Step, b.Step), cmp.Compare(a.Op, b.Op)) })
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
	// Tables are those whose coverage is another one, by name.
	Tables map[string]string `json:"tables,omitempty"`
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
	Reads int    `json:"reads,omitempty"`
}

const description = "orders of the transactions of a history that show that it satisfies the levels: replay each " +
	"against an empty database, and compare what was read"

// Write writes a certificate as a file of lines. The same certificate gives the
// same bytes.
func Write(w io.Writer, c *Certificate) error {
	out := bufio.NewWriter(w)
	version := Version
	h := header{Version: &version, Description: description,
		Assumes: &assumes{c.Assumed.Initial.String(), c.Assumed.Sessions.String(), c.Assumed.Clock.String(),
			c.Assumed.Coverage.String(), &c.Assumed.MaxSkew, nil},
		Records: &facts{&c.Records.Transactions, &c.Records.Sessions, &c.Records.Operations, c.Records.SHA256},
		Levels:  []string{}}
	for name, coverage := range c.Assumed.Tables {
		if h.Assumes.Tables == nil {
			h.Assumes.Tables = map[string]string{}
		}
		h.Assumes.Tables[name] = coverage.String()
	}
	for _, p := range c.Proofs {
		h.Levels = append(h.Levels, p.Level.String())
	}
	if err := writeJSON(out, h); err != nil {
		return err
	}
	for i := range c.Proofs {
		p := &c.Proofs[i]
		n := len(p.Steps)
		if err := writeJSON(out, section{p.Level.String(), p.Kind.String(), &n, len(p.Reads)}); err != nil {
			return err
		}
		if err := p.write(out); err != nil {
			return fmt.Errorf("certificate of %v, %w", p.Level, err)
		}
	}
	return out.Flush()
}

// write writes the lines of a section.
func (p *Proof) write(out *bufio.Writer) error {
	var line []byte
	next := 0 // of p.Reads
	for i, s := range p.Steps {
		var err error
		if line, err = s.append(line[:0]); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
		line = append(line, '\n')
		for ; next < len(p.Reads) && p.Reads[next].Step == i; next++ {
			if line, err = p.Reads[next].append(line); err != nil {
				return fmt.Errorf("step %d: %w", i, err)
			}
			line = append(line, '\n')
		}
		if _, err := out.Write(line); err != nil {
			return err
		}
	}
	if next < len(p.Reads) {
		return fmt.Errorf("read %d: it stands in no order of steps, or there is no step %d", next, p.Reads[next].Step)
	}
	return nil
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
	return s.Txn.append(b)
}

// append appends the line of a read: without a name it is from the initial state.
func (rd Source) append(b []byte) ([]byte, error) {
	b = strconv.AppendInt(append(b, "read "...), int64(rd.Op), 10)
	if rd.Initial {
		return b, nil
	}
	return rd.Writer.append(append(b, ' '))
}

func (n Name) append(b []byte) ([]byte, error) {
	if n.ID != "" {
		return appendName(b, n.ID)
	}
	b = strconv.AppendInt(append(b, '@'), int64(n.Place), 10)
	return appendName(append(b, ' '), n.Session)
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
