// Package deploy holds what operators copy; its tests hold that to the program.
package deploy

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/isowatch/isowatch/cmd/monitor/app"
	"github.com/isowatch/isowatch/config"
)

var (
	rowForm    = regexp.MustCompile("(?m)^\\| `(isowatch_[a-z_]+)` \\| (counter|gauge|histogram) \\| ([^|]*) \\|")
	metricForm = regexp.MustCompile(`\bisowatch_[a-z_]+`)
	labelForm  = regexp.MustCompile(`\b(?:by|without) \(([^)]*)\)`)
)

// known are the metrics that there are, as a query may name them, and all their labels.
func known(t *testing.T) (metrics, labels map[string]bool) {
	t.Helper()
	metrics, labels = map[string]bool{}, map[string]bool{"instance": true, "job": true, "le": true}
	for _, m := range rowForm.FindAllStringSubmatch(app.MetricsTable(), -1) {
		if m[2] == "histogram" {
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				metrics[m[1]+suffix] = true
			}
		} else {
			metrics[m[1]] = true
		}
		for _, l := range strings.Split(m[3], ",") {
			labels[strings.Trim(strings.TrimSpace(l), "`")] = true
		}
	}
	if len(metrics) < 40 {
		t.Fatalf("only %d metrics are known: the table reads otherwise", len(metrics))
	}
	return metrics, labels
}

// check holds a query to the metrics that there are.
func check(t *testing.T, where, query string, metrics, labels map[string]bool) {
	t.Helper()
	for _, name := range metricForm.FindAllString(query, -1) {
		if !metrics[name] {
			t.Errorf("%s: there is no metric %s", where, name)
		}
	}
	for _, m := range labelForm.FindAllStringSubmatch(query, -1) {
		for _, l := range strings.Split(m[1], ",") {
			if l = strings.TrimSpace(l); !labels[l] {
				t.Errorf("%s: no metric has a label %s", where, l)
			}
		}
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.FromSlash(path))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestRulesNameMetrics(t *testing.T) {
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr         string
				Labels, Annotations map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(read(t, "prometheus/isowatch.rules.yaml"), &file); err != nil {
		t.Fatal(err)
	}
	metrics, labels := known(t)
	runbook := string(read(t, "../docs/operations.md"))
	rules := 0
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			rules++
			check(t, r.Alert, r.Expr, metrics, labels)
			if !slices.Contains([]string{"critical", "error", "warning"}, r.Labels["severity"]) || r.Annotations["summary"] == "" {
				t.Errorf("%s has severity %q and summary %q", r.Alert, r.Labels["severity"], r.Annotations["summary"])
			}
			if !strings.Contains(runbook, "`"+r.Alert+"`") {
				t.Errorf("docs/operations.md does not say what to do about %s", r.Alert)
			}
		}
	}
	if rules == 0 {
		t.Error("there are no rules")
	}
}

func TestDashboardNamesMetrics(t *testing.T) {
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
		Templating struct {
			List []struct{ Name, Definition string }
		}
	}
	if err := json.Unmarshal(read(t, "grafana/isowatch.json"), &board); err != nil {
		t.Fatal(err)
	}
	metrics, labels := known(t)
	queries := 0
	for _, p := range board.Panels {
		for _, x := range p.Targets {
			queries++
			check(t, p.Title, x.Expr, metrics, labels)
		}
	}
	for _, v := range board.Templating.List {
		check(t, v.Name, v.Definition, metrics, labels)
	}
	if queries < 20 {
		t.Errorf("the dashboard has %d queries", queries)
	}
}

// tool runs a program, if there is one. CI has it.
func tool(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if os.Getenv("CI") != "" && name == "promtool" {
			t.Fatalf("%s is missing: install Debian's prometheus", name)
		}
		t.Skipf("there is no %s", name)
	}
	c := exec.CommandContext(t.Context(), path, args...)
	c.Dir = dir
	out, err := c.CombinedOutput()
	if err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	if err != nil {
		return string(out)
	}
	return ""
}

func TestRulesFire(t *testing.T) {
	for _, args := range [][]string{{"check", "rules", "isowatch.rules.yaml"}, {"test", "rules", "isowatch.rules.test.yaml"}} {
		if wrong := tool(t, "prometheus", "promtool", args...); wrong != "" {
			t.Errorf("promtool %s:\n%s", strings.Join(args, " "), wrong)
		}
	}
}

func TestUnit(t *testing.T) {
	for line := range strings.Lines(tool(t, "systemd", "systemd-analyze", "verify", "./isowatch.service")) {
		if !strings.Contains(line, "is not executable") { // the program is not installed here
			t.Errorf("systemd-analyze: %s", line)
		}
	}
}

