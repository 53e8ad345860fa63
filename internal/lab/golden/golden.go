// Package golden compares what a test has made with a file that a person has read.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew; look at the difference")

// Check fails the test unless the file holds what the test got. With -update the file is
// written first.
func Check[T string | []byte](t *testing.T, file string, got T) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want := read(t, file)
	if d := cmp.Diff(strings.Split(want, "\n"), strings.Split(string(got), "\n")); d != "" {
		t.Errorf("%s: -want +got (go test -update writes it anew; look at it before it is committed):\n%s", file, d)
	}
}

// Block is a part of a file that is both what a test is given and what is wanted of it.
type Block struct {
	Title string // of the line "== title"
	Given string // what is below it
	Want  string // behind the mark; empty without one
}

// Blocks takes such a file apart. The mark is what the wanted begins with.
func Blocks(t *testing.T, file, mark string) (intro string, blocks []Block) {
	t.Helper()
	const begin = "\n== "
	intro, text, _ := strings.Cut(read(t, file), begin)
	for _, block := range strings.Split(text, begin) {
		var b Block
		b.Title, block, _ = strings.Cut(block, "\n")
		b.Given, b.Want, _ = strings.Cut(block, mark)
		blocks = append(blocks, b)
	}
	return intro, blocks
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
