package app

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/deliver"
	"github.com/isowatch/isowatch/alerts/life"
)

// A storm has as many lines in the log as notices, and none is lost to the count.
func TestAlertsInTheLog(t *testing.T) {
	var out strings.Builder
	w := &worker{setting: &setting{log: zerolog.New(&out).Level(zerolog.InfoLevel)}, teller: &teller{}, db: "orders"}
	w.teller.config.Store(&life.Config{RateMax: 3, RatePer: time.Minute})
	now := time.Unix(1_700_000_000, 0)
	for i := range 1000 {
		w.say(alerts.Alert{ID: fmt.Sprint("a", i), Summary: "found"}, now.Add(time.Duration(i)*time.Millisecond))
	}
	if n := strings.Count(out.String(), `"message":"found"`); n != 3 || strings.Count(out.String(), "alerts.rate") != 1 {
		t.Errorf("%d alerts:\n%s", n, &out)
	}
	out.Reset()
	w.say(alerts.Alert{ID: "b", Summary: "found"}, now.Add(time.Minute))
	w.say(alerts.Alert{ID: "c", Summary: "found"}, now.Add(time.Minute))
	if s := out.String(); strings.Count(s, `"message":"found"`) != 2 || strings.Count(s, `"left_out":997`) != 1 || strings.Count(s, "left_out") != 1 {
		t.Errorf("a minute later:\n%s", s)
	}
	out.Reset()
	w.say(alerts.Alert{ID: "d", Summary: "found"}, now.Add(-time.Hour)) // the clock was set back
	if !strings.Contains(out.String(), `"id":"d"`) {
		t.Errorf("set back:\n%s", &out)
	}
}

// What came of a delivery is an error in the log only where somebody has to see to it.
func TestDeliveriesInTheLog(t *testing.T) {
	for outcome, want := range map[deliver.Outcome]string{deliver.Delivered: "info", deliver.Filtered: "debug", deliver.Resent: "debug", deliver.Retrying: "warn", deliver.Refused: "error", deliver.StoreFailed: "error"} {
		var out strings.Builder
		a, err := New(Options{Config: testConfig([]string{"b:1"}), Log: zerolog.New(&out), Store: newMemStore("r")})
		if err != nil {
			t.Fatal(err)
		}
		e := deliver.Event{Receiver: "r", Outcome: outcome, Attempt: 1}
		if want != "info" && want != "debug" {
			e.Err = errors.New("broken")
		}
		out.Reset()
		a.delivered(e)
		if !strings.Contains(out.String(), `"level":"`+want+`"`) || strings.Count(out.String(), "\n") != 1 {
			t.Errorf("%s: %s", outcome, &out)
		}
	}
}
