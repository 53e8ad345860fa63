package order

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/isowatch/isowatch/ingest/record"
)

// TestFiles runs the files of testdata/files. A record is a line
//
//	SESSION ID [seq=N] [START-END] at=ARRIVAL [in=PARTITION] [unknown|aborted]
//
// and its answer is what became of it. What comes out is named by its ID; refs are the places
// in the input of those that wait. Two of one ID are the same record exactly if their lines
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
				lateness, longest, skew, ahead, every := int64(10), int64(100), int64(0), int64(0), int64(0)
				d.MaybeScanArgs(t, "lateness", &lateness)
				d.MaybeScanArgs(t, "max-transaction", &longest)
				d.MaybeScanArgs(t, "remembered", &opt.MaxRemembered)
				d.MaybeScanArgs(t, "sessions", &opt.MaxSessions)
				d.MaybeScanArgs(t, "buffered", &opt.MaxBuffered)
				d.MaybeScanArgs(t, "skew", &skew)
				d.MaybeScanArgs(t, "ahead", &ahead)
				d.MaybeScanArgs(t, "every", &every)
				opt.Every, opt.Prompt = time.Duration(every), d.HasArg("prompt")
				opt.MaxSkew, opt.MaxAhead = time.Duration(skew), time.Duration(ahead)
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
					if r.Tick {
						fmt.Fprintf(&b, "tick at %d\n", r.TickAt)
					}
					b.WriteString(r.Txn.ID)
					for _, x := range []struct {
						is  bool
						say string
					}{{r.Late, "late"}, {r.Passed, "passed"}, {r.Detached, "detached"}, {r.Forgotten, "of a forgotten session"}, {r.TimesDropped, "times dropped"}, {r.Contradicts, "contradicts its session"}, {r.Overlong, "overlong"}} {
						if x.is {
							b.WriteString(", " + x.say)
						}
					}
					if r.Gap != nil {
						fmt.Fprintf(&b, ", behind a gap from %d to %d", r.Gap.From, r.Gap.To)
						if r.Gap.Sampled {
							b.WriteString(" of the sample")
						}
					}
					b.WriteString("\n")
				}
			case "now":
				o.Advance(number(t, d.CmdArgs[0].Key))
			case "caught-up":
				o.CaughtUp(int(number(t, d.CmdArgs[0].Key)), number(t, d.CmdArgs[1].Key))
			case "reading":
				o.Reading(number(t, d.CmdArgs[0].Key))
			case "tick":
				if at, due := o.Tick(); due {
					fmt.Fprintf(&b, "tick at %d\n", at)
				}
			case "sample":
				o.Sample(uint8(number(t, d.CmdArgs[0].Key)))
			case "flush":
				o.Flush()
			case "watermark":
				o.settle()
				fmt.Fprintf(&b, "%d\n", o.Watermark())
			case "mark":
				o.settle()
				fmt.Fprintf(&b, "%d\n", o.Mark())
			case "refs":
				var refs []uint64
				o.Refs(func(ref uint64) { refs = append(refs, ref) })
				slices.Sort(refs)
				fmt.Fprintf(&b, "%d\n", refs)
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
		name, value, ok := strings.Cut(word, "=")
		switch start, end, _ := strings.Cut(word, "-"); {
		case word == "unknown":
			x.Status = record.Unknown
		case word == "aborted":
			x.Status = record.Aborted
		case !ok:
			x.Start, x.End, x.HasTimes = number(t, start), number(t, end), true
		case name == "seq":
			x.Seq, x.HasSeq = number(t, value), true
		case name == "at":
			arrival = number(t, value)
		case name == "in":
			partition = int(number(t, value))
		default:
			t.Fatalf("%s: what is %s", line, name)
		}
	}
	return x, partition, arrival
}

func number(t *testing.T, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
