package main

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/isowatch/isowatch/alerts/text"
	"github.com/isowatch/isowatch/cmd/monitor/certfile"
	"github.com/isowatch/isowatch/cmd/monitor/judge"
	"github.com/isowatch/isowatch/cmd/monitor/limit"
	"github.com/isowatch/isowatch/cmd/monitor/report"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/history"
	"github.com/isowatch/isowatch/ingest/record"
)

// gcPercent and gcRoom let the heap grow by so much more than what lives, in percent and bytes, before it is
// collected. A history stays in memory from its decoding to the verdict, so that collecting often finds little.
const (
	gcPercent = 25
	gcRoom    = 32 << 20
)

// run judges every path and ends with the status of all together.
func (c *checkFlags) run(cmd *cobra.Command, paths []string) error {
	defer limit.Room(gcPercent, gcRoom)()
	began := time.Now()
	files, err := c.files(cmd, paths)
	if err != nil {
		return err
	}
	b := &batch{flags: c, files: files, guard: limit.New(cmp.Or(uint64(c.memory), limit.Most())), open: open,
		bar: newProgress(cmd.ErrOrStderr(), c.out.quiet)}
	defer b.guard.Close()
	defer b.bar.finish()
	if b.several() {
		b.bar.phase("judging histories", int64(len(files)))
	}
	var proofs *packedFile
	if c.certificate != "" {
		if proofs, err = createFile(c.certificate); err != nil {
			return environment(fmt.Errorf("--certificate: %w", err))
		}
		defer func() { _ = proofs.discard() }() // nothing that is wanted is left in it
	}
	var all report.Tally
	var drawing report.Drawing
	status := exitOK
	err = sideBySide(cmd.Context(), len(files), c.jobs, b.judge, func(a answer) error {
		if a.err != nil {
			return a.err
		}
		if b.several() {
			b.bar.add(1)
		}
		if c.verify != "" {
			a = c.ofCertificates(a)
			for i := range a.verified {
				status = report.Worse(status, a.verified[i].Exit())
			}
			return c.printVerified(cmd, a.verified)
		}
		for i := range a.histories {
			all.Add(&a.histories[i])
			if c.out.drawn() {
				drawing.Add(&a.histories[i])
			}
		}
		for _, p := range a.proofs {
			if err := certfile.Write(proofs, p); err != nil {
				return environment(fmt.Errorf("%s: %w", c.certificate, err))
			}
		}
		return c.print(cmd, a.histories, b.several())
	})
	if err != nil {
		return err
	}
	if proofs != nil {
		if err := proofs.finish(); err != nil {
			return environment(fmt.Errorf("%s: %w", c.certificate, err))
		}
	}
	if c.out.drawn() {
		if err := written(drawing.Write(cmd.OutOrStdout(), c.out.format)); err != nil {
			return err
		}
	}
	if all.Histories > 1 && c.out.format == "text" {
		all.Took = time.Since(began)
		if err := (report.Text{W: cmd.OutOrStdout(), Color: isColored(cmd.OutOrStdout())}).Summary(&all); err != nil {
			return environment(err)
		}
	}
	return silent(report.Worse(status, all.Exit()))
}

// print writes the reports of one file: each on a line if there are several files.
func (c *checkFlags) print(cmd *cobra.Command, hs []report.History, several bool) error {
	w := cmd.OutOrStdout()
	out := report.Text{W: w, Color: isColored(w)}
	for i := range hs {
		var err error
		switch {
		case c.out.json():
			err = printJSON(w, &hs[i])
		case c.out.drawn(): // when all are known
		case several:
			err = out.Line(&hs[i])
		default:
			err = out.History(&hs[i])
		}
		if err != nil {
			return environment(err)
		}
		// Scripts read the text; a person who looks at standard error sees why.
		if e := hs[i].Error; e != nil && c.out.format != "text" && !c.out.quiet {
			at := hs[i].File
			if e.Line > 0 {
				at += fmt.Sprintf(":%d", e.Line)
			}
			field := ""
			if e.Field != "" {
				field = "field " + e.Field + ": "
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "monitor: %s\n", text.Printable(at+": "+field+e.Message))
		}
	}
	return nil
}

// aheadMax is how many answers per job may wait for an earlier one.
const aheadMax = 16

// sideBySide has jobs goroutines work on 0 to n-1 and gives what they answer to take,
// in order. When ctx ends nobody waits for what is at work.
func sideBySide[T any](ctx context.Context, n, jobs int, work func(ctx context.Context, i int) T,
	take func(T) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	queue := make(chan chan T, aheadMax*jobs)
	go func() {
		var g errgroup.Group
		g.SetLimit(jobs)
		for i := range n {
			c := make(chan T, 1)
			select {
			case queue <- c:
			case <-ctx.Done():
				return
			}
			g.Go(func() error {
				c <- work(ctx, i)
				return nil
			})
		}
	}()
	for range n {
		var t T
		select {
		case c := <-queue:
			select {
			case t = <-c:
			case <-ctx.Done():
			}
		case <-ctx.Done():
		}
		if ctx.Err() != nil { // what was answered then is not all that there is
			return environment(fmt.Errorf("stopped: %w", context.Cause(ctx)))
		}
		if err := take(t); err != nil {
			return err
		}
	}
	return nil
}

// batch is one run of check.
type batch struct {
	flags *checkFlags
	files []string
	guard *limit.Guard
	bar   *progress
	open  func(file, format string, stop func() error, bar *progress) ([]history.History, error)
	// turn is held for reading by what runs beside others, and for writing by
	// what needs all the memory there is.
	turn sync.RWMutex
}

// several: there are several files, each of which gets a line.
func (b *batch) several() bool { return len(b.files) > 1 }

