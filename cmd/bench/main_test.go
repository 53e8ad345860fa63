package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/isowatch/isowatch/internal/lab/rig"
	"github.com/isowatch/isowatch/internal/lab/scripts"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"bench": main})
}

// TestScripts runs testdata/*.txtar: command lines with their exit status and what they print. $MONITOR is the
// monitor's program.
func TestScripts(t *testing.T) {
	monitor, err := rig.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := scripts.Params("testdata")
	p.Setup = func(env *testscript.Env) error {
		env.Setenv("MONITOR", monitor)
		return nil
	}
	testscript.Run(t, p)
}
