// Package scripts is what all scripts of commands have in common (testscript, of which a file is a script
// with the files that it uses).
package scripts

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/isowatch/isowatch/internal/lab/race"
)

// Params are those of the scripts in dir. UPDATE=1 rewrites expected files. A script may ask whether the race
// detector is on ([race]), and has the command status.
func Params(dir string) testscript.Params {
	return testscript.Params{
		Dir:           dir,
		UpdateScripts: os.Getenv("UPDATE") != "",
		Condition: func(what string) (bool, error) {
			if what != "race" {
				return false, fmt.Errorf("there is no condition %q", what)
			}
			return race.Enabled, nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"status": Status},
	}
}

// Status runs a command that must end with the given exit status:
//
//	status 2 monitor check --level none
func Status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N command…")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := 0
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("exit status %d, want %s", got, args[0])
	}
}
