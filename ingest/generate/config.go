package generate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// refuses tells whether a transaction can't overwrite what was committed since
// its reads.
func refuses(l verdict.Level) bool { return l.Implies(verdict.SI) }

// chooses tells whether a read may return one of several versions: any committed one (G1), one that is no older than
// what its transaction has seen (RC), those that go together in a transaction and with its session (RA), or what
// replicas have that exchange it, causes with effects (CC).
func chooses(l verdict.Level) bool {
	return l == verdict.CC || l == verdict.RA || l == verdict.RC || l == verdict.G1
}

// Workload says what transactions do.
type Workload uint8

// The workloads, named as in the papers that use them.
const (
	General     Workload = iota // each operation reads or writes a random key
	BlindW                      // each transaction only reads, or only writes (Cobra, Vbox)
	Mini                        // at most two keys, each written only after it is read (MTC)
	ReadOnly                    // nothing is ever written
	Append                      // reads of lists and appends to them (Elle)
	Mix                         // registers and lists: transactions of the other workloads, and some that use both
	Lightweight                 // a key is read and written, at once: compare and set (MTC)
	// a key is written, or as many as a transaction has operations are read, neighbours of each other
	Snapshots
	Bank       // two accounts are read and written, or all of them are read (Jepsen)
	Ranges     // neighbours are read at once, and one of them may be written; a store may have none of some at first
	CTwitter   // users tweet, follow each other and look at tweets (Cobra)
	Predicates // the rows that have a column in a range are read, or all written at once (Vbox)
	Booking    // a resource is booked for some time if no other booking overlaps; bookings are read and canceled
	Queue      // jobs are put into a queue, each is taken by one who finds it waiting, and those taken are deleted
	Unique     // a row is inserted if no other has its name, given something or else inserted, or deleted
)

var workloadNames = [...]string{"general", "blindw", "mini", "read-only", "append", "mix", "lwt", "snapshots", "bank",
	"ranges", "c-twitter", "blindw-pred", "booking", "queue", "unique"}

func (w Workload) String() string { return workloadNames[w] }

// HasRows tells whether what a key holds is a row, which is asked for by conditions too.
func (w Workload) HasRows() bool { return w == Predicates || w.Inserts() }

// Inserts tells whether there are no rows at first, and a transaction inserts one at most.
func (w Workload) Inserts() bool { return w == Booking || w == Queue || w == Unique }

// Distribution says which keys are popular.
type Distribution uint8

// The distributions of keys.
const (
	Uniform Distribution = iota // all alike
	Zipf                        // the n-th is chosen in proportion to 1/n^Exponent
	Hotspot                     // four in five operations go to one key in five
)

var distributionNames = [...]string{"uniform", "zipf", "hotspot"}

func (d Distribution) String() string { return distributionNames[d] }

// ParseDistribution is the inverse of String.
func ParseDistribution(s string) (Distribution, bool) {
	return record.Named[Distribution](distributionNames[:], s)
}

// Config says what history to make. Zero fields have the defaults that their
// comments name.
type Config struct {
	DB string // record.DefaultDB
	// Level is what the simulated store gives, with the freedom that it leaves. Lists at a level below SI are stored at
	// SI, as only there what a transaction reads of its own appends is where the list will have them.
	Level verdict.Level
	Seed  uint64

	Transactions int // 10000, those of anomalies included
	Sessions     int // 24
	Operations   int // 8 per transaction, with Append at most; Mini, Lightweight and CTwitter have their own
	// Keys is how many keys there are, 10000; with Append, how many lists at a
	// time; with CTwitter, how many users; with Predicates, how many rows; with Booking, for how many bookings there is
	// room; with Unique, how many names. Beyond 4 million they are not tabled, and memory depends on how many of them
	// are written instead.
	Keys int

	Workload Workload
	// ReadShare is the share of operations that read, for General, and of
	// transactions that only read, for BlindW, Lightweight, Snapshots, Bank, Ranges and those that have rows. Mini
	// and CTwitter ignore it. NoReads makes it 0, as the zero value stands for one half.
	ReadShare    float64
	NoReads      bool
	Distribution Distribution
	Exponent     float64 // of Zipf; 0.99

	AbortRate   float64 // share of transactions that abort, besides those that the store refuses
	UnknownRate float64 // share of transactions whose outcome the client never learns
	// Duplicates is the share of keys whose written values are each one of few
	// (DuplicateValues, 100, chosen by Zipf with DuplicateExponent, 0.5; as
	// VeriStrong 7.1 has it). All others get new values only, and elements of
	// lists are always new.
	Duplicates        float64
	DuplicateValues   int
	DuplicateExponent float64
	// ListAppends is how many elements a list of Append or Mix is given, 32:
	// then it is retired and another takes its place, as in Elle's workloads.
	ListAppends int

	// Stale is the share of transactions that execute (ser) or take their
	// snapshot (si, pc) before they start, read any of the latest versions that the level
	// allows (ra, rc, g1), or whose replica hears nothing new before they read (cc). Never
	// for the real-time levels. 0.02; NoStale makes it 0.
	Stale   float64
	NoStale bool

	// NoTimes leaves start and end out of the records.
	NoTimes bool
	// MaxSkew bounds the difference of the sessions' clocks.
	MaxSkew time.Duration
	// Start is when the history begins, Unix nanoseconds; 1732160000e9.
	Start int64
	// Duration and Pause are the means of a transaction's duration (1 ms) and
	// of a session's pause after it (0.2 ms).
	Duration, Pause time.Duration

	// Initial is the initial state as the header states it. With InitialAny
	// keys are absent at first, but a reader is not told. Lists can't be zero.
	Initial record.Initial

	// Anomaly is one of Anomalies or ListAnomalies, or empty. With Append it is
	// played with lists. Planted is how often it is
	// planted, spread over the history; 1.
	Anomaly string
	Planted int
}

