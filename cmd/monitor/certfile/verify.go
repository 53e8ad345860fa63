package certfile

import (
	"fmt"
	"maps"

	"github.com/isowatch/isowatch/incremental/certificate"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// Verify checks that a certificate is of this history, was made under what opt
// says, and proves each of its levels. The transactions of a session stand in
// session order. An error is a *certificate.Error.
func Verify(c *Certificate, txns []record.Transaction, opt record.Assumptions) error {
	if err := c.matches(txns, opt); err != nil {
		return err
	}
	find, assumed := finder(txns), c.Assumed
	assumed.Lossy = opt.Lossy
	for i := range c.Proofs {
		if err := c.Proofs[i].verify(find, txns, assumed); err != nil {
			err.Level, err.HasLevel = c.Proofs[i].Level, true
			return err
		}
	}
	return nil
}

// Assumes tells whether the certificate was made under that; what the history shows is no part of it.
func (c *Certificate) Assumes(opt record.Assumptions) bool { return c.assumes(opt) == nil }

// assumes checks that the certificate was made under that.
func (c *Certificate) assumes(opt record.Assumptions) *certificate.Error {
	for _, f := range []struct {
		what      string
		has, want string
	}{
		{"initial", c.Assumed.Initial.String(), opt.Initial.String()},
		{"sessions", c.Assumed.Sessions.String(), opt.Sessions.String()},
		{"clock", c.Assumed.Clock.String(), opt.Clock.String()},
		{"coverage", c.Assumed.Coverage.String(), opt.Coverage.String()},
	} {
		if f.has != f.want {
			err := fault("assumes %s %s, and the history is to be read with %s: make a new certificate, or say %s %s", f.what,
				f.has, f.want, f.what, f.has)
			err.Expected, err.Found = f.want, f.has
			return err
		}
	}
	if !maps.Equal(c.Assumed.Tables, opt.Tables) {
		return fault("assumes another coverage of tables than the history is to be read with: make a new certificate")
	}
	if c.Assumed.MaxSkew != opt.MaxSkew {
		return fault("assumes a skew of at most %d ns, and the history is to be read with %d ns", c.Assumed.MaxSkew,
			opt.MaxSkew)
	}
	return nil
}

// matches checks that the certificate speaks of this history.
func (c *Certificate) matches(txns []record.Transaction, opt record.Assumptions) *certificate.Error {
	if err := c.assumes(opt); err != nil {
		return err
	}
	has := Describe(txns)
	for _, f := range []struct {
		what      string
		has, want int
	}{
		{"transactions", has.Transactions, c.Records.Transactions},
		{"sessions", has.Sessions, c.Records.Sessions},
		{"operations", has.Operations, c.Records.Operations},
	} {
		if f.has != f.want {
			return fault("is of a history of %d %s, and this one has %d: it is another history's", f.want, f.what, f.has)
		}
	}
	if has.SHA256 != c.Records.SHA256 {
		err := fault("is of records with SHA-256 %s, and these have %s: the history was changed, or it is another one's",
			c.Records.SHA256, has.SHA256)
		err.Expected, err.Found = has.SHA256, c.Records.SHA256
		return err
	}
	return nil
}

// verify finds the transactions of the steps and replays them.
func (p *Proof) verify(find func(Name) (int, string), txns []record.Transaction,
	opt record.Assumptions) *certificate.Error {
	order := make([]verdict.Event, 0, len(p.Steps))
	stepOf := make([]int, 0, len(p.Steps)) // by event
	var sources []verdict.Source
	for i, s := range p.Steps {
		id := verdict.NoTxn
		if !s.Initial {
			n, why := find(s.Txn)
			switch {
			case why == "":
				id = verdict.TxnID(n)
			case s.Read && len(order) > 0:
				last := len(order) - 1
				return &certificate.Error{Event: last, Op: s.Op, Line: p.lineOf(stepOf[last]), What: why}
			default:
				return &certificate.Error{Event: len(order), Op: -1, Line: p.lineOf(i), What: why}
			}
		}
		if s.Read {
			if s.Op < 0 || p.Kind != certificate.Commits || len(order) == 0 {
				return fault("line %d says whom operation %d is from, in an order of kind %s", i, s.Op, p.Kind)
			}
			sources = append(sources, verdict.Source{Txn: order[len(order)-1].Txn, Op: s.Op, Writer: id})
			continue
		}
		if p.Kind == certificate.Events && s.Start {
			order, stepOf = append(order, verdict.Event{Txn: id}), append(stepOf, i)
		}
		if p.Kind != certificate.Events || s.Commit {
			order, stepOf = append(order, verdict.Event{Txn: id, Commit: true}), append(stepOf, i)
		}
	}
	err := certificate.Check(p.Level, p.Kind, txns, order, sources, opt)
	if err != nil && err.Event >= 0 {
		err.Line = p.lineOf(stepOf[err.Event])
	}
	return err
}

// lineOf is the line of a step, or 0 if the proof was not read from a file.
func (p *Proof) lineOf(step int) int {
	if p.Line == 0 {
		return 0
	}
	return p.Line + 1 + step
}

// finder returns what finds a transaction by its name, or says why it can't.
func finder(txns []record.Transaction) func(Name) (int, string) {
	const several = -2
	byID := make(map[string]int, len(txns))
	for n := range txns {
		if _, ok := byID[txns[n].ID]; ok {
			byID[txns[n].ID] = several
		} else {
			byID[txns[n].ID] = n
		}
	}
	var bySession map[string][]int
	return func(name Name) (int, string) {
		if name.ID != "" {
			switch n, ok := byID[name.ID]; {
			case !ok:
				return 0, fmt.Sprintf("names %.200s, which the history does not have", name.ID)
			case n == several:
				return 0, fmt.Sprintf("names %.200s, of which the history has several: name it by place and session", name.ID)
			default:
				return n, ""
			}
		}
		if bySession == nil {
			bySession = map[string][]int{}
			for n := range txns {
				bySession[txns[n].Session] = append(bySession[txns[n].Session], n)
			}
		}
		if in := bySession[name.Session]; name.Place >= 0 && name.Place < len(in) {
			return in[name.Place], ""
		}
		return 0, fmt.Sprintf("names transaction %d of session %.200q, which has %d", name.Place, name.Session,
			len(bySession[name.Session]))
	}
}
