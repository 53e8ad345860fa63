package app

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/isowatch/isowatch/ingest/source/kafka"
)

// TestContact runs a file of a line each for what happens, and when, in seconds:
//
//	SECOND fails [PARTITION]        it can't be read; without a partition: nothing can
//	SECOND reads PARTITION RECORDS  it can be read, and they are, each of 256 bytes, unless reading pauses
//	SECOND passes                   nothing is read, and time passes
//	SECOND stopped SECONDS          time passes, and for so long before the process was stopped
//	SECOND restarts SECONDS         a run begins, so long after the run before read something
//
// The answer is whether the source fails or reading pauses, for how long what is read then waits on for those who write,
// whether the log says so, and how much waits.
func TestContact(t *testing.T) {
	began := time.Unix(1000, 0)
	var c *contact
	datadriven.RunTest(t, "testdata/contact.txt", func(t *testing.T, d *datadriven.TestData) string {
		if d.Cmd == "new" {
			c = &contact{every: time.Second, waitMax: 100, alone: d.HasArg("alone")}
		}
		var b strings.Builder
		for line := range strings.Lines(d.Input) {
			line = strings.TrimSpace(line)
			var second, first, records int
			var what string
			n, err := fmt.Sscan(line, &second, &what, &first, &records)
			if n < 2 {
				d.Fatalf(t, "%q: %v", line, err)
			}
			now := began.Add(time.Duration(second) * time.Second)
			b.WriteString(line)
			if what == "fails" {
				err := fmt.Errorf("wrapped: %w", &kafka.PartitionError{Partition: first, Err: io.ErrUnexpectedEOF})
				if n == 2 {
					err = io.ErrUnexpectedEOF
				}
				c.fails(err)
				b.WriteString("\n")
				continue
			}
			rests := now
			if what == "stopped" {
				rests = now.Add(-time.Duration(first) * time.Second)
			}
			reads := c.rests(rests)
			c.wakes(now)
			switch what {
			case "restarts":
				c.away(now, time.Duration(first)*time.Second)
			case "reads":
				if c.works(first, now); !reads {
					b.WriteString(": pauses\n")
					continue
				}
				if !c.hears(first, now) {
					b.WriteString(": fails in part")
				}
			}
			left, begins := c.takes(now, records, int64(records)*heavyWaiting)
			if left > 0 {
				fmt.Fprintf(&b, ": for %v, %d wait", left, c.waits)
			}
			if begins {
				b.WriteString(", is told")
			}
			b.WriteString("\n")
		}
		return b.String()
	})
}
