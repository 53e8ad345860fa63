package store

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// FuzzFiles reads any bytes as a table of Badger and as the parts of ours: nothing panics,
// and what comes out lies within what went in.
func FuzzFiles(f *testing.F) {
	dir := f.TempDir()
	s, err := Open(Options{Path: dir})
	if err != nil {
		f.Fatal(err)
	}
	c := Commit{Offsets: map[string]map[int]int64{"t": {0: 1}}, DeadLetters: []DeadLetter{{Reason: "r", Value: []byte("v")}}, Journal: []Entry{{Number: 1, Data: []byte("x")}}}
	if err := s.Commit(f.Context(), c); err != nil {
		f.Fatal(err)
	}
	seed := func() {
		for _, pattern := range []string{"*.sst", "journal/*"} {
			names, err := filepath.Glob(filepath.Join(dir, pattern))
			if err != nil {
				f.Fatal(err)
			}
			for _, name := range names {
				b, err := os.ReadFile(name)
				if err != nil {
					f.Fatal(err)
				}
				f.Add(append(bytes.TrimRight(b, "\x00"), 0, 0, 0, 0))
				f.Add(b[:min(len(b), 4096)])
			}
		}
	}
	seed()
	if err := s.Close(); err != nil {
		f.Fatal(err)
	}
	seed()
	key := offsetKey("t", 0)
	f.Add(seal(key, u64(7), kindInline))
	f.Add(encodeLetter(identity{}, DeadLetter{Reason: "r", Detail: "d", Value: []byte("v")}))
	f.Fuzz(func(t *testing.T, b []byte) {
		_ = wholeTable(b, 1)
		_, _ = parseRest(b)
		describe(b)
		_, _, _ = unseal(key, b)
		_, _ = decodeReference(b)
		_, _, _ = decodeLetter(b)
		_ = new(state).decode(b)
		_, _ = decodeLogFile(numberKey(prefixLogFile, 1), b)
		g := logFile{id: 1, first: 1, last: 9, count: 3, end: int64(len(b))}
		var buf []byte
		_ = walk(view{bytes.NewReader(b)}, g, func(at int64, h frame) (bool, error) {
			var e Entry
			var err error
			if e, buf, err = readEntry(view{bytes.NewReader(b)}, g, spot{h.number, at}, buf); err == nil && len(e.Data) > len(b) {
				t.Fatal("more comes out than went in")
			}
			return true, nil
		})
	})
}

// view is a file of bytes.
type view struct{ *bytes.Reader }

func (view) Close() error { return nil }
