package alerts_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/list"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
	"github.com/isowatch/isowatch/internal/lab/race"
)

// Every statement in the words of an alert, of random files and streams, is true of its
// evidence: who read what, who wrote it, what a list holds and does not, what came first in
// a session or by the clocks. There is no word of anything that is not in it.
func TestWordsAreTrueOfTheEvidence(t *testing.T) {
	n := uint64(race.Draws(200, 8000))
	made := map[string]int{}
	for seed := range n {
		s, levels := several(seed)
		for _, v := range foundBy(s, levels, seed%2 == 0, seed) {
			ctx := context(s, levels...)
			ctx.Judge, ctx.Find = engineJudge, engineFind
			a, err := alerts.New(v, ctx)
			if err != nil {
				t.Fatalf("seed %d, %v: %v\n%s\n%+v", seed, levels, err, script.Format(s), v)
			}
			_, txns := evidence(t, a)
			for _, text := range words(a) {
				for kind, count := range (claims{t, txns}).check(text) {
					made[kind] += count
				}
			}
			if t.Failed() {
				t.Fatalf("seed %d, %v:\n%s\n%s\n%s", seed, levels, script.Format(script.Script{Txns: txns}), a.Summary, a.Explanation)
			}
		}
	}
	t.Log(made)
	for _, c := range kindsOfClaims {
		if made[c.kind] == 0 && !race.Brief() {
			t.Errorf("nothing says that %s", c.kind)
		}
	}
}

// words are all the words of an alert.
func words(a alerts.Alert) []string {
	out := append(strings.Split(a.Explanation, "\n"), a.Summary)
	for _, e := range slices.Concat(append(a.Cases, a.Cycle)...) {
		out = append(out, e.Why)
	}
	return out
}

// claims holds words to records.
type claims struct {
	t    *testing.T
	txns []record.Transaction
}

const (
	aTxn   = `(T\d+)`
	aKey   = `([a-z]\d*)`
	aValue = `(-?\d+|null|\[[^\]]*\])`
)

