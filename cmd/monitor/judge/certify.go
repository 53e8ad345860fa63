package judge

import (
	"errors"
	"fmt"
	"slices"

	"github.com/isowatch/isowatch/cmd/monitor/certfile"
	"github.com/isowatch/isowatch/cmd/monitor/report"
	"github.com/isowatch/isowatch/incremental/certificate"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// Of corrects assumptions by what the history shows: where transactions are
// missing in sessions, by seq, coverage is partial: a hole, or a beginning that is
// not there, is a gap in the capture, never an anomaly.
func Of(txns []record.Transaction, a record.Assumptions) record.Assumptions {
	return without(record.Missing(txns), a)
}

// without is what can be assumed where so many transactions are missing.
func without(missing int64, a record.Assumptions) record.Assumptions {
	if missing > 0 {
		a.Coverage, a.Tables, a.Lossy = record.CoveragePartial, nil, true
	}
	return a
}

// Replay checks the proof of a satisfied verdict with the independent checker.
// Verdicts of another kind, and those without a proof, are errors.
func Replay(r verdict.Result, a record.Assumptions, txns []record.Transaction) error {
	if r.Outcome != verdict.Satisfied {
		return fmt.Errorf("level %s is %s: only what is satisfied has a proof to replay", r.Level, r.Outcome)
	}
	if len(r.Order) == 0 && included(txns) > 0 {
		return fmt.Errorf("level %s is satisfied without a proof", r.Level)
	}
	return certificate.Replay(r, txns, a)
}

func included(txns []record.Transaction) (n int) {
	for i := range txns {
		if txns[i].Status == record.Committed {
			n++
		}
	}
	return n
}

// Verify replays every proof of a certificate against the history that it is to be
// of. A certificate that says of itself that it is of another one, or was made under
// other assumptions, is refuted at every level. want are levels that have to be
// proved; one that the certificate has no proof of is missing.
func Verify(c *certfile.Certificate, txns []record.Transaction, a record.Assumptions,
	want []verdict.Level) []report.Proof {
	a = Of(txns, a)
	var out []report.Proof
	for rest := c.Proofs; len(rest) > 0; {
		err := certfile.Verify(&certfile.Certificate{Assumed: c.Assumed, Records: c.Records, Proofs: rest}, txns, a)
		fails, at := fault(err, rest)
		for _, p := range rest[:at] {
			out = append(out, report.Proof{Level: p.Level.String(), Verdict: report.Verified})
		}
		rest = rest[at:]
		if fails == nil {
			continue
		}
		n := len(rest)
		if fails.HasLevel {
			n = 1
		}
		for _, p := range rest[:n] {
			out = append(out, report.Refute(p.Level, fails))
		}
		rest = rest[n:]
	}
	proved := c.Levels()
	for _, l := range want {
		if !slices.Contains(proved, l) {
			out = append(out, report.Proof{Level: l.String(), Verdict: report.Missing,
				Message: "the certificate has no proof of it"})
		}
	}
	return out
}

// fault is the error of Verify, and how many proofs before it hold.
func fault(err error, proofs []certfile.Proof) (*certificate.Error, int) {
	if err == nil {
		return nil, len(proofs)
	}
	var e *certificate.Error
	if !errors.As(err, &e) {
		panic(fmt.Sprintf("%v; can't happen, because certfile.Verify fails with its own errors", err))
	}
	at := slices.IndexFunc(proofs, func(p certfile.Proof) bool { return e.HasLevel && p.Level == e.Level })
	return e, max(at, 0)
}
