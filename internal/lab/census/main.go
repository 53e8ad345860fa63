// Command census counts what has to be understood of a tree of the monitor, without tests and laboratory, as a row of a
// table for each tree:
//
//	git worktree add /tmp/before edc8c34
//	go run ./internal/lab/census /tmp/before .
package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	fmt.Println("| tree | packages | lines | of them longer than 120 | exported names | methods of the largest type |")
	fmt.Println("| --- | --- | --- | --- | --- | --- |")
	for _, root := range os.Args[1:] {
		c, err := count(root)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		largest := ""
		for name, n := range c.methods {
			if n > c.methods[largest] || n == c.methods[largest] && name < largest {
				largest = name
			}
		}
		fmt.Printf("| %s | %d | %d | %d | %d | %d, `%s` |\n", root, len(c.packages), c.lines, c.long, c.exported,
			c.methods[largest], largest)
	}
}

type census struct {
	packages              map[string]bool
	lines, long, exported int
	methods               map[string]int // by package and type
}

// count counts the files below root that are neither tests nor of the laboratory.
func count(root string) (census, error) {
	c := census{packages: map[string]bool{}, methods: map[string]int{}}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (rel == "internal/lab" || rel == "cmd/bench" || rel != "." && strings.HasPrefix(d.Name(), ".")):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(filepath.Dir(rel))
		c.packages[dir] = true
		for line := range bytes.Lines(text) {
			c.lines++
			if len([]rune(strings.TrimRight(string(line), "\n"))) > 120 {
				c.long++
			}
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		c.names(dir, f)
		return nil
	})
	return c, err
}

// names counts what a file exports, methods included, and the methods of each type.
func (c *census) names(dir string, f *ast.File) {
	export := func(id *ast.Ident) {
		if id.IsExported() && f.Name.Name != "main" {
			c.exported++
		}
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			export(d.Name)
			if d.Recv != nil && len(d.Recv.List) == 1 {
				c.methods[dir+"."+receiver(d.Recv.List[0].Type)]++
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					export(s.Name)
				case *ast.ValueSpec:
					for _, id := range s.Names {
						export(id)
					}
				}
			}
		}
	}
}

// receiver is the name of a method's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return "?"
}
