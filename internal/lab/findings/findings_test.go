//go:build unix

package findings

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/isowatch/isowatch/alerts/life"
	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/cmd/monitor/judge"
	"github.com/isowatch/isowatch/cmd/monitor/report"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/history"
	"github.com/isowatch/isowatch/internal/lab/databases"
	"github.com/isowatch/isowatch/internal/lab/rig"
	"github.com/isowatch/isowatch/internal/servers"
)

// The flags of the findings; `make findings` sets them.
var (
	findDuration = flag.Duration("findings.duration", 0, "how long TestFindings runs each canary; 0: it is skipped")
	findOnly     = flag.String("findings.only", "", "a regular expression: only findings whose names match; the others stay as they were found")
	findMySQL    = flag.String("findings.mysql", "", "the address of a MySQL, which is no package of the stable Debian that servers are started from")
	findMonitor  = flag.String("findings.monitor", "", "the program, if it has been built")
)

const (
	foundDir  = "../../../testdata/findings"
	foundFile = foundDir + "/found.jsonl"
	foundDoc  = "../../../docs/findings.md"
)

// topology is servers of a database, and what is looked for there, one after the other.
type topology struct {
	name, database, words string
	start                 func(t *testing.T, dir string) place
	cases                 []setting
}

// place is where the servers are: flags with addresses, and the names that a person would read for these.
type place struct {
	flags []string
	names []string // as of strings.NewReplacer
}

// setting is what a canary asks for there.
type setting struct {
	isolation string
	session   string // --session-settings
	promised  string // the level that the documentation promises; empty: none that clients may rely on whatever they do
	workload  string // empty: those that take turns by default
}

// with are settings with each of some workloads.
func with(workloads []string, settings ...setting) (out []setting) {
	for _, w := range workloads {
		for _, s := range settings {
			s.workload = w
			out = append(out, s)
		}
	}
	return out
}

// conditional are the workloads that ask for rows by conditions. blindw-pred is looked at where its levels are decided.
var conditional = []string{"booking", "queue", "unique"}

// levels are those that the canary checks.
func (s setting) levels() string {
	levels := []string{"si", "ser"}
	if promised := cmp.Or(s.promised, "g1"); !slices.Contains(levels, promised) {
		levels = append(levels, promised)
	}
	return strings.Join(levels, ",")
}

// id is what a finding is called.
func (t topology) id(s setting) string {
	settings := regexp.MustCompile(`[;,]*[a-z_]+=`).ReplaceAllString(s.session, "-")
	name := t.name
	if s.workload != "" {
		name += "-" + s.workload
	}
	return name + "-" + s.isolation + settings
}

