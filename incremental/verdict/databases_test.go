package verdict_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/isowatch/isowatch/incremental/verdict"
)

// What a database calls its levels, as people write it.
func TestLevelsOfDatabases(t *testing.T) {
	for text, want := range map[string]verdict.Level{
		"postgres:repeatable-read": verdict.SI, "PostgreSQL: REPEATABLE READ": verdict.SI, "pg:repeatable_read": verdict.SI,
		"postgres:serializable": verdict.SER, "postgres:read-committed": verdict.G1, "oracle:serializable": verdict.SI,
		"mysql:serializable": verdict.SER, "sqlserver:snapshot": verdict.SI, "etcd:strict-serializable": verdict.SSER,
		"foundationdb:snapshot-reads": verdict.PC, "spanner:external-consistency": verdict.SSER, "mongo:linearizable": verdict.LIN,
	} {
		if got, err := verdict.FindLevel(text); err != nil || got != want {
			t.Errorf("%q is %v, %v; want %v", text, got, err, want)
		}
	}
	for text, want := range map[string][]string{
		"repeatable-read":         {"si of postgres, cockroachdb, yugabytedb, spanner", "no single level of mysql, mariadb, sqlserver, tidb", "as in postgres:repeatable-read"},
		":repeatable-read":        {"si of postgres"},
		"SNAPSHOT":                {"si of sqlserver", "as in sqlserver:snapshot"},
		"local":                   {"no single level of mongodb", "as in mongodb:local"},
		"mysql:repeatable-read":   {"no single level", "pc where", "g1 where"},
		"mariadb:repeatable-read": {"si with innodb_snapshot_isolation=ON"},
		"mysql:read-uncommitted":  {"no level here is promised"},
		"oracle:repeatable-read":  {`no level of oracle is called "repeatable-read"`, "read-committed, serializable"},
		"ingres:serializable":     {`no database is called "ingres"`, "postgres, mysql"},
		"postgres:":               {`no level of postgres is called ""`},
		"a:b:c":                   {`no database is called "a"`},
	} {
		_, err := verdict.FindLevel(text)
		if err == nil {
			t.Errorf("%q is a level", text)
			continue
		}
		for _, part := range want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q: %v, want %s", text, err, part)
			}
		}
	}
}

// Every name in the table is found, by every name of its database, and stands there once.
func TestDatabases(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range verdict.Databases() {
		if d.Source == "" || len(d.Promises) == 0 {
			t.Errorf("%v has no documentation or no level", d.Names)
		}
		for _, p := range d.Promises {
			if !p.Single && p.Note == "" {
				t.Errorf("%v: nothing says why %v is no single level", d.Names, p.Names)
			}
			for _, database := range d.Names {
				for _, name := range p.Names {
					text := database + ":" + name
					if seen[text] {
						t.Errorf("%s stands there twice", text)
					}
					seen[text] = true
					if got, err := verdict.FindLevel(text); (err == nil) != p.Single || got != p.Level {
						t.Errorf("%s is %v, %v", text, got, err)
					}
				}
			}
		}
	}
}

// docs/levels.md has the table. UPDATE=1 rewrites it.
func TestDatabasesAreDocumented(t *testing.T) {
	const begin, end = "<!-- databases: begin, written by the tests of incremental/verdict -->\n", "<!-- databases: end -->\n"
	var b strings.Builder
	b.WriteString("| database, and its level | here | what that rests on |\n| --- | --- | --- |\n")
	long, of := "", "" // a note that others end with, and whose it is
	for _, d := range verdict.Databases() {
		fmt.Fprintf(&b, "| **%s** | | *%s* |\n", strings.Join(d.Names, "**, **"), d.Source)
		for _, p := range d.Promises {
			level := "no single one"
			if p.Single {
				level = "`" + p.Level.String() + "`"
			}
			names := slices.Clone(p.Names)
			for i := range names {
				names[i] = "`" + d.Names[0] + ":" + names[i] + "`"
			}
			note := p.Note
			if len(note) > 200 && long == "" {
				long, of = note, names[0]
			} else if begin, ok := strings.CutSuffix(note, long); ok && long != "" {
				note = begin + "as " + of
			}
			fmt.Fprintf(&b, "| %s | %s | %s |\n", strings.Join(names, ", "), level, note)
		}
	}
	path := filepath.Join("..", "..", "docs", "levels.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := strings.Cut(string(text), begin)
	got, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s has not the lines %q and %q", path, begin, end)
	}
	switch {
	case got == b.String():
	case os.Getenv("UPDATE") == "":
		t.Errorf("the table in %s is another: run make docs\n%s", path, cmp.Diff(b.String(), got))
	default:
		if err := os.WriteFile(path, []byte(before+begin+b.String()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
