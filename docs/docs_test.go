// Package docs is what there is to read; its tests hold that to itself and to the code.
package docs

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/isowatch/isowatch/"

var (
	fence    = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	link     = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	target   = regexp.MustCompile(`<a (?:id|name)="([^"]+)"`)
	linkText = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	noSlug   = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
	code     = regexp.MustCompile("`([^`]+)`")
)

// files are the files below the root of the tree whose names end so, by their paths from
// there, with slashes.
func files(t *testing.T, suffix string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir("..", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && p != ".." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if !d.IsDir() && strings.HasSuffix(p, suffix) {
			rel, err := filepath.Rel("..", p)
			if err != nil {
				return err
			}
			out = append(out, filepath.ToSlash(rel))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// read is the text of a file, given by its path from the root of the tree.
func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// anchors are what a link to a part of the text may name.
func anchors(text string) map[string]bool {
	out := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		s := linkText.ReplaceAllString(strings.ToLower(strings.TrimSpace(m[1])), "$1")
		out[strings.ReplaceAll(noSlug.ReplaceAllString(s, ""), " ", "-")] = true
	}
	for _, m := range target.FindAllStringSubmatch(text, -1) {
		out[m[1]] = true
	}
	return out
}

// Links lead somewhere: to a file that is there, and to a heading that it has.
func TestLinksLeadSomewhere(t *testing.T) {
	pages := files(t, ".md")
	if !slices.Contains(pages, "README.md") || !slices.Contains(pages, "docs/architecture.md") {
		t.Fatalf("these are not the pages: %q", pages)
	}
	at := map[string]map[string]bool{}
	for _, p := range pages {
		at[p] = anchors(fence.ReplaceAllString(read(t, p), ""))
	}
	links := 0
	for _, p := range pages {
		for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(read(t, p), ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			file, part, _ := strings.Cut(m[1], "#")
			to := p
			if file != "" {
				to = path.Join(path.Dir(p), file)
			}
			if _, err := os.Stat(filepath.Join("..", filepath.FromSlash(to))); err != nil {
				t.Errorf("%s: the link to %s leads nowhere", p, m[1])
			} else if part != "" && at[to] != nil && !at[to][part] {
				t.Errorf("%s: the link to %s: %s has no such heading", p, m[1], to)
			}
		}
	}
	if links < 50 {
		t.Errorf("only %d links were found: they are written otherwise", links)
	}
}

// The README leads to every page of the documentation, and the index of decisions to each
// of them: those with numbers in the order of these, the others behind.
func TestIndexesAreComplete(t *testing.T) {
	for _, c := range []struct{ dir, index string }{{"docs", "README.md"}, {"docs/decisions", "docs/decisions/README.md"}} {
		var want, got []string
		for _, p := range files(t, ".md") {
			if path.Dir(p) == c.dir && p != c.index {
				want = append(want, p)
			}
		}
		for _, m := range link.FindAllStringSubmatch(read(t, c.index), -1) {
			if p := path.Join(path.Dir(c.index), m[1]); path.Dir(p) == c.dir && strings.HasSuffix(p, ".md") && !slices.Contains(got, p) {
				got = append(got, p)
			}
		}
		for _, p := range want {
			if !slices.Contains(got, p) {
				t.Errorf("%s does not lead to %s", c.index, p)
			}
		}
		numbered := func(p string) bool { return path.Base(p)[0] >= '0' && path.Base(p)[0] <= '9' }
		for i := 1; i < len(got); i++ {
			if numbered(got[i]) && (!numbered(got[i-1]) || got[i-1] > got[i]) {
				t.Errorf("%s has %s behind %s", c.index, got[i], got[i-1])
			}
		}
	}
}

// The first line of a decision that has a number begins with it.
func TestDecisionsHaveTheirNumbers(t *testing.T) {
	seen := map[string]string{}
	for _, p := range files(t, ".md") {
		name := path.Base(p)
		if path.Dir(p) != "docs/decisions" || name[0] < '0' || name[0] > '9' {
			continue
		}
		number, _, _ := strings.Cut(name, "-")
		if other := seen[number]; other != "" {
			t.Errorf("%s and %s have the same number", other, p)
		}
		seen[number] = p
		if first, _, _ := strings.Cut(read(t, p), "\n"); !strings.HasPrefix(first, "# "+number+": ") {
			t.Errorf("%s begins with %q, not with its number", p, first)
		}
	}
}

// places are the rows of the table of packages in architecture.md: which row a package
// stands in.
func places(t *testing.T) map[string]int {
	t.Helper()
	_, text, _ := strings.Cut(read(t, "docs/architecture.md"), "\n## The packages\n")
	text, _, _ = strings.Cut(text, "\n## ")
	out := map[string]int{}
	for i, line := range strings.Split(text, "\n") {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		names, _, _ := strings.Cut(line, " | ")
		for _, m := range code.FindAllStringSubmatch(names, -1) {
			if _, twice := out[m[1]]; twice {
				t.Errorf("docs/architecture.md names %s twice", m[1])
			}
			out[m[1]] = i
		}
	}
	if len(out) < 40 {
		t.Fatalf("only %d packages were found in docs/architecture.md: its table is written otherwise", len(out))
	}
	return out
}

// rowOf is the row of a package, or of the one that it lies below; -1 if there is none.
func rowOf(rows map[string]int, pkg string) int {
	for ; pkg != "."; pkg = path.Dir(pkg) {
		if row, ok := rows[pkg]; ok {
			return row
		}
	}
	return -1
}

// The map of the code is that of the code: it has every package, and no other, and each
// imports only what stands above it.
func TestArchitectureHasThePackages(t *testing.T) {
	rows := places(t)
	for p := range rows {
		if d, err := os.Stat(filepath.Join("..", filepath.FromSlash(p))); err != nil || !d.IsDir() {
			t.Errorf("docs/architecture.md has %s, and there is no such folder", p)
		}
	}
	for _, file := range files(t, ".go") {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		pkg := path.Dir(file)
		row := rowOf(rows, pkg)
		if row < 0 {
			t.Errorf("docs/architecture.md does not have %s", pkg)
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", filepath.FromSlash(file)), nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range f.Imports {
			s, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if other, ours := strings.CutPrefix(s, module); ours && rowOf(rows, other) > row {
				t.Errorf("%s imports %s, which stands below %s in docs/architecture.md", file, other, pkg)
			}
		}
	}
}
