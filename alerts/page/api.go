package page

import (
	"context"
	"errors"
	"time"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/life"
	"github.com/isowatch/isowatch/ingest/record"
)

// Data is what the page shows: the running monitor, as it sees itself. Methods are
// safe for concurrent use and return what the caller may keep. They are asked once
// per request, so that none may cost more than its answer is long.
type Data interface {
	// Status is how the monitor and each history are doing now.
	Status(ctx context.Context) (Status, error)
	// Alerts is one page of stored alerts, newest first.
	Alerts(ctx context.Context, f Filter) (List, error)
	// Alert finds a stored alert by its ID; ErrNotFound if there is none.
	Alert(ctx context.Context, id string) (alerts.Alert, error)
	// Groups are the groups of alerts that the monitor notifies of, the worst and
	// latest first.
	Groups(ctx context.Context) ([]Group, error)
	// Silences are those of the configuration and those made at run time that are
	// not over.
	Silences(ctx context.Context) ([]life.Silence, error)
	// Silence adds a silence and returns it with its ID. An *Invalid says what is
	// wrong with it.
	Silence(ctx context.Context, s life.Silence) (life.Silence, error)
	// Expire ends a silence that was made at run time; ErrNotFound if there is
	// none, an *Invalid for one of the configuration.
	Expire(ctx context.Context, id string) error
	// Happen keeps an event that somebody tells of.
	Happen(ctx context.Context, e record.Event) error
	// DeadLetters are records that could not be used, of a reason, or all, from an ID on: one page of them.
	DeadLetters(ctx context.Context, reason string, from uint64) (DeadLetters, error)
	// DeadLetter is one with its bytes; ErrNotFound if there is none.
	DeadLetter(ctx context.Context, id uint64) (DeadLetter, error)
	// Subscribe returns what happens from now on until ctx ends, when the channel
	// is closed. It is closed early for a reader that is too slow.
	Subscribe(ctx context.Context) <-chan Event
}

// ErrNotFound is returned for an ID that there is not.
var ErrNotFound = errors.New("not found")

// Invalid is a request that can't be done as it is.
type Invalid struct { //nolint:errname // what is asked for is invalid: it reads as a word at its uses
	Field string // of the request; empty for all of it
	Msg   string
	Hint  string // what to do instead; may be empty
}

// Error implements error.
func (e *Invalid) Error() string {
	if e.Field == "" {
		return e.Msg
	}
	return e.Field + ": " + e.Msg
}

// Filter says which alerts are asked for. Empty fields ask for all.
type Filter struct {
	DB, Level string
	Name      string // the canonical name or an alias
	State     string // new, ongoing, resolved or suspected
	Severity  string
	Text      string // part of summary, keys, transactions or ID, whatever the case
	Group     string // ID of a group
	Since     int64  // Unix nanoseconds: last seen then or later
	Limit     int    // at most so many; 0: LimitDefault
	// After is List.Next of the page before; 0 begins with the newest.
	After uint64
}

// The number of alerts on one page of a List.
const (
	LimitDefault = 50
	LimitMax     = 500
)

// List is one page of alerts. New alerts come before its first page, so that what
// is behind Next stays as it is.
type List struct {
	Alerts []Summary `json:"alerts"`
	// Next asks for what follows; 0 at the end. A page may be shorter than the
	// limit, even empty, and yet have a next one: a request looks at a bounded
	// number of alerts.
	Next uint64 `json:"next,omitempty"`
	// Total is how many alerts are stored, whatever the filter.
	Total int64 `json:"total"`
	// Scanned is how many alerts this request looked at.
	Scanned int `json:"scanned"`
}

