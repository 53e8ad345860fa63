package limit

import (
	"bytes"
	"os"
	"strconv"
)

// resident is how much of the process is in memory, and the most that was. What
// getrusage says instead begins with the size of the process that started this one.
func resident() (now, peak uint64, ok bool) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, 0, false
	}
	for line := range bytes.Lines(status) {
		name, rest, _ := bytes.Cut(line, []byte(":"))
		fields := bytes.Fields(rest)
		if len(fields) != 2 {
			continue
		}
		n, err := strconv.ParseUint(string(fields[0]), 10, 54)
		switch string(name) {
		case "VmRSS":
			now = n << 10
		case "VmHWM":
			peak = n << 10
		default:
			continue
		}
		if err != nil || string(fields[1]) != "kB" {
			return 0, 0, false
		}
	}
	return now, peak, now > 0 && peak > 0
}
