package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
)

var updateScripts = os.Getenv("UPDATE") != ""

// exitCode is the status of a command that ran and failed.
func exitCode(err error) (int, bool) {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return 0, false
	}
	return exit.ExitCode(), true
}

func equalStatus(want string, got int) error {
	if strconv.Itoa(got) != want {
		return fmt.Errorf("exit status %d, want %s", got, want)
	}
	return nil
}