// Summary is an alert as the list shows it. Times are Unix nanoseconds.
type Summary struct {
	ID             string   `json:"id"`
	Number         uint64   `json:"number"` // ascending in the order of discovery
	DB             string   `json:"db"`
	Level          string   `json:"level"`
	Breaks         []string `json:"breaks"`
	Name           string   `json:"name"`
	Adya           string   `json:"adya,omitempty"`
	Severity       string   `json:"severity"`
	State          string   `json:"state"`
	ClockDependent bool     `json:"clock_dependent"`
	FirstSeen      int64    `json:"first_seen"`
	LastSeen       int64    `json:"last_seen"`
	Count          int      `json:"count"`
	Summary        string   `json:"summary"`
	Keys           []string `json:"keys"`
	Group          string   `json:"group,omitempty"`
}

// Status is how the monitor is doing. Times are Unix nanoseconds, 0 for none.
type Status struct {
	Version string `json:"version"`
	Now     int64  `json:"now"`
	Started int64  `json:"started"`
	// Health is the worst of all histories.
	Health life.Health `json:"health"`
	// Waits says what the monitor waits for, as /readyz does; empty when ready.
	Waits       []string     `json:"waits"`
	Source      Source       `json:"source"`
	Histories   []History    `json:"histories"`
	Operational []Condition  `json:"operational"`
	Events      Events       `json:"events"`
	Canary      *Canary      `json:"canary,omitempty"` // of monitor canary
	Receivers   []Receiver   `json:"receivers"`
	Alerts      AlertCounts  `json:"alerts"`
	Store       StoreStatus  `json:"store"`
	Series      Series       `json:"series"`
	Settings    StatusConfig `json:"settings"`
}

// StatusConfig is what of the configuration a reader of the page has to know.
type StatusConfig struct {
	Levels   []string `json:"levels"`
	Clock    string   `json:"clock"`
	Coverage string   `json:"coverage"`
	Values   string   `json:"values"` // full, hash or none
	Lateness float64  `json:"lateness_seconds"`
}

// Source is the input.
type Source struct {
	Kind string `json:"kind"` // kafka, file or stdin
	Name string `json:"name"`
	// Brokers are where a topic is.
	Brokers    []string `json:"brokers,omitempty"`
	Partitions int      `json:"partitions"`
	Records    int64    `json:"records"`  // read since the start
	Rejected   int64    `json:"rejected"` // of these, set aside as dead letters
	Behind     int64    `json:"behind"`   // records there that have not been read; -1: not known
}

// History is one database's history.
type History struct {
	DB     string        `json:"db"`
	Health life.Health   `json:"health"`
	Levels []LevelStatus `json:"levels"`
	// Coverage is complete while every write since the initial state is known to be
	// seen, else partial.
	Coverage string `json:"coverage"`
	// Since and Until bound, by the records' own clock, what has been judged: nothing of it changes by what is still to come.
	Since int64 `json:"since"`
	Until int64 `json:"until"`
	// Newest is the newest record's time; Lag how far judging is behind it.
	Newest int64   `json:"newest"`
	Lag    float64 `json:"lag_seconds"`
	// Behind is how long the record that is judged next has waited since it was read; 0
	// if none waits. What is found is found so much later.
	Behind float64 `json:"behind_seconds"`
	// LastRecord is when, by the monitor's clock, the last record that was worked off had
	// been read.
	LastRecord int64 `json:"last_record"`
	// Stretches divide [Since, Until] into what was checked completely and what was
	// not, oldest first; the oldest are joined when there are many.
	Stretches []Stretch `json:"stretches"`
	// Broken are the parts of it in which there were anomalies.
	Broken []life.Span `json:"broken"`
	// Losses count what was missing or given up, by why, since the history began.
	Losses []Reason `json:"losses"`

	Transactions int64 `json:"transactions"` // put in order and looked at
	// Undecided is how many of these, the last ones, are not judged: a read of the first of them waits for who may still
	// have written what it returned, until eight records are from window.max_transaction later.
	Undecided    int64 `json:"undecided"`
	Waiting      int64 `json:"waiting"`  // until they are in order
	Queued       int64 `json:"queued"`   // records that wait for the history
	Segments     int64 `json:"segments"` // that have been closed
	FrontierKeys int64 `json:"frontier_keys"`
	SampledOneIn int64 `json:"sampled_one_in"` // 1: every session is taken
}

