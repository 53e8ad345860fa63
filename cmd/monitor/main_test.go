package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain lets scripts call the monitor as a command: the test binary runs as
// `monitor` when it is started under that name.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"monitor": main})
}

// TestScripts runs testdata/*.txtar: command lines with their exit status and
// what they print. UPDATE=1 rewrites expected files.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           "testdata",
		UpdateScripts: updateScripts,
		Cmds:          map[string]func(*testscript.TestScript, bool, []string){"status": status},
	})
}

// status runs a command that must end with the given exit status:
//
//	status 2 monitor check --level none
func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N command…")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := 0
	if err != nil {
		code, ok := exitCode(err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = code
	}
	ts.Check(equalStatus(args[0], got))
}
