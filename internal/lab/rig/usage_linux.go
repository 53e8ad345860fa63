package rig

import (
	"fmt"
	"time"

	"github.com/prometheus/procfs"
)

// UsageOf asks the system about a process.
func UsageOf(pid int) (Usage, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return Usage{}, fmt.Errorf("process %d: %w", pid, err)
	}
	stat, err := p.Stat()
	if err != nil {
		return Usage{}, fmt.Errorf("process %d: %w", pid, err)
	}
	status, err := p.NewStatus()
	if err != nil {
		return Usage{}, fmt.Errorf("process %d: %w", pid, err)
	}
	return Usage{Resident: status.VmRSS, Peak: status.VmHWM, CPU: time.Duration(stat.CPUTime() * float64(time.Second))},
		nil
}
