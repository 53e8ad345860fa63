package history

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/isowatch/isowatch/ingest/reject"
)

// Logs of Tencent's 3TS: what is prepared, and then each statement, indented by 40 columns for every session before
// its own, so that what comes of one that waited can be told from others:
//
//	Q2-T1 execute sql: 'SELECT * FROM t1 WHERE k=0;'
//	   current_result:
//	     (0,0)
//	  *(1) expected_result:
//	     (0,0)
//
//	Q2 finished at: 2022-4-1 17:40:44:256:724
//	                                        Q3-T2 execute opt: 'BEGIN;'
//
// The results expected and the verdict are passed over; in the serial runs of which they are, who begins when all
// others are over comes last, and so it is here. The place in the file is the clock, not the times: lines are
// printed when statements are sent, and when they are over. A statement that failed ends its transaction, aborted.

const threeTSFormat = "3ts-log"

var (
	threeTSExecute = regexp.MustCompile(`^\s*Q(\d+)-T(\d+) execute (?:sql|opt): '(.*)'`)
	threeTSOver    = regexp.MustCompile(`^\s*Q(\d+) (finished|failed) at:`)
	threeTSPass    = regexp.MustCompile(`^\s*(\*?\(\d+\) expected_result:|Q\d+ failed reason:|ERROR:|` +
		`The current result is consistent with|$)`)
	threeTSRow  = regexp.MustCompile(`\(([^()]*)\)`)
	threeTSRuns = regexp.MustCompile(`^-+.* test run-+`)
)

var looksThreeTS = begins(`(?m)^\s*Q\d+-T\d+ execute (?:sql|opt): '`)

// indentMax is the indentation of a session.
const indentMax = 40

func readThreeTS(in *input) ([]History, error) {
	l := threeTS{open: map[int]*step{}, numbers: map[int]string{}}
	if err := in.rawLines(in.opt.RecordMax, l.line); err != nil {
		return nil, err
	}
	for _, s := range l.open {
		s.end = l.now
	}
	return one(readTranscript(in, threeTSFormat, l.steps, nil, true))
}

type threeTS struct {
	steps    []*step
	open     map[int]*step  // of each session, by its indentation
	numbers  map[int]string // theirs
	rows     *step          // of which the rows follow
	skips    bool           // the rows that follow are passed over
	isRun    bool           // what is prepared is over
	isJudged bool           // the log's verdict was met; nothing behind it counts
	now      int64
}

func (l *threeTS) line(line []byte, number, _ int64) *reject.Error {
	text := strings.TrimRight(string(line), " \t\r")
	indent := (len(line) - len(bytes.TrimLeft(line, " "))) / indentMax
	bare := strings.TrimSpace(text)
	l.isJudged = l.isJudged || strings.HasPrefix(bare, "Test Result:")
	if l.isJudged {
		return nil
	}
	execute, over := threeTSExecute.FindStringSubmatch(text), threeTSOver.FindStringSubmatch(text)
	switch {
	case execute != nil && !l.isRun:
		l.steps = append(l.steps, &step{text: execute[3], line: number, done: true})
	case execute != nil:
		if l.open[indent] != nil {
			return reject.New(reject.BadStructure, "session %d sends another statement, and Q%s is not over", indent+1,
				l.numbers[indent])
		}
		l.now++
		s := &step{session: "T" + execute[2], text: execute[3], line: number, from: l.now, end: l.now}
		l.steps = append(l.steps, s)
		l.open[indent], l.numbers[indent], l.rows, l.skips = s, execute[1], nil, false
	case threeTSRuns.MatchString(bare):
		l.isRun = true
	case !l.isRun:
	case over != nil:
		s := l.open[indent]
		if s == nil || l.numbers[indent] != over[1] {
			return reject.New(reject.BadStructure, "Q%s is over, and session %d did not send it", over[1], indent+1)
		}
		l.now++
		s.end, s.done, s.failed = l.now, over[2] == "finished", over[2] == "failed"
		delete(l.open, indent)
		l.rows, l.skips = nil, false
	case strings.HasPrefix(bare, "current_result:"):
		if l.rows = l.open[indent]; l.rows == nil || l.rows.told != nil {
			return reject.New(reject.BadStructure, "session %d has a result, and no statement that has none", indent+1)
		}
		l.rows.told, l.skips = &told{whole: true}, false
		return l.result(strings.TrimPrefix(bare, "current_result:"))
	case threeTSPass.MatchString(text):
		l.rows, l.skips = nil, bare != "" || l.skips
	case l.rows != nil:
		return l.result(bare)
	case !l.skips:
		return reject.New(reject.ForeignBytes,
			"want a statement, Q1-T1 execute sql: '…', what came of it, or its end, not %.60q", bare)
	}
	return nil
}

// result takes rows.
func (l *threeTS) result(text string) *reject.Error {
	for _, row := range threeTSRow.FindAllStringSubmatch(text, -1) {
		l.rows.told.rows = append(l.rows.told.rows, strings.Split(row[1], ","))
	}
	if rest := strings.TrimSpace(threeTSRow.ReplaceAllString(text, "")); rest != "" && rest != "null" {
		return reject.In("current_result", reject.BadStructure, "want rows, (0,1) (1,1), or null, not %.60q", text)
	}
	return nil
}
