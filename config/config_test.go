package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// write puts text in a file of a folder of its own and goes there, so that
// messages name short paths.
func write(t *testing.T, name, text string) string {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

const minimal = "source: {stdin: {}}\n"

// design is the example of the documentation, every key of it.
const design = `
source:
  kafka:
    brokers: [127.0.0.1:9092, "[::1]:9093"]
    topic: transactions
    start: 2026-01-31T12:00:00Z
    tls: {ca: ca.pem, cert: c.pem, key: k.pem}
    sasl: {mechanism: scram-sha-512, username: isowatch, password_file: pw}
levels: [si, ser]
clock: prune
coverage: complete
unique_values: false
partial_tables: [audit]
overload: sample-sessions
window: {lateness: 3s, max_transaction: 1m, max_skew: 5ms, idle_after: 10s, max_transactions: 1_000, segment: 500, overlap: 50, keys: 2_000, histories: 8, retain: 24h}
solver: {every: 100ms, conflicts: 7}
store: {path: ./data, max_bytes: 2 GB, sync: true}
memory: 1GiB
alerts: {webhooks: [{url: "https://u:p@example.org/hook", format: generic, secret_file: secret}], values: full,
  repeat: 1h, resolve_after: 5m, resolve_transactions: 77, silent_after: 2m, lag_max: 30s, rate: {max: 7, per: 10s}, severity: {ser: warning, strong-si: info}, retain: 48h, max_alerts: 1_000,
  silences: [{db: "shop-*", level: si, name: lost-update, key: "acct:?", until: 2026-02-01T00:00:00Z, comment: moved}]}
http: {listen: "", admin: "[::1]:6060", tls: {cert: s.pem, key: sk.pem, client_ca: cca.pem}, token_file: token, base_url: "https://example.org/isowatch"}
log: {level: debug, format: json}
`

func TestLoadReadsEveryKey(t *testing.T) {
	file := write(t, "c.yaml", design)
	for name, text := range map[string]string{"pw": "hunter2\n", "secret": "whsec_c2VjcmV0\r\n", "token": "0123456789abcdef\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Load(Sources{File: file})
	if err != nil {
		t.Fatal(err)
	}
	want := &Config{
		PartialTables: []string{"audit"},
		Source: Source{Kafka: &Kafka{
			Brokers: []string{"127.0.0.1:9092", "[::1]:9093"},
			Topic:   "transactions",
			Start:   Start{At: StartTime, Time: time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)},
			TLS:     &TLS{CA: "ca.pem", Cert: "c.pem", Key: "k.pem"},
			SASL:    &SASL{Mechanism: "scram-sha-512", Username: "isowatch", PasswordFile: "pw", Password: "hunter2"},
		}},
		Levels:   []verdict.Level{verdict.SI, verdict.SER},
		Clock:    record.ClockPrune,
		Coverage: record.CoverageComplete,
		Overload: OverloadSample,
		Window: Window{Lateness: 3 * time.Second, MaxTransaction: time.Minute, MaxSkew: 5 * time.Millisecond,
			IdleAfter: 10 * time.Second, MaxTransactions: 1000, Segment: 500, Overlap: 50, Keys: 2000, Histories: 8, Retain: 24 * time.Hour},
		Solver: Solver{Every: 100 * time.Millisecond, Conflicts: 7},
		Store:  Store{Path: "./data", MaxBytes: 2e9, Sync: true},
		Memory: 1 << 30,
		Alerts: Alerts{Webhooks: []Webhook{{URL: "https://u:p@example.org/hook", Format: "generic",
			SecretFile: "secret", Secrets: []Secret{"whsec_c2VjcmV0"}, Timeout: 10 * time.Second}}, Values: ValuesFull,
			Repeat: time.Hour, ResolveAfter: 5 * time.Minute, ResolveTransactions: 77, SilentAfter: 2 * time.Minute, LagMax: 30 * time.Second, Rate: Rate{Max: 7, Per: 10 * time.Second},
			Severity: Severities{SER: "warning", StrongSI: "info"}, Retain: 48 * time.Hour, MaxAlerts: 1000,
			Silences: []Silence{{DB: "shop-*", Level: "si", Name: "lost-update", Key: "acct:?", Until: time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC), Comment: "moved"}}},
		HTTP: HTTP{Admin: "[::1]:6060", TLS: &ServerTLS{Cert: "s.pem", Key: "sk.pem", ClientCA: "cca.pem"}, TokenFile: "token", BaseURL: "https://example.org/isowatch", Token: "0123456789abcdef"},
		Log:  Log{Level: "debug", Format: "json"},
	}
	if diff := cmp.Diff(want, got.Config); diff != "" {
		t.Errorf("loaded (-want +got):\n%s", diff)
	}
	if len(got.Warnings) > 0 {
		t.Errorf("warnings: %q", got.Warnings)
	}

	// What is printed reads back as the same, and holds no secret.
	text := string(got.YAML())
	for _, secret := range []string{"hunter2", "c2VjcmV0", "0123456789abcdef", "u:p@", "/hook"} {
		if strings.Contains(text, secret) {
			t.Errorf("%q is printed:\n%s", secret, text)
		}
	}
	if err := os.WriteFile("again.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := Load(Sources{File: "again.yaml"})
	if err != nil {
		t.Fatalf("%v\nin\n%s", err, text)
	}
	want.Alerts.Webhooks[0].URL = "https://example.org/…"
	want.Alerts.Webhooks[0].Levels, want.Alerts.Webhooks[0].DB = []verdict.Level{}, []string{} // printed as such
	if diff := cmp.Diff(want, again.Config); diff != "" {
		t.Errorf("printed and loaded again (-want +got):\n%s\nin\n%s", diff, text)
	}
}

func TestDefaults(t *testing.T) {
	got, err := Load(Sources{File: write(t, "c.yaml", minimal)})
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Source.Stdin = &Stdin{}
	if diff := cmp.Diff(want, got.Config); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEmptyKeyMeansEmptyPart(t *testing.T) {
	got, err := Load(Sources{File: write(t, "c.yaml", "source:\n  stdin:\n")})
	if err != nil {
		t.Fatal(err)
	}
	if got.Source.Stdin == nil {
		t.Error("stdin: was not taken as stdin: {}")
	}
}

func TestErrors(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       []string
	}{
		{"empty file", "", []string{"source: is missing: give one of source.kafka, source.file, source.http or source.stdin"}},
		{"all together", `source:
  kafka: {brokers: [here], topik: t}
levels: [si, serr, rc, si]
clock: strict
window: {lateness: 2, max_skew: -1s, max_transactions: many}
solver: [1]
windows: {}
http: {listen: 8080}
`, []string{
			`c.yaml:2:10: source.kafka.topic: is missing: name the topic`,
			`c.yaml:2:21: source.kafka.brokers[0]: "here" wants a port, as in 127.0.0.1:9092`,
			`c.yaml:2:28: source.kafka.topik: unknown key: did you mean topic?`,
			`c.yaml:3:14: levels[1]: no level is called "serr": want rc, ra, cc, g1, pc, si, strong-si, ser, sser, lin, what Adya, Elle or Jepsen call one of them, or a database's name as in postgres:repeatable-read`,
			`c.yaml:3:24: levels[3]: si is named twice`,
			`c.yaml:4:8: clock: wants prune, enforce, ignore or database, not "strict"`,
			`c.yaml:5:20: window.lateness: wants a duration with its unit, such as 250ms, 2s or 24h, not "2"`,
			`c.yaml:5:33: window.max_skew: must be at least 0s, not -1s`,
			`c.yaml:5:56: window.max_transactions: wants a whole number, not "many"`,
			`c.yaml:6:9: solver: wants keys and values, not a list`,
			`c.yaml:7:1: windows: unknown key: did you mean window?`,
			`c.yaml:8:16: http.listen: "8080" wants a port, as in 127.0.0.1:9092`,
		}},
		{"long durations", minimal + "window: {lateness: 2500000h, max_skew: 9999999h}\nalerts: {retain: 175200h0m1s}\n", []string{
			"c.yaml:2:20: window.lateness: must be at most 175200h, which is 20 years, not 2500000h",
			"c.yaml:2:40: window.max_skew: must be at most 175200h, which is 20 years, not 9999999h",
			"c.yaml:3:18: alerts.retain: must be at most 175200h, which is 20 years, not 175200h0m1s"}},
		{"times beyond all years", minimal + "alerts: {silences: [{db: x, until: 2900-01-01T00:00:00Z}]}\n", []string{
			`c.yaml:2:36: alerts.silences[0].until: wants a time such as 2026-01-31T12:00:00Z, not "2900-01-01T00:00:00Z"`}},
		{"a tab", "levels: [si]\nwindow:\n\tlateness: 2s\n", []string{"c.yaml:3:1: not YAML: a tab indents this line, where YAML takes spaces only: replace it, and set your editor to indent with spaces"}},
		{"a tab behind spaces", "levels: [si]\nwindow:\n  lateness: 2s\n  \tmax_skew: 5ms\nclock: prune\n", []string{"c.yaml:4:3: not YAML: a tab indents this line, where YAML takes spaces only: replace it, and set your editor to indent with spaces"}},
		{"a tab far from the error", "levels: [si]\nclock: @x\nwindow:\n  lateness: 2s\n\tmax_skew: 5ms\n", []string{"c.yaml:2: not YAML: found character that cannot start any token"}},
		{"not YAML", "levels: [si\nclock: x\n", []string{"c.yaml:1: not YAML: did not find expected ',' or ']'"}},
		{"two documents", minimal + "---\n" + minimal, []string{"c.yaml:2:1: is a second document: one file is one configuration"}},
		{"a key twice", minimal + "clock: prune\nclock: ignore\n", []string{"c.yaml:3:1: clock: is given twice, first on line 2"}},
		{"two sources", "source: {stdin: {}, file: {path: x}}\n", []string{"c.yaml:1:9: source: has file and stdin: give only one"}},
		{"no value", minimal + "clock:\n", []string{"c.yaml:2:7: clock: has no value: give one or remove the key"}},
		{"scalar for a list", minimal + "levels: si\n", []string{`c.yaml:2:9: levels: wants a list, such as [a, b], not "si"`}},
		{"list for a scalar", minimal + "log: {level: [info]}\n", []string{`c.yaml:2:14: log.level: wants text, not a list`}},
		{"not a bool", minimal + "unique_values: maybe\n", []string{`c.yaml:2:16: unique_values: wants true or false, not "maybe"`}},
		{"key in an empty part", "source: {stdin: {path: x}}\n", []string{"c.yaml:1:18: source.stdin.path: unknown key: there are none here"}},
		{"no key comes near", minimal + "zzzzzzzzz: 1\n", []string{"c.yaml:2:1: zzzzzzzzz: unknown key: known are alerts, canary, clock, coverage, http, initial, levels, log, memory, overload, partial_tables, solver, source, store, unique_attempts, unique_values, window"}},
		{"real time without clocks", minimal + "clock: ignore\nlevels: [sser]\n", []string{
			"c.yaml:3:10: levels[0]: sser holds real time, which clock: ignore takes away: choose another clock or a level without real time"}},
		{"linearizability without clocks", minimal + "clock: ignore\nlevels: [rc, lin]\n", []string{
			"c.yaml:3:14: levels[1]: lin holds real time, which clock: ignore takes away: choose another clock or a level without real time"}},
		{"no level", minimal + "levels: []\n", []string{"c.yaml:2:9: levels: is empty: name what the database promises, as in [si]"}},
		{"webhooks", minimal + "alerts: {webhooks: [{url: nowhere}, {url: 'http://x/', format: slick}, {secret_file: missing}]}\n", []string{
			`c.yaml:2:27: alerts.webhooks[0].url: wants an address such as https://example.org/hook`,
			`c.yaml:2:64: alerts.webhooks[1].format: wants generic, slack, pagerduty or alertmanager, not "slick"`,
			`c.yaml:2:72: alerts.webhooks[2].url: is missing`,
			`c.yaml:2:86: alerts.webhooks[2].secret_file: can't read missing: no such file or directory`,
		}},
		{"sasl", "source: {kafka: {brokers: ['b:1'], topic: t, sasl: {mechanism: gssapi}, tls: {cert: x}}}\n", []string{
			`c.yaml:1:52: source.kafka.sasl.username: is missing`,
			`c.yaml:1:52: source.kafka.sasl.password_file: is missing: name the file that holds the password`,
			`c.yaml:1:64: source.kafka.sasl.mechanism: wants plain, scram-sha-256 or scram-sha-512, not "gssapi"`,
			`c.yaml:1:78: source.kafka.tls: has only one of cert and key: a client certificate needs both`,
		}},
		{"start", "source: {kafka: {brokers: ['b:1'], topic: 'a b', start: yesterday}}\n", []string{
			`c.yaml:1:43: source.kafka.topic: "a b" is no name of a topic: at most 249 letters, digits, dots, underscores and hyphens`,
			`c.yaml:1:57: source.kafka.start: wants stored, earliest, latest or a time such as 2026-01-31T12:00:00Z, not "yesterday"`,
		}},
		{"life", minimal + "alerts: {rate: {max: 0, per: 0s}, severity: {ser: bad}, resolve_after: 1ms, max_alerts: -1,\n silences: [{comment: x}, {db: '[a'}, {db: a, until: soon}]}\n", []string{
			`c.yaml:2:22: alerts.rate.max: must be at least 1 and at most 10000, not 0`,
			`c.yaml:2:30: alerts.rate.per: must be at least 1ms, not 0s`,
			`c.yaml:2:51: alerts.severity.ser: wants info, warning, error or critical, not "bad"`,
			`c.yaml:2:72: alerts.resolve_after: must be at least 1s, not 1ms`,
			`c.yaml:2:89: alerts.max_alerts: must be at least 0, not -1`,
			`c.yaml:3:13: alerts.silences[0]: says nothing of what is silenced: name a db, level, name or key; db: "*" is all of them`,
			`c.yaml:3:32: alerts.silences[1].db: "[a" is no pattern of at most 1024 bytes: write a [ as \[`,
			`c.yaml:3:54: alerts.silences[2].until: wants a time such as 2026-01-31T12:00:00Z, not "soon"`,
		}},
		{"values", minimal + "alerts: {values: all}\n", []string{`c.yaml:2:18: alerts.values: wants full, hash or none, not "all"`}},
		{"salt for nothing", minimal + "alerts: {values: none, salt_file: salt}\n", []string{
			"c.yaml:2:35: alerts.salt_file: goes with alerts.values: hash, not none"}},
		{"overload", minimal + "overload: drop\n", []string{`c.yaml:2:11: overload: wants block or sample-sessions, not "drop"`}},
		{"amounts", minimal + "memory: 3 apples\nstore: {max_bytes: 1MB}\n", []string{
			`c.yaml:2:9: memory: wants an amount such as 300MiB or 10GB, not "3 apples"`,
			`c.yaml:3:20: store.max_bytes: must be at least 64MiB, not 1MB: what a restart needs has to fit`,
		}},
		{"a list for an amount", minimal + "memory: [1]\n", []string{`c.yaml:2:9: memory: wants an amount, not a list`}},
		{"little memory", minimal + "memory: 1MiB\n", []string{`c.yaml:2:9: memory: must be 0 or at least 64MiB, not 1MiB`}},
		{"segments", minimal + "window: {segment: 1000, overlap: 501}\n", []string{
			`c.yaml:2:34: window.overlap: must be at least 0 and at most half of window.segment, 500, not 501`}},
		{"histories", minimal + "window: {histories: 0}\n", []string{`c.yaml:2:21: window.histories: must be at least 1 and at most 4096, not 0: each takes memory also where nothing comes`}},
		{"too many histories", minimal + "window: {histories: 5000}\n", []string{`c.yaml:2:21: window.histories: must be at least 1 and at most 4096, not 5000: each takes memory also where nothing comes`}},
		{"keys", minimal + "window: {keys: 0}\n", []string{`c.yaml:2:16: window.keys: must be at least 1, not 0`}},
		{"small segments", minimal + "window: {segment: 15}\n", []string{`c.yaml:2:19: window.segment: must be at least 16, not 15`}},
		{"smallest values", minimal + "solver: {every: 0s, conflicts: 0}\nstore: {path: ''}\nwindow: {max_transactions: 0}\n", []string{
			"c.yaml:2:17: solver.every: must be at least 1ms, not 0s",
			"c.yaml:2:32: solver.conflicts: must be at least 1, not 0",
			"c.yaml:3:15: store.path: is missing: name a folder",
			"c.yaml:4:28: window.max_transactions: must be at least 1, not 0",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Load(Sources{File: write(t, "c.yaml", tc.text)})
			if err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(tc.want, strings.Split(err.Error(), "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			var one *Error
			if !errors.As(err, &one) {
				t.Error("no *Error inside")
			}
		})
	}
}

func TestAliasesAreFollowed(t *testing.T) {
	got, err := Load(Sources{File: write(t, "c.yaml", minimal+"window: {lateness: &d 7s, idle_after: *d}\n")})
	if err != nil {
		t.Fatal(err)
	}
	if got.Window.IdleAfter != 7*time.Second {
		t.Errorf("idle_after is %v", got.Window.IdleAfter)
	}
}

func TestEnvironmentAndFlagsOverride(t *testing.T) {
	file := write(t, "c.yaml", "source: {kafka: {brokers: ['b:1'], topic: file}}\nlevels: [si]\nwindow: {max_skew: 1ms}\n")
	got, err := Load(Sources{
		File: file,
		Env: []string{"PATH=/bin", "ISOWATCH_SOURCE_KAFKA_TOPIC=env", "ISOWATCH_WINDOW_MAX_SKEW=9ms",
			"ISOWATCH_SOURCE_KAFKA_BROKERS=[c:2, d:3]", "ISOWATCH_LEVELS=si, ser", "ISOWATCH_SOLVER_CONFLICTS=12",
			"ISOWATCH_ALERTS_WEBHOOKS=[{url: 'http://127.0.0.1:1/x'}]", "ISOWATCH_SERVICE_HOST=10.0.0.1"},
		Overrides: []Override{{Flag: "--topic", Path: "source.kafka.topic", Value: "flag"}, {Flag: "--set", Path: "log.level", Value: "warn"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	k := got.Source.Kafka
	if k.Topic != "flag" || got.Window.MaxSkew != 9*time.Millisecond || got.Log.Level != "warn" || got.Solver.Conflicts != 12 {
		t.Errorf("got\n%s", got.YAML())
	}
	if diff := cmp.Diff([]string{"c:2", "d:3"}, k.Brokers); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]verdict.Level{verdict.SI, verdict.SER}, got.Levels); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]Webhook{{URL: "http://127.0.0.1:1/x", Format: "generic", Timeout: 10 * time.Second}}, got.Alerts.Webhooks); diff != "" {
		t.Error(diff)
	}
	want := []string{"environment variable ISOWATCH_SERVICE_HOST names no key of the configuration and is ignored"}
	if diff := cmp.Diff(want, got.Warnings); diff != "" {
		t.Error(diff)
	}
}

func TestOverrideErrorsNameTheirOrigin(t *testing.T) {
	_, err := Load(Sources{
		Env:       []string{"ISOWATCH_CLOCK=sometimes", "ISOWATCH_SOURCE_STDIN={}", "ISOWATCH_ALERTS_WEBHOOKS=[{"},
		Overrides: []Override{{Flag: "--set", Path: "source.stdin.x", Value: "1"}, {Flag: "--set", Path: "levels.si", Value: "1"}},
	})
	if err == nil {
		t.Fatal("no error")
	}
	got := strings.Split(err.Error(), "\n")
	want := []string{
		"ISOWATCH_ALERTS_WEBHOOKS: alerts.webhooks: not YAML: did not find expected node content",
		`ISOWATCH_CLOCK: clock: wants prune, enforce, ignore or database, not "sometimes"`,
		"--set: source.stdin.x: unknown key: there are none here",
		"--set: levels.si: unknown key",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestUnreadableFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	if _, err := Load(Sources{File: "none.yaml"}); err == nil || err.Error() != "none.yaml: no such file or directory" {
		t.Errorf("got %v", err)
	}
	if err := os.WriteFile("big.yaml", make([]byte, bytesMax+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(Sources{File: "big.yaml"}); err == nil || !strings.Contains(err.Error(), "is larger than") {
		t.Errorf("got %v", err)
	}
}

func TestPlainPasswordWithoutTLSIsAWarning(t *testing.T) {
	file := write(t, "c.yaml", "source: {kafka: {brokers: ['b:1'], topic: t, sasl: {mechanism: plain, username: u, password_file: pw}}}\n")
	if err := os.WriteFile("pw", []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := Load(Sources{File: file})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "readable by anyone") {
		t.Errorf("warnings: %q", got.Warnings)
	}
}

func TestValidateWithoutAFile(t *testing.T) {
	c := Default()
	c.Source.File = &File{}
	err := c.Validate()
	if err == nil || err.Error() != "source.file.path: is missing: name the file" {
		t.Errorf("got %v", err)
	}
}

func TestSecretsDoNotPrint(t *testing.T) {
	if got := Secret("hunter2").String() + Secret("hunter2").GoString(); strings.Contains(got, "hunter2") {
		t.Error(got)
	}
}

// FuzzLoad: no file, however odd, makes Load panic, and what it accepts prints
// as something that it accepts again.
func FuzzLoad(f *testing.F) {
	f.Add(design)
	f.Add(minimal)
	f.Add("a: &a [*a]\n")
	f.Add("source: &s {stdin: {}}\nwindow: *s\n<<: *s\n")
	f.Fuzz(func(t *testing.T, text string) {
		d := &decoder{places: map[string]Place{}}
		c := Default()
		d.file("f.yaml", []byte(text), c)
		if len(d.errs) > 0 || c.Validate() != nil {
			return
		}
		again, d2 := Default(), &decoder{places: map[string]Place{}}
		d2.file("again.yaml", c.YAML(), again)
		if len(d2.errs) > 0 {
			t.Fatalf("%v\nin\n%s", d2.errs, c.YAML())
		}
	})
}

func TestBytes(t *testing.T) {
	for _, tc := range []struct {
		text, print string
		want        Bytes
	}{
		{"0", "0", 0},
		{"1", "1", 1},
		{"17B", "17", 17},
		{"1_000", "1kB", 1000},
		{"300MiB", "300MiB", 300 << 20},
		{"1024 KiB", "1MiB", 1 << 20},
		{"10GB", "10GB", 10e9},
		{"1500MB", "1500MB", 1500e6},
		{"2TiB", "2TiB", 2 << 40},
		{"1.5GB", "1500MB", 1500e6},
		{"-1", "", -1}, {"GB", "", -1}, {"", "", -1}, {"1 XB", "", -1}, {"9223372036854775807kB", "", -1},
	} {
		got, err := ParseBytes(tc.text)
		if tc.want < 0 {
			if err == nil {
				t.Errorf("%q is read as %d", tc.text, got)
			}
			continue
		}
		if err != nil || got != tc.want || got.String() != tc.print {
			t.Errorf("%q: %d, printed %s, %v; want %d, %s", tc.text, got, got, err, tc.want, tc.print)
		}
		if again, err := ParseBytes(got.String()); err != nil || again != got {
			t.Errorf("%q is printed as %s, which is read as %d, %v", tc.text, got, again, err)
		}
	}
}

// A salt is read with its file, is long enough, and is not shown.
func TestSalt(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "salt")
	load := func(salt string) (*Loaded, error) {
		if err := os.WriteFile(file, []byte(salt), 0o600); err != nil {
			t.Fatal(err)
		}
		conf := filepath.Join(dir, "c.yaml")
		if err := os.WriteFile(conf, []byte("source: {stdin: {}}\nalerts: {values: hash, salt_file: "+file+"}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return Load(Sources{File: conf})
	}
	l, err := load("0123456789abcdef\n")
	if err != nil || string(l.Config.Alerts.Salt) != "0123456789abcdef" || strings.Contains(fmt.Sprintf("%v %+v", l.Config.Alerts, l.Config), "0123456789abcdef") {
		t.Errorf("%v", err)
	}
	if _, err := load("0123456789abcde\n"); err == nil || !strings.Contains(err.Error(), "holds 15 bytes, and a salt has at least 16") {
		t.Errorf("%v", err)
	}
	if _, err := load("\n"); err == nil || !strings.Contains(err.Error(), "is empty") {
		t.Errorf("%v", err)
	}
}

// TestParseDuration: whatever is taken can be added to others and to a time of our days.
func TestParseDuration(t *testing.T) {
	for text, want := range map[string]string{
		"250ms": "", "-2s": "", "0": "", "1h30m": "", "175200h": "", "-175200h": "", ".5s": "", "1.s": "",
		"175200h0m0.000000001s": "must be at most 175200h", "-175201h": "must be at most", "2500000h": "must be at most", "9223372036854775808ns": "must be at most",
		"99999999999999999999999h": "must be at most", "2": "wants a duration", "": "wants a duration", "h": "wants a duration", "1d": "wants a duration", "5 s": "wants a duration",
	} {
		d, err := ParseDuration(text)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
		if d > DurationMax || d < -DurationMax {
			t.Errorf("%q is %v", text, d)
		}
	}
}

func TestWhatChecksNextToNothing(t *testing.T) {
	for set, want := range map[string]int{"unique_values=false coverage=partial": 1, "unique_values=false coverage=complete": 0, "unique_values=true coverage=partial": 0} {
		from := Sources{}
		for _, kv := range append(strings.Fields(set), "levels=si", "source.file.path=/x") {
			path, value, _ := strings.Cut(kv, "=")
			from.Overrides = append(from.Overrides, Override{Flag: "--set", Path: path, Value: value})
		}
		got, err := Load(from)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Warnings) != want {
			t.Errorf("%s: %q", set, got.Warnings)
		}
	}
}
