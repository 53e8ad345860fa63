package seeds_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// drawn are functions of math/rand/v2 that draw what nobody can repeat.
func drawn(name string) bool {
	return ast.IsExported(name) && !strings.HasPrefix(name, "New") && name != "Rand" && name != "Source" && name != "PCG" && name != "ChaCha8" && name != "Zipf"
}

// What tests draw is the same each time: who uses rapid takes its seed from here, and nobody draws
// from what the process began with.
func TestTheSameEachTime(t *testing.T) {
	const rapid, here = "pgregory.net/rapid", "github.com/isowatch/isowatch/internal/lab/seeds"
	imports := map[string]map[string]bool{} // of tests, by directory
	err := filepath.WalkDir("../../..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		random := ""
		for _, i := range file.Imports {
			name, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			if imports[filepath.Dir(path)] == nil {
				imports[filepath.Dir(path)] = map[string]bool{}
			}
			imports[filepath.Dir(path)][name] = true
			if strings.HasPrefix(name, "math/rand") {
				random = "rand"
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && x.Obj == nil && x.Name == random && drawn(s.Sel.Name) {
					t.Errorf("%s draws by rand.%s what nobody can repeat: take a rand.New with a seed", path, s.Sel.Name)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	properties := 0
	for dir, has := range imports {
		if has[rapid] && !has[here] {
			t.Errorf("%s has properties of rapid that begin with another seed each time: import %s", dir, here)
		}
		if has[rapid] {
			properties++
		}
	}
	if properties < 3 {
		t.Errorf("%d directories have properties: this test looks in the wrong place", properties)
	}
}
