package main

import (
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

// The version is what the Go tool stamps, however the program was built; no flag of the linker sets it.
func TestVersion(t *testing.T) {
	vcs := func(modified string) []debug.BuildSetting {
		return []debug.BuildSetting{{Key: "vcs.revision", Value: "0123abc"}, {Key: "vcs.time", Value: "2026-01-31T12:00:00Z"}, {Key: "vcs.modified", Value: modified}}
	}
	built := "built with " + runtime.Version() + " for " + runtime.GOOS + "/" + runtime.GOARCH + "\n"
	for _, tc := range []struct {
		name string
		info *debug.BuildInfo
		want string
	}{
		{"go install of a version", &debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}}, "monitor v1.2.3\n"},
		{"go build of a tag", &debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}, Settings: vcs("false")}, "monitor v1.2.3\ncommit 0123abc of 2026-01-31T12:00:00Z\n"},
		{"go build of changed files", &debug.BuildInfo{Main: debug.Module{Version: "v1.2.4-0.20260131120000-0123abc+dirty"}, Settings: vcs("true")},
			"monitor v1.2.4-0.20260131120000-0123abc+dirty\ncommit 0123abc of 2026-01-31T12:00:00Z, with changes\n"},
		{"without a repository", &debug.BuildInfo{}, "monitor (devel)\n"},
		{"without modules", nil, "monitor (devel)\n"},
	} {
		if got := buildFrom(tc.info).text(); got != tc.want+built {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
	if got := buildInfo().text(); !strings.HasPrefix(got, "monitor ") || !strings.HasSuffix(got, built) {
		t.Errorf("this is %q", got)
	}
}
