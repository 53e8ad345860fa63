//go:build unix

package demo

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/isowatch/isowatch/internal/servers"
)

// begun is a writer that does something once when the canary has begun its work.
type begun struct {
	text bytes.Buffer
	then func()
}

func (b *begun) Write(p []byte) (int, error) {
	b.text.Write(p)
	if b.then != nil && strings.Contains(b.text.String(), "transactions a second") {
		b.then()
		b.then = nil
	}
	return len(p), nil
}

// Whatever ends the demonstration, what it started is ended, and its folder is gone.
func TestPostgresLeavesNothingBehind(t *testing.T) {
	if _, err := servers.Initdb(); errors.As(err, new(*servers.MissingError)) && os.Getenv("CI") == "" {
		t.Skip("SKIPPED: ", err)
	}
	for name, want := range map[string]string{"asked": "", "primary": "has ended", "standby": "has ended"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tmp, err := os.MkdirTemp("", "isowatch-server-") // t.TempDir's can't be entered by another account
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(tmp)
			if err := os.Chmod(tmp, 0o755); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var pids []int
			out := &begun{then: func() {
				for _, server := range []string{"primary", "standby"} {
					pids = append(pids, postmaster(t, filepath.Join(tmp, "isowatch-demo-*", server)))
				}
				switch name {
				case "asked":
					cancel()
				case "primary":
					_ = syscall.Kill(pids[0], syscall.SIGKILL)
				case "standby":
					_ = syscall.Kill(pids[1], syscall.SIGKILL)
				}
			}}
			planned, err := Postgres(ctx, Options{Out: out, Seed: 1, under: tmp})
			if planned || (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("planned %v, error %v, want %q", planned, err, want)
			}
			for _, pid := range pids {
				if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
					t.Errorf("process %d: %v", pid, err)
				}
			}
			if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 || len(pids) != 2 {
				t.Errorf("%v is left, %v; servers %v", left, err, pids)
			}
		})
	}
}

// postmaster is the process that serves a folder, which may be a pattern.
func postmaster(t *testing.T, dir string) int {
	files, err := filepath.Glob(filepath.Join(dir, "postmaster.pid"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil {
		t.Fatal(err)
	}
	return pid
}
