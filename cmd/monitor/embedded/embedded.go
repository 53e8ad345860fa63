// Package embedded is a monitor in the process that makes the records: of a canary, or of a proxy. What is recorded
// goes to it through a pipe, or to a topic instead, and to a file beside.
package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"
	"github.com/rs/zerolog"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/life"
	"github.com/isowatch/isowatch/alerts/page"
	"github.com/isowatch/isowatch/alerts/present"
	"github.com/isowatch/isowatch/cmd/monitor/app"
	"github.com/isowatch/isowatch/cmd/monitor/report"
	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/wait"
	"github.com/isowatch/isowatch/recorder"
	"github.com/isowatch/isowatch/window/store"
)

// Options of a Monitor.
type Options struct {
	// Config says what is true of the records.
	Config *config.Config
	DB     string // the name of the history
	// Clock is what the times of records come from; nil: time.Now.
	Clock func() time.Time
	// Wait makes who ends a transaction wait where a record would be lost otherwise.
	Wait bool
	// UntilEnd: the records end by themselves, and are then judged to the end.
	UntilEnd bool
	// Canary is what the page shows of a canary; nil: there is none.
	Canary func() page.Canary
	// Proxy is what the metrics show of a proxy; nil: there is none.
	Proxy func() app.Proxy

	Output
}

// Output is where what becomes of the records goes; all who have a Monitor are told it alike.
type Output struct {
	// Until, if not nil, ends the work at the first anomaly for which it is true.
	Until func(alerts.Alert) bool
	// Record, if not nil, makes what gets the records too, one per line after a header; nil: nothing does. Its error is
	// New's.
	Record func() (*os.File, error)
	// Publish, if not nil, gets the records instead of the monitor, which has then only its page and metrics.
	Publish recorder.Sink

	Log      zerolog.Logger
	LogLevel *app.LogLevel
	Version  string
	Out      io.Writer
	Color    bool
	// JSON writes alerts as they are, a line each, and no words around them. Quiet leaves out the words alone.
	JSON, Quiet bool
}

// Monitor is a recorder and what judges its records.
type Monitor struct {
	*recorder.Recorder
	App *app.App

	options Options
	start   time.Time
	file    *intact // of Options.Record; nil: there is none
	stop    context.CancelFunc
	dir     string // to be removed at the end, or empty
	pipe    *io.PipeReader
	in      *io.PipeWriter
	header  []byte
	running sync.WaitGroup
	err     error // of running

	mu     sync.Mutex      // of options.Out and what follows
	alerts int             // of anomalies that this run is the first to find
	drawn  map[string]bool // by name: an anomaly of it
	more   bool            // it was said that there are more than are shown
}

// Outcome is how the work ended.
type Outcome struct {
	// Reports are those of check, where the records ended by themselves and were judged here.
	Reports []report.History
	// Found: an anomaly was found.
	Found bool
	// Unchecked is why nothing was checked any more at the end; empty: something was, or its owner ended it.
	Unchecked string
}

var errEnded = errors.New("the monitor has ended")

// New makes a monitor; Run lets it work. stop is called when it has ended, or the work is to end.
func New(o Options, stop context.CancelFunc) (m *Monitor, err error) {
	m = &Monitor{options: o, start: time.Now(), stop: stop, drawn: map[string]bool{}}
	if o.Config.Store.Path == config.Default().Store.Path {
		tidy()
		if m.dir, err = os.MkdirTemp("", folder); err != nil {
			return nil, fmt.Errorf("make a folder for the monitor: %w", err)
		}
		c := *o.Config
		c.Store.Path = m.dir
		o.Config = &c
	}
	m.header = header(o.Config)
	var beside []recorder.Sink
	if o.Record != nil {
		file, err := o.Record()
		if err == nil && file != nil {
			m.file = &intact{File: file}
			_, err = m.file.Write(m.header)
			beside = append(beside, recorder.Lines(m.file))
		}
		if err != nil {
			return nil, errors.Join(err, os.RemoveAll(m.dir))
		}
	}
	m.pipe, m.in = io.Pipe()
	sink := o.Publish
	if sink == nil {
		sink = recorder.Lines(m.in)
	}
	m.Recorder = recorder.New(sink, recorder.Options{DB: o.DB, Beside: beside, Wait: o.Wait, Clock: o.Clock,
		Failed: func(err error) {
			o.Log.Error().Err(err).Msg("records are lost; how many is counted")
			m.App.RecordsLost(o.DB, err)
		}})
	m.App, err = app.New(app.Options{Config: o.Config, Log: o.Log, LogLevel: o.LogLevel, Version: o.Version,
		UntilEnd: o.UntilEnd, Stdin: m.pipe, Begins: true, Stdout: m, Canary: o.Canary, Proxy: o.Proxy, Found: m.finds})
	if err != nil {
		return nil, errors.Join(err, m.Recorder.Close(context.Background()), os.RemoveAll(m.dir))
	}
	return m, nil
}

