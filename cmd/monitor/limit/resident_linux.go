package limit

import "github.com/prometheus/procfs"

// resident is how much of the process is in memory, and the most that was. What
// getrusage says instead begins with the size of the process that started this one.
func resident() (now, peak uint64, ok bool) {
	p, err := procfs.Self()
	if err != nil {
		return 0, 0, false
	}
	s, err := p.NewStatus()
	return s.VmRSS, s.VmHWM, err == nil && s.VmRSS > 0 && s.VmHWM > 0
}