// topologies is everything that is looked at.
var topologies = []topology{
	{"postgres", "PostgreSQL", "alone", func(t *testing.T, dir string) place {
		return atPostgres(t, dir, false)
	}, append(with(slices.Concat([]string{""}, conditional), setting{isolation: "read-committed", promised: "g1"},
		setting{isolation: "repeatable-read", promised: "si"}, setting{isolation: "serializable", promised: "ser"}),
		with([]string{"blindw-pred"}, setting{isolation: "repeatable-read", promised: "si"}, setting{isolation: "serializable", promised: "ser"})...)},
	{"postgres-standby", "PostgreSQL", "primary and synchronous standby, which is read", func(t *testing.T, dir string) place {
		return atPostgres(t, dir, true)
	}, []setting{{isolation: "repeatable-read", session: "synchronous_commit=on", promised: "si"}, {isolation: "repeatable-read", session: "synchronous_commit=remote_apply", promised: "si"},
		{isolation: "repeatable-read", session: "synchronous_commit=off", promised: "si"}, {isolation: "repeatable-read", session: "synchronous_commit=remote_apply;synchronous_commit=off", promised: "si"},
		{isolation: "serializable", session: "synchronous_commit=remote_apply"}, {isolation: "serializable", session: "synchronous_commit=remote_apply;synchronous_commit=off"}}},
	{"pgbouncer", "PostgreSQL", "behind pgbouncer, pool_mode = transaction", func(t *testing.T, dir string) place {
		p, err := servers.NewPostgres(t.Context(), dir, servers.PostgresOptions{})
		missing(t, err)
		t.Cleanup(p.Close)
		b, err := databases.NewPgBouncer(t.Context(), dir, p, "transaction", 5)
		missing(t, err)
		t.Cleanup(b.Close)
		return place{[]string{"--target", b.URL()}, []string{b.Addr, "pooler:6432", "?sslmode=disable&", "?"}}
	}, []setting{{isolation: "repeatable-read", promised: "si"}, {isolation: "serializable", promised: "ser"}}},
	{"mariadb", "MariaDB", "alone", func(t *testing.T, dir string) place {
		return atMariaDB(t, dir, databases.MariaDBOptions{Nodes: 1})
	}, slices.Concat([]setting{{isolation: "read-uncommitted"}, {isolation: "read-committed", promised: "g1"}, {isolation: "repeatable-read"},
		{isolation: "repeatable-read", session: "innodb_snapshot_isolation=ON", promised: "si"}, {isolation: "serializable", promised: "ser"}},
		with(conditional, setting{isolation: "read-committed", promised: "g1"}, setting{isolation: "repeatable-read"}, setting{isolation: "serializable", promised: "ser"}),
		with([]string{"unique"}, setting{isolation: "read-uncommitted"}),
		with([]string{"blindw-pred"}, setting{isolation: "repeatable-read"}, setting{isolation: "serializable", promised: "ser"}))},
	{"mariadb-replica", "MariaDB", "primary and replica of its binary log, which is read", func(t *testing.T, dir string) place {
		return atMariaDB(t, dir, databases.MariaDBOptions{Nodes: 1, Replica: true})
	}, []setting{{isolation: "repeatable-read"}, {isolation: "serializable"}}},
	{"galera", "MariaDB", "Galera cluster of three nodes, all written", func(t *testing.T, dir string) place {
		return atMariaDB(t, dir, databases.MariaDBOptions{Nodes: 3})
	}, slices.Concat([]setting{{isolation: "repeatable-read", session: "wsrep_sync_wait=0"}, {isolation: "repeatable-read", session: "wsrep_sync_wait=1"}, {isolation: "repeatable-read", session: "wsrep_sync_wait=7"},
		{isolation: "serializable", session: "wsrep_sync_wait=0"}, {isolation: "serializable", session: "wsrep_sync_wait=1"}, {isolation: "serializable", session: "wsrep_sync_wait=7"}},
		with(conditional, setting{isolation: "repeatable-read", session: "wsrep_sync_wait=0"}, setting{isolation: "serializable", session: "wsrep_sync_wait=7"}))},
	{"mysql", "MySQL", "alone", func(t *testing.T, _ string) place {
		address, err := url.Parse(*findMySQL)
		if err != nil || address.Host == "" {
			t.Skipf("SKIPPED: -findings.mysql %q is no address", *findMySQL)
		}
		return place{[]string{"--target", *findMySQL}, []string{address.User.String() + "@" + address.Host, "canary@db-1", address.Path, "/"}}
	}, []setting{{isolation: "read-uncommitted"}, {isolation: "read-committed", promised: "g1"}, {isolation: "repeatable-read"}, {isolation: "serializable", promised: "ser"}}},
	{"etcd", "etcd", "one member", func(t *testing.T, dir string) place {
		e, err := databases.NewEtcd(t.Context(), dir)
		missing(t, err)
		t.Cleanup(e.Close)
		return place{[]string{"--target", e.URL()}, []string{e.Addr, "db-1:2379"}}
	}, []setting{{isolation: "serializable", promised: "sser"}, {isolation: "snapshot", promised: "si"}, {isolation: "serializable-stale-reads", promised: "ser"}}},
	{"redis", "Redis", "alone", func(t *testing.T, dir string) place {
		return atRedis(t, dir, false)
	}, []setting{{isolation: "watch", promised: "ser"}, {isolation: "multi"}}},
	{"redis-replica", "Redis", "primary and replica, which is read", func(t *testing.T, dir string) place {
		return atRedis(t, dir, true)
	}, []setting{{isolation: "watch"}, {isolation: "multi"}}},
	{"sqlite", "SQLite", "one file, journal_mode = WAL", func(_ *testing.T, dir string) place {
		return place{[]string{"--target", "sqlite://" + dir + "/canary.db"}, []string{dir, "/tmp"}}
	}, with(slices.Concat([]string{""}, conditional, []string{"blindw-pred"}), setting{isolation: "serializable", promised: "ser"}, setting{isolation: "immediate", promised: "ser"})},
	{"badger", "Badger", "embedded", func(_ *testing.T, dir string) place {
		return place{[]string{"--target", "badger://" + dir + "/canary"}, []string{dir, "/tmp"}}
	}, []setting{{isolation: "serializable", promised: "ser"}, {isolation: "no-conflict-detection"}}},
}