// folder is what the names of the folders begin with that are made for a monitor's store.
const folder = "isowatch-monitor-"

// tidy removes those folders that monitors have left which were killed: nobody has the store locked, nor made it just
// now to do so.
func tidy() {
	left, _ := filepath.Glob(filepath.Join(os.TempDir(), folder+"*"))
	for _, dir := range left {
		info, err := os.Stat(dir)
		if err != nil || time.Since(info.ModTime()) < time.Minute {
			continue
		}
		if s, err := store.Open(store.Options{Path: dir, AtOnce: true}); err == nil {
			_ = errors.Join(s.Close(), os.RemoveAll(dir))
		}
	}
}

// header is the first line of what is recorded.
func header(c *config.Config) []byte {
	h := record.Header{Initial: &c.Initial, Coverage: &c.Coverage, MaxSkew: new(int64(c.Window.MaxSkew))}
	if c.Coverage == record.CoveragePartial {
		h.UniqueValues = &c.UniqueValues
	}
	return append(codec.AppendHeader(nil, &h), '\n')
}

// intact is a file that is as it was before the first write that failed, and gets no more then: what it has lacks
// nothing up to there. lines is how many it has.
type intact struct {
	*os.File
	size   int64
	failed error
	lines  atomic.Int64
}

func (w *intact) Write(b []byte) (n int, err error) {
	if w.failed == nil {
		if n, w.failed = w.File.Write(b); w.failed == nil {
			w.size += int64(n)
			w.lines.Add(int64(bytes.Count(b, []byte{'\n'})))
		} else {
			_ = w.Truncate(w.size) // what is no file on a disk can't be
		}
	}
	return n, w.failed
}

// Unwritten is how many records had no room in the file that they are written to beside.
func (m *Monitor) Unwritten() int64 {
	if m.file == nil {
		return 0
	}
	return max(0, m.Recorded()+m.Dropped()+1-m.file.lines.Load()) // 1: the header
}

// Prefix is what names may begin with so that no other run's do, and what those that are told need for that: nothing
// where nobody knows another run.
func (m *Monitor) Prefix() (own, told string) {
	own = strconv.FormatInt(m.start.UnixMilli(), 36) + "/"
	if m.dir == "" || m.options.Publish != nil {
		told = own
	}
	return own, told
}

// Run lets the monitor work until Close, whether ctx ends or not: all that was recorded is judged.
func (m *Monitor) Run(ctx context.Context) {
	m.running.Go(func() {
		m.err = m.App.Run(context.WithoutCancel(ctx))
		m.pipe.CloseWithError(errEnded)
		m.stop()
	})
	if m.options.Publish != nil { // it is all that it reads, and shows that it does
		m.running.Go(func() { _, _ = m.in.Write(m.header) })
	}
}

// partingMax is how long a topic may take to take the last records once its owner has ended the command.
const partingMax = 2 * time.Second

// Close ends it when all that was recorded is judged, or sent; if ctx ends, or has, what a topic does not take soon is
// lost.
func (m *Monitor) Close(ctx context.Context) error {
	closing, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(partingMax, giveUp) })()
	err := errors.Join(m.Recorder.Close(closing), m.in.Close())
	m.running.Wait()
	return errors.Join(err, m.err, os.RemoveAll(m.dir))
}

