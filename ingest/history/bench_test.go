package history

import (
	"path/filepath"
	"testing"
)

// benchOpen reads one file of the corpus, again and again.
func benchOpen(b *testing.B, file string) {
	path := filepath.Join(corpus(b), file)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Open(path, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

// 102,401 transactions of 8 reads or 8 writes, 34 MB of JSON in 7 MB of gzip.
func BenchmarkOpenIsowatch100k(b *testing.B) {
	benchOpen(b, "recorded/postgres-ser-blindw-100k.jsonl.gz")
}

// 10,000 transactions of 8 operations, PolySI's general RW.
func BenchmarkOpenDbcop10k(b *testing.B) {
	benchOpen(b, "polysi/fig8_9_10-25_400_8_10000_0.5_uniform-hist-00000.bincode.gz")
}

// 9,571 transactions in 25 logs in a tar.
func BenchmarkOpenCobra10k(b *testing.B) {
	benchOpen(b, "polysi/fig8_9_10-twitter-10000-hist-00000.tar.gz")
}

// 8,156 transactions of 167 operations each: 45 MB.
func BenchmarkOpenCobraLarge(b *testing.B) {
	benchOpen(b, "cobra/ser-violation-fauna-page.tar.gz")
}