// Preset sets the fields of c that make the workload of a name; some come with sizes.
func (c *Config) Preset(name string) error { return c.preset(name, false) }

func (c *Config) preset(name string, live bool) error {
	var known []string
	for _, p := range Presets(live) {
		if p.Name == name {
			p.set(c)
			return nil
		}
		known = append(known, p.Name)
	}
	return fmt.Errorf("workload %q: use one of %s", name, strings.Join(known, ", "))
}

// Live is a preset for a real store that has so many keys, with its defaults.
func Live(name string, keys, operations int, d Distribution) (Config, error) {
	c := Config{Level: verdict.SSER} // which every workload goes with
	if err := c.preset(name, true); err != nil {
		return c, err
	}
	c.Keys, c.Operations, c.Distribution = keys, operations, d
	return c.WithDefaults()
}

func workload(w Workload, readShare float64) func(*Config) {
	return func(c *Config) { c.Workload, c.ReadShare = w, readShare }
}

// veriStrong is a workload of VeriStrong 7.1: half of the keys have duplicate
// values.
func veriStrong(readShare, exponent float64) func(*Config) {
	return func(c *Config) {
		c.Workload, c.ReadShare = General, readShare
		c.Transactions, c.Sessions, c.Operations, c.Keys = 10_000, 20, 20, 5000
		c.Duplicates, c.DuplicateExponent = 0.5, exponent
	}
}

// Preset is a workload with a name.
type Preset struct {
	Name, What string // What its transactions do
	set        func(*Config)
}

// Presets are all workloads, which generate and canary take alike, or those for a real store: values that repeat, a
// billion keys and who follows whom are for a simulated one.
func Presets(live bool) []Preset {
	return slices.DeleteFunc(slices.Clone(presets), func(p Preset) bool {
		var c Config
		p.set(&c)
		return live && (c.Workload == CTwitter || c.Duplicates > 0 || c.Transactions > 0)
	})
}

