package main

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagRows are the rows of a table of a command's flags.
func flagRows(cmd *cobra.Command) (rows []string) {
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		kind, usage := pflag.UnquoteUsage(f)
		if kind != "" {
			name += " " + kind
		}
		def := f.DefValue
		if def == "false" || def == "[]" || def == "0s" || def == "0" && !strings.Contains(usage, "0") {
			def = ""
		}
		if def != "" {
			def = "`" + def + "`"
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |\n", name, def, strings.ReplaceAll(usage, "|", `\|`)))
	})
	return rows
}

// flagName is the long name of the flag of a row.
var flagName = regexp.MustCompile(`--[a-z-]+`)

// count counts the rows of the flags of a command and of those below it.
func count(rows map[string]int, cmd *cobra.Command) {
	for _, r := range flagRows(cmd) {
		rows[r]++
	}
	for _, c := range cmd.Commands() {
		count(rows, c)
	}
}

// describe writes a section for a command and for each below it: what --help says. Of shared flags there are only the
// names.
func describe(out *strings.Builder, cmd *cobra.Command, shared []string) {
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
	rows, common := "", ""
	for _, f := range flagRows(cmd) {
		if slices.Contains(shared, f) {
			common += ", `" + flagName.FindString(f) + "`"
		} else {
			rows += f
		}
	}
	if rows != "" {
		out.WriteString("| flag | default | |\n| --- | --- | --- |\n" + rows + "\n")
	}
	if common != "" {
		out.WriteString("[Also](#flags-of-many-commands): " + strings.TrimPrefix(common, ", ") + ".\n\n")
	}
	for _, c := range cmd.Commands() {
		describe(out, c, shared)
	}
}

// TestCommandsAreDocumented keeps docs/commands.md equal to the command line;
// UPDATE=1 rewrites it.
func TestCommandsAreDocumented(t *testing.T) {
	const path = "../../docs/commands.md"
	var b strings.Builder
	b.WriteString(`# Commands

What every command of the monitor does, and its flags: the text of its --help. The tests of cmd/monitor write this page
(make docs). What the configuration of ` + "`run`" + ` may have stands in [configuration](configuration.md).

`)
	root := newRoot()
	rows := map[string]int{}
	count(rows, root)
	maps.DeleteFunc(rows, func(_ string, n int) bool { return n < 3 })
	shared := slices.Sorted(maps.Keys(rows))
	describe(&b, root, shared)
	b.WriteString("## Flags of many commands\n\n| flag | default | |\n| --- | --- | --- |\n" + strings.Join(shared, ""))
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
