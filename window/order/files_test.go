package order

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/isowatch/isowatch/ingest/record"
)

// TestFiles runs the files of testdata/files. A record is a line
//
//	SESSION ID [seq=N] [START-END] at=ARRIVAL [in=PARTITION]
//
// and its answer is what became of it. Two of one ID are the same record exactly if their lines
// say the same but for the arrival and the partition.
func TestFiles(t *testing.T) {
	datadriven.Walk(t, "testdata/files", func(t *testing.T, path string) {
		var o *rig
		var opt Options
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var b strings.Builder
			switch d.Cmd {
			case "new":
				opt = Options{Partitions: []int{0}}
				lateness, longest := int64(10), int64(100)
				d.MaybeScanArgs(t, "lateness", &lateness)
				d.MaybeScanArgs(t, "max-transaction", &longest)
				d.MaybeScanArgs(t, "remembered", &opt.MaxRemembered)
				d.MaybeScanArgs(t, "sessions", &opt.MaxSessions)
				if d.HasArg("partitions") {
					opt.Partitions = []int{0, 1}
				}
				opt.Lateness, opt.MaxTransaction = time.Duration(lateness), time.Duration(longest)
				o = newRig(opt)
			case "add":
				for line := range strings.Lines(d.Input) {
					x, p, arrival := parse(t, line)
					fmt.Fprintf(&b, "%s %v\n", x.ID, o.Add(p, x, arrival))
				}
			case "next":
				for _, r := range drain(o) {
					fmt.Fprintf(&b, "%s", r.Txn.ID)
					if r.Detached {
						b.WriteString(" detached")
					}
					if r.TimesDropped {
						b.WriteString(" times dropped")
					}
					if r.Gap != nil {
						fmt.Fprintf(&b, " behind a gap from %d to %d", r.Gap.From, r.Gap.To)
					}
					b.WriteString("\n")
				}
			case "counts":
				fmt.Fprintf(&b, "%+v\n", o.Counts())
			default:
				t.Fatalf("%s: no such command", d.Pos)
			}
			return b.String()
		})
	})
}

func parse(t *testing.T, line string) (x *record.Transaction, partition int, arrival int64) {
	words := strings.Fields(line)
	x = &record.Transaction{DB: "d", Session: words[0], ID: words[1]}
	if x.ID == "-" {
		x.ID = ""
	}
	for _, word := range words[2:] {
		n := func(text string) int64 {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			return n
		}
		name, value, ok := strings.Cut(word, "=")
		switch start, end, _ := strings.Cut(word, "-"); {
		case !ok:
			x.Start, x.End, x.HasTimes = n(start), n(end), true
		case name == "seq":
			x.Seq, x.HasSeq = n(value), true
		case name == "at":
			arrival = n(value)
		case name == "in":
			partition = int(n(value))
		default:
			t.Fatalf("%s: what is %s", line, name)
		}
	}
	return x, partition, arrival
}
