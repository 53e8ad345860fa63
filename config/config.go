package config

import (
	"time"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// Config is the configuration of `monitor run`. The comments of fields are the descriptions of
// docs/configuration.md.
type Config struct {
	Source Source  `yaml:"source"`
	Canary *Canary `yaml:"canary"`
	// What the database promises: any of rc, ra, cc, g1, pc, si, strong-si, ser, sser, lin, or a level by the name
	// that the database has for it, as in postgres:repeatable-read (docs/levels.md says what they are).
	Levels []verdict.Level `yaml:"levels"`
	// What recorded times are used for. prune: to cut work, never to change a verdict; enforce: real-time order is
	// part of the level (si is read as strong-si, ser as sser); ignore: nothing; database: they are the instants at
	// which the database started and committed, to which si, or ser, is held.
	Clock record.Clock `yaml:"clock"`
	// Whether the input holds every write since the initial state (complete) or there are writers that nobody recorded
	// (partial). Under complete, a value that nobody wrote is an anomaly.
	Coverage record.Coverage `yaml:"coverage"`
	// Tables of which somebody unseen may have written rows, or of which some may have been there at first, where
	// coverage is complete of all else. The keys of their rows begin with the name and a colon. What statements
	// returned of them is judged, and not what they did not return.
	PartialTables []string `yaml:"partial_tables"`
	// What a key holds before anybody wrote it, under complete coverage: any (one value that is not known), absent
	// (null) or zero.
	Initial record.Initial `yaml:"initial"`
	// Whether no two transactions, recorded or not, write the same value to the same key, but for null and a declared
	// initial value, which anybody may write. Set it to false when values repeat, also where a client only writes back
	// what it read: alerts are then later by window.max_transaction, and with partial coverage no read proves
	// anything. It is given up once two transactions are seen to do so.
	UniqueValues bool `yaml:"unique_values"`
	// What happens when a history's queue is full. block: records wait in the journal, or reading pauses, and the lag
	// grows; nothing is left out. sample-sessions: whole sessions of that history are left out and counted until it
	// has caught up; anomalies among what is left out are missed.
	Overload string `yaml:"overload" of:"block sample-sessions"`
	// Whether a client that tries again after an abort writes other values than before (a counter, a fresh id), so
	// that a read of an aborted value is an anomaly as soon as it is seen. Otherwise the alert waits until no other
	// attempt can have committed the value (window.max_transaction).
	UniqueAttempts bool   `yaml:"unique_attempts"`
	Window         Window `yaml:"window"`
	Solver         Solver `yaml:"solver"`
	Store          Store  `yaml:"store"`
	// How much memory the monitor aims at. What mapped files leave of it is a limit for Go's garbage collector; one
	// that the histories do not fit is raised, with a warning. A segment ends early when a quarter of it is closures
	// and pairs of versions without an order. 0, or GOMEMLIMIT in the environment: no limit is set.
	Memory Bytes  `yaml:"memory"`
	Alerts Alerts `yaml:"alerts"`
	HTTP   HTTP   `yaml:"http"`
	Log    Log    `yaml:"log"`
}

// Source says where records come from, which is one of Kafka, File, HTTP and Stdin, and in which form.
type Source struct {
	Kafka *Kafka `yaml:"kafka"`
	File  *File  `yaml:"file"`
	// Records that are posted to /api/v1/records of http.listen, a line each: http: {}. Whoever posts is answered when
	// they are stored.
	HTTP *Posts `yaml:"http"`
	// Records from standard input, until it ends: stdin: {}.
	Stdin *Stdin `yaml:"stdin"`

	// Mapping is nil where records are Isowatch's.
	Mapping *Mapping `yaml:"mapping"`
}

// Mapping says where a record's parts stand in the lines of a log: JSON of another form.
type Mapping struct {
	// Where records are JSON of another form. fields: an object is a transaction, whose parts stand where the other
	// keys say; timekiller: TimeKiller's and AION's objects, a line each, with the database's timestamps (which wants
	// clock: database), of which only unit is not known.
	Form string `yaml:"form" of:"fields timekiller"`
	// FIELD=TEXT: only objects in which the field holds the text are records, and the others are passed over. Empty:
	// all are.
	Only string `yaml:"only"`
	// The field of the session. Here and below, trace.id is the field of this name, or else id in the object trace.
	Session string `yaml:"session"`
	// The field of the transaction's id. Empty, as with the others: there is none.
	ID string `yaml:"id"`
	// The field of the place in the session.
	Seq string `yaml:"seq"`
	// The field of the history that the transaction belongs to.
	DB string `yaml:"db"`
	// The field of the time before begin, by the client's clock: a number, or text as in 2026-01-31T12:00:00.25Z.
	// Times of a log are often those of the line, which are none of the transaction's.
	Start string `yaml:"start"`
	// The field of the time of the answer to the commit.
	End string `yaml:"end"`
	// What times are numbers of, since 1970; of timekiller, what p is. s, ms, us or ns.
	Unit string `yaml:"unit" of:"s ms us ns"`
	// The field of what the client learned. Empty: all transactions that are logged are committed.
	Outcome string `yaml:"outcome"`
	// What outcome holds where it is committed.
	Committed []string `yaml:"committed"`
	// Where it definitely took no effect.
	Aborted []string `yaml:"aborted"`
	// Where the client never learned, as after a time-out.
	Unknown []string `yaml:"unknown"`
	// The field of the list of operations, in which the fields below are. Empty: the object is itself the one
	// operation.
	Ops string `yaml:"ops"`
	// The field of what an operation is.
	Kind string `yaml:"kind"`
	// What kind holds of reads. Its case does not matter.
	Read []string `yaml:"read"`
	// Of writes.
	Write []string `yaml:"write"`
	// Of appends to a list.
	Append []string `yaml:"append"`
	// The field of what is read or written.
	Key string `yaml:"key"`
	// The field of what it held, or was given; null: nothing was there. Where it is missing the object becomes a dead
	// letter.
	Value string `yaml:"value"`
}

// The forms of a Mapping.
const (
	FormFields     = "fields"
	FormTimeKiller = "timekiller"
)

// Kafka is a topic of transaction records.
type Kafka struct {
	// Addresses to start from, host:port; the rest of the cluster is found through them.
	Brokers []string `yaml:"brokers"`
	// The topic; it must exist and must not be compacted.
	Topic string `yaml:"topic"`
	// Where to begin in a partition of which the store knows no offset: earliest (which stored means too), latest, or
	// a time such as 2026-01-31T12:00:00Z. To read a topic again, use another store.path.
	Start Start `yaml:"start"`
	TLS   *TLS  `yaml:"tls"`
	SASL  *SASL `yaml:"sasl"`
}

// TLS turns on TLS, also when all its fields are empty.
type TLS struct {
	// PEM file of the authorities to trust; empty: the system's.
	CA string `yaml:"ca"`
	// PEM file of the client's certificate, for servers that ask for one; together with key.
	Cert string `yaml:"cert"`
	// PEM file of the client's private key.
	Key string `yaml:"key"`
}

// SASL is how the monitor proves who it is to the brokers.
type SASL struct {
	// plain, scram-sha-256 or scram-sha-512.
	Mechanism string `yaml:"mechanism" of:"plain scram-sha-256 scram-sha-512"`
	// The user.
	Username string `yaml:"username"`
	// The file that holds the password; an end of line at its end is not part of it.
	PasswordFile string `yaml:"password_file"`

	// Password is the contents of PasswordFile, read by Load.
	Password Secret `yaml:"-"`
}

// File is a file of transaction records, a JSON object per line.
type File struct {
	// The file.
	Path string `yaml:"path"`
	// Go on when the file grows, is truncated or is replaced, as tail -F does.
	Follow bool `yaml:"follow"`
}

// Posts are records that are posted to the monitor; they have no settings.
type Posts struct{}

// Stdin is standard input; it has no settings.
type Stdin struct{}

// Window bounds how long the monitor waits for records and how many it keeps.
type Window struct {
	// How long after its transaction ended a record comes at most. Only what absence proves waits so long, and what is
	// quiet.
	Lateness time.Duration `yaml:"lateness"`
	// No transaction lasts longer. A value that was read is waited for so long, by the records' times and by when they
	// came, before its absence means something.
	MaxTransaction time.Duration `yaml:"max_transaction"`
	// The most that two clients' clocks differ.
	MaxSkew time.Duration `yaml:"max_skew"`
	// A partition or session that is silent for so long, while others are not, stops holding the others back.
	IdleAfter time.Duration `yaml:"idle_after"`
	// How many transactions are held at most, per history, then the oldest are forgotten, counted and reported. Large
	// ones count as several; see window.segment. Of those that wait for their place no more are held than a third of
	// memory has room for, at 256 bytes each.
	MaxTransactions int `yaml:"max_transactions"`
	// How many transactions are judged together, per history. Larger segments need more memory and a longer restart;
	// an anomaly that spans more than a segment may be missed. A transaction of more than 1 kB (64 bytes an operation,
	// its key and its value) counts as several, one for each kB. No more are judged together than a fourth of memory
	// has room for, at 1 kB each.
	Segment int `yaml:"segment"`
	// How many transactions of a segment are judged again with the next one, so that what lies across the cut is
	// found. At most half a segment.
	Overlap int `yaml:"overlap"`
	// Of how many keys the last writes are kept in memory, per history; of others they are on disk. It changes what a
	// key costs, not what is found.
	Keys int `yaml:"keys"`
	// How many histories (the db of a record) are watched at most. Records of further ones become dead letters.
	Histories int `yaml:"histories"`
	// How long records stay on disk, for evidence; what the window needs stays however old it is, and store.max_bytes
	// goes first. 0: only what the window needs.
	Retain time.Duration `yaml:"retain"`
}

// Solver bounds the search behind verdicts.
type Solver struct {
	// How often open questions are decided. Alerts are late by so much at most, or by eight times as much if they take
	// a search and records have no times.
	Every time.Duration `yaml:"every"`
	// How many dead ends the search may meet each time before it leaves a question undecided.
	Conflicts int `yaml:"conflicts"`
}

// Store is where the monitor keeps what must survive it.
type Store struct {
	// The folder of records, checkpoints, offsets, dead letters, alerts and deliveries; made if it does not exist. One
	// monitor at a time.
	Path string `yaml:"path"`
	// How large the store may grow. Records kept for evidence go first; what a restart needs stays.
	MaxBytes Bytes `yaml:"max_bytes"`
	// Whether what is stored survives the loss of power, at about a millisecond a commit. Without, the last seconds
	// are read again after one.
	Sync bool `yaml:"sync"`
}

// Alerts says who is told, and how much.
type Alerts struct {
	Webhooks []Webhook    `yaml:"webhooks"`
	Kafka    *AlertsKafka `yaml:"kafka"`
	// Whether alerts are written to standard output as well, a JSON object a line.
	Stdout bool `yaml:"stdout"`
	// How long after a notification of a group (alerts of one database, name and weakest level) the next one comes if
	// there is more of it, unless it has grown tenfold; also how often one is reminded of operational trouble. 0:
	// every new alert is worth one.
	Repeat time.Duration `yaml:"repeat"`
	// How much of its database, in the time of the records, has to be judged without anything more of a group until it
	// is resolved, and its promise holds again.
	ResolveAfter time.Duration `yaml:"resolve_after"`
	// How many transactions have to be judged for that beside alerts.resolve_after.
	ResolveTransactions int `yaml:"resolve_transactions"`
	// An operational alert is raised when no record has come for so long. 0: never, as where nights are quiet.
	SilentAfter time.Duration `yaml:"silent_after"`
	// An operational alert is raised when what has been read, but not judged, spans so much more than the window asks
	// for, and grows. 0: never.
	LagMax   time.Duration `yaml:"lag_max"`
	Rate     Rate          `yaml:"rate"`
	Severity Severities    `yaml:"severity"`
	Silences []Silence     `yaml:"silences"`
	// How long alerts stay in the store. Those that stand for groups which are not resolved, and those that no receiver
	// was told of yet, stay longer. 0: for ever.
	Retain time.Duration `yaml:"retain"`
	// How many alerts stay in the store, the oldest going first, with the same exceptions. 0: as many as there are.
	MaxAlerts int `yaml:"max_alerts"`
	// What alerts, the page, notifications, evidence and the log show of keys and values. full: they are as they were
	// recorded; hash: hashes of them; none: pseudonyms within one alert. Evidence proves the same in all three; ids of
	// transactions and sessions stay as they are.
	Values string `yaml:"values" of:"full hash none"`
	// values: hash: the file that holds the salt, 16 bytes at least; an end of line at its end is not part of it.
	// Empty: the monitor makes one of its own, in store.path.
	SaltFile string `yaml:"salt_file"`

	// Salt is the contents of SaltFile, read by Load.
	Salt Secret `yaml:"-"`
}

// Rate bounds how often receivers are told.
type Rate struct {
	// How many notifications there are at most in any alerts.rate.per. What comes faster goes into one summary, which
	// names every alert.
	Max int `yaml:"max"`
	// See alerts.rate.max.
	Per time.Duration `yaml:"per"`
}

// Severities are the severities of alerts by the level that they break: critical,
// error, warning or info; empty: as Isowatch has it.
type Severities struct {
	// The severity of alerts that say that g1 is broken: critical, error, warning or info. Empty: critical for si and
	// what is weaker, error for what is stronger, warning for what rests on clocks. The other levels have keys
	// likewise.
	G1 string `yaml:"g1" of:"info warning error critical"`
	// The same for rc.
	RC string `yaml:"rc" of:"info warning error critical"`
	// The same for ra.
	RA string `yaml:"ra" of:"info warning error critical"`
	// The same for cc.
	CC string `yaml:"cc" of:"info warning error critical"`
	// The same for pc.
	PC string `yaml:"pc" of:"info warning error critical"`
	// The same for si.
	SI string `yaml:"si" of:"info warning error critical"`
	// The same for strong-si.
	StrongSI string `yaml:"strong-si" of:"info warning error critical"`
	// The same for ser.
	SER string `yaml:"ser" of:"info warning error critical"`
	// The same for sser.
	SSER string `yaml:"sser" of:"info warning error critical"`
	// The same for lin.
	LIN string `yaml:"lin" of:"info warning error critical"`
}

// Of is the severity of a level; empty: it is not configured.
func (s Severities) Of(level string) string {
	for _, x := range s.all() {
		if x.level == level {
			return x.severity
		}
	}
	return ""
}

func (s Severities) all() []struct{ level, severity string } {
	return []struct{ level, severity string }{{"g1", s.G1}, {"rc", s.RC}, {"ra", s.RA}, {"cc", s.CC}, {"pc", s.PC},
		{"si", s.SI}, {"strong-si", s.StrongSI}, {"ser", s.SER}, {"sser", s.SSER}, {"lin", s.LIN}}
}

// Silence keeps alerts from the receivers; they stay in the store, and are counted.
type Silence struct {
	// Databases, as a pattern: * stands for any text, ? for one character. Empty, as with the others: all.
	DB string `yaml:"db"`
	// The level that is broken, as a pattern.
	Level string `yaml:"level"`
	// The anomaly, by any of its names, as a pattern; operational/* are those of the monitor itself.
	Name string `yaml:"name"`
	// One of the keys, as a pattern.
	Key string `yaml:"key"`
	// When it ends, as in 2026-01-31T12:00:00Z. Empty: when it is taken out of the file.
	Until time.Time `yaml:"until"`
	// Why.
	Comment string `yaml:"comment"`
}

// Webhook is a receiver of alerts over HTTP. Which of a notice goes out is said by
// MinSeverity, Levels and DB together; empty means everything.
type Webhook struct {
	// Where alerts are sent with POST. Of an Alertmanager, its address: /api/v2/alerts is added. For pagerduty it may
	// be left out: https://events.pagerduty.com/v2/enqueue.
	URL string `yaml:"url"`
	// Instead of url, the file that holds it, as such an address often is a secret (Slack's always).
	URLFile string `yaml:"url_file"`
	// Instead of url, the environment variable that holds it.
	URLEnv string `yaml:"url_env"`
	// generic: the alert as JSON, signed if there is a secret; slack: an incoming webhook; pagerduty: Events API v2;
	// alertmanager: API v2.
	Format string `yaml:"format" of:"generic slack pagerduty alertmanager"`
	// generic: the file that holds the signing secret (whsec_…); several, a line each, sign side by side while one is
	// replaced. Empty: not signed.
	SecretFile string `yaml:"secret_file"`
	// Instead of secret_file, the environment variable that holds the secret, or several with spaces between them.
	SecretEnv string `yaml:"secret_env"`
	// pagerduty: the file that holds the integration's routing key.
	RoutingKeyFile string `yaml:"routing_key_file"`
	// Instead of routing_key_file, the environment variable that holds it.
	RoutingKeyEnv string `yaml:"routing_key_env"`
	// A file of further headers, such as Authorization: Bearer …, one a line.
	HeadersFile string `yaml:"headers_file"`
	TLS         *TLS   `yaml:"tls"`
	// How long one attempt may take, from connecting to the end of the answer.
	Timeout time.Duration `yaml:"timeout"`
	// Only what is at least so bad: info, warning, error or critical. Empty: everything.
	MinSeverity string `yaml:"min_severity" of:"info warning error critical"`
	// Only anomalies that break one of these levels. Operational alerts have no level and are sent all the same.
	// Empty: everything.
	Levels []verdict.Level `yaml:"levels"`
	// Only alerts of these databases, by name or pattern (shop-*). What concerns none of them in particular is sent
	// all the same. Empty: everything.
	DB []string `yaml:"db"`

	// What Load reads from the files and variables named above.
	Address    Secret            `yaml:"-"`
	Secrets    []Secret          `yaml:"-"`
	RoutingKey Secret            `yaml:"-"`
	Headers    map[string]Secret `yaml:"-"`
}

// pagerDutyURL is where PagerDuty takes events, unless a webhook says otherwise.
const pagerDutyURL = "https://events.pagerduty.com/v2/enqueue"

// Target is the address that alerts are sent to; it often is a secret.
func (w *Webhook) Target() string {
	switch {
	case w.Address != "":
		return string(w.Address)
	case w.URL == "" && w.Format == FormatPagerDuty:
		return pagerDutyURL
	}
	return w.URL
}

// The formats of webhooks.
const (
	FormatGeneric      = "generic"
	FormatSlack        = "slack"
	FormatPagerDuty    = "pagerduty"
	FormatAlertmanager = "alertmanager"
)

// AlertsKafka is a topic that alerts are written to.
type AlertsKafka struct {
	// Addresses to start from, host:port.
	Brokers []string `yaml:"brokers"`
	// The topic; it must exist. Messages have the alert's JSON as their value and its group as their key.
	Topic string `yaml:"topic"`
	TLS   *TLS   `yaml:"tls"`
	SASL  *SASL  `yaml:"sasl"`
	// As of a webhook.
	MinSeverity string `yaml:"min_severity" of:"info warning error critical"`
	// As of a webhook.
	Levels []verdict.Level `yaml:"levels"`
	// As of a webhook.
	DB []string `yaml:"db"`
}

// HTTP is the monitor's own server: its page, /api, /healthz, /readyz, /metrics.
type HTTP struct {
	// host:port of the page, its API, /metrics, /healthz and /readyz; empty: none. Anything but loopback wants
	// http.token_file or http.tls.client_ca.
	Listen string `yaml:"listen"`
	// host:port of a second listener, with /metrics and /debug/pprof; empty: none, and no profiles. Anything but
	// loopback wants http.token_file or http.tls.client_ca.
	Admin string     `yaml:"admin"`
	TLS   *ServerTLS `yaml:"tls"`
	// The file that holds the token that browsers and programs show: at least 16 characters. /healthz and /readyz ask
	// for none.
	TokenFile string `yaml:"token_file"`
	// The address under which people reach the page, where that is not http.listen, as behind a proxy: for links in
	// alerts, and as a name that requests may come under.
	BaseURL string `yaml:"base_url"`

	// Token is the contents of TokenFile, read by Load.
	Token Secret `yaml:"-"`
}

// ServerTLS turns on TLS towards those who ask the monitor.
type ServerTLS struct {
	// PEM file of the server's certificate and those between it and its authority. It is read again when it changes.
	Cert string `yaml:"cert"`
	// PEM file of the server's private key.
	Key string `yaml:"key"`
	// PEM file of authorities; who shows a certificate of theirs needs no token. Without http.token_file, nobody else
	// is let in.
	ClientCA string `yaml:"client_ca"`
}

// Log says what the monitor writes to standard error.
type Log struct {
	// debug, info, warn or error.
	Level string `yaml:"level" of:"debug info warn error"`
	// console: for people; json: an object per line.
	Format string `yaml:"format" of:"console json"`
}

// Default returns the configuration that an empty file means. It has no source
// and so does not validate.
func Default() *Config {
	return &Config{
		Levels:       []verdict.Level{verdict.SI},
		Clock:        record.ClockPrune,
		Coverage:     record.CoveragePartial,
		Initial:      record.InitialAny,
		UniqueValues: true,
		Window: Window{
			Lateness:        2 * time.Second,
			MaxTransaction:  60 * time.Second,
			MaxSkew:         5 * time.Millisecond,
			IdleAfter:       10 * time.Second,
			MaxTransactions: 1_000_000,
			Segment:         65_536,
			Overlap:         4_096,
			Keys:            1_000_000,
			Histories:       256,
			Retain:          24 * time.Hour,
		},
		Overload: OverloadBlock,
		Solver:   Solver{Every: 250 * time.Millisecond, Conflicts: 100_000},
		Store:    Store{Path: "./isowatch-data", MaxBytes: 10 << 30},
		Memory:   300_000_000,
		Alerts: Alerts{Values: ValuesFull, Repeat: 4 * time.Hour, ResolveAfter: 15 * time.Minute, ResolveTransactions: 1000,
			LagMax: time.Minute, Rate: Rate{Max: 5, Per: time.Minute},
			Retain: 90 * 24 * time.Hour, MaxAlerts: 100_000},
		HTTP: HTTP{Listen: "127.0.0.1:8080"},
		Log:  Log{Level: "info", Format: "console"},
	}
}

// defaulter is implemented by optional parts that have defaults of their own,
// which apply once the part is mentioned.
type defaulter interface{ setDefaults() }

func (k *Kafka) setDefaults() { k.Start = Start{At: StartStored} }
func (f *File) setDefaults()  { f.Follow = true }
func (m *Mapping) setDefaults() {
	*m = Mapping{Form: FormFields, Unit: "ns", Session: "session", Committed: []string{"committed"},
		Aborted: []string{"aborted"}, Unknown: []string{"unknown"}, Ops: "ops", Kind: "kind", Read: []string{"r", "read"},
		Write: []string{"w", "write"}, Append: []string{"a", "append"}, Key: "key", Value: "value"}
}
func (w *Webhook) setDefaults() { w.Format, w.Timeout = FormatGeneric, 10*time.Second }

// Tables are the tables whose coverage is not that of the whole.
func (c *Config) Tables() record.Tables {
	if len(c.PartialTables) == 0 || c.Coverage == record.CoveragePartial {
		return nil
	}
	out := record.Tables{}
	for _, name := range c.PartialTables {
		out[name] = record.CoveragePartial
	}
	return out
}
