package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/isowatch/isowatch/internal/ports"
)

// secretRecords break much, and hold much that can't be used. Every key and value of them,
// and every field that no record has, is a word of secretWords.
const secretRecords = `{"db":"pii","session":"a","seq":1,"start":1732160000000000000,"end":1732160000100000000,"status":"committed","ops":[["w","patient:Schmidt","diag:HIV+4711"],["append","list:Geheim",42424242]]}
{"db":"pii","session":"b","seq":1,"start":1732160000200000000,"end":1732160000300000000,"status":"committed","ops":[["r","patient:Schmidt","diag:HIV+4711"],["w","patient:Schmidt","diag:cured9183"],["r","list:Geheim",[42424242]],["append","list:Geheim",51515151]]}
{"db":"pii","session":"c","seq":1,"start":1732160000200000000,"end":1732160000310000000,"status":"committed","ops":[["r","patient:Schmidt","diag:HIV+4711"],["w","patient:Schmidt","diag:worse7722"],["r","list:Geheim",[42424242]],["append","list:Geheim",61616161]]}
{"db":"pii","session":"d","seq":1,"start":1732160000400000000,"end":1732160000500000000,"status":"aborted","ops":[["w","salary:Roberta","99887766"]]}
{"db":"pii","session":"e","seq":1,"start":1732160000600000000,"end":1732160000700000000,"status":"committed","ops":[["r","salary:Roberta","99887766"]]}
{"db":"pii","session":"f","seq":1,"start":1732160000600000000,"end":1732160000700000000,"status":"committed","ops":[["r","obj:Zedekia",{"ssn":"123-45-6789"}],["w","obj:Zedekia",{"ssn":"987-65-4321"}],["r","obj:Zedekia",{"ssn":"123-45-6789"}]]}
{"db":"pii","session":"i","seq":1,"status":"committed","ops":[["rp",{"table":"Leute","where":"ssn == 'S3CR3T'"},{"Leute:7":{"v1":"Spalte"}}]]}
{"db":"pii","session":"j","seq":1,"status":"committed","ops":[["r","badkey:Eveline",tru]]}
{"db":"pii","session":"k","seq":1,"status":"committed","ops":[["Mallory@zzz","badop:Mallory","LEAKVAL"]]}
{"db":"pii","session":"l","seq":1,"status":"LEAKSTATUS","ops":[["r","badkey:Eveline2",1]]}
{"db":"pii","session":"m","seq":1,"status":"committed","ops":[["w","dupk:Q","DUPLEAK1"]],"LEAKFIELD":"LEAKX"}
{"db":"pii","session":"n","seq":1,"status":"committed","ops":[["w","x",{"leaky.column":1e999}]]}
{"db":"pii","session":"a","seq":1,"status":"committed","ops":[["w","contra:Zoe","CONTRALEAK"]]}
`

var secretWords = []string{"Schmidt", "HIV", "Geheim", "42424242", "cured9183", "51515151", "worse7722", "61616161", "Roberta", "99887766", "Zedekia", "ssn", "123-45", "987-65",
	"Leute", "S3CR3T", "Spalte", "Eveline", "Mallory", "LEAK", "leaky", "1e999", "contra:", "patient:", "salary:"}

// buffer is what several write, and one reads.
type buffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// command runs the monitor within this process, and answers what it wrote.
func command(t *testing.T, in io.Reader, args ...string) (stdout, stderr *buffer, err error) {
	t.Helper()
	stdout, stderr = &buffer{}, &buffer{}
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return stdout, stderr, root.ExecuteContext(t.Context())
}

// freePort is an address at which nobody listens.
func freePort(t *testing.T) string {
	t.Helper()
	addr, err := ports.Address()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

// fetch is what an address answers; empty if nothing does.
func fetch(ctx context.Context, url string) string {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err.Error()
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return ""
	}
	return string(b)
}

// Not a word of the data is in anything that leaves a monitor whose alerts hide it: what
// it prints, alerts as lines among it, its log, what each kind of receiver gets, its API
// and metrics, the stored alerts in every form, and evidence; and if it hides nothing,
// each of these has some, so that the test looks at the right things.
func TestNothingLeaves(t *testing.T) {
	for _, values := range []string{"hash", "none", "full"} {
		for _, format := range []string{"text", "json"} {
			t.Run(values+" "+format, func(t *testing.T) { leaves(t, values, format) })
		}
	}
}

