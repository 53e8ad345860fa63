package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

// describe writes a row for a command and for each below it: how it is called, and what it is for.
func describe(out *strings.Builder, cmd *cobra.Command) {
	if cmd.Hidden || !cmd.IsAvailableCommand() && !cmd.HasSubCommands() {
		return
	}
	if cmd.Runnable() && cmd.HasParent() {
		fmt.Fprintf(out, "| `%s` | %s |\n", strings.TrimSuffix(cmd.UseLine(), " [flags]"), cmd.Short)
	}
	for _, c := range cmd.Commands() {
		describe(out, c)
	}
}

// TestCommandsAreDocumented keeps docs/commands.md equal to the command line;
// UPDATE=1 rewrites it.
func TestCommandsAreDocumented(t *testing.T) {
	const path = "../../docs/commands.md"
	var b strings.Builder
	b.WriteString(`# Commands

What every command is for. ` + "`monitor check --help`" + ` and the like, and the pages of the manual
(` + "`man monitor-check`" + `), have examples and every flag; of the keys of ` + "`run`" + ` [configuration](configuration.md)
does. Exit status of all: 0 satisfied or done, 1 violated, 2 unusable input, flags or configuration, 3 undecided, 4 the
environment failed. The tests of cmd/monitor write this page (make docs).

| command | what for |
| --- | --- |
`)
	describe(&b, newRoot())
	want := strings.TrimRight(b.String(), "\n") + "\n"
	got, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if string(got) == want {
		return
	}
	if os.Getenv("UPDATE") == "" {
		t.Errorf("%s is not what the commands say: run make docs\n%s", path, cmp.Diff(want, string(got)))
		return
	}
	if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}
