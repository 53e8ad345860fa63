// Package certfile writes, reads and verifies the files of certificates (docs/certificates.md): orders of transactions
// that prove satisfied levels, and of which history they are. What the orders prove package certificate says, which
// knows no files.
//
//	c := certfile.New(txns, opt)             // of this history, so assumed
//	err := c.Add(result, txns)               // for each level that is satisfied
//	err = certfile.Write(w, c)
//
//	c, err := certfile.NewReader(r).Next()
//	err = certfile.Verify(c, txns, opt)      // nil, or a *certificate.Error that says where it fails
package certfile

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

	"github.com/isowatch/isowatch/incremental/certificate"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// Version is the version of the file format.
const Version = 1

// Certificate proves that one history satisfies some levels.
type Certificate struct {
	// Assumed is what they are satisfied under. Lossy is no part of it, as the history shows it, nor is UnseenUnique.
	Assumed record.Assumptions
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
	Kind  certificate.Kind // of the order: that of Level, or of a stronger one
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
	// Read: nothing happens, but operation Op, from 0, of the transaction that the steps before named last is a read
	// from Txn, or, if Initial, from the initial state. Only in orders of commits.
	Read, Initial bool
	Op            int
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
func New(txns []record.Transaction, opt record.Assumptions) *Certificate {
	return &Certificate{Assumed: opt, Records: Describe(txns)}
}

// Add adds the proof of a satisfied verdict, as Replay takes it. The transactions
// are those that New was given. That it names transactions that are there is checked, and nothing else.
func (c *Certificate) Add(v verdict.Result, txns []record.Transaction) error {
	kind, order := certificate.KindOf(v.ProvedBy), v.Order
	if !kind.Proves(v.Level) {
		return fault("an order of kind %s does not prove level %v", kind, v.Level)
	}
	names := namesOf(txns)
	reads, err := readsOf(v.Sources, kind, names, txns)
	if err != nil {
		return err
	}
	p := Proof{Level: v.Level, Kind: kind, Steps: make([]Step, 0, len(order)+len(reads))}
	for i, e := range order {
		if int64(e.Txn) >= int64(len(txns)) {
			err := fault("transaction %d of %d", e.Txn, len(txns))
			err.Event = i
			return err
		}
		last := len(p.Steps) - 1
		if kind == certificate.Events && e.Commit && i > 0 && order[i-1] == (verdict.Event{Txn: e.Txn}) {
			p.Steps[last].Commit = true
			continue
		}
		p.Steps = append(p.Steps, Step{Txn: names(int(e.Txn)), Start: kind != certificate.Events || !e.Commit, Commit: e.Commit})
		p.Steps = append(p.Steps, reads[e.Txn]...)
		delete(reads, e.Txn)
	}
	for txn := range reads {
		return fault("transaction %d, of which it is said whom it reads from, is not in the order", txn)
	}
	c.Proofs = append(c.Proofs, p)
	return nil
}

// fault is an Error that is at no event.
func fault(format string, args ...any) *certificate.Error {
	return &certificate.Error{Event: -1, Op: -1, What: fmt.Sprintf(format, args...)}
}

// readsOf are the lines that say whom reads are from, by reader.
func readsOf(sources []verdict.Source, kind certificate.Kind, names func(int) Name, txns []record.Transaction) (
	map[verdict.TxnID][]Step, error) {
	out := map[verdict.TxnID][]Step{}
	for _, s := range sources {
		if int64(s.Txn) >= int64(len(txns)) || kind != certificate.Commits ||
			s.Writer != verdict.NoTxn && int64(s.Writer) >= int64(len(txns)) {
			return nil, fault("transaction %d reads from transaction %d, of %d, in an order of kind %s", s.Txn, s.Writer,
				len(txns), kind)
		}
		read := Step{Read: true, Initial: s.Writer == verdict.NoTxn}
		if !read.Initial {
			read.Txn = names(int(s.Writer))
		}
		for _, read.Op = range certificate.Operations(s, &txns[s.Txn]) {
			out[s.Txn] = append(out[s.Txn], read)
		}
	}
	for _, reads := range out {
		slices.SortFunc(reads, func(a, b Step) int { return cmp.Compare(a.Op, b.Op) })
	}
	return out, nil
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
	for _, p := range c.Proofs {
		if err := p.write(out); err != nil {
			return fmt.Errorf("certificate of %v: %w", p.Level, err)
		}
	}
	return out.Flush()
}

// write writes a section.
func (p *Proof) write(out *bufio.Writer) error {
	s := section{p.Level.String(), p.Kind.String(), new(int), 0}
	for i := range p.Steps {
		if p.Steps[i].Read {
			s.Reads++
		} else {
			*s.Steps++
		}
	}
	if err := writeJSON(out, s); err != nil {
		return err
	}
	var line []byte
	for i := range p.Steps {
		var err error
		if line, err = p.Steps[i].append(line[:0]); err != nil {
			return fmt.Errorf("line %d: %w", i, err)
		}
		if _, err := out.Write(append(line, '\n')); err != nil {
			return err
		}
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

// append appends the line of a step. One of a read without a name is from the initial state.
func (s *Step) append(b []byte) ([]byte, error) {
	switch {
	case s.Read:
		b = strconv.AppendInt(append(b, "read "...), int64(s.Op), 10)
		if s.Initial {
			return b, nil
		}
		b = append(b, ' ')
	case !s.Start && !s.Commit:
		return nil, fmt.Errorf("transaction %q neither starts nor commits", s.Txn.ID)
	case !s.Commit:
		b = append(b, "start "...)
	case !s.Start:
		b = append(b, "commit "...)
	}
	return s.Txn.append(b)
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
