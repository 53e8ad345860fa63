//go:build unix

package process

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The test's own program is what is started.
func TestMain(m *testing.M) {
	if out := os.Getenv("PROCESS_TEST"); out != "" {
		os.Stdout.WriteString("out " + out + "\n")
		os.Stderr.WriteString("err " + out + "\n")
		if out == "stays" {
			time.Sleep(time.Hour)
		}
		os.Exit(3)
	}
	os.Exit(m.Run())
}

func child(t *testing.T, how string) *exec.Cmd {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path)
	cmd.Env = append(os.Environ(), "PROCESS_TEST="+how)
	return cmd
}

func start(t *testing.T, cmd *exec.Cmd) *Process {
	t.Helper()
	p, err := Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

// What a process that ends by itself has said and answered is known, whoever gets its output.
func TestEnds(t *testing.T) {
	p := start(t, child(t, "goes"))
	if got := p.Status(); got != 3 {
		t.Errorf("status %d", got)
	}
	if got := p.Said(); !strings.Contains(got, "out goes\n") || !strings.Contains(got, "err goes\n") {
		t.Errorf("it said %q", got)
	}
	p.Signal(os.Interrupt) // nobody is there
	p.Kill()

	var out bytes.Buffer
	cmd := child(t, "goes")
	cmd.Stdout = &out
	p = start(t, cmd)
	<-p.Exited()
	if got := p.Said(); got != "err goes\n" || out.String() != "out goes\n" {
		t.Errorf("it said %q and %q", got, out.String())
	}
}

// A process that stays is there until it is killed, or told to go.
func TestStays(t *testing.T) {
	for name, end := range map[string]func(*Process){"kill": (*Process).Kill, "signal": func(p *Process) { p.Signal(syscall.SIGKILL) }} {
		p := start(t, child(t, "stays"))
		if err := syscall.Kill(p.PID(), 0); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		select {
		case <-p.Exited():
			t.Errorf("%s: it ended: %s", name, p.Said())
		default:
		}
		end(p)
		if got := p.Status(); got != -1 {
			t.Errorf("%s: status %d", name, got)
		}
	}
}

func TestStartOfWhatIsNotThere(t *testing.T) {
	if _, err := Start(exec.Command("/nowhere/at/all")); err == nil || !strings.Contains(err.Error(), "/nowhere/at/all") {
		t.Errorf("error %v", err)
	}
}
