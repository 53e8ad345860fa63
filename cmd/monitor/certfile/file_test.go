package certfile_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/cmd/monitor/certfile"
	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
	"github.com/isowatch/isowatch/internal/lab/oracle/tiny"
)

var rewrite = flag.Bool("rewrite", false, "write testdata anew; read the diff")

func parse(t *testing.T, text string) (script.Script, record.Assumptions) {
	t.Helper()
	s, err := script.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s, record.Assumptions{}.Override(s.Header)
}

func write(t *testing.T, c *certfile.Certificate) string {
	t.Helper()
	var b bytes.Buffer
	if err := certfile.Write(&b, c); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// prove makes a certificate of "level: order" lines. "2<A" in an order: operation 2 of the one before reads from A.
func prove(t *testing.T, txns []record.Transaction, opt record.Assumptions, proofs ...string) *certfile.Certificate {
	t.Helper()
	c := certfile.New(txns, opt)
	for _, p := range proofs {
		name, order, _ := strings.Cut(p, ":")
		l, ok := verdict.ParseLevel(name)
		if !ok {
			t.Fatalf("no level %q", name)
		}
		v := verdict.Result{Level: l, ProvedBy: l}
		for _, word := range strings.Fields(order) {
			if op, from, named := strings.Cut(word, "<"); named {
				n, err := strconv.Atoi(op)
				if err != nil {
					t.Fatal(err)
				}
				v.Sources = append(v.Sources, verdict.Source{Txn: v.Order[len(v.Order)-1].Txn, Op: n, Writer: script.Events(txns, from)[0].Txn})
				continue
			}
			v.Order = append(v.Order, script.Events(txns, word)...)
		}
		if err := c.Add(v, txns); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

const skew = `initial zero
s1 A: r(x,0) r(y,0) w(x,1)
s2 B: r(x,0) r(y,0) w(y,1)
s2 C: r(x,1) r(y,1)
s3 D unknown: w(x,7)
s3 E aborted: w(x,8)`

const twice = `initial zero
s1 A: w(x,1)
s2 B: w(x,1) w(y,1)
s3 C: r(y,0) r(x,1)`

// The file of a value that was written twice names the writer that was read.
func TestNamedInTheFile(t *testing.T) {
	s, opt := parse(t, twice)
	text := write(t, prove(t, s.Txns, opt, "rc:A B C 1<A", "cc:A B C 1<A"))
	if _, lines, _ := strings.Cut(text, "\n"); lines != `{"level":"rc","kind":"commits","steps":3,"reads":1}
A
B
C
read 1 A
{"level":"cc","kind":"commits","steps":3,"reads":1}
A
B
C
read 1 A
` {
		t.Errorf("the file is\n%s", text)
	}
	for _, from := range [][]verdict.Source{{{Txn: 7}}, {{Txn: 2, Op: 1, Writer: 9}}} {
		v := verdict.Result{Level: verdict.RC, Order: script.Events(s.Txns, "A B C"), Sources: from}
		if err := certfile.New(s.Txns, opt).Add(v, s.Txns); err == nil {
			t.Errorf("%v are added", from)
		}
	}
}

// The file of a write skew, to be read. It proves si, ra by the same order, and cc by one of commits.
func TestGoldenFile(t *testing.T) {
	s, opt := parse(t, skew)
	s.Txns[3].ID = "" // and is named by its place
	c := certfile.New(s.Txns, opt)
	si := verdict.Result{Level: verdict.SI, ProvedBy: verdict.SI, Order: []verdict.Event{
		{Txn: 0}, {Txn: 1}, {Txn: 0, Commit: true}, {Txn: 1, Commit: true}, {Txn: 2}, {Txn: 2, Commit: true}, {Txn: 3}, {Txn: 3, Commit: true}}}
	ra := si
	ra.Level = verdict.RA
	cc := verdict.Result{Level: verdict.CC, ProvedBy: verdict.CC, Order: []verdict.Event{
		{Txn: 0, Commit: true}, {Txn: 1, Commit: true}, {Txn: 2, Commit: true}, {Txn: 3, Commit: true}}}
	for _, v := range []verdict.Result{si, ra, cc} {
		if err := c.Add(v, s.Txns); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Add(verdict.Result{Level: verdict.SER, ProvedBy: verdict.SI, Order: si.Order}, s.Txns); err == nil {
		t.Error("an order of starts and commits is taken for a proof of ser")
	}
	got, file := write(t, c), filepath.Join("testdata", "write-skew.certificate")
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	again, err := read(bytes.NewReader(want))
	if err != nil {
		t.Fatal(err)
	}
	if err := certfile.Verify(again, s.Txns, opt); err != nil {
		t.Error(err)
	}
}

// What is written of what the engine proves is read as it was, and verifies; every level, random histories.
func TestWrittenAndRead(t *testing.T) {
	cfg := tiny.Config{Txns: 5, Times: true, Aborted: true, Unknown: true, Partial: true, Appends: true, Values: 1, Mutations: 1}
	proved, named := map[verdict.Level]int{}, 0
	for seed := range uint64(150) {
		cfg.Duplicates = seed%2 == 0
		s := tiny.Random(rand.New(rand.NewPCG(seed, 3)), cfg)
		opt := record.Assumptions{}.Override(s.Header)
		if seed%3 == 0 {
			forget(s.Txns, seed)
		}
		c := certfile.New(s.Txns, opt)
		e := incremental.New(incremental.Options{Levels: verdict.Levels(), Assumptions: opt, Proof: true})
		for i := range s.Txns {
			e.Step(&s.Txns[i], int64(i))
		}
		for _, r := range e.Close() {
			if r.Outcome != verdict.Satisfied {
				continue
			}
			proved[r.Level]++
			if err := c.Add(r, s.Txns); err != nil {
				t.Fatal(err)
			}
		}
		if err := certfile.Verify(c, s.Txns, opt); err != nil {
			t.Fatalf("seed %d: before it is written: %v", seed, err)
		}
		for _, p := range c.Proofs {
			for _, s := range p.Steps {
				if s.Read {
					named++
				}
			}
		}
		text := write(t, c)
		again, err := read(strings.NewReader(text))
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
		if err := certfile.Verify(again, s.Txns, opt); err != nil {
			t.Fatalf("seed %d: %v\n%s%s", seed, err, text, script.Format(s))
		}
		for i := range again.Proofs {
			again.Proofs[i].Line = 0
		}
		if !reflect.DeepEqual(c, again) || write(t, again) != text {
			t.Fatalf("seed %d: %+v was read as %+v", seed, c, again)
		}
	}
	if named < 2 {
		t.Errorf("only %d writers are named", named)
	}
	for _, l := range verdict.Levels() {
		if proved[l] < 20 {
			t.Errorf("%v: only %d proofs", l, proved[l])
		}
	}
}

// forget takes the ids of some transactions away, or gives them another's.
func forget(txns []record.Transaction, seed uint64) {
	for n := range txns {
		switch (seed/3 + uint64(n)) % 4 {
		case 0:
			txns[n].ID = ""
		case 1:
			txns[n].ID = "@ twice"
		case 2:
			txns[n].ID = "start \"x\"\n\u00a0é" + txns[n].ID
		}
	}
}

// A transaction that shares its id is named by its place; ids that look like
// something else are quoted.
func TestNames(t *testing.T) {
	txns := []record.Transaction{{ID: "x", Session: "s"}, {ID: "x", Session: "s 2"}, {ID: "start", Session: "s"}, {ID: "commit x", Session: "s"}, {ID: "@0", Session: "s"}}
	c := certfile.New(txns, record.Assumptions{})
	var order []verdict.Event
	for n := range txns {
		order = append(order, verdict.Event{Txn: verdict.TxnID(n), Commit: true})
	}
	if err := c.Add(verdict.Result{Level: verdict.SER, ProvedBy: verdict.SER, Order: order}, txns); err != nil {
		t.Fatal(err)
	}
	text := write(t, c)
	if _, steps, _ := strings.Cut(text, `"steps":5}`+"\n"); steps != "@0 s\n@0 \"s 2\"\nstart\n\"commit x\"\n\"@0\"\n" {
		t.Errorf("steps:\n%s", steps)
	}
	again, err := read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := certfile.Verify(again, txns, record.Assumptions{}); err != nil {
		t.Error(err)
	}
	again.Proofs[0].Steps[1].Txn = certfile.Name{ID: "x"}
	err = certfile.Verify(again, txns, record.Assumptions{})
	if err == nil || !strings.Contains(err.Error(), "line 4: names x, of which the history has several: name it by place and session") {
		t.Errorf("error %v", err)
	}
	for _, bad := range []string{"\xff", strings.Repeat("x", 8<<20+1)} {
		txns[0].ID = bad
		c = certfile.New(txns, record.Assumptions{})
		if err := errors.Join(c.Add(verdict.Result{Level: verdict.SER, ProvedBy: verdict.SER, Order: order}, txns), certfile.Write(&bytes.Buffer{}, c)); err == nil {
			t.Errorf("a name of %d bytes that can't be read again is written", len(bad))
		}
	}
}

// A certificate of several histories, one after the other.
func TestSeveralInAFile(t *testing.T) {
	var file string
	var all []script.Script
	for _, text := range []string{"s1 A: w(x,1)", "initial zero\ns1 B: r(x,0)\ns1 C: r(x,0)"} {
		s, opt := parse(t, text)
		order := make([]string, len(s.Txns))
		for i := range s.Txns {
			order[i] = s.Txns[i].ID
		}
		file += write(t, prove(t, s.Txns, opt, "ser:"+strings.Join(order, " ")))
		all = append(all, s)
	}
	r := certfile.NewReader(strings.NewReader(file))
	for i, s := range all {
		c, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if err := certfile.Verify(c, s.Txns, record.Assumptions{}.Override(s.Header)); err != nil {
			t.Errorf("history %d: %v", i, err)
		}
	}
}

// A fault is told with the line that has it, the operation, and both values.
func TestVerifyErrors(t *testing.T) {
	for _, c := range []struct {
		name, history, proof string
		spoil                func(lines []string) // 0 is the first line of the file
		want                 string
	}{
		{"stale read", "initial zero\ns1 A: w(x,1)\ns2 B: w(y,1) r(x,1)", "ser:A B", swap(2, 3),
			`certificate of ser, line 3: B, operation 1: reads 1 from "x", which holds 0`},
		{"starts moved", skew, "si:+A +B A B +C C", swap(2, 5),
			`certificate of si, line 3: B: commits before it starts`},
		{"snapshot too old", skew, "si:+A +B A B +C C", swap(4, 6),
			`certificate of si, line 5: C: starts before B commits, its predecessor in session "s2"`},
		{"left out", "s1 A: w(x,1)\ns2 B: w(y,1)", "ser:A B", func(l []string) { l[1], l[3] = strings.Replace(l[1], "2", "1", 1), "" },
			`certificate of ser: B: never commits in this order`},
		{"stranger", "s1 A: w(x,1)", "ser:A", func(l []string) { l[2] = "Z" }, `certificate of ser, line 3: names Z, which the history does not have`},
		{"no such place", "s1 A: w(x,1)", "ser:A", func(l []string) { l[2] = "@1 s1" }, `line 3: names transaction 1 of session "s1", which has 1`},
		{"another's", "s1 A: w(x,1)", "ser:A", func(l []string) { l[0] = strings.Replace(l[0], `"transactions":1`, `"transactions":2`, 1) },
			`certificate: is of a history of 2 transactions, and this one has 1: it is another history's`},
		{"changed", "s1 A: w(x,1)", "ser:A", func(l []string) {
			l[0] = l[0][:strings.Index(l[0], "sha256")+9] + strings.Repeat("0", 64) + l[0][strings.Index(l[0], `"},"levels"`):]
		}, `the history was changed, or it is another one's`},
		{"assumes more", "s1 A: w(x,1)", "ser:A", func(l []string) { l[0] = strings.Replace(l[0], `"complete"`, `"partial"`, 1) },
			`certificate: assumes coverage partial, and the history is to be read with complete: make a new certificate, or say coverage partial`},
		{"axiom", "initial zero\ns1 A: w(x,1) w(y,1)\ns2 B: w(x,2)\ns3 C: r(y,1) r(x,2)", "rc:A B C", swap(2, 3),
			`certificate of rc, line 5: C, operation 1: reads 2 from "x", as B wrote it; but A, which it read from before, wrote the key too and commits later`},
		{"no writer named", twice, "ra:A B C 1<A", func(l []string) { l[1] = strings.Replace(l[1], `,"reads":1`, "", 1); l[5] = "" },
			`certificate of ra, line 5: C, operation 1: reads 1 from "x", which A and B both hold: an order of commits does not say whose it is, so the certificate has to`},
		{"another writer named", twice, "ra:A B C 1<A", func(l []string) { l[5] = "read 1 C" },
			`certificate of ra, line 5: C, operation 1: reads 1 from "x", as C wrote it; but that does not commit before`},
		{"a stranger named", twice, "ra:A B C 1<A", func(l []string) { l[5] = "read 1 Z" }, `certificate of ra, line 5, operation 1: names Z, which the history does not have`},
		{"a stranger after a writer", twice + "\ns5 D: r(y,0)", "ra:A B C 1<A D", func(l []string) { l[6] = "Z" }, `certificate of ra, line 7: names Z,`},
		{"an axiom after a writer", twice + "\ns5 D: w(z,1)\ns5 E: r(z,1)", "ra:A B C 1<A D E", swap(6, 7), `certificate of ra, line 7: E: starts before D commits, its predecessor in session "s5"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, opt := parse(t, c.history)
			text := write(t, prove(t, s.Txns, opt, c.proof))
			if cert, err := read(strings.NewReader(text)); err != nil || certfile.Verify(cert, s.Txns, opt) != nil {
				t.Fatalf("does not hold before it is spoilt: %v, %v", err, certfile.Verify(cert, s.Txns, opt))
			}
			lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
			c.spoil(lines)
			text = strings.TrimRight(strings.Join(lines, "\n"), "\n") + "\n"
			cert, err := read(strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			err = certfile.Verify(cert, s.Txns, opt)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error\n\t%v\nwant\n\t%s", err, c.want)
			}
		})
	}
}

func swap(i, j int) func([]string) {
	return func(lines []string) { lines[i], lines[j] = lines[j], lines[i] }
}

// The digest is that of the lines that the codec writes, sessions by name; how
// they are interleaved does not matter, and every field does.
func TestDigest(t *testing.T) {
	for seed := range uint64(200) {
		s := tiny.Random(rand.New(rand.NewPCG(seed, 3)), tiny.Config{Times: true, Duplicates: true, Aborted: true, Unknown: true, Appends: true})
		txns := s.Txns
		txns[0].Ops = append(txns[0].Ops, record.Op{Kind: record.PredicateRead, Key: "t", Where: "v > \"1\"", Value: record.Value{Kind: record.KindObject, Text: `{"t:1":{"v":2}}`}})
		slices.SortStableFunc(txns, func(a, b record.Transaction) int { return strings.Compare(a.Session, b.Session) })
		var lines []byte
		for i := range txns {
			lines = append(codec.AppendJSON(lines, &txns[i]), '\n')
		}
		sum := sha256.Sum256(lines)
		got := certfile.Describe(txns)
		if got.SHA256 != hex.EncodeToString(sum[:]) {
			t.Fatalf("seed %d: another digest than of\n%s", seed, lines)
		}
		mixed := slices.Clone(txns)
		slices.SortStableFunc(mixed, func(a, b record.Transaction) int { return int(a.Seq - b.Seq) })
		if certfile.Describe(mixed) != got {
			t.Fatalf("seed %d: the order of sessions matters", seed)
		}
		mixed[0].Status = (mixed[0].Status + 1) % 3
		if certfile.Describe(mixed).SHA256 == got.SHA256 {
			t.Fatalf("seed %d: the status does not matter", seed)
		}
	}
}
