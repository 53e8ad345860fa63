package history

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/isowatch/isowatch/ingest/record"
)

// corpus is the folder of real histories with their manifest: $ISOWATCH_CORPUS,
// or a sibling of the repository. Without it the test is skipped, except in CI.
func corpus(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("ISOWATCH_CORPUS")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "corpus")
	}
	if _, err := os.Stat(filepath.Join(dir, "manifest.jsonl")); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("the corpus of real histories is missing; set ISOWATCH_CORPUS to its folder: %v", err)
		}
		t.Skipf("SKIPPED: NO REAL HISTORY IS TESTED; set ISOWATCH_CORPUS to the corpus folder: %v", err)
	}
	return dir
}

type manifestLine struct {
	File, Format                                                 string
	Txns, Committed, Aborted, Indeterminate, Ops, Sessions, Keys int
	Stats                                                        struct {
		FailedEvents int `json:"failed_events"`
	}
}

func manifest(t testing.TB, dir string) []manifestLine {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "manifest.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []manifestLine
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var m manifestLine
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			t.Fatal(err)
		}
		out = append(out, m)
	}
	return out
}

// Every file of the corpus in a format that is known is recognised, and holds
// what its manifest says.
func TestCorpus(t *testing.T) {
	dir := corpus(t)
	tested := map[string]int{}
	for _, m := range manifest(t, dir) {
		file := filepath.Join(dir, m.File)
		format, err := Recognise(file)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(Formats(), m.Format) {
			if format != "" {
				t.Errorf("%s is %s, and recognised as %s", m.File, m.Format, format)
			}
			continue
		}
		if format != m.Format && m.Txns > 0 { // one log of the corpus is empty
			t.Errorf("%s is %s, and recognised as %q", m.File, m.Format, format)
			continue
		}
		tested[m.Format]++
		if isOperations(m.Format) { // see TestOperationsOfCorpus
			continue
		}
		hs, err := Open(file, Options{})
		if err != nil || len(hs) != 1 {
			t.Errorf("%d histories, %v", len(hs), err)
			continue
		}
		got := count(hs[0])
		if find(m.Format).write == nil { // a transcript: statements are no operations, and there is what was prepared
			if hs[0].Transactions[0].Session == "prepare" {
				got.Txns, got.Committed = got.Txns-1, got.Committed-1
			}
			if got.Committed > m.Committed { // fewer, as the manifest counts commits that failed
				t.Errorf("%s has %d committed transactions, and not %d", m.File, got.Committed, m.Committed)
			}
			m = manifestLine{File: m.File, Format: m.Format, Txns: m.Txns}
			got = manifestLine{Format: got.Format, Txns: got.Txns}
		}
		got.File, got.Stats = m.File, m.Stats
		if got != m {
			t.Errorf("\ngot  %+v\nwant %+v", got, m)
		}
		checkInvariants(t, hs[0])
	}
	for _, f := range Formats() {
		t.Logf("%-14s %d files", f, tested[f])
		if tested[f] == 0 && f != dbcopJSONFormat && f != timekillerList {
			t.Errorf("the corpus has no file in the format %s", f)
		}
	}
}

// count counts what a manifest counts: failed operations are in it.
func count(h History) manifestLine {
	m := manifestLine{File: h.File, Format: h.Format, Txns: len(h.Transactions), Ops: h.FailedOps}
	sessions, keys := map[string]bool{}, map[string]bool{}
	for _, x := range h.Transactions {
		sessions[x.Session] = true
		m.Ops += len(x.Ops)
		switch x.Status {
		case record.Committed:
			m.Committed++
		case record.Aborted:
			m.Aborted++
		default:
			m.Indeterminate++
		}
		for _, op := range x.Ops {
			keys[op.Key] = true
		}
	}
	m.Sessions, m.Keys = len(sessions), len(keys)
	return m
}

// checkInvariants checks what every History promises.
func checkInvariants(t testing.TB, h History) {
	t.Helper()
	if len(h.Transactions) == 0 {
		t.Fatalf("%s has no transaction", h.File)
	}
	ids := map[string]bool{}
	seqs := map[string]int64{}
	for _, x := range h.Transactions {
		if x.DB != h.DB || x.Session == "" || x.ID == "" || ids[x.ID] {
			t.Fatalf("%s: a transaction is %+v", h.File, x)
		}
		ids[x.ID] = true
		if x.HasTimes && x.End < x.Start {
			t.Fatalf("%s: %s ends before it starts", h.File, x.ID)
		}
		if !x.HasSeq {
			continue
		}
		if last, known := seqs[x.Session]; known && last >= x.Seq {
			t.Fatalf("%s: %s is not in the order of its session", h.File, x.ID)
		}
		seqs[x.Session] = x.Seq
	}
}
