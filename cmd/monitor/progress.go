package main

import (
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/isowatch/isowatch/alerts/text"
)

// progress shows on a terminal how far some work is, once the work has taken
// longer than a second. All methods work on a nil progress, which shows nothing,
// and may be called from any goroutine.
type progress struct {
	w     io.Writer
	done  atomic.Int64
	total atomic.Int64 // 0: not known
	label atomic.Pointer[string]
	stop  chan struct{}
	gone  sync.WaitGroup
}

// How long work must take before it is shown, and how often it is shown.
const (
	progressAfter = time.Second
	progressEvery = 200 * time.Millisecond
)

// newProgress starts showing progress on w; nil if w is no terminal, or one that can't take back what it
// was sent, or quiet is asked for. Finish must be called.
func newProgress(w io.Writer, quiet bool) *progress {
	if quiet || !isTerminal(w) || isDumb() {
		return nil
	}
	p := &progress{w: w, stop: make(chan struct{})}
	p.label.Store(new(string))
	p.gone.Go(p.show)
	return p
}

// phase says what is being done now; total is 0 where it is not known.
func (p *progress) phase(label string, total int64) {
	if p == nil {
		return
	}
	p.done.Store(0)
	p.total.Store(total)
	label = text.Printable(label) // it names files
	p.label.Store(&label)
}

// add says that n more are done.
func (p *progress) add(n int64) {
	if p != nil {
		p.done.Add(n)
	}
}

// finish takes the display away.
func (p *progress) finish() {
	if p == nil {
		return
	}
	close(p.stop)
	p.gone.Wait()
}

func (p *progress) show() {
	wait := time.NewTimer(progressAfter)
	defer wait.Stop()
	select {
	case <-p.stop:
		return
	case <-wait.C:
	}
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	var bar *progressbar.ProgressBar
	var shown *string
	// The terminal is nobody's input: what can't be shown is not shown.
	wipe := func() {
		if bar != nil {
			_ = bar.Clear()
		}
	}
	defer wipe()
	for {
		if label := p.label.Load(); label != shown {
			wipe()
			shown = label
			total := p.total.Load()
			if total <= 0 {
				total = -1
			}
			bar = progressbar.NewOptions64(total,
				progressbar.OptionSetWriter(p.w),
				progressbar.OptionSetDescription(*label),
				progressbar.OptionSetWidth(30),
				progressbar.OptionClearOnFinish(),
				progressbar.OptionSetElapsedTime(true))
		}
		_ = bar.Set64(p.done.Load())
		select {
		case <-p.stop:
			return
		case <-tick.C:
		}
	}
}
