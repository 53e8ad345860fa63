package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// TestManual makes what packages hold beside the program from the command tree: a page of the manual
// for each command, and what shells complete with. PACKAGING=DIR leaves it in DIR/man and
// DIR/completions, as of SOURCE_DATE_EPOCH; make packaging does.
func TestManual(t *testing.T) {
	dir := os.Getenv("PACKAGING")
	if dir == "" {
		dir = t.TempDir()
		t.Setenv("SOURCE_DATE_EPOCH", "0")
	}
	root := newRoot()
	root.DisableAutoGenTag = true
	root.InitDefaultCompletionCmd()
	man, completions := filepath.Join(dir, "man"), filepath.Join(dir, "completions")
	for _, d := range []string{man, completions} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "Isowatch", Manual: "Isowatch"}, man); err != nil {
		t.Fatal(err)
	}
	for name, generate := range map[string]func(*bytes.Buffer) error{
		"monitor.bash": func(b *bytes.Buffer) error { return root.GenBashCompletionV2(b, true) },
		"_monitor":     func(b *bytes.Buffer) error { return root.GenZshCompletion(b) },
		"monitor.fish": func(b *bytes.Buffer) error { return root.GenFishCompletion(b, true) },
	} {
		var b bytes.Buffer
		if err := generate(&b); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(completions, name), b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var pages func(cmd *cobra.Command)
	pages = func(cmd *cobra.Command) {
		if !cmd.IsAvailableCommand() && cmd.HasParent() || cmd.IsAdditionalHelpTopicCommand() {
			return
		}
		name := strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".1"
		page, err := os.ReadFile(filepath.Join(man, name))
		if err != nil {
			t.Error(err)
		}
		heading, rest, _ := strings.Cut(string(page), "\n.SH NAME")
		if !strings.Contains(heading, `.TH "`+strings.ToUpper(strings.TrimSuffix(name, ".1"))+`" "1"`) || !strings.Contains(rest, strings.ReplaceAll(cmd.Short, "-", `\-`)) {
			t.Errorf("%s begins with %s", name, heading)
		}
		if os.Getenv("PACKAGING") == "" && !strings.Contains(heading, time.Unix(0, 0).Format("Jan 2006")) {
			t.Errorf("%s is of another time: %s", name, heading)
		}
		for _, c := range cmd.Commands() {
			pages(c)
		}
	}
	pages(root)
}
