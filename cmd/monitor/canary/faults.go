package canary

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/isowatch/isowatch/cmd/monitor/canary/target"
	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/wait"
)

// faultsOf finds those that were asked for among those that there are.
func faultsOf(c config.CanaryFaults, names []string) (out []config.CanaryFault, err error) {
	for _, name := range names {
		i := slices.IndexFunc(c.Commands, func(f config.CanaryFault) bool { return f.Name == name })
		if i < 0 {
			return nil, &target.Error{Option: "--faults", What: fmt.Sprintf("the configuration has no fault %q", name),
				Do: "say in canary.faults.commands what may be done to which node"}
		}
		out = append(out, c.Commands[i])
	}
	return out, nil
}

// commandMax is how long a command of a fault may take.
const commandMax = time.Minute

// harm does one fault after the other until ctx ends; what was done is undone then.
func (w *watch) harm(ctx context.Context) {
	for i := 0; len(w.faults) > 0; i++ {
		if wait.Sleep(ctx, w.Config.Canary.Faults.Every) != nil {
			return
		}
		f := w.faults[i%len(w.faults)]
		w.command(ctx, f.Name, f.Do)
		if len(f.Undo) > 0 {
			_ = wait.Sleep(ctx, w.Config.Canary.Faults.For)
			w.command(ctx, "end of "+f.Name, f.Undo)
		}
	}
}

// command runs a command to its end, whether ctx ends or not, and says so, also as an event of when it began.
// Its arguments may have a password in them, and are not told.
func (w *watch) command(ctx context.Context, what string, command []string) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commandMax)
	defer cancel()
	said, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput()
	if err != nil {
		w.Log.Warn().Err(err).Str("command", command[0]).Str("said", strings.TrimSpace(string(said))).
			Msg("a fault's command failed")
		what += " failed"
	}
	w.observe.happen(record.Event{At: began.UnixNano(), Kind: kindFault, Text: "fault: " + what})
	w.monitor.Say("fault: " + what)
}
