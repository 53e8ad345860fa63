package alerts_test

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
	"github.com/isowatch/isowatch/internal/lab/oracle/tiny"
	"github.com/isowatch/isowatch/internal/lab/race"
)

// Where no choice of writers fits, the words leave none out: below each question there is
// an answer for each transaction of the evidence that may have written what was read, every
// answer is used or ends in a contradiction of its own, and no step says for certain who
// wrote what several may have.
func TestWordsTellEveryBranch(t *testing.T) {
	n := uint64(race.Draws(300, 6000))
	trees, rows, questions := map[string]int{}, map[string]int{}, 0
	for _, level := range []verdict.Level{verdict.G1, verdict.RC, verdict.RA, verdict.CC, verdict.PC, verdict.SI, verdict.SER} {
		for seed := range n {
			rng := rand.New(rand.NewPCG(seed, 77))
			s := tiny.Random(rng, tiny.Config{Txns: 6, Keys: 3, Duplicates: true, Always: true, Values: 2, Mutations: 3, Weak: 50, Aborted: seed%3 == 0, Unknown: seed%4 == 0})
			for _, v := range engine(s.Header, s.Txns, level)[0].Violations {
				if v.Kind != verdict.Unsatisfiable {
					continue
				}
				ctx := context(s, level)
				ctx.Judge, ctx.Find = engineJudge, engineFind
				a, err := alerts.New(v, ctx)
				if err != nil {
					t.Fatalf("seed %d, %v: %v\n%s", seed, level, err, script.Format(s))
				}
				if len(a.Cases) == 0 {
					continue // its evidence is a plainer anomaly
				}
				_, txns := evidence(t, a)
				b := branches{claims: claims{t, txns}, lines: strings.Split(strings.TrimRight(a.Explanation, "\n"), "\n"), initial: map[[3]string]bool{}}
				for _, m := range isSupposedInitial.FindAllStringSubmatch(a.Explanation, -1) {
					b.initial[[3]string{m[3], m[1], m[2]}] = true
				}
				b.alternatives("", nil)
				b.leavesNoneOut()
				if b.questions > 0 {
					trees[a.Level]++
				} else {
					rows[a.Level]++
				}
				questions += b.questions
				if t.Failed() {
					t.Fatalf("seed %d, %v:\n%s\n%s\n%s", seed, level, script.Format(script.Script{Txns: txns}), a.Summary, a.Explanation)
				}
			}
		}
	}
	t.Logf("trees %v with %d questions about writers, rows %v", trees, questions, rows)
	for _, l := range []string{"g1", "rc", "ra", "cc"} {
		if trees[l] == 0 && !race.Brief() {
			t.Errorf("no tree at %s", l)
		}
	}
}

// branches reads the words of a proof by cases, line by line.
type branches struct {
	claims
	lines     []string
	questions int                // about writers
	initial   map[[3]string]bool // reader, key and value that may be of the initial version
	rows      [][]supposition
}

// supposition is what a step supposes: who wrote what was read, or, without a reader,
// something else.
type supposition struct {
	answered
	value string
}

// answered is who is taken to have written what a transaction read of a key.
type answered struct{ reader, key, writer string }

var (
	isAnswer          = regexp.MustCompile(`^(?:Either|Or else|It can only be that) (T\d+) wrote the (?:[a-z]\d* = )?` + aValue + ` that (T\d+) read(?: of ([a-z]\d*))?:$`)
	isOrder           = regexp.MustCompile(`^(?:Either|Or else|It can only be that) T\d+ (?:wrote|appended) .* before T\d+ (?:wrote|appended) .*:$`)
	isRow             = regexp.MustCompile(`^(?:Either|Or else|It can only be so):$`)
	isSupposed        = regexp.MustCompile(`suppose that the (?:([a-z]\d*) = )?` + aValue + ` that (T\d+) read(?: of ([a-z]\d*))? was (T\d+)'s`)
	isSupposedInitial = regexp.MustCompile(`suppose that the ([a-z]\d*) = ` + aValue + ` that (T\d+) read was the initial one`)
	isInitial         = regexp.MustCompile(`(T\d+) read ([a-z]\d*) = ` + aValue + `, as it was before anybody wrote it`)
	isCertain         = regexp.MustCompile(`(T\d+) read ([a-z]\d*) = ` + aValue + `, which (T\d+) wrote`)
	keyOfRead         = regexp.MustCompile(`wrote the ([a-z]\d*) = `)
)

