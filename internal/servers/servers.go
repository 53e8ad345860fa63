// Package servers runs database servers that are installed on this machine, on loopback and in folders of their own:
// PostgreSQL for the demonstration, and for tests, which kill and stop it and have other databases beside
// (internal/lab/databases). Debian's packages are known by where they put things.
//
//	p, err := servers.NewPostgres(ctx, dir, servers.PostgresOptions{Standby: true})
//	defer p.Close()
//	p.Primary.Kill()
//	err = p.Primary.Start(ctx)
package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/isowatch/isowatch/internal/process"
)

// MissingError says that a program is not installed, and what to install.
type MissingError struct{ Program, Install string }

func (e *MissingError) Error() string {
	return fmt.Sprintf("%s is not installed: %s", e.Program, e.Install)
}

// Find looks for a program in the PATH and in folders, which may be patterns, the last match first.
func Find(program, install string, folders ...string) (string, error) {
	for _, folder := range folders {
		matches, _ := filepath.Glob(filepath.Join(folder, program)) // the patterns are constants
		if len(matches) > 0 {
			return matches[len(matches)-1], nil
		}
	}
	path, err := exec.LookPath(program)
	if err != nil {
		return "", &MissingError{program, install}
	}
	return path, nil
}

// Account is whom a server runs as: most refuse root. nil: as this process.
type Account struct{ uid, gid uint32 }

// AccountOf is name's account if this process is root's.
func AccountOf(name string) (*Account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		return nil, fmt.Errorf("a server is not to run as root, and there is no user %s: %w", name, err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("user %s has no number: %w", name, err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("user %s has no group: %w", name, err)
	}
	return &Account{uint32(uid), uint32(gid)}, nil
}

// command is a program run as a.
func (a *Account) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = "/"
	if a != nil {
		cmd.Env = append(os.Environ(), "HOME=/")
	}
	a.apply(cmd, false)
	return cmd
}

// Run runs a program to its end; its error holds what it said.
func (a *Account) Run(ctx context.Context, program string, args ...string) error {
	said, err := a.command(ctx, program, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(program), err, strings.TrimSpace(string(said)))
	}
	return nil
}

// Folder makes a folder of a's.
func (a *Account) Folder(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	if a == nil {
		return nil
	}
	return os.Chown(path, int(a.uid), int(a.gid))
}

// Server is one server process, which may be started again after it has ended. Its methods are for one goroutine.
type Server struct {
	// Addr is its host:port, which stays the same.
	Addr string
	// What is run, and as whom.
	Account *Account
	Program string
	Args    []string
	Ready   func(context.Context) error // nil once it answers

	apart   bool // in a group of processes of its own, which a terminal's Ctrl-C does not reach
	running *process.Process
}

// startMax is how long a server may take to answer.
const startMax = 2 * time.Minute

// Start starts the server and returns when it answers.
func (s *Server) Start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startMax)
	defer cancel()
	var err error
	cmd := s.Account.command(context.WithoutCancel(ctx), s.Program, s.Args...)
	s.Account.apply(cmd, s.apart)
	if s.running, err = process.Start(cmd); err != nil {
		return err
	}
	retry := time.NewTicker(100 * time.Millisecond)
	defer retry.Stop()
	for {
		attempt, cancel := context.WithTimeout(ctx, 5*time.Second)
		err = s.Ready(attempt)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-s.running.Exited():
			return fmt.Errorf("%s has ended: %s", filepath.Base(s.Program), s.running.Said())
		case <-ctx.Done():
			said := s.running.Said()
			s.Kill()
			return fmt.Errorf("%s does not answer: %w: %s", filepath.Base(s.Program), err, said)
		case <-retry.C:
		}
	}
}

// Ended is closed when the server, which was started, has ended, whoever ended it.
func (s *Server) Ended() <-chan struct{} { return s.running.Exited() }

// Said is the end of what the server, which was started, has said.
func (s *Server) Said() string { return s.running.Said() }

// Kill ends the server and its children with SIGKILL and returns when it is gone. It may be gone already.
func (s *Server) Kill() {
	if s.running == nil {
		return
	}
	children := s.tree()
	s.running.Kill()
	signal(os.Kill, children)
	s.running = nil
}

// Stop ends the server with a signal, SIGTERM or what else it takes for an order to end, and returns when it is gone.
func (s *Server) Stop(signal os.Signal) {
	if s.running == nil {
		return
	}
	s.running.Signal(signal)
	select {
	case <-s.running.Exited():
		s.running = nil
	case <-time.After(30 * time.Second):
		s.Kill()
	}
}

// Pause stops the server and its children where they are; Resume lets them go on.
func (s *Server) Pause() { s.signal(pause) }

// Resume is the opposite of Pause.
func (s *Server) Resume() { s.signal(resume) }

func (s *Server) signal(what os.Signal) {
	if s.running != nil {
		signal(what, append([]int{s.running.PID()}, s.tree()...))
	}
}

// signal sends processes a signal.
func signal(what os.Signal, pids []int) {
	for _, pid := range pids {
		if p, err := os.FindProcess(pid); err == nil { // it may be gone
			_ = p.Signal(what)
		}
	}
}

// tree lists the processes that the server has started, and those that these have, and so on.
func (s *Server) tree() []int {
	parents := map[int]int{}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(filepath.Join("/proc", e.Name(), "stat"))
		if err != nil {
			continue
		}
		// The name, in parentheses, may hold anything; behind it stand the state and the parent.
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(fields) > 1 {
			if parents[pid], err = strconv.Atoi(fields[1]); err != nil {
				delete(parents, pid)
			}
		}
	}
	out := []int{s.running.PID()}
	for i := 0; i < len(out); i++ {
		for pid, parent := range parents {
			if parent == out[i] && !slices.Contains(out, pid) {
				out = append(out, pid)
			}
		}
	}
	return out[1:]
}

// append writes lines at the end of a file.
func appendTo(path string, lines ...string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(strings.Join(lines, "\n") + "\n")
	return errors.Join(err, f.Close())
}
