package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// describe writes a section for a command and for each below it: what --help says, and of the flags the names.
func describe(out *strings.Builder, cmd *cobra.Command) {
	if cmd.Hidden || !cmd.IsAvailableCommand() && !cmd.HasSubCommands() {
		return
	}
	if cmd.HasParent() {
		fmt.Fprintf(out, "## %s\n\n%s.\n\n", cmd.CommandPath(), cmd.Short)
	}
	out.WriteString("```\n")
	if cmd.Long != "" {
		out.WriteString(cmd.Long + "\n\n")
	}
	if cmd.Runnable() {
		out.WriteString("usage: " + cmd.UseLine() + "\n")
	} else {
		out.WriteString("usage: " + cmd.CommandPath() + " COMMAND\n")
	}
	if cmd.Example != "" {
		out.WriteString("\n" + cmd.Example + "\n")
	}
	out.WriteString("```\n\n")
	var flags []string
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" {
			flags = append(flags, "`--"+f.Name+"`")
		}
	})
	if len(flags) > 0 {
		out.WriteString("Flags: " + strings.Join(flags, ", ") + ".\n\n")
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

What every command of the monitor does, as its --help says, which also says what each flag does, as does its page of the
manual (` + "`man monitor-check`" + `). The tests of cmd/monitor write this page (make docs). What the configuration of ` + "`run`" + `
may have stands in [configuration](configuration.md).

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