// Outcome is what came of the records, of the history called file. It is called after Close.
func (m *Monitor) Outcome(file string) *Outcome {
	out := &Outcome{Found: m.alerts > 0}
	if m.options.Publish == nil && m.App.Ended() {
		out.Reports = m.App.Reports()
	}
	for i := range out.Reports {
		out.Reports[i].File = file
	}
	return out
}

// reportEvery is how often lines say how it goes.
const reportEvery = 10 * time.Second

// Report says how it goes, in the lines that it is told, until ctx ends.
func (m *Monitor) Report(ctx context.Context, lines func() []string) {
	for wait.Sleep(ctx, reportEvery) == nil {
		m.Say(lines()...)
	}
}

// Write takes a notice as the monitor writes it: a JSON object and an end of line. The first anomaly of a name is
// drawn. What an earlier run with the same store has found is told, and is none of this one's.
func (m *Monitor) Write(line []byte) (int, error) {
	n, err := life.Parse(line)
	if err != nil {
		return 0, fmt.Errorf("read the monitor's notice: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	o := &m.options
	anomalies := 0
	if n.At != nil && n.At.Time >= m.start.UnixNano() {
		anomalies = len(n.Notification.IDs)
	}
	switch {
	case o.JSON:
		_, err = o.Out.Write(line)
	case anomalies > 0 && !m.drawn[n.Name]:
		m.drawn[n.Name] = true
		fmt.Fprintf(o.Out, "%7.1f s  ANOMALY, told %.1f s after the last of its transactions had ended\n\n",
			time.Since(m.start).Seconds(), time.Since(time.Unix(0, n.At.Time)).Seconds())
		if err = present.Text(o.Out, n.Alert, present.Options{Color: o.Color}); err == nil {
			fmt.Fprintln(o.Out)
		}
	case n.State == alerts.Resolved:
		m.say("over: " + n.Summary)
	default:
		m.say(n.Summary)
	}
	if anomalies > 1 && !m.more && !o.JSON && !o.Quiet {
		m.more = true
		m.say("more anomalies are found than are shown here (alerts.rate); the page lists all, and monitor alerts list " +
			"where --store keeps them")
	}
	return len(line), err
}

// finds takes note of an anomaly before it is told.
func (m *Monitor) finds(a alerts.Alert) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.alerts++
	if o := &m.options; o.Until != nil && o.Until(a) {
		m.stop()
	}
}

// say prints a line with the time since the start; m.mu is held.
func (m *Monitor) say(what string) {
	fmt.Fprintf(m.options.Out, "%7.1f s  %s\n", time.Since(m.start).Seconds(), what)
}

// Say prints lines with the time since the start. With JSON and Quiet it prints nothing.
func (m *Monitor) Say(lines ...string) {
	if m.options.JSON || m.options.Quiet {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, line := range lines {
		m.say(line)
	}
}

// Introduce prints what is watched and where its records go, and further lines. With JSON and Quiet it prints nothing.
func (m *Monitor) Introduce(what string, more ...string) {
	o := &m.options
	if o.JSON || o.Quiet {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	to := "sent on"
	if o.Publish == nil {
		to = "checked at " + strings.Join(verdict.Names(o.Config.Levels), ", ")
	}
	fmt.Fprintf(o.Out, "%s\n  %s", what, to)
	if a := m.App.Addr(); a != "" {
		fmt.Fprintf(o.Out, "; page http://%s/", a)
	}
	fmt.Fprintln(o.Out)
	for _, line := range more {
		fmt.Fprintln(o.Out, line)
	}
	fmt.Fprintln(o.Out)
}

// Result says what has come of the records.
func (m *Monitor) Result() string {
	m.mu.Lock()
	n := m.alerts
	m.mu.Unlock()
	found := "no anomaly"
	if n > 0 { // the end tells how many anomalies they come down to
		found = english.Plural(n, "alert of an anomaly", "alerts of anomalies")
	}
	if m.options.Publish != nil {
		found = fmt.Sprintf("%s records sent, %s lost", humanize.Comma(m.Recorded()), humanize.Comma(m.Dropped()))
	}
	if n := m.Unwritten(); n > 0 {
		found = fmt.Sprintf("%s, and %s records could not be written", found, humanize.Comma(n))
	}
	return found
}
