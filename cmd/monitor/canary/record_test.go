package canary

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/isowatch/isowatch/cmd/monitor/embedded"
	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/recorder"
)

// onSQLite is the configuration of a canary of SQLite that makes haste.
func onSQLite(t *testing.T) *config.Config {
	t.Helper()
	loaded, err := config.Load(config.Sources{Overrides: []config.Override{{Path: "canary.targets", Value: `["sqlite://` + t.TempDir() + `/canary.db"]`},
		{Path: "canary.rate", Value: "0"}, {Path: "canary.pause", Value: "0s"}, {Path: "levels", Value: "ser"}, {Path: "http.listen", Value: ""}}})
	if err != nil {
		t.Fatal(err)
	}
	return loaded.Config
}

// What was judged is told also where not all of it could be recorded.
func TestJudgedAndNotRecorded(t *testing.T) {
	t.Parallel()
	record := func() (*os.File, error) {
		r, w, err := os.Pipe()
		go func() {
			_, _ = bufio.NewReader(r).ReadString('\n')
			_ = r.Close() // and from then on nothing can be written
		}()
		return w, err
	}
	out, err := Run(t.Context(), Options{Config: onSQLite(t), Transactions: 200,
		Output: embedded.Output{Record: record, Log: zerolog.Nop(), Out: io.Discard, Quiet: true}})
	if err == nil || !strings.Contains(err.Error(), "records could not be written") || out == nil || len(out.Reports) != 1 {
		t.Fatalf("%+v, %v", out, err)
	}
	var lacks int
	if _, err := fmt.Sscanf(err.Error(), "--record: %d records", &lacks); err != nil || lacks > out.Reports[0].Transactions {
		t.Errorf("%v: %d are said to lack of %d", err, lacks, out.Reports[0].Transactions)
	}
}

// A record that was held may come as late as it says, and is waited for, whatever the configuration says.
func TestWaitsForWhatWasHeld(t *testing.T) {
	c := config.Default()
	c.Window.Lateness, c.Canary = 200*time.Millisecond, &config.Canary{}
	w := &watch{Options: Options{Config: c}}
	if w.configure(); w.Config.Window.Lateness <= recorder.HeldMax || c.Window.Lateness != 200*time.Millisecond {
		t.Errorf("%v is waited for", w.Config.Window.Lateness)
	}
}

// hanging is a topic that takes nothing.
type hanging struct{ asked context.CancelFunc }

func (h hanging) Put(ctx context.Context, _ [][]byte) error {
	h.asked()
	<-ctx.Done()
	return ctx.Err()
}

func (hanging) Close() error { return nil }

// Whose topic takes nothing ends when its owner ends it, and says what is lost.
func TestEndsWhereATopicHangs(t *testing.T) {
	t.Parallel()
	ctx, end := context.WithCancel(t.Context())
	_, err := Run(ctx, Options{Config: onSQLite(t),
		Output: embedded.Output{Publish: hanging{end}, Log: zerolog.Nop(), Out: io.Discard, Quiet: true}})
	if err == nil || !strings.Contains(err.Error(), "were lost on their way to the topic, which has 0") {
		t.Error(err)
	}
}