func atPostgres(t *testing.T, dir string, standby bool) place {
	p, err := servers.NewPostgres(t.Context(), dir, servers.PostgresOptions{Standby: standby})
	missing(t, err)
	t.Cleanup(p.Close)
	at := place{[]string{"--target", p.URL(p.Primary)}, []string{p.Primary.Addr, "primary", "?sslmode=disable", ""}}
	if standby {
		at.flags = append(at.flags, "--replica", p.URL(p.Standby))
		at.names = append(at.names, p.Standby.Addr, "standby")
	}
	return at
}

func atMariaDB(t *testing.T, dir string, o databases.MariaDBOptions) place {
	m, err := databases.NewMariaDB(t.Context(), dir, o)
	missing(t, err)
	t.Cleanup(m.Close)
	var at place
	for i, s := range m.Nodes {
		at.flags = append(at.flags, "--target", m.URL(s))
		at.names = append(at.names, s.Addr, fmt.Sprintf("db-%d", i+1))
	}
	if m.Replica != nil {
		at.flags = append(at.flags, "--replica", m.URL(m.Replica))
		at.names = append(at.names, m.Replica.Addr, "replica")
	}
	return at
}

func atRedis(t *testing.T, dir string, replica bool) place {
	r, err := databases.NewRedis(t.Context(), dir, replica)
	missing(t, err)
	t.Cleanup(r.Close)
	at := place{[]string{"--target", r.URL(r.Primary)}, []string{r.Primary.Addr, "primary"}}
	if replica {
		at.flags = append(at.flags, "--replica", r.URL(r.Replica))
		at.names = append(at.names, r.Replica.Addr, "replica")
	}
	return at
}

// finding is what a canary found, a line of testdata/findings/found.jsonl.
type finding struct {
	ID           string   `json:"id"`
	Version      string   `json:"version"` // of the database, as it calls itself
	Topology     string   `json:"topology"`
	Isolation    string   `json:"isolation"`
	Settings     string   `json:"settings,omitempty"`
	Promised     string   `json:"promised,omitempty"`
	Strongest    []string `json:"strongest"`           // the levels that all of what was recorded satisfies
	Undecided    []string `json:"undecided,omitempty"` // the levels of which that is not known
	Open         []string `json:"open,omitempty"`      // the levels that were left open while it ran
	Seen         []seen   `json:"seen"`                // in the order of the first of each
	Transactions int      `json:"transactions"`
	Seconds      float64  `json:"seconds"`
	Command      string   `json:"command"`
	Evidence     string   `json:"evidence,omitempty"` // a file beside this one, of the anomaly that breaks the weakest level
}

// seen is the first anomaly of a name.
type seen struct {
	Name    string  `json:"name"`
	Breaks  string  `json:"breaks"` // the weakest level that it breaks
	Seconds float64 `json:"seconds"`
}

// What real databases give is found by running a canary at each, and written down.
func TestFindings(t *testing.T) {
	if *findDuration == 0 {
		t.Skip("it is run by make findings")
	}
	only, err := regexp.Compile(*findOnly)
	if err != nil {
		t.Fatal(err)
	}
	monitor := build(t, *findMonitor)
	t.Run("topologies", func(t *testing.T) {
		for _, top := range topologies {
			if top.cases = slices.DeleteFunc(slices.Clone(top.cases), func(s setting) bool { return !only.MatchString(top.id(s)) }); len(top.cases) == 0 {
				continue
			}
			t.Run(top.name, func(t *testing.T) {
				t.Parallel()
				at := top.start(t, folder(t))
				for _, s := range top.cases {
					t.Run(top.id(s), func(t *testing.T) { find(t, monitor, top, s, at) })
				}
			})
		}
	})
	writeDoc(t)
}

