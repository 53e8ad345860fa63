package config

import (
	"time"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// Config is the configuration of `monitor run`. The `help` tags are the
// descriptions of docs/configuration.md.
type Config struct {
	Source         Source          `yaml:"source"`
	Canary         *Canary         `yaml:"canary"`
	Levels         []verdict.Level `yaml:"levels" help:"What the database promises: any of rc, ra, cc, g1, pc, si, strong-si, ser, sser, lin, or a level by the name that the database has for it, as in postgres:repeatable-read (docs/levels.md says what they are)."`
	Clock          record.Clock    `yaml:"clock" help:"What recorded times are used for. prune: to cut work, never to change a verdict; enforce: real-time order is part of the level (si is read as strong-si, ser as sser); ignore: nothing; database: they are the instants at which the database started and committed, to which si, or ser, is held."`
	Coverage       record.Coverage `yaml:"coverage" help:"Whether the input holds every write since the initial state (complete) or there are writers that nobody recorded (partial). Under complete, a value that nobody wrote is an anomaly."`
	PartialTables  []string        `yaml:"partial_tables" help:"Tables of which somebody unseen may have written rows, or of which some may have been there at first, where coverage is complete of all else. The keys of their rows begin with the name and a colon. What statements returned of them is judged, and not what they did not return."`
	Initial        record.Initial  `yaml:"initial" help:"What a key holds before anybody wrote it, under complete coverage: any (one value that is not known), absent (null) or zero."`
	UniqueValues   bool            `yaml:"unique_values" help:"Whether no two transactions, recorded or not, write the same value to the same key, but for null and a declared initial value, which anybody may write. Set it to false when values repeat, also where a client only writes back what it read: alerts are then later by window.max_transaction, and with partial coverage no read proves anything. It is given up once two transactions are seen to do so."`
	Overload       string          `yaml:"overload" of:"block sample-sessions" help:"What happens when a history's queue is full. block: records wait in the journal, or reading pauses, and the lag grows; nothing is left out. sample-sessions: whole sessions of that history are left out and counted until it has caught up; anomalies among what is left out are missed."`
	UniqueAttempts bool            `yaml:"unique_attempts" help:"Whether a client that tries again after an abort writes other values than before (a counter, a fresh id), so that a read of an aborted value is an anomaly as soon as it is seen. Otherwise the alert waits until no other attempt can have committed the value (window.max_transaction)."`
	Window         Window          `yaml:"window"`
	Solver         Solver          `yaml:"solver"`
	Store          Store           `yaml:"store"`
	Memory         Bytes           `yaml:"memory" help:"How much memory the monitor aims at. What mapped files leave of it is a limit for Go's garbage collector; one that the histories do not fit is raised, with a warning. A segment ends early when a quarter of it is closures and pairs of versions without an order. 0, or GOMEMLIMIT in the environment: no limit is set."`
	Alerts         Alerts          `yaml:"alerts"`
	HTTP           HTTP            `yaml:"http"`
	Log            Log             `yaml:"log"`
}

// Source says where records come from, which is one of Kafka, File, HTTP and Stdin, and in which form.
type Source struct {
	Kafka *Kafka `yaml:"kafka"`
	File  *File  `yaml:"file"`
	HTTP  *Posts `yaml:"http" help:"Records that are posted to /api/v1/records of http.listen, a line each: http: {}. Whoever posts is answered when they are stored."`
	Stdin *Stdin `yaml:"stdin" help:"Records from standard input, until it ends: stdin: {}."`

	// Mapping is nil where records are Isowatch's.
	Mapping *Mapping `yaml:"mapping"`
}

// Mapping says where a record's parts stand in the lines of a log: JSON of another form.
type Mapping struct {
	Form      string   `yaml:"form" of:"fields timekiller" help:"Where records are JSON of another form. fields: an object is a transaction, whose parts stand where the other keys say; timekiller: TimeKiller's and AION's objects, a line each, with the database's timestamps (which wants clock: database), of which only unit is not known."`
	Only      string   `yaml:"only" help:"FIELD=TEXT: only objects in which the field holds the text are records, and the others are passed over. Empty: all are."`
	Session   string   `yaml:"session" help:"The field of the session. Here and below, trace.id is the field of this name, or else id in the object trace."`
	ID        string   `yaml:"id" help:"The field of the transaction's id. Empty, as with the others: there is none."`
	Seq       string   `yaml:"seq" help:"The field of the place in the session."`
	DB        string   `yaml:"db" help:"The field of the history that the transaction belongs to."`
	Start     string   `yaml:"start" help:"The field of the time before begin, by the client's clock: a number, or text as in 2026-01-31T12:00:00.25Z. Times of a log are often those of the line, which are none of the transaction's."`
	End       string   `yaml:"end" help:"The field of the time of the answer to the commit."`
	Unit      string   `yaml:"unit" of:"s ms us ns" help:"What times are numbers of, since 1970; of timekiller, what p is. s, ms, us or ns."`
	Outcome   string   `yaml:"outcome" help:"The field of what the client learned. Empty: all transactions that are logged are committed."`
	Committed []string `yaml:"committed" help:"What outcome holds where it is committed."`
	Aborted   []string `yaml:"aborted" help:"Where it definitely took no effect."`
	Unknown   []string `yaml:"unknown" help:"Where the client never learned, as after a time-out."`
	Ops       string   `yaml:"ops" help:"The field of the list of operations, in which the fields below are. Empty: the object is itself the one operation."`
	Kind      string   `yaml:"kind" help:"The field of what an operation is."`
	Read      []string `yaml:"read" help:"What kind holds of reads. Its case does not matter."`
	Write     []string `yaml:"write" help:"Of writes."`
	Append    []string `yaml:"append" help:"Of appends to a list."`
	Key       string   `yaml:"key" help:"The field of what is read or written."`
	Value     string   `yaml:"value" help:"The field of what it held, or was given; null: nothing was there. Where it is missing the object becomes a dead letter."`
}

// The forms of a Mapping.
const (
	FormFields     = "fields"
	FormTimeKiller = "timekiller"
)

// Kafka is a topic of transaction records.
type Kafka struct {
	Brokers []string `yaml:"brokers" help:"Addresses to start from, host:port; the rest of the cluster is found through them."`
	Topic   string   `yaml:"topic" help:"The topic; it must exist and must not be compacted."`
	Start   Start    `yaml:"start" help:"Where to begin in a partition of which the store knows no offset: earliest (which stored means too), latest, or a time such as 2026-01-31T12:00:00Z. To read a topic again, use another store.path."`
	TLS     *TLS     `yaml:"tls"`
	SASL    *SASL    `yaml:"sasl"`
}

// TLS turns on TLS, also when all its fields are empty.
type TLS struct {
	CA   string `yaml:"ca" help:"PEM file of the authorities to trust; empty: the system's."`
	Cert string `yaml:"cert" help:"PEM file of the client's certificate, for servers that ask for one; together with key."`
	Key  string `yaml:"key" help:"PEM file of the client's private key."`
}

// SASL is how the monitor proves who it is to the brokers.
type SASL struct {
	Mechanism    string `yaml:"mechanism" of:"plain scram-sha-256 scram-sha-512" help:"plain, scram-sha-256 or scram-sha-512."`
	Username     string `yaml:"username" help:"The user."`
	PasswordFile string `yaml:"password_file" help:"The file that holds the password; an end of line at its end is not part of it."`

	// Password is the contents of PasswordFile, read by Load.
	Password Secret `yaml:"-"`
}

// File is a file of transaction records, a JSON object per line.
type File struct {
	Path   string `yaml:"path" help:"The file."`
	Follow bool   `yaml:"follow" help:"Go on when the file grows, is truncated or is replaced, as tail -F does."`
}

// Posts are records that are posted to the monitor; they have no settings.
type Posts struct{}

// Stdin is standard input; it has no settings.
type Stdin struct{}

// Window bounds how long the monitor waits for records and how many it keeps.
type Window struct {
	Lateness        time.Duration `yaml:"lateness" help:"How much later than its neighbours a record may arrive and still be put in order."`
	MaxTransaction  time.Duration `yaml:"max_transaction" help:"No transaction lasts longer. A value that was read is waited for so long, by the records' times and by when they came, before its absence means something."`
	MaxSkew         time.Duration `yaml:"max_skew" help:"The most that two clients' clocks differ."`
	IdleAfter       time.Duration `yaml:"idle_after" help:"A partition or session that is silent for so long stops holding the others back."`
	MaxTransactions int           `yaml:"max_transactions" help:"How many transactions are held at most, per history, then the oldest are forgotten, counted and reported. Large ones count as several; see window.segment. Of those that wait for their place no more are held than a third of memory has room for, at 256 bytes each."`
	Segment         int           `yaml:"segment" help:"How many transactions are judged together, per history. Larger segments need more memory and a longer restart; an anomaly that spans more than a segment may be missed. A transaction of more than 1 kB (64 bytes an operation, its key and its value) counts as several, one for each kB. No more are judged together than a fourth of memory has room for, at 1 kB each."`
	Overlap         int           `yaml:"overlap" help:"How many transactions of a segment are judged again with the next one, so that what lies across the cut is found. At most half a segment."`
	Keys            int           `yaml:"keys" help:"Of how many keys the last writes are kept in memory, per history; of others they are on disk. It changes what a key costs, not what is found."`
	Histories       int           `yaml:"histories" help:"How many histories (the db of a record) are watched at most. Records of further ones become dead letters."`
	Retain          time.Duration `yaml:"retain" help:"How long records stay on disk, for evidence; what the window needs stays however old it is, and store.max_bytes goes first. 0: only what the window needs."`
}

// Solver bounds the search behind verdicts.
type Solver struct {
	Every     time.Duration `yaml:"every" help:"How often open questions are decided. Alerts are late by so much at most, or by eight times as much if they take a search and records have no times."`
	Conflicts int           `yaml:"conflicts" help:"How many dead ends the search may meet each time before it leaves a question undecided."`
}

// Store is where the monitor keeps what must survive it.
type Store struct {
	Path     string `yaml:"path" help:"The folder of records, checkpoints, offsets, dead letters, alerts and deliveries; made if it does not exist. One monitor at a time."`
	MaxBytes Bytes  `yaml:"max_bytes" help:"How large the store may grow. Records kept for evidence go first; what a restart needs stays."`
	Sync     bool   `yaml:"sync" help:"Whether what is stored survives the loss of power, at about a millisecond a commit. Without, the last seconds are read again after one."`
}

// Alerts says who is told, and how much.
type Alerts struct {
	Webhooks            []Webhook     `yaml:"webhooks"`
	Kafka               *AlertsKafka  `yaml:"kafka"`
	Stdout              bool          `yaml:"stdout" help:"Whether alerts are written to standard output as well, a JSON object a line."`
	Repeat              time.Duration `yaml:"repeat" help:"How long after a notification of a group (alerts of one database, name and weakest level) the next one comes if there is more of it, unless it has grown tenfold; also how often one is reminded of operational trouble. 0: every new alert is worth one."`
	ResolveAfter        time.Duration `yaml:"resolve_after" help:"How much of its database, in the time of the records, has to be judged without anything more of a group until it is resolved, and its promise holds again."`
	ResolveTransactions int           `yaml:"resolve_transactions" help:"How many transactions have to be judged for that beside alerts.resolve_after."`
	SilentAfter         time.Duration `yaml:"silent_after" help:"An operational alert is raised when no record has come for so long. 0: never, as where nights are quiet."`
	LagMax              time.Duration `yaml:"lag_max" help:"An operational alert is raised when what has been read, but not judged, spans so much more than the window asks for, and grows. 0: never."`
	Rate                Rate          `yaml:"rate"`
	Severity            Severities    `yaml:"severity"`
	Silences            []Silence     `yaml:"silences"`
	Retain              time.Duration `yaml:"retain" help:"How long alerts stay in the store. Those of groups that are not resolved, and those that no receiver was told of yet, stay longer. 0: for ever."`
	MaxAlerts           int           `yaml:"max_alerts" help:"How many alerts stay in the store, the oldest going first, with the same exceptions. 0: as many as there are."`
	Values              string        `yaml:"values" of:"full hash none" help:"What alerts, the page, notifications, evidence and the log show of keys and values. full: they are as they were recorded; hash: hashes of them; none: pseudonyms within one alert. Evidence proves the same in all three; ids of transactions and sessions stay as they are."`
	SaltFile            string        `yaml:"salt_file" help:"values: hash: the file that holds the salt, 16 bytes at least; an end of line at its end is not part of it. Empty: the monitor makes one of its own, in store.path."`

	// Salt is the contents of SaltFile, read by Load.
	Salt Secret `yaml:"-"`
}

// Rate bounds how often receivers are told.
type Rate struct {
	Max int           `yaml:"max" help:"How many notifications there are at most in any alerts.rate.per. What comes faster goes into one summary, which names every alert."`
	Per time.Duration `yaml:"per" help:"See alerts.rate.max."`
}

// Severities are the severities of alerts by the level that they break: critical,
// error, warning or info; empty: as Isowatch has it.
type Severities struct {
	G1       string `yaml:"g1" of:"info warning error critical" help:"The severity of alerts that say that g1 is broken: critical, error, warning or info. Empty: critical for si and what is weaker, error for what is stronger, warning for what rests on clocks. The other levels have keys likewise."`
	RC       string `yaml:"rc" of:"info warning error critical" help:"The same for rc."`
	RA       string `yaml:"ra" of:"info warning error critical" help:"The same for ra."`
	CC       string `yaml:"cc" of:"info warning error critical" help:"The same for cc."`
	PC       string `yaml:"pc" of:"info warning error critical" help:"The same for pc."`
	SI       string `yaml:"si" of:"info warning error critical" help:"The same for si."`
	StrongSI string `yaml:"strong-si" of:"info warning error critical" help:"The same for strong-si."`
	SER      string `yaml:"ser" of:"info warning error critical" help:"The same for ser."`
	SSER     string `yaml:"sser" of:"info warning error critical" help:"The same for sser."`
	LIN      string `yaml:"lin" of:"info warning error critical" help:"The same for lin."`
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
	DB      string    `yaml:"db" help:"Databases, as a pattern: * stands for any text, ? for one character. Empty, as with the others: all."`
	Level   string    `yaml:"level" help:"The level that is broken, as a pattern."`
	Name    string    `yaml:"name" help:"The anomaly, by any of its names, as a pattern; operational/* are those of the monitor itself."`
	Key     string    `yaml:"key" help:"One of the keys, as a pattern."`
	Until   time.Time `yaml:"until" help:"When it ends, as in 2026-01-31T12:00:00Z. Empty: when it is taken out of the file."`
	Comment string    `yaml:"comment" help:"Why."`
}

// Webhook is a receiver of alerts over HTTP. Which of a notice goes out is said by
// MinSeverity, Levels and DB together; empty means everything.
type Webhook struct {
	URL            string          `yaml:"url" help:"Where alerts are sent with POST. Of an Alertmanager, its address: /api/v2/alerts is added. For pagerduty it may be left out: https://events.pagerduty.com/v2/enqueue."`
	URLFile        string          `yaml:"url_file" help:"Instead of url, the file that holds it, as such an address often is a secret (Slack's always)."`
	URLEnv         string          `yaml:"url_env" help:"Instead of url, the environment variable that holds it."`
	Format         string          `yaml:"format" of:"generic slack pagerduty alertmanager" help:"generic: the alert as JSON, signed if there is a secret; slack: an incoming webhook; pagerduty: Events API v2; alertmanager: API v2."`
	SecretFile     string          `yaml:"secret_file" help:"generic: the file that holds the signing secret (whsec_…); several, a line each, sign side by side while one is replaced. Empty: not signed."`
	SecretEnv      string          `yaml:"secret_env" help:"Instead of secret_file, the environment variable that holds the secret, or several with spaces between them."`
	RoutingKeyFile string          `yaml:"routing_key_file" help:"pagerduty: the file that holds the integration's routing key."`
	RoutingKeyEnv  string          `yaml:"routing_key_env" help:"Instead of routing_key_file, the environment variable that holds it."`
	HeadersFile    string          `yaml:"headers_file" help:"A file of further headers, such as Authorization: Bearer …, one a line."`
	TLS            *TLS            `yaml:"tls"`
	Timeout        time.Duration   `yaml:"timeout" help:"How long one attempt may take, from connecting to the end of the answer."`
	MinSeverity    string          `yaml:"min_severity" of:"info warning error critical" help:"Only what is at least so bad: info, warning, error or critical. Empty: everything."`
	Levels         []verdict.Level `yaml:"levels" help:"Only anomalies that break one of these levels. Operational alerts have no level and are sent all the same. Empty: everything."`
	DB             []string        `yaml:"db" help:"Only alerts of these databases, by name or pattern (shop-*). What concerns none of them in particular is sent all the same. Empty: everything."`

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
	Brokers     []string        `yaml:"brokers" help:"Addresses to start from, host:port."`
	Topic       string          `yaml:"topic" help:"The topic; it must exist. Messages have the alert's JSON as their value and its group as their key."`
	TLS         *TLS            `yaml:"tls"`
	SASL        *SASL           `yaml:"sasl"`
	MinSeverity string          `yaml:"min_severity" of:"info warning error critical" help:"As of a webhook."`
	Levels      []verdict.Level `yaml:"levels" help:"As of a webhook."`
	DB          []string        `yaml:"db" help:"As of a webhook."`
}

// HTTP is the monitor's own server: its page, /api, /healthz, /readyz, /metrics.
type HTTP struct {
	Listen    string     `yaml:"listen" help:"host:port of the page, its API, /metrics, /healthz and /readyz; empty: none. Anything but loopback wants http.token_file or http.tls.client_ca."`
	Admin     string     `yaml:"admin" help:"host:port of a second listener, with /metrics and /debug/pprof; empty: none, and no profiles. Anything but loopback wants http.token_file or http.tls.client_ca."`
	TLS       *ServerTLS `yaml:"tls"`
	TokenFile string     `yaml:"token_file" help:"The file that holds the token that browsers and programs show: at least 16 characters. /healthz and /readyz ask for none."`
	BaseURL   string     `yaml:"base_url" help:"The address under which people reach the page, where that is not http.listen, as behind a proxy: for links in alerts, and as a name that requests may come under."`

	// Token is the contents of TokenFile, read by Load.
	Token Secret `yaml:"-"`
}

// ServerTLS turns on TLS towards those who ask the monitor.
type ServerTLS struct {
	Cert     string `yaml:"cert" help:"PEM file of the server's certificate and those between it and its authority. It is read again when it changes."`
	Key      string `yaml:"key" help:"PEM file of the server's private key."`
	ClientCA string `yaml:"client_ca" help:"PEM file of authorities; who shows a certificate of theirs needs no token. Without http.token_file, nobody else is let in."`
}

// Log says what the monitor writes to standard error.
type Log struct {
	Level  string `yaml:"level" of:"debug info warn error" help:"debug, info, warn or error."`
	Format string `yaml:"format" of:"console json" help:"console: for people; json: an object per line."`
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
