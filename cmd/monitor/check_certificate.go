package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/isowatch/isowatch/cmd/monitor/certfile"
	"github.com/isowatch/isowatch/cmd/monitor/judge"
	"github.com/isowatch/isowatch/cmd/monitor/report"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/history"
	"github.com/isowatch/isowatch/ingest/record"
)

// readCertificates reads a file of certificates, packed or not.
func readCertificates(name string) ([]*certfile.Certificate, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, unusablef("--verify: %w", err)
	}
	defer f.Close()
	r, closer, err := history.Unpacked(name, f)
	if err != nil {
		return nil, unusablef("--verify: %w", err)
	}
	defer closer()
	var out []*certfile.Certificate
	for in := certfile.NewReader(io.LimitReader(r, history.SizeDefault)); ; {
		c, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, unusablef("--verify: %s: %w", name, err)
		}
		out = append(out, c)
	}
	if len(out) == 0 {
		return nil, unusablef("--verify: %s: the file is empty; write it with check --certificate", name)
	}
	return out, nil
}

// parseCertificates looks at the two flags.
func (c *checkFlags) parseCertificates(cmd *cobra.Command) error {
	switch {
	case c.verify == "":
		return nil
	case c.certificate != "" || c.replay:
		return unusablef("--verify: judges nothing, so there is nothing for --certificate and --replay")
	}
	if c.all || !cmd.Flags().Changed("level") {
		c.ask, c.all = nil, false // whatever the certificate proves
	}
	var err error
	c.proofs, err = readCertificates(c.verify)
	return err
}

// certificate begins the certificate of a history, if one is asked for.
func (s *sitting) certificate(txns []record.Transaction, assume record.Assumptions) *certfile.Certificate {
	if s.b.flags.certificate == "" {
		return nil
	}
	s.phase("digesting the records")
	return certfile.New(txns, judge.Of(txns, assume))
}

// proved adds the proofs of what is satisfied in a history to its certificate; nil without one.
func proved(to *certfile.Certificate, txns []record.Transaction) func(verdict.Result) error {
	if to == nil {
		return nil
	}
	return func(r verdict.Result) error { return to.Add(r, txns) }
}

// verified replays the certificates of the histories that were read.
func (s *sitting) verified(hs []history.History) answer {
	var a answer
	for i := range hs {
		h := &hs[i]
		v := report.Verification{File: h.File, Format: h.Format, DB: h.DB, Transactions: h.Records.Len(),
			Certificate: s.b.flags.verify}
		proofs, err := s.replayed(h)
		if v.Proofs = append([]report.Proof{}, proofs...); err != nil {
			v.Error = &report.Error{Message: err.Error()}
		}
		a.verified = append(a.verified, v)
	}
	return a
}

// replayed is what comes of the proofs of a history, whose memory is free then.
func (s *sitting) replayed(h *history.History) ([]report.Proof, error) {
	flags := s.b.flags
	assume := flags.assume(h.Header)
	expanded, err := judge.Expanded(h.Records, assume)
	if err != nil {
		return nil, err
	}
	txns := expanded.Transactions()
	h.Records = nil
	s.phase("verifying")
	assume = judge.Of(txns, assume)
	want, err := flags.asked(assume.Clock)
	if err != nil {
		return nil, err
	}
	c := chosen(flags.proofs, txns, assume)
	if c == nil {
		return nil, fmt.Errorf("none of the %d certificates in %s is of this history", len(flags.proofs), flags.verify)
	}
	return judge.Verify(c, txns, assume, want), nil
}

// chosen is the certificate that is of these records, if there are several; best one
// that assumes the same.
func chosen(all []*certfile.Certificate, txns []record.Transaction,
	assume record.Assumptions) *certfile.Certificate {
	if len(all) == 1 {
		return all[0]
	}
	records := certfile.Describe(txns)
	same := slices.DeleteFunc(slices.Clone(all), func(c *certfile.Certificate) bool { return c.Records != records })
	for _, c := range same {
		if c.Assumes(assume) {
			return c
		}
	}
	if len(same) == 0 {
		return nil
	}
	return same[0]
}

// ofCertificates turns reports on files that could not be read, or not in time, into
// ones on their certificates.
func (c *checkFlags) ofCertificates(a answer) answer {
	for _, h := range a.histories {
		v := report.Verification{File: h.File, Format: h.Format, DB: h.DB, Transactions: h.Transactions,
			Certificate: c.verify, Error: h.Error, Proofs: []report.Proof{}}
		if h.Error == nil {
			v.Unknown = &report.Unknown{Reason: h.Limit}
		}
		a.verified = append(a.verified, v)
	}
	return a
}

// printVerified writes what was found of certificates.
func (c *checkFlags) printVerified(cmd *cobra.Command, all []report.Verification) error {
	w := cmd.OutOrStdout()
	for i := range all {
		var err error
		if c.out.json() {
			err = printJSON(w, &all[i])
		} else {
			err = report.Text{W: w, Color: isColored(w)}.Verification(&all[i])
		}
		if err != nil {
			return environment(err)
		}
	}
	return nil
}

// certificateHelp is the part of check's help on certificates.
var certificateHelp = strings.TrimSpace(`
Certificates: --certificate writes the orders of transactions that prove each satisfied
level, one certificate per history that could be read, packed if FILE ends in .gz or
.zst. --verify replays them against the histories, which takes neither the engine nor
trust in it: 0 if every proof holds, 1 if one fails, 2 if there is none. The flags that
say what is assumed (--initial, --sessions, --coverage, --clock, --max-skew) have to be
the same for both.
`)
