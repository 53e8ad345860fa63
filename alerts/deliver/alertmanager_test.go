package deliver_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/isowatch/isowatch/alerts/deliver"
	"github.com/isowatch/isowatch/alerts/life"
	"github.com/isowatch/isowatch/alerts/name"
)

// amAlert is postableAlert of Alertmanager's OpenAPI.
type amAlert struct {
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	StartsAt     time.Time         `json:"startsAt"`
	EndsAt       time.Time         `json:"endsAt"`
	GeneratorURL string            `json:"generatorURL"`
}

func posted(t *testing.T, body string) []amAlert {
	t.Helper()
	var out []amAlert
	dec := json.NewDecoder(strings.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&out); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	for _, a := range out {
		if a.Labels["alertname"] == "" || a.EndsAt.Before(a.StartsAt) {
			t.Errorf("%+v", a)
		}
	}
	return out
}

func active(group string, severity name.Severity) deliver.Active {
	n := lostUpdate()
	n.Notification.Group, n.Notification.Kind, n.Severity = group, life.KindOngoing, severity
	return deliver.Active{Group: group, DB: "orders", Level: "si", Severity: severity, Notice: func(context.Context) ([]byte, error) { return n.JSON(), nil }}
}

// What is active is told again under the same labels, with what its notice said; what is
// missing from it is over.
func TestAlertmanager(t *testing.T) {
	rec := &recorder{}
	r := made(t, "alertmanager", rec).(*deliver.Alertmanager)
	tell(t, r, lostUpdate())
	if _, err := r.Resend(t.Context(), []deliver.Active{active("g1", "critical"), active("g2", "warning")}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Resend(t.Context(), []deliver.Active{active("g1", "critical")}); err != nil {
		t.Fatal(err)
	}
	tell(t, r, resolved())
	if _, err := r.Resend(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	got := rec.got()
	if len(got) != 4 {
		t.Fatalf("%d posts", len(got)) // nothing is left to say at the end
	}
	first := posted(t, got[0])[0]
	want := map[string]string{"alertname": "IsowatchLostUpdate", "db": "orders", "level": "si", "name": "lost-update", "severity": "critical", "group": "g1"}
	if d := cmp.Diff(want, first.Labels); d != "" {
		t.Errorf("labels (-want +got):\n%s", d)
	}
	if first.GeneratorURL != "https://isowatch.example/alerts/a1" || first.Annotations["alert"] != "a1" || !strings.Contains(first.Annotations["description"], "What was seen") ||
		!first.StartsAt.Equal(time.Unix(1_700_000_000, 0)) || !first.EndsAt.After(time.Now()) {
		t.Errorf("%+v", first)
	}
	again := posted(t, got[1])
	if len(again) != 2 || cmp.Diff(first.Labels, again[0].Labels) != "" || cmp.Diff(first.Annotations, again[0].Annotations) != "" || again[1].Labels["group"] != "g2" {
		t.Errorf("told again: %+v", again)
	}
	for _, a := range slices.Concat(posted(t, got[0]), again) { // who never heard of it by a notice hears as much
		if a.Annotations["summary"] == "" || a.Annotations["description"] == "" || a.GeneratorURL == "" {
			t.Errorf("told is %+v", a)
		}
	}
	third := posted(t, got[2])
	if len(third) != 2 || third[1].Labels["group"] != "g2" || third[1].Labels["severity"] != "warning" || third[1].EndsAt.After(time.Now()) || third[0].EndsAt.Before(time.Now()) {
		t.Errorf("g2 is over: %+v", third)
	}
	over := posted(t, got[3])
	if len(over) != 1 || cmp.Diff(first.Labels, over[0].Labels) != "" || !over[0].EndsAt.Equal(time.Unix(1_700_003_600, 0)) {
		t.Errorf("resolved: %+v", over)
	}
}

// A group that became worse is another alert to an Alertmanager: the milder one ends with
// that, and the other when the group is over.
func TestAlertmanagerSeverity(t *testing.T) {
	rec := &recorder{}
	r := made(t, "alertmanager", rec).(*deliver.Alertmanager)
	mild := lostUpdate()
	mild.Severity = "warning"
	tell(t, r, mild, lostUpdate(), resolved())
	worse, over := posted(t, rec.got()[1]), posted(t, rec.got()[2])
	if len(worse) != 2 || worse[0].Labels["severity"] != "critical" || worse[1].Labels["severity"] != "warning" || !worse[0].EndsAt.After(time.Now()) || worse[1].EndsAt.After(time.Now()) {
		t.Errorf("worse: %+v", worse)
	}
	if len(over) != 1 || over[0].Labels["severity"] != "critical" || over[0].EndsAt.After(time.Now()) {
		t.Errorf("over: %+v", over)
	}
}

// Every minute, at the start too, and no sooner after a failure or a Retry-After.
func TestResend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &resender{}
		d := deliver.New(newMemory([]string{"a"}), map[string]deliver.Receiver{"a": r}, deliver.Options{
			Filters: map[string]deliver.Filter{"a": {MinSeverity: "critical"}},
			Active:  func() []deliver.Active { return []deliver.Active{active("g1", "critical"), active("g2", "warning")} },
		})
		defer run(d)()
		begin := time.Now()
		time.Sleep(10*time.Minute + time.Second)
		synctest.Wait()
		var at []time.Duration
		for _, c := range r.resent {
			at = append(at, c.at.Sub(begin))
			if c.groups != "g1" {
				t.Errorf("told of %s", c.groups)
			}
		}
		m := time.Minute
		if d := cmp.Diff([]time.Duration{0, m, 2 * m, 6 * m, 7 * m, 8 * m, 9 * m, 10 * m}, at); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
	})
}