// LevelStatus is how it stands with one level of a database.
type LevelStatus struct {
	Level string `json:"level"`
	Title string `json:"title"` // in words
	life.Standing
	// Why says in words what the completeness rests on.
	Why string `json:"why"`
}

// Promise is a LevelStatus and whose it is.
type Promise struct {
	DB string `json:"db"`
	LevelStatus
}

// Promises are those of all databases, in order.
func (s *Status) Promises() []Promise {
	var out []Promise
	for _, h := range s.Histories {
		for _, l := range h.Levels {
			out = append(out, Promise{h.DB, l})
		}
	}
	return out
}

// Stretch is a part of a history's time.
type Stretch struct {
	From     int64    `json:"from"`
	To       int64    `json:"to"`
	Complete bool     `json:"complete"`
	Why      []Reason `json:"why,omitempty"`
}

// Reason is why something may be missed, and how often.
type Reason struct {
	Why   string `json:"why"`
	Text  string `json:"text"` // in words
	Count int64  `json:"count"`
}

// Condition is an operational alert that is not over.
type Condition struct {
	Kind     string `json:"kind"`
	DB       string `json:"db,omitempty"`
	Severity string `json:"severity"`
	Text     string `json:"text"`
	Since    int64  `json:"since"`
}

// Canary is what works on a database in the monitor's process.
type Canary struct {
	DB        string       `json:"db"`        // the history that it makes
	Database  string       `json:"database"`  // what it is, with its version
	Isolation string       `json:"isolation"` // that is asked for
	Sessions  int          `json:"sessions"`
	Rate      int          `json:"rate"` // transactions a second; 0: as many as the database takes
	LagMax    float64      `json:"lag_max_seconds"`
	Nodes     []CanaryNode `json:"nodes"`
}

// CanaryNode is a node that a canary works on.
type CanaryNode struct {
	Name        string           `json:"name"`
	Replica     bool             `json:"replica"`
	Role        string           `json:"role,omitempty"`
	Connections int64            `json:"connections"`
	Committed   int64            `json:"committed"`
	Aborted     int64            `json:"aborted"`
	Unknown     int64            `json:"unknown"`
	Reasons     map[string]int64 `json:"reasons"`     // why transactions did not commit and attempts to connect failed
	Lag         float64          `json:"lag_seconds"` // -1: not known
	State       string           `json:"state"`       // one of the constants
	// Since is since when it can't be reached, or sessions try and nothing is committed there, where it takes writes
	// nothing of what writes; 0: something is, and it can. Why is the last that failed then.
	Since int64  `json:"since"`
	Why   string `json:"why,omitempty"`
}

// The states of a CanaryNode.
const (
	NodeUp          = "up"
	NodeUnreachable = "unreachable"
	NodeStalled     = "stalled" // it answers, and nothing was committed for StalledAfter
)

// StalledAfter is for how long nothing is committed at a node until that is more than a pause.
const StalledAfter = 10 * time.Second

// Lagging tells whether a node is further behind than it may.
func (c *Canary) Lagging(n *CanaryNode) bool { return c.LagMax > 0 && n.Lag > c.LagMax }

// Events are what happened around the databases.
type Events struct {
	Latest  []record.Event `json:"latest"` // the newest first, at most EventsShown
	Kept    int            `json:"kept"`
	Dropped int64          `json:"dropped"` // as there were too many, since the store was made
}

// EventsShown is how many of the events that are kept a Status has.
const EventsShown = 20

