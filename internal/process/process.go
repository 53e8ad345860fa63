// Package process starts programs that a test or a benchmark kills, and keeps the end of
// what they say.
package process

import (
	"fmt"
	"os"
	"os/exec"
)

// Process is a child that was started.
type Process struct {
	cmd    *exec.Cmd
	said   *tail
	exited chan struct{} // closed when it has ended
}

// Start starts a command. The end of its standard error, and of its output unless that
// goes elsewhere, is kept.
func Start(cmd *exec.Cmd) (*Process, error) {
	p := &Process{cmd: cmd, said: &tail{}, exited: make(chan struct{})}
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
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Exited is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Signal sends the process a signal, unless it has ended.
func (p *Process) Signal(s os.Signal) {
	_ = p.cmd.Process.Signal(s) // fails only if it has exited
}

// Kill ends the process with SIGKILL and waits until it is gone.
func (p *Process) Kill() {
	p.Signal(os.Kill)
	<-p.exited
}

// Status is the exit status of the process, once it has ended; -1 if a signal ended it.
func (p *Process) Status() int {
	<-p.exited
	return p.cmd.ProcessState.ExitCode()
}

// Said is the end of what the process has said.
func (p *Process) Said() string { return p.said.String() }
