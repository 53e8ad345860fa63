package history

import (
	"regexp"
	"slices"
	"strings"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/reject"
)

// Hermitage's examples: lines of SQL, each with the session behind it and a remark on what came of it,
//
//	update test set value = 101 where id = 1; -- T1
//	select * from test; -- T2. Still shows 1 => 10
//
// A line is executed where it stands. One that BLOCKS is over at the latest where its session goes on; what came of it
// may stand in the remark of another ("This unblocks T2, which now shows 1 => 10"). "Shows" names some rows, "returns"
// all of them. Rows are a key and a value; "nothing" is no row. Who prints an error has failed. A remark that is not
// understood tells nothing: behind a commit, its outcome is unknown. Lines of "either" are of no transaction.
//
// Without lines that create it, a table has the columns id and value, and the rows (1, 10) and (2, 20).

const hermitageFormat = "hermitage-sql"

var (
	hermitageWho   = regexp.MustCompile(`(?i)^\s*(T\d+|either)\b(.*)$`)
	remarkOther    = regexp.MustCompile(`\bT\d+\b`)
	remarkRow      = regexp.MustCompile(`([\w.+-]+)\s*=>\s*([\w.+-]*\w)`)
	remarkReturns  = regexp.MustCompile(`(?i)\breturns?\b`)
	remarkInserted = regexp.MustCompile(`(?i)\b(returns?|shows?|prints?( out)?) the newly inserted row\b`)
	remarkNothing  = regexp.MustCompile(`(?i)\b(returns?|shows?|prints?( out)?|deletes?|updates?) (nothing|no rows?)\b|` +
		`\b(doesn't|does not) (delete|update) any`)
	remarkFails = regexp.MustCompile(`(?i)\berrors?\b|\bora-\d+|\baborts?\b|\baborted\b|\bfail(s|ed|ure)?\b|\bdeadlock|` +
		`\brolls? back\b|\brolled back\b`)
	remarkNegated = regexp.MustCompile(`(?i)(\bno\b|\bnot\b|n't\b|\bwithout\b|\bnever\b)\s+(\w+\s+){0,2}` +
		`(errors?|abort|fail|deadlock|roll)`)
	remarkBlocks = regexp.MustCompile(`(?i)\bblocks\b`)
	remarkEmpty  = regexp.MustCompile(`(?i)^[\s.,;:]*(this |which |and |now )*(unblocks|causes|succeeds)?[\s.,;:]*$`)
)

var looksHermitage = begins(`(?im)^[^-\n][^\n]*;\s*--\s*(T\d+|either)\b`)

func readHermitage(in *input) ([]History, error) {
	var steps []*step
	blocked := map[string]*step{}
	latest := map[string]*step{}
	var now int64
	err := in.lines(in.opt.RecordMax, func(line []byte, number, _ int64) *reject.Error {
		text, remark := string(line), ""
		if at := commentAt(text); at >= 0 {
			text, remark = strings.TrimSpace(text[:at]), text[at+2:]
		}
		who := hermitageWho.FindStringSubmatch(remark)
		switch {
		case text == "":
			return nil
		case who == nil && len(latest) == 0:
			steps = append(steps, &step{text: text, line: number, done: true})
			return nil
		case who == nil:
			return reject.In("session", reject.MissingField, "want the session behind the statement, as in -- T1, not %.40q",
				remark)
		case strings.EqualFold(who[1], "either"):
			return nil
		}
		now++
		s := &step{session: strings.ToUpper(who[1]), text: text, line: number, from: now, end: now, done: true}
		if b := blocked[s.session]; b != nil {
			b.end, b.done = now-1, !b.failed
			delete(blocked, s.session)
		}
		steps, latest[s.session] = append(steps, s), s
		own := who[2]
		if at := remarkOther.FindStringIndex(own); at != nil {
			own = own[:at[0]]
		}
		if s.remark(own); s.told == nil && !remarkEmpty.MatchString(remarkBlocks.ReplaceAllString(own, "")) {
			s.told = &told{vague: true}
		}
		if isEnd := strings.HasPrefix(strings.ToLower(text), "commit"); isEnd && !s.failed {
			s.done = remarkEmpty.MatchString(own)
		}
		if remarkBlocks.MatchString(own) {
			blocked[s.session] = s
		}
		others := remarkOther.FindAllStringIndex(who[2], -1)
		for i, at := range others {
			end := len(who[2])
			if i+1 < len(others) {
				end = others[i+1][0]
			}
			if b := blocked[who[2][at[0]:at[1]]]; b != nil && b != s {
				b.remark(who[2][at[1]:end])
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, b := range blocked {
		b.end, b.done = now, b.told != nil && !b.failed
	}
	row := func(id, value int64) record.Value {
		return record.ObjectOf(map[string]record.Value{"id": record.Int(id), "value": record.Int(value)})
	}
	preset := newTable("", []string{"id", "value"}, []string{"id"})
	preset.inserts = []record.Value{row(1, 10), row(2, 20)}
	return one(readTranscript(in, hermitageFormat, steps, preset, false))
}

// commentAt is where the comment of a line begins, outside of quotes; -1: it has none.
func commentAt(text string) int {
	for i, isQuoted := 0, false; i < len(text); i++ {
		if text[i] == '\'' {
			isQuoted = !isQuoted
		} else if !isQuoted && strings.HasPrefix(text[i:], "--") {
			return i
		}
	}
	return -1
}

// remark takes what a remark tells of a step.
func (s *step) remark(text string) {
	isNegated := remarkNegated.MatchString(text)
	if remarkFails.MatchString(text) && !isNegated {
		s.failed, s.done = true, false
		return
	}
	switch rows := remarkRow.FindAllStringSubmatch(text, -1); {
	case len(rows) > 0:
		s.told = &told{isPairs: true, whole: remarkReturns.MatchString(text)}
		for _, r := range rows {
			s.told.rows = append(s.told.rows, slices.Clone(r[1:3]))
		}
	case remarkInserted.MatchString(text):
		s.told = &told{inserted: true, whole: true}
	case remarkNothing.MatchString(text):
		s.told = &told{whole: true}
	}
}
