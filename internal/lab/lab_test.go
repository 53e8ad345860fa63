package lab

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/isowatch/isowatch/"

// deps are the packages of this module that a package is built from, itself included.
func deps(t *testing.T, pkg string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", module+pkg).Output()
	if err != nil {
		t.Fatalf("go list -deps %s: %v", pkg, err)
	}
	return slices.DeleteFunc(strings.Fields(string(out)), func(p string) bool { return !strings.HasPrefix(p, module) })
}

// The monitor has nothing of the laboratory in it.
func TestMonitorIsWithoutIt(t *testing.T) {
	all := deps(t, "cmd/monitor")
	if !slices.Contains(all, module+"incremental") {
		t.Errorf("the monitor is built from %q: where is the engine?", all)
	}
	for _, p := range all {
		if strings.HasPrefix(p, module+"internal/lab") {
			t.Errorf("the monitor is built with %s", p)
		}
	}
}

// The oracle judges the engine and shares nothing with it but what is judged.
func TestOracleIsIndependent(t *testing.T) {
	// Of predicates it takes what a condition says of a row, and not how check turns them into registers.
	want := []string{"incremental/verdict", "ingest/predicate", "ingest/record", "internal/lab/oracle"}
	got := deps(t, "internal/lab/oracle")
	for i, p := range got {
		got[i] = strings.TrimPrefix(p, module)
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("the oracle is built from %q, not %q", got, want)
	}
}
