package app

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/isowatch/isowatch/ingest/decode"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/record/packed"
	"github.com/isowatch/isowatch/ingest/source/kafka"
)

// TestContact runs a file of a line each for what happens, and when, in seconds:
//
//	SECOND fails [PARTITION]                    it can't be read; without a partition: nothing can
//	SECOND works PARTITION                      it can
//	SECOND reads PARTITION [RECORDS LAG ASKED]  records are read, one if it does not say, with so many behind them when the
//	                                            partition was asked for them, just now if it does not say
//	SECOND opens PARTITION RECORDS LAG ASKED    the same, and no more can be read, as what lies behind is not committed
//	SECOND passes                               nothing is read, and time passes
//	SECOND stopped SECONDS                      time passes, and for so long before the process was stopped
//	SECOND restarts SECONDS                     a run begins that reads on in partitions 0 and 1, since when they may have been
//	                                            out of reach
//	SECOND since                                since when a partition may have been out of reach if nothing more is read
//
// The answer is whether the source fails, whether what is read waits for those who write, for how long they are waited for,
// and whether the log says so.
func TestContact(t *testing.T) {
	began := time.Unix(1000, 0)
	var c *contact
	offsets := map[int]int64{}
	datadriven.RunTest(t, "testdata/contact.txt", func(t *testing.T, d *datadriven.TestData) string {
		if d.Cmd == "new" {
			c = &contact{every: time.Second, alone: d.HasArg("alone")}
			clear(offsets)
		}
		var b strings.Builder
		for line := range strings.Lines(d.Input) {
			line = strings.TrimSpace(line)
			var second, first, asked int
			var what string
			records, lag := 1, int64(0)
			n, err := fmt.Sscan(line, &second, &what, &first, &records, &lag, &asked)
			if n < 2 {
				d.Fatalf(t, "%q: %v", line, err)
			}
			at := func(second int) time.Time { return began.Add(time.Duration(second) * time.Second) }
			now := at(second)
			b.WriteString(line)
			switch what {
			case "fails":
				err := fmt.Errorf("wrapped: %w", &kafka.PartitionError{Partition: first, Err: io.ErrUnexpectedEOF})
				if n == 2 {
					err = io.ErrUnexpectedEOF
				}
				c.fails(err, now)
				b.WriteString("\n")
				continue
			case "works":
				c.works(first, now)
				b.WriteString("\n")
				continue
			}
			c.rests(now)
			if what == "stopped" {
				c.rests(now.Add(-time.Duration(first) * time.Second))
			}
			c.wakes(now)
			var batch *decode.Batch
			switch what {
			case "restarts":
				c.restarts(now, now.Add(-time.Duration(first)*time.Second), 2)
			case "since":
				fmt.Fprintf(&b, ": %.0f\n", c.since().Sub(began).Seconds())
				continue
			case "reads", "opens":
				var chunk packed.Chunk
				for range records {
					chunk.Add(&record.Transaction{})
				}
				offsets[first] += int64(records)
				batch = &decode.Batch{Partition: first, Next: offsets[first], Lag: lag, CaughtUp: lag == 0 || what == "opens", Asked: now, Block: chunk.Seal()}
				if n == 6 {
					batch.Asked = at(asked)
				}
				if !c.hears(batch, now) {
					b.WriteString(": fails in part")
				}
			}
			left, returned, begins := c.takes(now, batch)
			switch {
			case left > 0:
				fmt.Fprintf(&b, ": for %v", left)
			case returned:
				b.WriteString(": for what was there")
			}
			if begins {
				b.WriteString(", is told")
			}
			b.WriteString("\n")
		}
		return b.String()
	})
}
