package bench

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// peerLevels are AWDIT's names of levels (its README, "Checking consistency").
var peerLevels = map[string]string{"rc": "read-committed", "ra": "read-atomic", "cc": "causal"}

// PeerRun is what another checker did on the same history, on the same machine, right after
// ours.
type PeerRun struct {
	Program   string  `json:"program"`
	Seconds   float64 `json:"seconds"` // the median
	PeakBytes uint64  `json:"peak_bytes"`
	Status    int     `json:"status"` // its exit status
	Said      string  `json:"said"`   // the first line of what it printed
}

// beside measures a generated history and, if there is AWDIT's program, that as well, on
// the same history in the text form that AWDIT reads, which it calls plume. Writing that is not
// counted.
func beside(s Spec, level string) func(context.Context, *Env) (Measured, error) {
	return func(ctx context.Context, e *Env) (Measured, error) {
		m, err := generated(s, level)(ctx, e)
		if err != nil || e.opt.Peer == "" {
			return m, err
		}
		file, err := e.Generated(ctx, s)
		if err != nil {
			return m, err
		}
		text, err := e.converted(ctx, file, "polysi-text")
		if err != nil {
			return m, err
		}
		m.Peer, err = e.peer(ctx, text, peerLevels[level])
		return m, err
	}
}

// converted is the file of a generated history in another format.
func (e *Env) converted(ctx context.Context, file, format string) (string, error) {
	key := format + " " + file
	if path, ok := e.made[key]; ok {
		return path, nil
	}
	e.opt.Progress("converting " + filepath.Base(file))
	path := strings.TrimSuffix(file, filepath.Ext(file)) + ".txt"
	var said bytes.Buffer
	cmd := e.command(ctx, "convert", "--quiet", "--to", format, "--output", path, file)
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("monitor convert --to %s: %w: %s", format, cause(ctx, err), firstLine(said.Bytes()))
	}
	e.made[key] = path
	return path, nil
}

// peer runs AWDIT. What it exits with is noted and no error: it may be its verdict.
func (e *Env) peer(ctx context.Context, file, level string) (*PeerRun, error) {
	p := &PeerRun{Program: filepath.Base(e.opt.Peer)}
	var seconds []float64
	for run := range e.opt.Runs {
		e.opt.Progress(fmt.Sprintf("%s at %s, run %d of %d", p.Program, level, run+1, e.opt.Runs))
		late, cancel := context.WithTimeoutCause(ctx, e.opt.Timeout, &lateError{e.opt.Timeout})
		var out bytes.Buffer
		cmd := exec.CommandContext(late, e.opt.Peer, "check", "-i", level, file)
		cmd.Stdout, cmd.Stderr = &out, &out
		began := time.Now()
		err := cmd.Run()
		took := time.Since(began).Seconds()
		expired := late.Err() != nil
		cancel()
		if cmd.ProcessState == nil || expired {
			return nil, fmt.Errorf("%s: %w", e.opt.Peer, cause(late, err))
		}
		seconds = append(seconds, took)
		p.Status, p.Said = cmd.ProcessState.ExitCode(), firstLine(out.Bytes())
		if all := maxResident(cmd.ProcessState); all > ownMaxResident() {
			p.PeakBytes = max(p.PeakBytes, all)
		}
	}
	p.Seconds = median(seconds)
	return p, nil
}