// TestImage: the image has nothing but the program, and whoever runs it is not root.
func TestImage(t *testing.T) {
	var from, user string
	for line := range strings.Lines(string(read(t, "docker/Dockerfile"))) {
		switch word, rest, _ := strings.Cut(strings.TrimSpace(line), " "); word {
		case "FROM":
			from, user = rest, ""
		case "USER":
			user = rest
		}
	}
	if !strings.HasPrefix(from, "gcr.io/distroless/static") || !strings.HasSuffix(from, ":nonroot") || user != "65532:65532" {
		t.Errorf("the image is of %q and runs as %q", from, user)
	}
}

// TestImageConfiguration: what the image sets is what the program knows, the store is where
// the volume is, and the command is one that reads a configuration, here the quickstart's.
func TestImageConfiguration(t *testing.T) {
	text := string(read(t, "docker/Dockerfile"))
	_, text, _ = strings.Cut(text, "FROM gcr.io") // of the image itself
	env := regexp.MustCompile(`ISOWATCH_[A-Z_]+=\S+`).FindAllString(text, -1)
	file := filepath.Join(t.TempDir(), "isowatch.yaml")
	if err := os.WriteFile(file, []byte("source: {kafka: {brokers: [127.0.0.1:9092], topic: transactions}}\nlevels: [si]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := config.Load(config.Sources{File: file, Env: env})
	if err != nil {
		t.Fatal(err)
	}
	if len(env) == 0 || !strings.Contains(text, `VOLUME ["`+l.Config.Store.Path+`"]`) {
		t.Errorf("with %q the store is at %s, which is no volume", env, l.Config.Store.Path)
	}
	if want := `CMD ["run", "--config", "/etc/isowatch/isowatch.yaml"]`; !strings.Contains(text, want) {
		t.Errorf("the command is not %s", want)
	}
}

// TestManifest: what the manifest mounts is there, nobody is root, and the
// configuration in it is one that the monitor takes.
func TestManifest(t *testing.T) {
	type object map[string]any
	byKind := map[string]object{}
	d := yaml.NewDecoder(bytes.NewReader(read(t, "kubernetes/isowatch.yaml")))
	for {
		o := object{}
		if err := d.Decode(&o); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		byKind[o["kind"].(string)] = o
	}
	var deployment struct {
		Spec struct {
			Template struct {
				Spec struct {
					SecurityContext struct {
						RunAsNonRoot bool `yaml:"runAsNonRoot"`
					} `yaml:"securityContext"`
					InitContainers []struct {
						Name, RestartPolicy string `yaml:",omitempty"`
						Args                []string
						VolumeMounts        []struct{ Name, MountPath string } `yaml:"volumeMounts"`
						LivenessProbe       struct {
							HTTPGet struct{ Path, Port, Scheme string } `yaml:"httpGet"`
						} `yaml:"livenessProbe"`
						SecurityContext struct {
							ReadOnly bool `yaml:"readOnlyRootFilesystem"`
						} `yaml:"securityContext"`
					} `yaml:"initContainers"`
					Volumes []struct{ Name string }
				}
			}
		}
	}
	text, err := yaml.Marshal(byKind["Deployment"])
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &deployment); err != nil {
		t.Fatal(err)
	}
	pod := deployment.Spec.Template.Spec
	if len(pod.InitContainers) != 1 || !pod.SecurityContext.RunAsNonRoot || !pod.InitContainers[0].SecurityContext.ReadOnly {
		t.Fatalf("the pod is %+v", pod)
	}
	c := pod.InitContainers[0]
	if p := c.LivenessProbe.HTTPGet; p.Path != "/healthz" || p.Scheme != "HTTPS" {
		t.Errorf("the probe is %+v", p)
	}
	for _, m := range c.VolumeMounts {
		if !slices.ContainsFunc(pod.Volumes, func(v struct{ Name string }) bool { return v.Name == m.Name }) {
			t.Errorf("there is no volume %s", m.Name)
		}
	}
	// The configuration, with its files where a test may put them.
	dir := t.TempDir()
	configuration := byKind["ConfigMap"]["data"].(object)["isowatch.yaml"].(string)
	for name, value := range byKind["Secret"]["stringData"].(object) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(value.(string)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	configuration = strings.ReplaceAll(configuration, "/etc/isowatch/secrets", dir)
	file := filepath.Join(dir, "isowatch.yaml")
	if err := os.WriteFile(file, []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, err := config.Load(config.Sources{File: file})
	if err != nil {
		t.Fatal(err)
	}
	if len(loaded.Warnings) > 0 {
		t.Errorf("warnings: %q", loaded.Warnings)
	}
}