var presets = []Preset{
	{"general", "each operation reads or writes a random key", workload(General, 0.5)},
	{"rh", "VeriStrong's: 95% reads, half of the keys with duplicate values; 20 sessions, 10,000 transactions of 20 " +
		"operations, 5,000 keys", veriStrong(0.95, 0.5)},
	{"bl", "as rh, with 50% reads", veriStrong(0.5, 0.5)},
	{"wh", "as rh, with 30% reads", veriStrong(0.3, 0.5)},
	{"hd", "as bl, with fewer different values", veriStrong(0.5, 1.5)},
	// PolySI 5.1.1, its short transactions
	{"large", "PolySI's: 1,000,000 transactions of 15 operations, a billion keys", func(c *Config) {
		c.Workload, c.ReadShare = General, 0.5
		c.Transactions, c.Sessions, c.Operations, c.Keys = 1_000_000, 20, 15, 1_000_000_000
	}},
	{"blindw-rw", "Cobra's and Vbox's: half of the transactions only read, half only write", workload(BlindW, 0.5)},
	{"blindw-wr", "the same, as Vbox calls it", workload(BlindW, 0.5)},
	{"blindw-rh", "as blindw-rw, 80% read", workload(BlindW, 0.8)},
	{"blindw-wh", "as blindw-rw, 20% read", workload(BlindW, 0.2)},
	{"blindw-rr", "all only read", workload(ReadOnly, 1)},
	// Vbox 4.1
	{"blindw-pred", "Vbox's: the rows that have one of two columns in a range, up to a tenth of them, are read, or all " +
		"given one value; from pc on", func(c *Config) {
		c.Workload, c.ReadShare, c.Operations = Predicates, 0.5, 1
	}},
	{"booking", "a resource is booked for some time if a read finds no booking that overlaps, bookings are canceled, or " +
		"those that overlap are read; from pc on", func(c *Config) {
		c.Workload, c.ReadShare, c.Operations, c.Keys = Booking, 0.3, 2, 300
	}},
	{"queue", "jobs are put into queues, one that waits is taken, those taken are deleted, or those that wait are " +
		"read; from pc on", func(c *Config) {
		c.Workload, c.ReadShare, c.Operations, c.Keys = Queue, 0.3, 2, 300
	}},
	{"unique", "a row is inserted if a read finds none of its name, or updated or else inserted, rows are deleted by " +
		"their name, or read; from pc on", func(c *Config) {
		c.Workload, c.ReadShare, c.Operations, c.Keys = Unique, 0.3, 2, 300
	}},
	{"mini", "MTC's mini-transactions: one key or two are read, and some of what was read is written",
		workload(Mini, 0.5)},
	{"lwt", "MTC's lightweight transactions: compare and set of one key",
		func(c *Config) { c.Workload, c.ReadShare, c.NoReads = Lightweight, 0, true }},
	// Cobra 6, as AWDIT 5.4 uses it
	{"c-twitter", "Cobra's, as AWDIT uses it: keys are users, who tweet, follow each other and look at tweets; 50 " +
		"sessions, some 7.6 operations a transaction", func(c *Config) {
		c.Workload, c.Sessions, c.Keys = CTwitter, 50, 4400
	}},
	// Elle, as its generator of histories has it
	{"append", "Elle's: lists, read and appended to, up to four operations, ten lists at a time", func(c *Config) {
		c.Workload, c.ReadShare = Append, 0.5
		c.Operations, c.Keys = 4, 10
	}},
	{"mix", "general, blindw-rw, mini and append by turns, on registers and lists", workload(Mix, 0.5)},
	{"snapshots", "one key is written, or neighbours are read: two readers that see two writes in two orders are a long " +
		"fork", workload(Snapshots, 0.5)},
	{"bank", "transfers between two of ten accounts, and reads of all of them", func(c *Config) {
		c.Workload, c.ReadShare, c.Keys = Bank, 0.3, 10
	}},
	{"ranges", "neighbours are read at once, and one of them may be written; some are not there at first",
		workload(Ranges, 0.3)},
}

// lists tells whether the workload has keys that hold lists.
func (c *Config) lists() bool { return c.Workload == Append || c.Workload == Mix }

// WithDefaults fills in the zero fields and refuses what makes no sense.
func (c Config) WithDefaults() (Config, error) {
	if int(c.Level) >= len(verdict.Levels()) || int(c.Workload) >= len(workloadNames) ||
		int(c.Distribution) >= len(distributionNames) {
		return c, fmt.Errorf("level, workload or distribution is none of this package's constants")
	}
	c.fill()
	for _, check := range []func() error{c.checkNumbers, c.checkWorkload, c.checkAnomaly} {
		if err := check(); err != nil {
			return c, err
		}
	}
	if c.Anomaly == "" {
		c.Planted = 0
	}
	return c, nil
}

// fill gives the zero fields their defaults.
func (c *Config) fill() {
	c.DB = cmp.Or(c.DB, record.DefaultDB)
	c.Transactions = cmp.Or(c.Transactions, 10_000)
	c.Sessions = cmp.Or(c.Sessions, 24)
	c.Operations = cmp.Or(c.Operations, 8)
	c.Keys = cmp.Or(c.Keys, 10_000)
	c.DuplicateValues = cmp.Or(c.DuplicateValues, 100)
	c.ListAppends = cmp.Or(c.ListAppends, 32)
	c.Planted = cmp.Or(c.Planted, 1)
	if c.ReadShare == 0 && !c.NoReads {
		c.ReadShare = 0.5
	}
	c.Exponent = cmp.Or(c.Exponent, 0.99)
	c.DuplicateExponent = cmp.Or(c.DuplicateExponent, 0.5)
	c.Stale = cmp.Or(c.Stale, 0.02)
	if c.lists() && !refuses(c.Level) && c.Level != verdict.LIN {
		c.Level = verdict.SI
	}
	if c.Workload.HasRows() && c.Initial == record.InitialAny {
		c.Initial = record.InitialAbsent // else it says nothing that a row is not returned
	}
	if c.NoStale || c.Level.RealTime() {
		c.Stale = 0
	}
	c.Start = cmp.Or(c.Start, 1_732_160_000*int64(time.Second))
	c.Duration = cmp.Or(c.Duration, time.Millisecond)
	c.Pause = cmp.Or(c.Pause, 200*time.Microsecond)
}