// kindsOfClaims are the statements that sentences are made of. The parts of a match are
// given to true, the whole first.
var kindsOfClaims = []struct {
	kind string
	is   *regexp.Regexp
	true func(c claims, m []string) bool
}{
	{"somebody read something", regexp.MustCompile(aTxn + ` (?:both )?read ` + aKey + ` = ` + aValue),
		func(c claims, m []string) bool { return c.read(m[1], m[2], m[3]) }},
	{"two read the same", regexp.MustCompile(aTxn + ` and ` + aTxn + ` both read ` + aKey + ` = ` + aValue),
		func(c claims, m []string) bool { return c.read(m[1], m[3], m[4]) && c.read(m[2], m[3], m[4]) }},
	{"what was read is of somebody", regexp.MustCompile(aTxn + ` read ` + aKey + ` = ` + aValue + `, which ` + aTxn + ` wrote`),
		func(c claims, m []string) bool { return c.wrote(m[4], m[2], m[3]) }},
	{"somebody read something of another", regexp.MustCompile(aTxn + ` read ` + aKey + ` = ` + aValue + ` of ` + aTxn),
		func(c claims, m []string) bool { return c.read(m[1], m[2], m[3]) && c.made(m[4], m[2], m[3]) }},
	{"what was read had not been written", regexp.MustCompile(aTxn + ` read ` + aKey + ` = ` + aValue + `, as it was before anybody wrote it`),
		func(c claims, m []string) bool { // the reader may write the same later
			return !slices.ContainsFunc(c.txns, func(r record.Transaction) bool { return r.ID != m[1] && c.left(r.ID, m[2], m[3]) }) && (m[3][0] != '[' || m[3] == "[]")
		}},
	{"somebody wrote something", regexp.MustCompile(aTxn + ` (?:then )?wrote ` + aKey + ` = ` + aValue),
		func(c claims, m []string) bool { return c.wrote(m[1], m[2], m[3]) }},
	{"somebody appended something", regexp.MustCompile(aTxn + ` appended ` + aValue + ` to ` + aKey),
		func(c claims, m []string) bool { return c.appended(m[1], m[3], m[2]) }},
	{"somebody overwrote what was read", regexp.MustCompile(aKey + ` = ` + aValue + `, the version that ` + aTxn + ` overwrote with ` + aValue),
		func(c claims, m []string) bool { return c.read(m[3], m[1], m[2]) && c.wrote(m[3], m[1], m[4]) }},
	{"somebody appended to what was read", regexp.MustCompile(aKey + ` = ` + aValue + `, the version that ` + aTxn + ` appended ` + aValue + ` to`),
		func(c claims, m []string) bool { return c.appended(m[3], m[1], m[4]) && !holds(m[2], m[4]) }},
	{"a list holds an element", regexp.MustCompile(aKey + ` = ` + aValue + `, with the ` + aValue + ` that ` + aTxn + ` appended`),
		func(c claims, m []string) bool { return holds(m[2], m[3]) && c.appended(m[4], m[1], m[3]) }},
	{"a list lacks an element", regexp.MustCompile(aKey + ` = (\[[^\]]*\]),(?: with the ` + aValue + ` that T\d+ appended and)? without the ` + aValue + ` that ` + aTxn + ` appended`),
		func(c claims, m []string) bool { return !holds(m[2], m[4]) && c.appended(m[5], m[1], m[4]) }},
	{"a list shows an order", regexp.MustCompile(aTxn + `'s ` + aKey + ` = ` + aValue + ` shows that ` + aTxn + ` appended ` + aValue + ` (right )?before ` + aTxn + ` appended ` + aValue),
		func(c claims, m []string) bool {
			es := elements(m[3])
			a, b := slices.Index(es, m[5]), slices.Index(es, m[8])
			return c.read(m[1], m[2], m[3]) && c.appended(m[4], m[2], m[5]) && c.appended(m[7], m[2], m[8]) && a >= 0 && a < b && (m[6] == "" || b == a+1)
		}},
	{"a list has its elements the other way round", regexp.MustCompile(aTxn + ` read ` + aKey + ` = ` + aValue + `, but ` + aTxn + ` appended ` + aValue + ` before ` + aValue),
		func(c claims, m []string) bool {
			es := elements(m[3])
			own := c.all(m[4], func(op record.Op) bool { return op.Kind == record.Append && op.Key == m[2] })
			first := slices.IndexFunc(own, func(op record.Op) bool { return same(op.Value, m[5]) })
			second := slices.IndexFunc(own, func(op record.Op) bool { return same(op.Value, m[6]) })
			return c.read(m[1], m[2], m[3]) && first >= 0 && first < second && slices.Index(es, m[6]) >= 0 && slices.Index(es, m[6]) < slices.Index(es, m[5])
		}},
	{"a key was read twice", regexp.MustCompile(aTxn + ` read ` + aKey + ` twice and got two values: first ` + aValue + `, then ` + aValue),
		func(c claims, m []string) bool {
			reads := c.all(m[1], func(op record.Op) bool { return op.Kind == record.Read && op.Key == m[2] })
			at := slices.IndexFunc(reads, func(op record.Op) bool { return same(op.Value, m[3]) })
			return at >= 0 && m[3] != m[4] && slices.ContainsFunc(reads[at:], func(op record.Op) bool { return same(op.Value, m[4]) })
		}},
	{"somebody missed a write", regexp.MustCompile(aTxn + ` [^:;.]*read ` + aKey + ` = ` + aValue + ` and missed that ` + aTxn + ` wrote ` + aKey + ` = ` + aValue),
		func(c claims, m []string) bool { return m[2] == m[5] && m[3] != m[6] && c.wrote(m[4], m[5], m[6]) }},
	{"somebody came first in a session", regexp.MustCompile(aTxn + ` came before ` + aTxn + ` in session (\S+?)[.,;]?(?: |$)`),
		func(c claims, m []string) bool {
			a, b := c.at(m[1]), c.at(m[2])
			return a >= 0 && a < b && c.txns[a].Session == strings.TrimRight(m[3], ".,") && c.txns[b].Session == c.txns[a].Session
		}},
	{"somebody came first by the clocks", regexp.MustCompile(aTxn + ` had ended (\S+) before ` + aTxn + ` started, by the clocks`),
		func(c claims, m []string) bool {
			a, b := c.at(m[1]), c.at(m[3])
			return a >= 0 && b >= 0 && c.txns[a].HasTimes && c.txns[b].HasTimes && fmt.Sprint(time.Duration(c.txns[b].Start-c.txns[a].End)) == m[2]
		}},
	{"somebody is of unknown outcome", regexp.MustCompile(`The outcome of ` + aTxn + ` was never learned`),
		func(c claims, m []string) bool {
			at := c.at(m[1])
			return at >= 0 && c.txns[at].Status == record.Unknown
		}},
	{"a transaction is there", regexp.MustCompile(aTxn),
		func(c claims, m []string) bool { return c.at(m[1]) >= 0 }},
}

