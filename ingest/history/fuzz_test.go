package history

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/isowatch/isowatch/ingest/reject"
)

// fuzz reads any bytes as a format: what is accepted keeps the promises of
// History, what is not is refused with a reason and a place; nothing panics.
func fuzz(f *testing.F, format string, seeds ...[]byte) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		hs, err := Read("h", bytes.NewReader(in), Options{Format: format, SizeMax: 1 << 20, RecordMax: 1 << 16})
		if err != nil {
			if e := reject.From(err); e == nil || e.Reason == reject.None || e.Detail == "" || e.Pos.Source == "" {
				t.Fatalf("an error without reason or place: %v", err)
			}
			return
		}
		if len(hs) == 0 {
			t.Fatal("no history and no error")
		}
		for _, h := range hs {
			if format != Auto && h.Format != format {
				t.Fatalf("read as %s, and is %s", format, h.Format)
			}
			checkInvariants(t, h)
		}
		again, err := Read("h", bytes.NewReader(in), Options{Format: format, Packed: true})
		if err != nil || drawAll(expanded(t, again)) != drawAll(hs) {
			t.Fatalf("read again: %v\n%s\nat first:\n%s", err, drawAll(again), drawAll(hs))
		}
	})
}

func testdata(f *testing.F, format string) (out [][]byte) {
	f.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", format, "*"))
	if err != nil || len(files) == 0 {
		f.Fatalf("no test data: %v", err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		out = append(out, b)
	}
	return out
}

func FuzzIsowatch(f *testing.F) { fuzz(f, "isowatch", testdata(f, "isowatch")...) }
func FuzzPolysi(f *testing.F)   { fuzz(f, "polysi-text", testdata(f, "polysi-text")...) }
func FuzzDbcop(f *testing.F)    { fuzz(f, "dbcop-bincode", dbcopSample, dbcopSample[:200]) }

func FuzzCobra(f *testing.F) {
	log := cobraLogT(f, cobraTexts["T3.log"], 0)
	fuzz(f, "cobra-logs", log, cobraLogT(f, cobraTexts["T12.log"], 8), tarBytes(f, tarFile{"T3.log", log}))
}

func FuzzAuto(f *testing.F) {
	line := []byte(`{"session":"a","seq":1,"status":"committed","ops":[["w","x",1]]}`)
	fuzz(f, Auto, line, dbcopSample, gzipBytes(f, line), zstdBytes(f, line),
		tarBytes(f, tarFile{"a.jsonl", line}, tarFile{"T1.log", cobraLogT(f, cobraTexts["T3.log"], 0)}))
}
