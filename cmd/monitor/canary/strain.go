package canary

import (
	"fmt"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/isowatch/isowatch/config"
)

// strain is how hard a database finds what it is asked for, since the beginning.
type strain struct{ done, failed, slow int64 }

func (s strain) less(o strain) strain {
	return strain{s.done - o.done, s.failed - o.failed, s.slow - o.slow}
}

// limits tell when a canary has to stop.
type limits struct {
	config.StopIf
	past []moment // the first is StopIf.For ago at most, or the last before that
}

// moment is the strain up to a time.
type moment struct {
	at time.Time
	strain
}

// exceeded takes in the strain up to now, and says what has been too much for as long as it may be; empty: nothing.
// O(1), and memory for one strain for each call in StopIf.For.
func (l *limits) exceeded(s strain, now time.Time) string {
	l.past = append(l.past, moment{now, s})
	for len(l.past) > 1 && now.Sub(l.past[1].at) >= l.For {
		l.past = l.past[1:]
	}
	if now.Sub(l.past[0].at) < l.For {
		return ""
	}
	of := s.less(l.past[0].strain)
	switch {
	case l.Errors > 0 && of.failed*100 > int64(l.Errors)*of.done:
		return fmt.Sprintf("%s of %s transactions and attempts to connect failed in the last %s, which is more than "+
			"canary.stop_if.errors allows (%d in a hundred)",
			humanize.Comma(of.failed), humanize.Comma(of.done), l.For, l.Errors)
	case l.P99 > 0 && of.slow*100 > of.done:
		return fmt.Sprintf("%s of %s transactions took longer than %s in the last %s, which is more than "+
			"canary.stop_if.p99 allows (one in a hundred)",
			humanize.Comma(of.slow), humanize.Comma(of.done), l.P99, l.For)
	}
	return ""
}
