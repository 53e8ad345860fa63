package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/life"
	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/alerts/text"
	"github.com/isowatch/isowatch/cmd/monitor/app"
	"github.com/isowatch/isowatch/config"
)

func newAlertsTest() *cobra.Command {
	var (
		out  output
		file string
	)
	cmd := &cobra.Command{
		Use:   "test --config FILE",
		Short: "Send a marked test through every receiver",
		Long: `Sends one notice, marked as a test, through each receiver of a configuration, past its
filters, and says of each whether it took it, and if not what to do. Neither store nor
monitor is needed. An incident that it opens (PagerDuty, Alertmanager) is closed again.

Exit status: 0 all took it, 4 one did not, 2 unusable configuration.`,
		Example: "  monitor alerts test --config isowatch.yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if file == "" {
				return unusablef("--config: name the configuration whose receivers are to be tried")
			}
			loaded, err := config.Load(config.Sources{File: file, Env: os.Environ()})
			if err != nil {
				return unusable(err)
			}
			receivers, err := app.Receivers(loaded.Config, cmd.OutOrStdout())
			if err != nil {
				return unusable(err)
			}
			defer func() { _ = app.CloseReceivers(receivers) }() // what it may say has been said
			if len(receivers) == 0 {
				return unusablef("%s names no receiver: set alerts.webhooks, alerts.kafka or alerts.stdout", file)
			}
			return tryAll(cmd.Context(), cmd.OutOrStdout(), out, receivers)
		},
	}
	cmd.Flags().StringVarP(&file, "config", "c", "", "YAML `file` of run")
	out.flags(cmd)
	return cmd
}

// tried is the JSON of what came of one receiver.
type tried struct {
	Receiver string  `json:"receiver"`
	Key      string  `json:"key"`
	OK       bool    `json:"ok"`
	Error    string  `json:"error,omitempty"`
	Seconds  float64 `json:"seconds"`
}

func tryAll(ctx context.Context, w io.Writer, out output, receivers []*app.Receiver) error {
	n := testNotice(time.Now())
	body, failed := n.JSON(), 0
	for _, r := range receivers {
		begin := time.Now()
		err := r.Try(ctx, body, n.Notification.ID)
		t := tried{Receiver: r.Name, Key: r.Key, OK: err == nil, Seconds: time.Since(begin).Seconds()}
		line := fmt.Sprintf("ok      %s (%s)\n", text.Printable(r.Name), r.Key)
		if err != nil {
			failed++
			t.Error = err.Error()
			line = fmt.Sprintf("FAILED  %s (%s): %s\n", text.Printable(r.Name), r.Key,
				text.Printable(strings.TrimSpace(t.Error)))
		}
		if out.json() {
			if err := printLine(w, t); err != nil {
				return err
			}
			continue
		}
		if _, err := io.WriteString(w, line); err != nil {
			return environment(err)
		}
	}
	if failed > 0 {
		return silent(exitEnvironment)
	}
	return nil
}

// testNotice is a notice that says that it is none.
func testNotice(now time.Time) life.Notice {
	id := "test-" + strings.ToLower(rand.Text())
	host, err := os.Hostname()
	if err != nil {
		host = "an unnamed host"
	}
	at := now.UnixNano()
	return life.Notice{
		Alert: alerts.Alert{Version: alerts.Version, ID: id, Name: "test", Severity: name.Info, State: alerts.Fresh,
			FirstSeen: at, LastSeen: at, Count: 1,
			Summary: "This is a test, sent by hand with monitor alerts test on " + host + ". Nothing is wrong."},
		Notification: life.Notification{ID: id, Kind: life.KindTest, Group: id, Groups: 1, Count: 1, Since: at},
	}
}