// Receiver is where alerts are delivered to.
type Receiver struct {
	Name      string `json:"name"`
	Delivered int64  `json:"delivered"`
	Failed    int64  `json:"failed"` // attempts, since the last delivery
	Error     string `json:"error,omitempty"`
	Last      int64  `json:"last,omitempty"` // when the last delivery succeeded
}

// AlertCounts count what is stored.
type AlertCounts struct {
	Total int64 `json:"total"`
	// Groups are those that are not resolved.
	Groups int64 `json:"groups"`
}

// StoreStatus is the store.
type StoreStatus struct {
	Bytes int64 `json:"bytes"`
	Full  bool  `json:"full"`
}

// Series are the last minutes, one value a step. Rates are per second.
type Series struct {
	Start int64 `json:"start"` // of the first value, Unix nanoseconds
	Step  int64 `json:"step"`  // nanoseconds
	// Transactions and Records are rates. Lag is in seconds: how far
	// judging is behind, and how long records wait before that. Window are the transactions
	// that wait until they are in order and the records that wait for a history.
	Transactions []float64 `json:"transactions"`
	Records      []float64 `json:"records"`
	Lag          []float64 `json:"lag"`
	Window       []float64 `json:"window"`
	// Judging and Proving are the shares of a core spent on judging, and on making
	// alerts of what was found.
	Judging []float64 `json:"judging"`
	Proving []float64 `json:"proving"`
	// Open are the orders of the segments that are being judged which nothing decides
	// so far, and are left to the search; Conflicts is how often the search had to
	// turn back, a rate.
	Open      []float64 `json:"open"`
	Conflicts []float64 `json:"conflicts"`
	// Alerts are those raised, new ones and such as were found again: a rate.
	Alerts []float64 `json:"alerts"`
}

// Group is a group of alerts of one database, name and weakest level.
type Group struct {
	ID       string   `json:"id"`
	DB       string   `json:"db"`
	Level    string   `json:"level"`
	Weakest  string   `json:"weakest"` // the weakest level that they break, whether it is configured or not
	Breaks   []string `json:"breaks"`  // the configured levels that they break
	Name     string   `json:"name"`
	Keys     []string `json:"keys"` // some of those that they are about
	State    string   `json:"state"`
	Severity string   `json:"severity"`
	Since    int64    `json:"since"`
	Last     int64    `json:"last"`
	Count    int64    `json:"count"`  // detections
	Alerts   int64    `json:"alerts"` // different ones
	Silenced bool     `json:"silenced"`
}

// DeadLetter is a record that could not be used, as commands and the API show it.
type DeadLetter struct {
	ID        uint64 `json:"id"`
	Source    string `json:"source"`
	Partition *int   `json:"partition,omitempty"` // of a topic
	Offset    int64  `json:"offset"`
	Line      int64  `json:"line,omitempty"` // of a file
	Reason    string `json:"reason"`
	Detail    string `json:"detail"`
	Time      string `json:"time"`
	Size      int    `json:"size"` // of the record in bytes; value may be cut
	Value     string `json:"value,omitempty"`
	Bytes     []byte `json:"bytes,omitempty"` // instead of value, in base64, if it is not UTF-8
}

// Place is where the record was.
func (d *DeadLetter) Place() string {
	pos := record.Position{Source: d.Source, Offset: d.Offset, Line: d.Line}
	if d.Partition != nil {
		pos.Kafka, pos.Partition = true, *d.Partition
	}
	return pos.String()
}

// DeadLetters is one page of them, the oldest first.
type DeadLetters struct {
	DeadLetters []DeadLetter `json:"dead_letters"`
	Next        uint64       `json:"next,omitempty"` // the from of the page behind; 0: there is none
}

// Event is something that a reader of the page wants to hear of at once.
type Event struct {
	// Type is alert (Data is a Summary), status (Data is a Status), or silences (Data
	// is nil: they are to be read again).
	Type string
	Data any
}

// The types of events.
const (
	EventAlert    = "alert"
	EventStatus   = "status"
	EventSilences = "silences"
)
