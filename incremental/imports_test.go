package incremental_test

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

// module is this module's path, and the prefix of its packages.
const module = "github.com/isowatch/isowatch/"

// pure lists what the engine may be built of, beside its own packages: values
// and algorithms. Nothing here knows a clock, a file, a network, a goroutine or
// chance, which is why the same input gives the same output. What is missing and
// pure may be added; what is not belongs to the caller, who hands in what came
// of it.
var pure = map[string]bool{
	"cmp":                               true,
	"errors":                            true,
	"fmt":                               true, // for text, not for printing: see below
	"iter":                              true,
	"maps":                              true,
	"math":                              true,
	"math/bits":                         true,
	"slices":                            true,
	"sort":                              true,
	"strconv":                           true,
	"strings":                           true,
	"unsafe":                            true, // sizes of types
	module + "ingest/record":            true,
	module + "internal/heap":            true,
	module + "internal/slots":           true,
	"github.com/bits-and-blooms/bitset": true,
	"github.com/cespare/xxhash/v2":      true,
}

// The engine is a pure state machine. Its packages import what is listed above
// and nothing else, start no goroutine, use no channel and print nothing.
func TestEngineIsPure(t *testing.T) {
	seen := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		seen++
		complain := func(n ast.Node, what string) { t.Errorf("incremental/%s: %s", fset.Position(n.Pos()), what) }
		for _, i := range file.Imports {
			name, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			if !pure[name] && !strings.HasPrefix(name, module+"incremental/") {
				complain(i, "imports "+name+": the engine is pure; let the caller hand in what is needed, or, if the package knows "+
					"no clock, file, network, goroutine or chance, add it to the list in this test")
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				complain(n, "starts a goroutine: the caller decides what runs where")
			case *ast.ChanType, *ast.SelectStmt:
				complain(n, "uses a channel: the engine waits for nobody")
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "fmt" && strings.HasPrefix(n.Sel.Name, "Print") {
					complain(n, "prints: return what is to be said")
				}
			case *ast.CallExpr:
				if f, ok := n.Fun.(*ast.Ident); ok && (f.Name == "print" || f.Name == "println") {
					complain(n, "prints: return what is to be said")
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 20 {
		t.Errorf("only %d files were looked at: is this still the engine's folder?", seen)
	}
}
