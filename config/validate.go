package config

import (
	"fmt"
	"net"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// Validate checks a configuration that was not loaded from anywhere, such as the
// demo's. The error is Errors, with paths and without places.
func (c *Config) Validate() error {
	v := &validator{}
	v.validate(c)
	if len(v.errs) > 0 {
		return v.errs
	}
	return nil
}

// validator checks what types can't say.
type validator struct {
	places   map[string]Place
	failed   map[string]bool // keys that have an error already
	errs     Errors
	warnings []string
	env      map[string]string // for secrets
}

// place finds where a key, or the nearest part around it, was mentioned.
func (v *validator) place(path string) Place {
	for {
		if p, ok := v.places[path]; ok {
			return p
		}
		i := strings.LastIndexAny(path, ".[")
		if i < 0 {
			return v.places[""]
		}
		path = path[:i]
	}
}

func (v *validator) errorf(path, format string, args ...any) {
	if v.failed[path] {
		return
	}
	msg := fmt.Sprintf(format, args...)
	if slices.ContainsFunc(v.errs, func(e *Error) bool { return e.Path == path && e.Msg == msg }) {
		return // once before and once after files are read
	}
	v.errs = append(v.errs, &Error{Place: v.place(path), Path: path, Msg: msg})
}

func (v *validator) validate(c *Config) {
	v.source(c)
	v.canary(c.Canary)
	v.levels(c)
	if !c.UniqueValues && c.Coverage == record.CoveragePartial {
		v.warnings = append(v.warnings, "unique_values: false with coverage: partial: anybody who is not recorded may have "+
			"written what was read, so that next to nothing is checked; coverage: complete says that there is nobody")
	}
	w := c.Window
	v.atLeast("window.lateness", w.Lateness, 0)
	v.atLeast("window.max_transaction", w.MaxTransaction, time.Millisecond)
	v.atLeast("window.max_skew", w.MaxSkew, 0)
	v.atLeast("window.idle_after", w.IdleAfter, time.Second) // a source is heard once a second
	v.atLeast("window.retain", w.Retain, 0)
	if w.MaxTransactions < 1 {
		v.errorf("window.max_transactions", "must be at least 1, not %d", w.MaxTransactions)
	}
	if w.Keys < 1 {
		v.errorf("window.keys", "must be at least 1, not %d", w.Keys)
	}
	if w.Histories < 1 || w.Histories > HistoriesMax {
		v.errorf("window.histories", "must be at least 1 and at most %d, not %d: each takes memory also where nothing comes",
			HistoriesMax, w.Histories)
	}
	v.segments(w)
	v.atLeast("solver.every", c.Solver.Every, time.Millisecond)
	if c.Solver.Conflicts < 1 {
		v.errorf("solver.conflicts", "must be at least 1, not %d", c.Solver.Conflicts)
	}
	if c.Store.Path == "" {
		v.errorf("store.path", "is missing: name a folder")
	}
	if c.Store.MaxBytes < StoreBytesMin {
		v.errorf("store.max_bytes", "must be at least %s, not %s: what a restart needs has to fit", StoreBytesMin,
			c.Store.MaxBytes)
	}
	if m := c.Memory; m != 0 && m < MemoryMin {
		v.errorf("memory", "must be 0 or at least %s, not %s", MemoryMin, m)
	}
	v.receivers(c)
	v.life(c.Alerts)
	if c.Alerts.SaltFile != "" && c.Alerts.Values != ValuesHash {
		v.errorf("alerts.salt_file", "goes with alerts.values: hash, not %s", c.Alerts.Values)
	}
	v.http(&c.HTTP)
	v.oneOf("overload", c.Overload)
	v.oneOf("alerts.values", c.Alerts.Values)
	v.oneOf("log.level", c.Log.Level)
	v.oneOf("log.format", c.Log.Format)
}

// The least amounts.
const (
	StoreBytesMin Bytes = 64 << 20
	MemoryMin     Bytes = 64 << 20
	segmentMin          = 16
	// SaltMin is how long the salt of hashed values is at least, in bytes.
	SaltMin = 16
	// HistoriesMax is what window.histories may be at most.
	HistoriesMax = 4096
)

func (v *validator) segments(w Window) {
	if w.Segment < segmentMin {
		v.errorf("window.segment", "must be at least %d, not %d", segmentMin, w.Segment)
		return
	}
	if w.Overlap < 0 || w.Overlap > w.Segment/2 {
		v.errorf("window.overlap", "must be at least 0 and at most half of window.segment, %d, not %d", w.Segment/2,
			w.Overlap)
	}
}

func (v *validator) source(c *Config) {
	var given []string
	if c.Source.Kafka != nil {
		given = append(given, "kafka")
	}
	if c.Source.File != nil {
		given = append(given, "file")
	}
	if c.Source.HTTP != nil {
		given = append(given, "http")
		if c.HTTP.Listen == "" {
			v.errorf("source.http", "wants http.listen: records are posted there")
		}
	}
	if c.Source.Stdin != nil {
		given = append(given, "stdin")
	}
	if c.Canary != nil {
		given = append(given, "canary")
	}
	switch len(given) {
	case 0:
		v.errorf("source", "is missing: give one of source.kafka, source.file, source.http or source.stdin")
	case 1:
	default:
		v.errorf("source", "has %s: give only one", strings.Join(given, " and "))
	}
	if k := c.Source.Kafka; k != nil {
		v.cluster("source.kafka", k.Brokers, k.Topic, k.TLS, k.SASL)
	}
	if f := c.Source.File; f != nil && f.Path == "" {
		v.errorf("source.file.path", "is missing: name the file")
	}
	if m := c.Source.Mapping; m != nil {
		v.mapping(m, c)
	}
}

func (v *validator) mapping(m *Mapping, c *Config) {
	const at = "source.mapping."
	if c.Canary != nil {
		v.errorf("source.mapping", "is for records from elsewhere, and a canary makes its own")
	}
	for _, needed := range [][2]string{{"session", m.Session}, {"kind", m.Kind}, {"key", m.Key}, {"value", m.Value}} {
		if needed[1] == "" {
			v.errorf(at+needed[0], "is missing: name the field")
		}
	}
	for _, named := range [][2]string{{"form", m.Form}, {"unit", m.Unit}} {
		if of := words()[at+named[0]]; !slices.Contains(of, named[1]) {
			v.errorf(at+named[0], "is one of %s, not %q", strings.Join(of, ", "), named[1])
		}
	}
	if (m.Start == "") != (m.End == "") {
		v.errorf(at+"start", "and end: name both or neither")
	}
	if field, _, ok := strings.Cut(m.Only, "="); m.Only != "" && (!ok || field == "") {
		v.errorf(at+"only", "wants FIELD=TEXT, as in msg=transaction, not %q", m.Only)
	}
	if m.Form != FormTimeKiller {
		return
	}
	plain := &Mapping{}
	plain.setDefaults()
	plain.Form, plain.Unit, plain.Only = m.Form, m.Unit, m.Only
	if !reflect.DeepEqual(m, plain) {
		v.errorf("source.mapping", "has form timekiller, whose fields are known: give unit and only beside it at most")
	}
	if c.Clock != record.ClockDatabase && c.Clock != record.ClockIgnore {
		v.errorf("clock", "must be database (or ignore), as source.mapping.form is timekiller: its times are the database's own")
	}
}

// cluster checks how a topic is reached.
func (v *validator) cluster(path string, brokers []string, topic string, t *TLS, s *SASL) {
	if len(brokers) == 0 {
		v.errorf(path+".brokers", "is missing: name at least one broker, as in [127.0.0.1:9092]")
	}
	for i, b := range brokers {
		if err := hostPort(b); err != nil {
			v.errorf(fmt.Sprintf("%s.brokers[%d]", path, i), "%v", err)
		}
	}
	if topic == "" {
		v.errorf(path+".topic", "is missing: name the topic")
	} else if !legalTopic(topic) {
		v.errorf(path+".topic", "%q is no name of a topic: at most 249 letters, digits, dots, underscores and hyphens", topic)
	}
	v.tls(path+".tls", t)
	if s == nil {
		return
	}
	v.oneOf(path+".sasl.mechanism", s.Mechanism)
	if s.Username == "" {
		v.errorf(path+".sasl.username", "is missing")
	}
	if s.PasswordFile == "" {
		v.errorf(path+".sasl.password_file", "is missing: name the file that holds the password")
	}
	if s.Mechanism == "plain" && t == nil {
		v.warnings = append(v.warnings, path+".sasl.mechanism: plain without "+path+
			".tls sends the password readable by anyone on the way")
	}
}

func (v *validator) tls(path string, t *TLS) {
	if t != nil && (t.Cert == "") != (t.Key == "") {
		v.errorf(path, "has only one of cert and key: a client certificate needs both")
	}
}

// legalTopic is Kafka's own rule (org.apache.kafka.common.internals.Topic).
func legalTopic(s string) bool {
	if len(s) > 249 || s == "." || s == ".." {
		return false
	}
	for _, c := range []byte(s) {
		ok := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-'
		if !ok {
			return false
		}
	}
	return true
}

func (v *validator) levels(c *Config) {
	if len(c.Levels) == 0 {
		v.errorf("levels", "is empty: name what the database promises, as in [si]")
	}
	var named []verdict.Level
	for i, l := range c.Levels {
		path := fmt.Sprintf("levels[%d]", i)
		if v.failed[path] {
			continue // it is no level
		}
		switch {
		case slices.Contains(named, l):
			v.errorf(path, "%s is named twice", l)
		case c.Clock == record.ClockIgnore && l.RealTime():
			v.errorf(path, "%s holds real time, which clock: ignore takes away: choose another clock or a level without real "+
				"time", l)
		}
		named = append(named, l)
	}
	if c.Clock == record.ClockDatabase && verdict.MixOrders(named) {
		v.errorf("levels", "by the database's clock si is held to starts and commits, and ser to commits: name one of them")
	}
}

// secrets reads the files that hold secrets; with httpOnly only what clients of the
// monitor's own server need.
func (v *validator) secrets(c *Config, httpOnly bool) {
	read := func(path, file string, into *Secret) {
		if file == "" {
			return
		}
		text, err := readFile(file)
		if err != nil {
			v.errorf(path, "can't read %s: %v", file, err)
			return
		}
		*into = Secret(strings.TrimRight(string(text), "\r\n"))
		if *into == "" {
			v.errorf(path, "%s is empty", file)
		}
	}
	if read("http.token_file", c.HTTP.TokenFile, &c.HTTP.Token); c.HTTP.Token != "" && len(c.HTTP.Token) < tokenMin {
		v.errorf("http.token_file", "%s holds %d characters, and a token has at least %d: make one with openssl rand -hex 32",
			c.HTTP.TokenFile, len(c.HTTP.Token), tokenMin)
	}
	if httpOnly {
		return
	}
	if k := c.Source.Kafka; k != nil && k.SASL != nil {
		read("source.kafka.sasl.password_file", k.SASL.PasswordFile, &k.SASL.Password)
	}
	if c.Canary != nil {
		read("canary.password_file", c.Canary.PasswordFile, &c.Canary.Password)
		for _, a := range slices.Concat(c.Canary.Targets, c.Canary.Replicas) {
			if c.Canary.PasswordFile != "" && !a.hasAccount() {
				v.errorf("canary.password_file", "%s has no user whose password it would be: write user@ before its host, or "+
					"leave the file out", a)
			}
		}
		if p := c.Canary.Publish; p != nil && p.SASL != nil {
			read("canary.publish.sasl.password_file", p.SASL.PasswordFile, &p.SASL.Password)
		}
	}
	if c.Alerts.Values == ValuesHash {
		if read("alerts.salt_file", c.Alerts.SaltFile, &c.Alerts.Salt); c.Alerts.Salt != "" && len(c.Alerts.Salt) < SaltMin {
			v.errorf("alerts.salt_file", "%s holds %d bytes, and a salt has at least %d: make one with openssl rand -hex 32",
				c.Alerts.SaltFile, len(c.Alerts.Salt), SaltMin)
		}
	}
	v.receiverSecrets(c, read)
}

func (v *validator) atLeast(path string, d, least time.Duration) {
	if d < least {
		v.errorf(path, "must be at least %s, not %s", printDuration(least), printDuration(d))
	}
}

// oneOf checks that a key has one of its words.
func (v *validator) oneOf(path, s string) {
	if of := words()[index.ReplaceAllString(path, "[]")]; !slices.Contains(of, s) {
		if s == "" {
			v.errorf(path, "is missing: one of %s", english.WordSeries(of, "or"))
			return
		}
		v.errorf(path, "wants %s, not %q", english.WordSeries(of, "or"), s)
	}
}

// hostPort checks an address to dial or to listen on.
func hostPort(s string) error {
	_, port, err := net.SplitHostPort(s)
	if err != nil {
		return fmt.Errorf("%q wants a port, as in 127.0.0.1:9092", s)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return fmt.Errorf("%q has no port between 0 and 65535", s)
	}
	return nil
}