// checkNumbers refuses numbers that are out of range.
func (c *Config) checkNumbers() error {
	for _, f := range []struct {
		name       string
		value, max int
	}{
		{"transactions", c.Transactions, 1<<31 - 1}, {"sessions", c.Sessions, 1 << 20}, {"operations", c.Operations, 1 << 20},
		{"keys", c.Keys, 1 << 40}, {"duplicate values", c.DuplicateValues, 1 << 24},
		{"appends of a list", c.ListAppends, 1 << 20}, {"planted anomalies", c.Planted, 1 << 30},
	} {
		if f.value < 1 || f.value > f.max {
			return fmt.Errorf("%s: %d is out of range; use 1 to %d", f.name, f.value, f.max)
		}
	}
	for _, f := range []struct {
		name  string
		value float64
	}{
		{"read share", c.ReadShare}, {"abort rate", c.AbortRate}, {"unknown rate", c.UnknownRate},
		{"duplicates", c.Duplicates}, {"stale", c.Stale},
	} {
		if !(f.value >= 0 && f.value <= 1) {
			return fmt.Errorf("%s: %v is no share; use a number from 0 to 1", f.name, f.value)
		}
	}
	for _, e := range []float64{c.Exponent, c.DuplicateExponent} {
		if !(e > 0 && e <= 10) {
			return fmt.Errorf("zipf exponent: %v is out of range; use a number above 0 and up to 10", e)
		}
	}
	if c.MaxSkew < 0 || c.Duration < 0 || c.Pause < 0 {
		return fmt.Errorf("skew, duration and pause can't be negative")
	}
	if limit := 24 * time.Hour; c.MaxSkew > limit || c.Duration > limit || c.Pause > limit {
		return fmt.Errorf("skew, duration and pause: use at most %v", limit)
	}
	return nil
}

// checkWorkload refuses what the workload, or the level with it, can't have.
func (c *Config) checkWorkload() error {
	if c.Level == verdict.LIN && (c.lists() || c.Workload == Snapshots || c.Workload == Bank || c.Workload == Ranges ||
		c.Workload == CTwitter) {
		return fmt.Errorf("lin is about transactions of one key, and those of workload %v have several; use general, "+
			"blindw, mini, read-only or lwt", c.Workload)
	}
	if c.Workload == CTwitter && c.Duplicates > 0 {
		return fmt.Errorf("duplicates: a tweet's number is its own; use 0 with workload c-twitter")
	}
	if c.Workload == CTwitter && c.Keys > usersMax {
		return fmt.Errorf("users: %d are too many; use at most %d", c.Keys, usersMax)
	}
	if c.Workload.HasRows() && (chooses(c.Level) || c.Level == verdict.LIN) {
		return fmt.Errorf("level %v: the rows of a range are read from one state of the table; use pc or a stronger level "+
			"with workload %v", c.Level, c.Workload)
	}
	if c.Workload.HasRows() && (c.Keys > tableMax || c.Duplicates > 0 || c.Initial == record.InitialZero) {
		return fmt.Errorf("rows: use at most %d, no duplicates and initial absent with workload %v", tableMax, c.Workload)
	}
	if c.lists() && c.Initial == record.InitialZero {
		return fmt.Errorf("initial: a list is never zero; use any or absent with workload %v", c.Workload)
	}
	if c.Workload == Append && c.Duplicates > 0 {
		return fmt.Errorf("duplicates: elements of lists are always new; use 0 with workload append")
	}
	return nil
}

// checkAnomaly refuses an anomaly that there is not, or that does not fit in.
func (c *Config) checkAnomaly() error {
	if c.Anomaly == "" {
		return nil
	}
	if slices.Contains(ListAnomalies(), c.Anomaly) && c.Initial == record.InitialZero {
		return fmt.Errorf("initial: a list is never zero; use any or absent with anomaly %s", c.Anomaly)
	}
	if slices.Contains(PredicateAnomalies(), c.Anomaly) && c.Initial != record.InitialAbsent {
		return fmt.Errorf("initial: that a row is not found says something where none was there at first; use absent with "+
			"anomaly %s", c.Anomaly)
	}
	a := anomalyNamed(c.Anomaly)
	if a == nil {
		return fmt.Errorf("anomaly %q: use one of %s", c.Anomaly,
			strings.Join(slices.Concat(Anomalies(), ListAnomalies(), PredicateAnomalies()), ", "))
	}
	if c.Level == verdict.LIN && a.keys() > 1 {
		return fmt.Errorf("lin is about transactions of one key, and those of anomaly %s have several", c.Anomaly)
	}
	if n := a.sessions(); c.Sessions < n {
		return fmt.Errorf("anomaly %s takes %d sessions, and there are %d; use more", c.Anomaly, n, c.Sessions)
	}
	if n := len(a.steps) * c.Planted; c.Transactions < n {
		return fmt.Errorf("anomaly %s, planted %d times, takes %d transactions, and there are %d; use more", c.Anomaly,
			c.Planted, n, c.Transactions)
	}
	return nil
}
