//go:build unix

package servers

import (
	"os/exec"
	"syscall"
)

const pause, resume = syscall.SIGSTOP, syscall.SIGCONT

// apply lets a command be run by an account; apart: in a group of processes of its own.
func (a *Account) apply(cmd *exec.Cmd, apart bool) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: apart}
	if a != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid}
	}
}