type resender struct {
	answers
	resent []resending
}

type resending struct {
	at     time.Time
	groups string
}

func (r *resender) Resend(ctx context.Context, all []deliver.Active) (time.Duration, error) {
	var groups []string
	for _, a := range all {
		groups = append(groups, a.Group)
	}
	r.resent = append(r.resent, resending{time.Now(), strings.Join(groups, " ")})
	switch len(r.resent) {
	case 2:
		return 0, errDown
	case 3:
		return 4 * time.Minute, errDown
	}
	return 0, nil
}

// The real one takes what is sent, shows one alert however often it is told, and ends
// it.
func TestRealAlertmanager(t *testing.T) {
	bin, err := exec.LookPath("prometheus-alertmanager")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("there is no prometheus-alertmanager: apt-get install prometheus-alertmanager")
	}
	dir := t.TempDir()
	conf := filepath.Join(dir, "am.yml")
	if err := os.WriteFile(conf, []byte("route: {receiver: none}\nreceivers: [{name: none}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	address := freePort(t)
	cmd := exec.Command(bin, "--config.file="+conf, "--storage.path="+dir, "--web.listen-address="+address, "--cluster.listen-address=")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	r, err := deliver.NewAlertmanager(deliver.WebhookOptions{URL: "http://" + address, Timeout: ample})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	ctx := withTimeout(t)
	for { // until it is up
		if _, _, err = r.Notify(ctx, lostUpdate().JSON(), "n1"); err == nil {
			break
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond) // it needs the processor, too
	}
	if _, err := r.Resend(ctx, []deliver.Active{active("g1", "critical"), active("g2", "warning")}); err != nil {
		t.Fatal(err)
	}
	// shown waits until it shows so many alerts, and returns them.
	shown := func(n int) []amShown {
		for {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/api/v2/alerts", nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			var all []amShown
			err = json.NewDecoder(resp.Body).Decode(&all)
			resp.Body.Close()
			if err != nil {
				t.Fatal(err)
			}
			if len(all) == n {
				return all
			}
			if ctx.Err() != nil {
				t.Fatalf("it shows %d alerts, want %d: %+v", len(all), n, all)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	for _, a := range shown(2) {
		if a.Status.State == "suppressed" || a.Labels["name"] != "lost-update" || a.Labels["group"] == "g1" && a.Annotations["description"] == "" {
			t.Errorf("%+v", a)
		}
	}
	tell(t, r, hostile())
	shown(3)
	over := resolved()
	over.ResolvedAt = time.Now().UnixNano()
	tell(t, r, over)
	if _, err := r.Resend(ctx, nil); err != nil {
		t.Fatal(err)
	}
	shown(0)
}

type amShown struct {
	Labels, Annotations map[string]string
	Status              struct{ State string }
}
