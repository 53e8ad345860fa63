package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/isowatch/isowatch/alerts/text"
)

// The exit statuses.
const (
	exitOK          = 0 // satisfied, or done as asked
	exitViolated    = 1 // a violation was found
	exitUnusable    = 2 // unusable input, flags or configuration
	exitUndecided   = 3 // not decided, which is never reported as satisfied
	exitEnvironment = 4 // the environment failed: disk, network, rights
)

// failure is an error with the exit status that it means. An empty message
// means that all has been said already.
type failure struct {
	status int
	err    error
}

func (f *failure) Error() string {
	if f.err == nil {
		return fmt.Sprintf("exit status %d", f.status)
	}
	return f.err.Error()
}

func (f *failure) Unwrap() error { return f.err }

// silent ends with a status when the output has told why.
func silent(status int) error {
	if status == exitOK {
		return nil
	}
	return &failure{status: status}
}

// unusable says that what the person gave can't be used.
func unusable(err error) error {
	if err == nil {
		return nil
	}
	return &failure{status: exitUnusable, err: err}
}

func unusablef(format string, args ...any) error { return unusable(fmt.Errorf(format, args...)) }

// environment says that the machine or the network failed, if there is an error and it does not say what did.
func environment(err error) error {
	var f *failure
	if err == nil || errors.As(err, &f) {
		return err
	}
	return &failure{status: exitEnvironment, err: err}
}

// written says that the result can't be written, if there is an error.
func written(err error) error {
	if err == nil {
		return nil
	}
	return environment(fmt.Errorf("write the result: %w", err))
}

// exitStatus prints what err has to say, a line for each part, and returns its
// status. Errors without one come from cobra and are about the command line.
func exitStatus(err error, stderr io.Writer) int {
	if err == nil {
		return exitOK
	}
	f := &failure{status: exitUnusable, err: err}
	errors.As(err, &f)
	if f.err != nil {
		for line := range strings.Lines(f.err.Error()) {
			if line = strings.TrimSpace(line); line != "" {
				fmt.Fprintf(stderr, "monitor: %s\n", text.Printable(line)) // files and records have a say in it
			}
		}
	}
	return f.status
}