// find runs one canary, judges what it recorded, and writes down what came of it.
func find(t *testing.T, monitor rig.Command, top topology, s setting, at place) {
	recorded := filepath.Join(t.TempDir(), "history.jsonl")
	args := append([]string{"canary"}, at.flags...)
	args = append(args, "--isolation", s.isolation)
	if s.session != "" {
		args = append(args, "--session-settings", s.session)
	}
	args = append(args, "--level", s.levels())
	if s.workload != "" {
		args, top.words = append(args, "--workload", s.workload), top.words+", with `--workload "+s.workload+"`"
	}
	f := finding{ID: top.id(s), Topology: top.words, Isolation: s.isolation, Settings: s.session, Promised: s.promised, Seconds: findDuration.Seconds()}
	f.Command = shellWords(append(slices.Clone(args), "--duration", findDuration.String()), strings.NewReplacer(at.names...))
	live, evidence := watch(t, monitor(append(args, "--duration", findDuration.String(), "--listen", "", "--output", "json", "--record", recorded,
		"--set", "alerts.rate={max: 10000, per: 1s}")...), &f) // so that each group of alerts is told by itself
	f.Version, f.Transactions = live.File, live.Transactions

	whole := check(t, monitor, "--level", "all", recorded)
	f.Strongest = whole.Strongest
	for _, r := range whole.Results {
		if r.Verdict == verdict.Unknown.String() {
			f.Undecided = append(f.Undecided, r.Level)
		}
	}
	for i, r := range check(t, monitor, "--level", s.levels(), recorded).Results {
		switch l := live.Results[i]; {
		case l.Level == r.Level && l.Verdict == verdict.Unknown.String() && s.workload != "":
			f.Open = append(f.Open, l.Level)
		case l.Level != r.Level || l.Verdict != r.Verdict:
			t.Errorf("%s was %s while it ran, and check of what was recorded says %s is %s", l.Level, l.Verdict, r.Level, r.Verdict)
		}
	}
	t.Logf("%+v", f)
	if t.Failed() {
		return
	}
	file := filepath.Join(foundDir, f.ID+".jsonl")
	if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	if evidence != nil {
		f.Evidence = filepath.Base(file)
		if err := os.WriteFile(file, evidence, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	keep(t, f)
}

// watch runs a canary to its end, and takes in what it tells: the report at the end, the first anomaly of each name, and
// the evidence of one that breaks the weakest level.
func watch(t *testing.T, cmd *exec.Cmd, f *finding) (live report.History, evidence []byte) {
	t.Helper()
	began, weakest := time.Now(), ""
	m, told := start(t, cmd, func(n life.Notice) {
		if len(n.Notification.IDs) == 0 {
			t.Logf("told: %s: %s", n.Notification.Kind, n.Summary)
			return
		}
		if !slices.ContainsFunc(f.Seen, func(s seen) bool { return s.Name == n.Name && s.Breaks == n.Weakest }) {
			f.Seen = append(f.Seen, seen{n.Name, n.Weakest, math.Round(time.Since(began).Seconds()*10) / 10})
		}
		if evidence == nil || n.Weakest != weakest && implies(weakest, n.Weakest) {
			weakest, evidence = n.Weakest, nil
			for _, line := range n.Evidence {
				evidence = append(append(evidence, line...), '\n')
			}
		}
	})
	reports := <-told
	if status := m.Status(); len(reports) != 1 || len(reports[0].Results) == 0 {
		t.Fatalf("exit status %d, %d reports: %s", status, len(reports), m.Said())
	}
	return reports[0], evidence
}

// implies tells whether what satisfies one level satisfies the other; both are names.
func implies(one, other string) bool {
	l, ok := verdict.ParseLevel(one)
	m, found := verdict.ParseLevel(other)
	return ok && found && l.Implies(m)
}

// check judges a recorded history.
func check(t *testing.T, monitor rig.Command, args ...string) report.History {
	t.Helper()
	cmd := monitor(append([]string{"check", "--output", "json", "--anomalies", "1", "--timeout", "2m"}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, _ := cmd.Output() // violated is a status of its own
	var h report.History
	if err := json.Unmarshal(out, &h); err != nil {
		t.Fatalf("check: %v: %s%s", err, out, &stderr)
	}
	return h
}

// shellWords is a command line for a person to type, with names in place of this run's addresses.
func shellWords(args []string, names *strings.Replacer) string {
	out := []string{"monitor"}
	for _, a := range args {
		if a = names.Replace(a); strings.ContainsAny(a, ";?&") {
			a = "'" + a + "'"
		}
		out = append(out, a)
	}
	return strings.Join(out, " ")
}

// found reads what was found, by name.
func found(t *testing.T) map[string]finding {
	t.Helper()
	out := map[string]finding{}
	text, err := os.ReadFile(foundFile)
	if errors.Is(err, os.ErrNotExist) {
		return out
	}
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var f finding
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatal(err)
		}
		out[f.ID] = f
	}
	return out
}

var keeping sync.Mutex

// keep writes down a finding in place of what was found there before.
func keep(t *testing.T, f finding) {
	t.Helper()
	keeping.Lock()
	defer keeping.Unlock()
	all := found(t)
	all[f.ID] = f
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	for _, top := range topologies {
		for _, s := range top.cases {
			if f, ok := all[top.id(s)]; ok {
				if err := enc.Encode(f); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if err := os.WriteFile(foundFile, text.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// What docs/findings.md says was found is what was found. UPDATE=1 writes it.
func TestFindingsAreDocumented(t *testing.T) {
	if os.Getenv("UPDATE") != "" {
		writeDoc(t)
	}
	text, err := os.ReadFile(foundDoc)
	if err != nil {
		t.Fatal(err)
	}
	if got := documented(t, string(text)); got != string(text) {
		t.Errorf("%s is not what %s says; go test ./internal/lab/findings with UPDATE=1 writes it", foundDoc, foundFile)
	}
}

// Everything that is kept as evidence proves by itself what it is said to, and belongs to a finding.
func TestEvidenceProves(t *testing.T) {
	files, err := filepath.Glob(foundDir + "/*.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	all := found(t)
	if len(all) == 0 {
		t.Fatal("nothing was found")
	}
	for _, file := range files {
		name := filepath.Base(file)
		if name == filepath.Base(foundFile) {
			continue
		}
		f := all[strings.TrimSuffix(name, ".jsonl")]
		if f.Evidence != name {
			t.Errorf("%s is no finding's evidence", name)
			continue
		}
		weakest := f.Seen[0].Breaks
		for _, s := range f.Seen {
			if implies(weakest, s.Breaks) {
				weakest = s.Breaks
			}
		}
		level, _ := verdict.ParseLevel(weakest)
		text, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		hs, err := history.Read(name, text, history.Options{})
		text.Close()
		if err != nil || len(hs) != 1 {
			t.Fatalf("%s: %d histories, %v", name, len(hs), err)
		}
		if got := judge.NewProver(nil, 1<<40).Judge(level, hs[0].Header, hs[0].Transactions); got != verdict.Violated {
			t.Errorf("%s is %v at %v", name, got, level)
		}
	}
	for _, f := range all {
		if len(f.Seen) > 0 && f.Evidence == "" {
			t.Errorf("%s has no evidence", f.ID)
		}
	}
}

// writeDoc writes what was found into the document.
func writeDoc(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(foundDoc)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(foundDoc, []byte(documented(t, string(text))), 0o644); err != nil {
		t.Fatal(err)
	}
}

// documented is the document with the table of what was found in its place.
func documented(t *testing.T, text string) string {
	t.Helper()
	const begin, end = "<!-- found: begin -->\n", "<!-- found: end -->"
	before, rest, ok := strings.Cut(text, begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no place for what was found: a line %s and one %s", foundDoc, strings.TrimSpace(begin), end)
	}
	all := found(t)
	var table strings.Builder
	table.WriteString("| finding | topology | isolation | promised | held | anomalies by the weakest level they break |\n| --- | --- | --- | --- | --- | --- |\n")
	version := map[string]bool{}
	for _, top := range topologies {
		for _, s := range top.cases {
			f, ok := all[top.id(s)]
			if !ok {
				continue
			}
			if !version[f.Version] {
				version[f.Version] = true
				fmt.Fprintf(&table, "| **%s** | | | | | |\n", f.Version)
			}
			id := f.ID
			if f.Evidence != "" {
				id = fmt.Sprintf("[%s](../testdata/findings/%s)", f.ID, f.Evidence)
			}
			isolation := "`" + f.Isolation + "`"
			if f.Settings != "" {
				isolation += ", `" + f.Settings + "`"
			}
			kept := "kept"
			of := map[string][]string{} // by the weakest level that each breaks
			for i, s := range f.Seen {
				if implies(f.Promised, s.Breaks) {
					kept = "**broken**"
				}
				if slices.ContainsFunc(f.Seen[:i], func(before seen) bool { return before.Name == s.Name }) {
					continue
				}
				weakest := s.Breaks
				for _, later := range f.Seen[i:] {
					if later.Name == s.Name && implies(weakest, later.Breaks) {
						weakest = later.Breaks
					}
				}
				of[weakest] = append(of[weakest], s.Name)
			}
			var anomalies []string
			for _, l := range name.Ordered() {
				if names := of[l.String()]; names != nil {
					anomalies = append(anomalies, fmt.Sprintf("**%v**: %s", l, strings.Join(names, ", ")))
				}
			}
			if f.Promised == "" {
				kept = "none"
			} else {
				kept = f.Promised + ", " + kept
			}
			if slices.Contains(f.Open, f.Promised) {
				kept += " as `check` says"
			}
			fmt.Fprintf(&table, "| %s | %s | %s | %s | %s | %s |\n", id, f.Topology, isolation, kept,
				cmp.Or(strings.Join(f.Strongest, ", "), "none"), cmp.Or(strings.Join(anomalies, "; "), fmt.Sprintf("none in %d transactions", f.Transactions)))
		}
	}
	return before + begin + "\n" + table.String() + "\n" + end + after
}
