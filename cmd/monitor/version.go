package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// build is what the binary knows of itself.
type build struct {
	Version  string `json:"version"`            // of the module, or (devel)
	Revision string `json:"revision,omitempty"` // the commit
	Time     string `json:"time,omitempty"`     // of the commit
	Modified bool   `json:"modified"`           // built from changed files
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// buildInfo reads what the Go tool stamps into binaries.
func buildInfo() build {
	info, _ := debug.ReadBuildInfo()
	return buildFrom(info)
}

// buildFrom is what build information says; nil: there is none.
func buildFrom(info *debug.BuildInfo) build {
	b := build{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info == nil {
		return b
	}
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// text is what people read.
func (b build) text() string {
	out := "monitor " + b.Version + "\n"
	if b.Revision != "" {
		changed := ""
		if b.Modified {
			changed = ", with changes"
		}
		out += fmt.Sprintf("commit %s of %s%s\n", b.Revision, b.Time, changed)
	}
	return out + fmt.Sprintf("built with %s for %s\n", b.Go, b.Platform)
}

func newVersion() *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version, the commit and what it was built with",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b := buildInfo()
			w := cmd.OutOrStdout()
			if out.json() {
				return printJSON(w, b)
			}
			_, err := io.WriteString(w, b.text())
			return err
		},
	}
	out.flags(cmd)
	return cmd
}
