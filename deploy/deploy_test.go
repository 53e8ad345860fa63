// Package deploy holds what operators copy; its tests hold that to the program.
package deploy

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

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
	for _, m := range rowForm.FindAllStringSubmatch(string(read(t, "../docs/metrics.md")), -1) {
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

// TestImages: the images have nothing but the program, and whoever runs them is not root; what is behind the
// last FROM is the same but for where the program comes from.
func TestImages(t *testing.T) {
	var same []string
	for _, file := range []string{"docker/Dockerfile", "docker/release.Dockerfile"} {
		var from, user, rest string
		for line := range strings.Lines(string(read(t, file))) {
			switch word, what, _ := strings.Cut(strings.TrimSpace(line), " "); word {
			case "FROM":
				from, user, rest = what, "", ""
			case "USER":
				user = what
			case "COPY", "#":
			default:
				rest += line
			}
		}
		if from != "gcr.io/distroless/static-debian12:nonroot" || user != "65532:65532" {
			t.Errorf("the image of %s is of %q and runs as %q", file, from, user)
		}
		same = append(same, rest)
	}
	if same[0] != same[1] {
		t.Errorf("the images differ:\n%s\n%s", same[0], same[1])
	}
}

// TestRelease: what the packages hold is in the repository or made by make packaging, and the configuration
// that they bring is one that the monitor takes.
func TestRelease(t *testing.T) {
	var release struct {
		Before struct{ Hooks []string }
		Builds []struct{ Main string }
		Nfpms  []struct{ Contents []struct{ Src, Dst string } }
	}
	if err := yaml.Unmarshal(read(t, "../.goreleaser.yaml"), &release); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(release.Before.Hooks, []string{"make packaging"}) {
		t.Errorf("before a release %q are run", release.Before.Hooks)
	}
	if len(release.Nfpms) != 1 || len(release.Nfpms[0].Contents) == 0 {
		t.Fatal("the packages hold nothing")
	}
	for _, c := range release.Nfpms[0].Contents {
		if _, err := os.Stat(filepath.Join("..", c.Src)); err != nil && !strings.HasPrefix(c.Src, "packaging/") {
			t.Error(err)
		}
	}
	if _, err := config.Load(config.Sources{File: filepath.FromSlash("systemd/isowatch.yaml")}); err != nil {
		t.Error(err)
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

// TestScrape: Prometheus takes the job, which shows the token and finds the port by the name that the
// manifests give it.
func TestScrape(t *testing.T) {
	text := string(read(t, "prometheus/scrape.yaml"))
	// Debian's promtool knows no Kubernetes.
	job := strings.Replace(text, "kubernetes_sd_configs:\n      - {role: pod}", "static_configs:\n      - {targets: ['isowatch:8443']}", 1)
	if job == text {
		t.Fatal("pods are found otherwise")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "scrape.yaml"), []byte(job), 0o600); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text, "credentials_file:") || !strings.Contains(text, "regex: isowatch,") {
		t.Error("the job shows no token, or looks for another port")
	}
	if wrong := tool(t, dir, "promtool", "check", "config", "--syntax-only", "scrape.yaml"); wrong != "" {
		t.Errorf("promtool: %s", wrong)
	}
}

// object is a thing of Kubernetes.
type object map[string]any

// objects are those of a file, by kind.
func objects(t *testing.T, file string) map[string]object {
	t.Helper()
	byKind := map[string]object{}
	d := yaml.NewDecoder(bytes.NewReader(read(t, file)))
	for {
		o := object{}
		if err := d.Decode(&o); errors.Is(err, io.EOF) {
			return byKind
		} else if err != nil {
			t.Fatal(err)
		}
		byKind[o["kind"].(string)] = o
	}
}

// as puts a thing into a form that has what is looked at.
func as(t *testing.T, o any, into any) {
	t.Helper()
	text, err := yaml.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

type volume struct{ Name string }

type mount struct {
	Name      string
	MountPath string `yaml:"mountPath"`
}

type container struct {
	Args          []string
	Ports         []struct{ Name string }
	VolumeMounts  []mount `yaml:"volumeMounts"`
	LivenessProbe struct {
		HTTPGet struct{ Path, Port, Scheme string } `yaml:"httpGet"`
	} `yaml:"livenessProbe"`
	SecurityContext struct {
		ReadOnly bool `yaml:"readOnlyRootFilesystem"`
	} `yaml:"securityContext"`
}

// TestManifests: in a Deployment of its own and in a sidecar, what is mounted is there, nobody is root,
// probes and Prometheus find the port, and the configuration is one that the monitor takes without a word.
func TestManifests(t *testing.T) {
	sidecar, alone := objects(t, "kubernetes/sidecar.yaml"), objects(t, "kubernetes/deployment.yaml")
	var base struct {
		Resources []string
		Generated []struct {
			Name  string
			Files []string
		} `yaml:"configMapGenerator"`
	}
	if err := yaml.Unmarshal(read(t, "kubernetes/kustomization.yaml"), &base); err != nil {
		t.Fatal(err)
	}
	for _, file := range base.Resources {
		read(t, "kubernetes/"+file)
	}
	if len(base.Generated) != 1 || base.Generated[0].Name != "isowatch" || !slices.Equal(base.Generated[0].Files, []string{"isowatch.yaml"}) {
		t.Errorf("the configuration of the base is %+v", base.Generated)
	}
	var service struct {
		Spec struct {
			Selector map[string]string
			Ports    []struct {
				TargetPort string `yaml:"targetPort"`
			}
		}
	}
	as(t, objects(t, "kubernetes/service.yaml")["Service"], &service)
	secrets := sidecar["Secret"]["stringData"].(object)
	for name, of := range map[string]struct {
		objects       map[string]object
		configuration string
	}{
		"sidecar": {sidecar, sidecar["ConfigMap"]["data"].(object)["isowatch.yaml"].(string)},
		"alone":   {alone, string(read(t, "kubernetes/isowatch.yaml"))},
	} {
		t.Run(name, func(t *testing.T) {
			var deployment struct {
				Spec struct {
					Template struct {
						Metadata struct{ Labels map[string]string }
						Spec     struct {
							SecurityContext struct {
								RunAsNonRoot bool `yaml:"runAsNonRoot"`
							} `yaml:"securityContext"`
							InitContainers []container `yaml:"initContainers"`
							Containers     []container
							Volumes        []volume
						}
					}
				}
			}
			as(t, of.objects["Deployment"], &deployment)
			pod := deployment.Spec.Template.Spec
			c := append(pod.InitContainers, pod.Containers...)[0]
			if !pod.SecurityContext.RunAsNonRoot || !c.SecurityContext.ReadOnly {
				t.Errorf("the pod is %+v", pod)
			}
			if p := c.LivenessProbe.HTTPGet; p.Path != "/healthz" || p.Scheme != "HTTPS" || p.Port != "isowatch" || len(c.Ports) != 1 || c.Ports[0].Name != "isowatch" {
				t.Errorf("the probe is %+v, the ports are %+v", p, c.Ports)
			}
			if name == "alone" && (!maps.Equal(service.Spec.Selector, deployment.Spec.Template.Metadata.Labels) || len(service.Spec.Ports) != 1 || service.Spec.Ports[0].TargetPort != "isowatch") {
				t.Errorf("the service is %+v, the pod has %v", service, deployment.Spec.Template.Metadata.Labels)
			}
			for _, m := range c.VolumeMounts {
				if !slices.ContainsFunc(pod.Volumes, func(v volume) bool { return v.Name == m.Name }) {
					t.Errorf("there is no volume %s", m.Name)
				}
			}
			// The configuration, with its files where a test may put them.
			dir := t.TempDir()
			for name, value := range secrets {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(value.(string)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			file := filepath.Join(dir, "isowatch.yaml")
			if err := os.WriteFile(file, []byte(strings.ReplaceAll(of.configuration, "/etc/isowatch/secrets", dir)), 0o600); err != nil {
				t.Fatal(err)
			}
			loaded, err := config.Load(config.Sources{File: file})
			if err != nil {
				t.Fatal(err)
			}
			if len(loaded.Warnings) > 0 {
				t.Errorf("warnings: %q", loaded.Warnings)
			}
			if !slices.ContainsFunc(c.VolumeMounts, func(m mount) bool { return m.MountPath == loaded.Store.Path }) {
				t.Errorf("the store at %s is on no volume", loaded.Store.Path)
			}
		})
	}
}
