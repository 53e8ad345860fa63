package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/isowatch/isowatch/alerts/text"
	"github.com/isowatch/isowatch/incremental/certificate"
	"github.com/isowatch/isowatch/incremental/verdict"
)

// Verification is the report on a history's certificate.
type Verification struct {
	File         string   `json:"file"`
	Format       string   `json:"format"`
	DB           string   `json:"db"`
	Transactions int      `json:"transactions"`
	Certificate  string   `json:"certificate"` // the file it is in
	Error        *Error   `json:"error"`       // why it can't be verified
	Unknown      *Unknown `json:"unknown"`     // a limit was reached
	Proofs       []Proof  `json:"proofs"`      // one per level, in the order of the certificate
}

// What can be said of a proof.
const (
	Verified = "verified"
	Refuted  = "refuted"
	Missing  = "missing"
)

// Proof says whether the proof of a level holds, and if not, the first step that
// fails.
type Proof struct {
	Level       string `json:"level"`
	Verdict     string `json:"verdict"` // verified, refuted, or missing
	Line        int    `json:"line,omitempty"`
	Transaction string `json:"transaction,omitempty"`
	Operation   *int   `json:"operation,omitempty"` // from 0
	Message     string `json:"message,omitempty"`
	Expected    string `json:"expected,omitempty"` // what the replay has, as JSON text
	Found       string `json:"found,omitempty"`    // what the history has there
}

// Refute is the report on a proof that fails so.
func Refute(l verdict.Level, e *certificate.Error) Proof {
	p := Proof{Level: l.String(), Verdict: Refuted, Line: e.Line, Transaction: e.Txn, Message: e.What,
		Expected: e.Expected, Found: e.Found}
	if e.Op >= 0 {
		p.Operation = &e.Op
	}
	return p
}

// Exit is the status that it means: 1 if a proof fails, 2 if there is none or it
// can't be read, 3 if a limit was reached.
func (v *Verification) Exit() int {
	status := ExitSatisfied
	switch {
	case v.Unknown != nil:
		status = ExitUndecided
	case v.Error != nil || len(v.Proofs) == 0:
		status = ExitUnusable
	}
	for i := range v.Proofs {
		switch v.Proofs[i].Verdict {
		case Refuted:
			status = Worse(status, ExitViolated)
		case Missing:
			status = Worse(status, ExitUnusable)
		}
	}
	return status
}

// Verification writes a line about the history and one per level.
func (t Text) Verification(v *Verification) error {
	var b strings.Builder
	h := History{File: v.File, DB: v.DB, Error: v.Error}
	switch {
	case v.Error != nil:
		b.WriteString(t.broken(&h) + "\n")
	case v.Unknown != nil:
		fmt.Fprintf(&b, "%s: %s: %s\n", h.name(), t.paint(yellow, "unknown"), v.Unknown.Reason)
	case len(v.Proofs) == 0:
		fmt.Fprintf(&b, "%s: %s: no level\n", h.name(), t.paint(red, text.Printable(v.Certificate)+" proves nothing of it"))
	default:
		proofs := 0
		for i := range v.Proofs {
			if v.Proofs[i].Verdict != Missing {
				proofs++
			}
		}
		fmt.Fprintf(&b, "%s: %s, %s in %s\n", h.name(), count(v.Transactions, "transaction"), count(proofs, "proof"),
			text.Printable(v.Certificate))
	}
	for i := range v.Proofs {
		p := &v.Proofs[i]
		said := t.paint(green, p.Verdict)
		switch p.Verdict {
		case Refuted:
			said = t.paint(red, "REFUTED ") + "  " + p.text()
		case Missing:
			said = t.paint(yellow, "missing ") + "  " + p.text()
		}
		fmt.Fprintf(&b, "  %-9s %s\n", p.Level, said)
	}
	_, err := io.WriteString(t.W, b.String())
	return err
}

// text is where a proof fails, and why.
func (p *Proof) text() string {
	var b strings.Builder
	if p.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", p.Line)
	}
	if p.Transaction != "" {
		b.WriteString(idList([]string{p.Transaction}))
		if p.Operation != nil {
			fmt.Fprintf(&b, ", operation %d", *p.Operation)
		}
		b.WriteString(": ")
	}
	b.WriteString(text.Printable(p.Message))
	return b.String()
}
