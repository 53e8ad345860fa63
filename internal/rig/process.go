package rig

import (
	"fmt"
	"os/exec"

	"github.com/isowatch/isowatch/internal/tail"
)

// process is a child that was started, with the end of what it says.
type process struct {
	cmd    *exec.Cmd
	said   *tail.Writer
	exited chan struct{} // closed when it has ended
}

// begin starts a command. Its standard error, and its output unless it has one, are
// kept.
func begin(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, said: &tail.Writer{}, exited: make(chan struct{})}
	cmd.Stderr = p.said
	if cmd.Stdout == nil {
		cmd.Stdout = p.said
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	go func() {
		_ = cmd.Wait() // how it ended is told by its state
		close(p.exited)
	}()
	return p, nil
}

// PID is the process's number.
func (p *process) PID() int { return p.cmd.Process.Pid }

// Exited is closed when the process has ended.
func (p *process) Exited() <-chan struct{} { return p.exited }

// Kill ends the process with SIGKILL and waits until it is gone.
func (p *process) Kill() {
	_ = p.cmd.Process.Kill() // fails only if it has exited
	<-p.exited
}

// Status is the exit status of a process that has ended; -1 if a signal ended it.
func (p *process) Status() int {
	<-p.exited
	return p.cmd.ProcessState.ExitCode()
}

// Said is the end of what the process wrote to standard error.
func (p *process) Said() string { return p.said.String() }