// answer is what one file comes to. An error is the monitor's own or the
// environment's.
type answer struct {
	histories []report.History
	proofs    []*certfile.Certificate // of the histories that were judged, if asked for
	verified  []report.Verification   // instead of being judged
	err       error
}

// add adds a history and, if there is one, its certificate.
func (a *answer) add(h report.History, proofs *certfile.Certificate) {
	a.histories = append(a.histories, h)
	if proofs != nil {
		a.proofs = append(a.proofs, proofs)
	}
}

// starved tells whether anything is undecided for lack of memory.
func (a answer) starved() bool {
	return slices.ContainsFunc(a.histories, func(h report.History) bool {
		return slices.ContainsFunc(h.Results, func(r report.Result) bool {
			return r.Unknown != nil && r.Unknown.Reason == verdict.Memory.String()
		})
	})
}

// judge judges the histories in one file. What had too little memory beside others
// is judged again by itself.
func (b *batch) judge(ctx context.Context, i int) answer {
	b.turn.RLock()
	a, alone := b.sit(ctx, b.files[i])
	b.turn.RUnlock()
	if a.starved() && !alone && b.files[i] != stdin { // which can be read once
		b.turn.Lock()
		defer b.turn.Unlock()
		debug.FreeOSMemory()
		a, _ = b.sit(ctx, b.files[i])
	}
	return a
}

// sitting is the work on one file. All of it asks often whether it is to stop.
type sitting struct {
	b    *batch
	file string
	run  *limit.Run
}

// sit works on a file, and tells whether no other was worked on meanwhile.
func (b *batch) sit(ctx context.Context, file string) (a answer, alone bool) {
	s := &sitting{b: b, file: file, run: b.guard.Begin(b.flags.timeout)}
	defer s.run.End()
	defer context.AfterFunc(ctx, func() { s.run.Stop(verdict.Timeout) })() // nobody sees the reason
	a = s.work()
	if s.run.Stopped() == verdict.Memory {
		debug.FreeOSMemory() // for those that come next
	}
	return a, s.run.Alone()
}

// phase says what is being done, if only one file is.
func (s *sitting) phase(what string) {
	if !s.b.several() {
		s.b.bar.phase(what, 0)
	}
}

// work reads the file and judges what is in it.
func (s *sitting) work() answer {
	bar := s.b.bar
	if s.b.several() {
		bar = nil
	}
	began := time.Now()
	hs, err := s.read(bar)
	if stopped(err) {
		return answer{histories: []report.History{s.unread(s.run.Stopped())}}
	}
	if err != nil {
		return answer{histories: []report.History{unreadable(s.file, err)}}
	}
	if s.b.flags.verify != "" {
		return s.verified(hs)
	}
	return s.judge(hs, time.Since(began))
}

// readGrace is how long reading is waited for that was stopped.
const readGrace = 50 * time.Millisecond

// read reads the file, and leaves it alone if that does not end when it should: a pipe into which nobody writes.
func (s *sitting) read(bar *progress) ([]history.History, error) {
	var hs []history.History
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		hs, err = s.b.open(s.file, s.b.flags.format, s.run.Err, bar)
	}()
	select {
	case <-done:
		return hs, err
	case <-s.run.Done():
	}
	select {
	case <-done:
		return hs, err
	case <-time.After(readGrace):
		return nil, s.run.Err()
	}
}

// unread reports a file that was not read to its end.
func (s *sitting) unread(why verdict.Reason) report.History {
	h := report.History{File: s.file, DB: record.DefaultDB, Limit: why.String(), All: s.b.flags.all}
	levels, err := s.b.flags.asked(s.b.flags.assume(record.Header{}).Clock)
	if err != nil {
		return unreadable(s.file, err)
	}
	judge.Unread(&h, levels, why)
	return h
}

// judge judges the histories that were read.
func (s *sitting) judge(hs []history.History, decoded time.Duration) answer {
	a, flags := answer{}, s.b.flags
	for i := range hs {
		h := report.History{File: hs[i].File, Format: hs[i].Format, DB: hs[i].DB, Transactions: hs[i].Records.Len(),
			Strongest: []string{}, Results: []report.Result{}, All: flags.all}
		assume := flags.assume(hs[i].Header)
		levels, err := flags.asked(assume.Clock)
		if err != nil {
			h.Error = &report.Error{Message: err.Error()}
			a.add(h, nil)
			continue
		}
		var txns []record.Transaction // only proofs are replayed and written from these
		if flags.replay || flags.certificate != "" {
			expanded, err := judge.Expanded(hs[i].Records, assume)
			if err != nil {
				h.Error = &report.Error{Message: "no proof can be replayed or written: " + err.Error()}
				a.add(h, nil)
				continue
			}
			txns = expanded.Transactions()
		}
		proofs := s.certificate(txns, assume)
		q := judge.Question{Records: hs[i].Records, Assume: assume, Levels: levels, DB: hs[i].DB, Txns: txns,
			Events: hs[i].Events, All: flags.all, Decoded: decoded, Named: s.b.several() && flags.out.format == "text",
			AnomaliesMax: flags.anomalies, Conflicts: flags.conflicts, Replay: flags.replay, Proved: proved(proofs, txns),
			Stop: s.run.Stopped, Until: s.run.Until(), Phase: s.phase}
		if err := judge.Check(q, &h); err != nil {
			return answer{err: environment(fmt.Errorf("%s: %w", s.file, err))}
		}
		a.add(h, proofs)
		hs[i] = history.History{} // its memory is free for the next
	}
	return a
}

// assume is what is assumed of a history with that header.
func (c *checkFlags) assume(h record.Header) record.Assumptions {
	return record.Assumptions{}.Override(h).Override(c.header)
}