// vague is what is said where records are missing.
var vague = regexp.MustCompile(`not kept|another value|T\d+ read [a-z]\d*[;,.]|T\d+ wrote [a-z]\d*(?: [^=]|[;,.])`)

func (c claims) check(text string) map[string]int {
	made := map[string]int{}
	for _, k := range kindsOfClaims {
		for _, m := range k.is.FindAllStringSubmatch(text, -1) {
			made[k.kind]++
			if !k.true(c, m) {
				c.t.Errorf("it is not so that %s: %q in %q", k.kind, m[0], text)
			}
		}
	}
	if m := vague.FindString(text); m != "" {
		c.t.Errorf("%q in %q", m, text)
	}
	return made
}

// at is the place of a transaction; -1 if it is not there.
func (c claims) at(id string) int {
	return slices.IndexFunc(c.txns, func(r record.Transaction) bool { return r.ID == id })
}

// all are the operations of a transaction that are like that.
func (c claims) all(id string, is func(record.Op) bool) []record.Op {
	at := c.at(id)
	if at < 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(c.txns[at].Ops), func(op record.Op) bool { return !is(op) })
}

func (c claims) read(id, key, value string) bool {
	return len(c.all(id, func(op record.Op) bool { return op.Kind == record.Read && op.Key == key && same(op.Value, value) })) > 0
}

func (c claims) wrote(id, key, value string) bool {
	return len(c.all(id, func(op record.Op) bool { return op.Kind == record.Write && op.Key == key && same(op.Value, value) })) > 0
}

// left tells whether a value is the last that a transaction wrote to a key.
func (c claims) left(id, key, value string) bool {
	ops := c.all(id, func(op record.Op) bool { return op.Kind == record.Write && op.Key == key })
	return len(ops) > 0 && same(ops[len(ops)-1].Value, value)
}

func (c claims) appended(id, key, element string) bool {
	return len(c.all(id, func(op record.Op) bool { return op.Kind == record.Append && op.Key == key && same(op.Value, element) })) > 0
}

// made tells whether a transaction wrote a value, or appended the last element of a list.
func (c claims) made(id, key, value string) bool {
	es := elements(value)
	return c.wrote(id, key, value) || len(es) > 0 && c.appended(id, key, es[len(es)-1])
}

// same tells whether a value is the one that is told.
func same(v record.Value, told string) bool {
	if es, ok := list.Elements(v); ok && told != "null" {
		return told[0] == '[' && abridges(elements(told), es)
	}
	return v.String() == told
}

// abridges tells whether a list is the one that is told, with … for what is left out.
func abridges(told []string, es []record.Value) bool {
	for i, e := range told {
		switch {
		case e != "…" && (len(es) == 0 || es[0].String() != e):
			return false
		case e != "…":
			es = es[1:]
			continue
		case i == len(told)-1:
			return true
		}
		for j := range es {
			if abridges(told[i+1:], es[j:]) {
				return true
			}
		}
		return false
	}
	return len(es) == 0
}

// elements are those of a list as it is told.
func elements(told string) []string {
	inner := strings.TrimSuffix(strings.TrimPrefix(told, "["), "]")
	if inner == "" || told[0] != '[' {
		return nil
	}
	return strings.Split(strings.ReplaceAll(inner, " ", ""), ",")
}

func holds(told, element string) bool { return slices.Contains(elements(told), element) }