func leaves(t *testing.T, values, format string) {
	posted := &buffer{}
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		fmt.Fprintf(posted, "%s %s\n", r.URL.Path, body) // one write, as receivers do not wait for each other
	}))
	defer hook.Close()
	t.Setenv("PD_KEY", strings.Repeat("k", 32))
	dir, listen := t.TempDir(), freePort(t)
	file := filepath.Join(dir, "c.yaml")
	config := fmt.Sprintf(`source: {stdin: {}}
levels: [si, ser]
coverage: complete
unique_attempts: true
store: {path: %q}
http: {listen: %q}
log: {level: debug, format: json}
window: {lateness: 10ms, idle_after: 1s, max_transaction: 1s}
alerts:
  values: %s
  repeat: 0s
  rate: {max: 1000, per: 1s}
  stdout: true
  webhooks: [{url: "%[4]s/generic"}, {format: slack, url: "%[4]s/slack"}, {format: alertmanager, url: "%[4]s"}, {format: pagerduty, url: "%[4]s/pagerduty", routing_key_env: PD_KEY}]
`, filepath.Join(dir, "store"), listen, values, hook.URL)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	in, feed := io.Pipe()
	out := map[string]string{}
	var asked sync.WaitGroup
	asked.Go(func() {
		defer feed.Close()
		if _, err := io.WriteString(feed, secretRecords); err != nil {
			t.Error(err)
			return
		}
		api := "http://" + listen + "/api/v1/"
		var all struct {
			Alerts []struct{ ID string }
		}
		for end := time.Now().Add(10 * time.Minute); len(all.Alerts) < 2 || !strings.Contains(posted.String(), "operational/dead-letters"); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Errorf("in vain waited for alerts; there are %v", all)
				return
			}
			_ = json.Unmarshal([]byte(fetch(t.Context(), api+"alerts")), &all)
		}
		for _, path := range []string{"alerts", "groups", "status", "silences"} {
			out["the API's "+path] = fetch(t.Context(), api+path)
		}
		for _, a := range all.Alerts {
			for _, path := range []string{"", "/evidence", "/picture.svg", "/picture.svg?view=timeline", "/next"} {
				out["the API's alert"+path] += fetch(t.Context(), api+"alerts/"+a.ID+path)
			}
		}
		out["the metrics"] = fetch(t.Context(), "http://"+listen+"/metrics")
	})
	stdout, stderr, err := command(t, in, "run", "-c", file, "--until-end", "--output", format)
	_ = in.Close() // if it ended early, nobody reads
	asked.Wait()
	if got := exitStatus(err, io.Discard); got != exitViolated {
		t.Fatalf("status %d: %v\n%s", got, err, stderr)
	}
	out["standard output"], out["the log"] = stdout.String(), stderr.String()
	for line := range strings.Lines(posted.String()) {
		path, body, _ := strings.Cut(line, " ")
		out["the receiver "+path] += body
	}
	stored := filepath.Join(dir, "store")
	evidence := filepath.Join(dir, "evidence")
	for what, args := range map[string][]string{
		"alerts list":              {"alerts", "list", "--store", stored},
		"alerts list, JSON":        {"alerts", "list", "--store", stored, "--output", "json"},
		"alerts export":            {"alerts", "export", "--store", stored},
		"alerts export --evidence": {"alerts", "export", "--store", stored, "--evidence", evidence},
	} {
		o, e, err := command(t, strings.NewReader(""), args...)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		out[what] = o.String() + e.String()
	}
	files, err := filepath.Glob(filepath.Join(evidence, "*"))
	if err != nil || len(files) < 3 {
		t.Fatalf("%q, %v", files, err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		out["exported evidence"] += string(b)
		for _, as := range []string{"text", "json", "dot", "svg", "html"} {
			o, _, err := command(t, strings.NewReader(""), "alerts", "show", "--store", stored, "--output", as, strings.TrimSuffix(filepath.Base(f), ".jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			out["alerts show as "+as] += o.String()
		}
	}
	quiet := map[string]bool{"the metrics": true, "the API's silences": true, "the API's alert/next": true, "the API's status": true, "alerts export --evidence": true}
	for what, said := range out {
		found := ""
		for _, w := range secretWords {
			if strings.Contains(said, w) {
				found = w
			}
		}
		switch {
		case said == "" || values != "full" && found != "":
			t.Errorf("%s shows %q:\n%s", what, found, said)
		case values == "full" && found == "" && !quiet[what]:
			t.Errorf("%s has nothing to hide:\n%s", what, said)
		}
	}
	if len(out) < 25 {
		t.Errorf("only %d outputs were looked at", len(out))
	}
}
