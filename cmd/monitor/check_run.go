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
	"github.com/isowatch/isowatch/cmd/monitor/judge"
	"github.com/isowatch/isowatch/cmd/monitor/limit"
	"github.com/isowatch/isowatch/cmd/monitor/report"
	"github.com/isowatch/isowatch/incremental/certificate"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/history"
	"github.com/isowatch/isowatch/ingest/record"
)

// gcPercent and gcRoom let the heap grow by so much more than what lives, in percent and bytes, before it is
// collected. A history stays in memory from its decoding to the verdict, so that collecting often finds little.
const (
	gcPercent = 50
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
		defer proofs.discard()
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
			if err := certificate.Write(proofs, p); err != nil {
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
// in order. Work answers once, and may go on after that: its place is free when it
// returns, and nobody waits for it in the end.
func sideBySide[T any](ctx context.Context, n, jobs int, work func(ctx context.Context, i int, answer func(T)),
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
				work(ctx, i, func(t T) { c <- t })
				return nil
			})
		}
	}()
	for range n {
		var c chan T
		select {
		case c = <-queue:
		case <-ctx.Done():
			return environment(fmt.Errorf("stopped: %w", context.Cause(ctx)))
		}
		select {
		case t := <-c:
			if err := take(t); err != nil {
				return err
			}
		case <-ctx.Done():
			return environment(fmt.Errorf("stopped: %w", context.Cause(ctx)))
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
	proofs    []*certificate.Certificate // of the histories that were judged, if asked for
	verified  []report.Verification      // instead of being judged
	err       error
}

// add adds a history and, if there is one, its certificate.
func (a *answer) add(h report.History, proofs *certificate.Certificate) {
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
func (b *batch) judge(ctx context.Context, i int, give func(answer)) {
	if !b.beside(ctx, b.files[i], give) {
		b.turn.Lock()
		defer b.turn.Unlock()
		debug.FreeOSMemory()
		s := b.sit(ctx, b.files[i])
		give(s.answer())
		<-s.gone
	}
}

// beside judges a file while others are judged, and gives the answer unless it is to
// be tried again alone. It returns when the work has ended.
func (b *batch) beside(ctx context.Context, file string, give func(answer)) bool {
	b.turn.RLock()
	defer b.turn.RUnlock()
	s := b.sit(ctx, file)
	a := s.answer()
	again := a.starved() && !s.run.Alone() && file != stdin // which can be read once
	if !again {
		give(a)
	}
	<-s.gone
	return !again
}

// sitting is the work on one file. It goes on in a goroutine of its own, so that it
// can be left alone if it does not end when it should.
type sitting struct {
	b    *batch
	ctx  context.Context //nolint:containedctx // it lives as long as one call
	file string
	run  *limit.Run
	done chan answer   // gets the answer
	gone chan struct{} // closed when the work has ended

	mu    sync.Mutex
	known []told // of each history in the file
	left  bool   // the answer was given: nothing is told any more
}

// told is what is known of one history so far.
type told struct {
	report report.History
	levels []verdict.Level          // that are asked
	proofs *certificate.Certificate // if asked for
}

func (b *batch) sit(ctx context.Context, file string) *sitting {
	return b.begin(ctx, file, (*sitting).work)
}

// begin starts a sitting that does that work.
func (b *batch) begin(ctx context.Context, file string, work func(*sitting) answer) *sitting {
	s := &sitting{b: b, ctx: ctx, file: file, run: b.guard.Begin(b.flags.timeout), done: make(chan answer, 1),
		gone: make(chan struct{})}
	go func() {
		defer close(s.gone)
		defer s.run.End()
		defer context.AfterFunc(ctx, func() { s.run.Stop(verdict.Timeout) })() // nobody sees the reason
		s.done <- work(s)
		if s.run.Stopped() == verdict.Memory {
			debug.FreeOSMemory() // for those that come next
		}
	}()
	return s
}

// answer waits for the work, but not longer than the limits allow.
func (s *sitting) answer() answer {
	select {
	case a := <-s.done:
		return a
	case <-s.ctx.Done():
		return answer{err: environment(fmt.Errorf("stopped: %w", context.Cause(s.ctx)))}
	case <-s.run.Expired():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = true
	select {
	case a := <-s.done: // at the last moment
		return a
	default:
	}
	if len(s.known) == 0 {
		return answer{histories: []report.History{s.unread(s.run.Stopped())}}
	}
	var a answer
	for _, k := range s.known {
		judge.GiveUp(&k.report, k.levels, s.run.Stopped())
		a.add(k.report, k.proofs)
	}
	return a
}

// tell notes what is known of the i-th history.
func (s *sitting) tell(i int, h report.History) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.left {
		s.known[i].report = h
	}
}

// tellProofs notes the proofs of the i-th history by now.
func (s *sitting) tellProofs(i int, c certificate.Certificate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.left {
		s.known[i].proofs = &c
	}
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
	hs, err := s.b.open(s.file, s.b.flags.format, s.run.Err, bar)
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

// unread reports a file that was not read to its end.
func (s *sitting) unread(why verdict.Reason) report.History {
	h := report.History{File: s.file, DB: record.DefaultDB, Limit: why.String(), All: s.b.flags.all}
	levels, err := s.b.flags.asked(s.b.flags.assume(record.Header{}).Clock)
	if err != nil {
		return unreadable(s.file, err)
	}
	judge.GiveUp(&h, levels, why)
	for i := range h.Results {
		h.Results[i].Notes = []string{"the history was not read to its end"}
	}
	return h
}

// judge judges the histories that were read.
func (s *sitting) judge(hs []history.History, decoded time.Duration) answer {
	known := make([]told, len(hs))
	assume := make([]judge.Assumptions, len(hs))
	for i := range hs {
		k := &known[i]
		k.report = report.History{File: hs[i].File, Format: hs[i].Format, DB: hs[i].DB, Transactions: hs[i].Records.Len(),
			Strongest: []string{}, Results: []report.Result{}, All: s.b.flags.all}
		assume[i] = s.b.flags.assume(hs[i].Header)
		var err error
		if k.levels, err = s.b.flags.asked(assume[i].Clock); err != nil {
			k.report.Error = &report.Error{Message: err.Error()}
		}
	}
	s.mu.Lock()
	s.known = slices.Clone(known)
	s.mu.Unlock()
	a := answer{}
	for i := range hs {
		h := known[i].report
		var proofs *certificate.Certificate
		if h.Error == nil {
			q := judge.Question{Records: hs[i].Records, Assume: assume[i], Levels: known[i].levels}
			var txns []record.Transaction // only proofs are replayed and written from these
			if s.b.flags.replay || s.b.flags.certificate != "" {
				expanded, err := judge.Expanded(hs[i].Records, assume[i])
				if err != nil {
					h.Error = &report.Error{Message: "no proof can be replayed or written: " + err.Error()}
					a.add(h, nil)
					continue
				}
				txns = expanded.Transactions()
			}
			proofs = s.certificate(i, txns, assume[i])
			q.DB, q.Txns, q.Events, q.All, q.Decoded = hs[i].DB, txns, hs[i].Events, s.b.flags.all, decoded
			q.Named = s.b.several() && s.b.flags.out.format == "text"
			q.AnomaliesMax, q.Conflicts, q.Replay, q.Proved = s.b.flags.anomalies, s.b.flags.conflicts, s.b.flags.replay,
				s.proved(i, proofs, txns)
			q.Stop, q.Until, q.Phase, q.Known = s.run.Stopped, s.run.Until(), s.phase, func(h report.History) { s.tell(i, h) }
			if err := judge.Check(q, &h); err != nil {
				return answer{err: environment(fmt.Errorf("%s: %w", s.file, err))}
			}
		}
		s.tell(i, h)
		a.add(h, proofs)
		hs[i] = history.History{} // its memory is free for the next
	}
	return a
}

// assume is what is assumed of a history with that header.
func (c *checkFlags) assume(h record.Header) judge.Assumptions {
	return judge.Assumptions{}.Override(h).Override(c.header)
}
