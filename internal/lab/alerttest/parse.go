package alerttest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// Lookup numbers transactions by their place.
func Lookup(txns []record.Transaction) name.Lookup {
	return func(id verdict.TxnID) (*record.Transaction, bool) {
		if int(id) >= len(txns) {
			return nil, false
		}
		return &txns[id], true
	}
}

// Parser reads cycles in the notation of Case. Transactions are numbered in the
// order in which they are first named.
type Parser struct{ ids map[string]verdict.TxnID }

// NewParser knows the transactions of a history by their places.
func NewParser(txns []record.Transaction) Parser {
	p := Parser{ids: map[string]verdict.TxnID{}}
	for _, t := range txns {
		p.ID(t.ID)
	}
	return p
}

// ID is a transaction's number.
func (p Parser) ID(s string) verdict.TxnID {
	if _, ok := p.ids[s]; !ok {
		p.ids[s] = verdict.TxnID(len(p.ids))
	}
	return p.ids[s]
}

// Cycle reads a cycle; it fails the test if it can't.
func (p Parser) Cycle(t testing.TB, text string) []verdict.Edge {
	t.Helper()
	out, err := p.parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// parse reads "T1 wr(x) T2 rw(y,initial) T1".
func (p Parser) parse(text string) ([]verdict.Edge, error) {
	var words []string // at depth 0, separated by spaces
	depth := 0
	word := ""
	for _, r := range text + " " {
		switch {
		case r == ' ' && depth == 0:
			if word != "" {
				words = append(words, word)
			}
			word = ""
			continue
		case r == '(':
			depth++
		case r == ')':
			depth--
		}
		word += string(r)
	}
	var out []verdict.Edge
	for i := 0; i+2 < len(words); i += 2 {
		e := verdict.Edge{From: p.ID(words[i]), To: p.ID(words[i+2])}
		kind, rest, _ := strings.Cut(words[i+1], "(")
		rest = strings.TrimSuffix(rest, ")")
		var why string
		e.Key, why, _ = strings.Cut(rest, ",")
		why, because, _ := strings.Cut(why, ": ")
		switch kind {
		case "so":
			e.Type, e.Why = verdict.SO, verdict.BySession
		case "rt":
			e.Type, e.Why = verdict.RT, verdict.ByClock
		case "wr":
			e.Type, e.Why = verdict.WR, verdict.ByValue
		case "ww":
			e.Type, e.Why = verdict.WW, verdict.ByCase
		case "rw":
			e.Type, e.Why = verdict.RW, verdict.ByOverwrite
		default:
			return nil, fmt.Errorf("%q: no edge %q", text, kind)
		}
		switch why {
		case "":
		case "initial":
			e.Why = verdict.ByInitial
		case "overwrite":
			e.Why = verdict.ByOverwrite
		case "order":
			e.Why = verdict.ByOrder
		case "case":
			e.Why = verdict.ByCase
		case "list":
			e.Why = verdict.ByList
		case "elimination":
			e.Why = verdict.ByElimination
		default:
			return nil, fmt.Errorf("%q: no reason %q", text, why)
		}
		for i, text := range strings.Split(because, "; ") {
			c, err := p.parse(text)
			switch {
			case err != nil:
				return nil, err
			case len(c) == 0:
			case e.Why == verdict.ByElimination:
				e.Others = append(e.Others, c)
			case i > 0:
				return nil, fmt.Errorf("%q: only an elimination has several cycles", text)
			default:
				e.Because = c
			}
		}
		out = append(out, e)
	}
	return out, nil
}
