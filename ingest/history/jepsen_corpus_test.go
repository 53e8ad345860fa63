package history

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/reject"
)

// inexpressible are the files of the corpus whose operations no record can say,
// and what is said instead.
var inexpressible = map[string]string{
	"elle-cli/jepsen-bank-tidb.edn.gz": "a transfer adds to balances without saying what they were",
	"elle-cli/jepsen-bank.edn.gz":      "a transfer adds to balances without saying what they were",
	"elle-cli/jepsen-bank.json.gz":     "a transfer adds to balances without saying what they were",
}

// Every operation of the corpus's Jepsen and Porcupine histories is found, with its
// outcome, session and keys; and what can be a record is one.
func TestOperationsOfCorpus(t *testing.T) {
	dir := corpus(t)
	tested := map[string]int{}
	for _, m := range manifest(t, dir) {
		if !isOperations(m.Format) {
			continue
		}
		tested[m.Format]++
		file := filepath.Join(dir, m.File)
		hs, err := Open(file, Options{})
		if m.Txns == 0 {
			if e := reject.From(err); e == nil || e.Reason != reject.EmptyInput {
				t.Errorf("%s has no operation: %v", m.File, err)
			}
			continue
		}
		all, readErr := operations(t, file, m.Format)
		if readErr != nil {
			t.Errorf("%v", readErr)
			continue
		}
		got := all.count()
		got.File, got.Format, got.Stats = m.File, m.Format, m.Stats
		if got != m {
			t.Errorf("operations of\ngot  %+v\nwant %+v", got, m)
		}
		if want := inexpressible[m.File]; want != "" {
			if e := reject.From(err); e == nil || e.Reason != reject.Unsupported || !strings.Contains(err.Error(), want) || e.Pos.Line == 0 {
				t.Errorf("%s: want %q, got %v", m.File, want, err)
			}
			continue
		}
		if err != nil || len(hs) != 1 {
			t.Errorf("%s: %d histories, %v", m.File, len(hs), err)
			continue
		}
		checkInvariants(t, hs[0])
		got = count(hs[0])
		got.File, got.Stats = m.File, m.Stats
		if !all.micro() { // one operation may be several reads and writes, on several keys
			got.Ops, got.Keys = m.Ops, m.Keys
		}
		if got != m {
			t.Errorf("records of\ngot  %+v\nwant %+v", got, m)
		}
	}
	for _, f := range []string{jepsenEDN, jepsenJSON, porcupineLog, porcupineKV} {
		t.Logf("%-18s %d files", f, tested[f])
		if tested[f] == 0 {
			t.Errorf("the corpus has no file in the format %s", f)
		}
	}
}

func isOperations(format string) bool {
	return strings.HasPrefix(format, "jepsen-") || strings.HasPrefix(format, "porcupine-")
}

// operations reads a file without making records of it.
func operations(t *testing.T, file, format string) (attempts, error) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(file, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	opt, _ := Options{}.withDefaults()
	in := &input{name: file, opt: opt, r: bufio.NewReader(r)}
	if format == porcupineLog {
		events, err := etcdEvents(in)
		all := pairEvents(events)
		all.etcdOutcomes()
		return all, err
	}
	events, err := readEvents(in, format == jepsenJSON)
	return pairEvents(events), err
}

// micro tells whether all operations are transactions of micro-operations.
func (all attempts) micro() bool {
	for i := range all.list {
		if !all.list[i].isTxn {
			return false
		}
	}
	return true
}

// count counts as the manifest does: an operation is one, but a transaction is
// as many as it has micro-operations, and the read of a bank as many as accounts;
// what has no key is on the same one.
func (all attempts) count() manifestLine {
	m := manifestLine{Txns: len(all.list)}
	sessions, keys := map[string]bool{}, map[string]bool{}
	for i := range all.list {
		a := &all.list[i]
		sessions[a.session] = true
		switch a.status {
		case record.Committed:
			m.Committed++
		case record.Aborted:
			m.Aborted++
		default:
			m.Indeterminate++
		}
		balances, isMap := entries(a.value)
		switch {
		case a.isTxn:
			for _, op := range a.micros {
				m.Ops++
				keys[op.key] = true
			}
		case a.f == "read" && isMap:
			for _, b := range balances {
				m.Ops++
				keys[nameOf(b.key)] = true
			}
		default:
			m.Ops++
			keys["the one of "+a.key] = true
		}
	}
	m.Sessions, m.Keys = len(sessions), len(keys)
	return m
}