// alternatives reads what stands at one depth: answers with what is below them, or steps and
// the contradiction that they end in.
func (b *branches) alternatives(indent string, path []answered) {
	asked := map[[2]string][]string{} // by reader and key
	steps, ends := 0, false
	for len(b.lines) > 0 {
		line, ok := strings.CutPrefix(b.lines[0], indent)
		if !ok {
			break
		}
		b.lines = b.lines[1:]
		b.certain(line)
		b.supposes(line)
		if strings.HasPrefix(line, "  ") {
			continue // reasons of a step
		}
		switch m := isAnswer.FindStringSubmatch(line); {
		case m != nil:
			key := m[4]
			if k := keyOfRead.FindStringSubmatch(line); k != nil {
				key = k[1]
			}
			q := [2]string{m[3], key}
			if !slices.Contains(b.mayHave(m[3], key, m[2]), m[1]) {
				b.t.Errorf("%s can't have written it: %q", m[1], line)
			}
			if asked[q] == nil {
				b.questions++
			}
			asked[q] = append(asked[q], m[1])
			b.alternatives(indent+"  ", append(slices.Clip(path), answered{m[3], key, m[1]}))
			if !strings.HasPrefix(line, "Or else") {
				defer func(of []string) {
					if got := asked[q]; !slices.Equal(slices.Sorted(slices.Values(got)), of) {
						b.t.Errorf("of the %s that %s read there are the answers %v, want %v", key, m[3], got, of)
					}
				}(b.mayHave(m[3], key, m[2]))
			}
		case isOrder.MatchString(line):
			b.alternatives(indent+"  ", path)
		case isRow.MatchString(line):
			b.rows = append(b.rows, nil)
			b.alternatives(indent+"  ", nil)
		case strings.HasSuffix(line, "a contradiction."):
			ends = true
		case len(line) > 1 && line[0] >= '1' && line[0] <= '9':
			steps++
			if s := isSupposed.FindStringSubmatch(line); s != nil && path != nil {
				if !slices.Contains(path, answered{s[3], s[1] + s[4], s[5]}) {
					b.t.Errorf("nothing says that this is supposed: %q", line)
				}
			}
		}
	}
	if len(asked) > 1 {
		b.t.Errorf("two questions at once: %v", asked)
	}
	if indent != "" && len(asked) == 0 && steps > 0 && !ends {
		b.t.Errorf("a branch does not end in a contradiction")
	}
}

// supposes notes what a line of a row does.
func (b *branches) supposes(line string) {
	if len(b.rows) == 0 || !strings.Contains(line, "suppose that") {
		return
	}
	var s supposition
	if m := isSupposedInitial.FindStringSubmatch(line); m != nil {
		s = supposition{answered{m[3], m[1], initially}, m[2]}
	} else if m := isSupposed.FindStringSubmatch(line); m != nil {
		s = supposition{answered{m[3], m[1] + m[4], m[5]}, m[2]}
	}
	row := &b.rows[len(b.rows)-1]
	*row = append(*row, s)
}

// leavesNoneOut: of several rows each supposes something; and of a read about which each
// supposes something, they have all that may have written it.
func (b *branches) leavesNoneOut() {
	reads := map[supposition][]string{}
	all := map[[2]string][]string{} // one may have written two values that were read
	for _, row := range b.rows {
		if len(row) == 0 && len(b.rows) > 1 {
			b.t.Error("of several possibilities one supposes nothing")
		}
		for _, s := range row {
			if of := (supposition{answered{s.reader, s.key, ""}, s.value}); s.reader != "" && !slices.Contains(reads[of], s.writer) {
				reads[of] = append(reads[of], s.writer)
				all[[2]string{s.reader, s.key}] = append(all[[2]string{s.reader, s.key}], s.writer)
			}
		}
	}
	for of, writers := range reads {
		always := !slices.ContainsFunc(b.rows, func(row []supposition) bool {
			return !slices.ContainsFunc(row, func(s supposition) bool { return s.reader == of.reader && s.key == of.key })
		})
		for _, w := range b.mayHave(of.reader, of.key, of.value) {
			if always && !slices.Contains(all[[2]string{of.reader, of.key}], w) {
				b.t.Errorf("of the %s that %s read there are the possibilities %v, and not %s", of.key, of.reader, writers, w)
			}
		}
		for _, w := range writers {
			if w != initially && !b.made(w, of.key, of.value) {
				b.t.Errorf("%s did not write the %s that %s read", w, of.key, of.reader)
			}
		}
	}
}

// certain holds what is said for certain of a writer to the evidence.
func (b *branches) certain(line string) {
	for _, m := range isCertain.FindAllStringSubmatch(line, -1) {
		may := b.mayHave(m[1], m[2], m[3])
		if b.initial[[3]string{m[1], m[2], m[3]}] {
			may = append(may, initially)
		}
		if !slices.Equal(may, []string{m[4]}) {
			b.t.Errorf("%v may have written it: %q", may, line)
		}
	}
	for _, m := range isInitial.FindAllStringSubmatch(line, -1) {
		if may := b.mayHave(m[1], m[2], m[3]); len(may) > 0 {
			b.t.Errorf("%v may have written it: %q", may, line)
		}
	}
}

// initially is the writer of an initial version.
const initially = "nobody"

// mayHave are the transactions, other than the reader, that may have written what was read.
func (b *branches) mayHave(reader, key, value string) []string {
	var out []string
	for _, r := range b.txns {
		if r.ID == reader || r.Status == record.Aborted {
			continue
		}
		if es := elements(value); b.left(r.ID, key, value) || len(es) > 0 && b.appended(r.ID, key, es[len(es)-1]) {
			out = append(out, r.ID)
		}
	}
	slices.Sort(out)
	return out
}
