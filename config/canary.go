package config

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/isowatch/isowatch/ingest/generate"
)

// Canary is a database that monitor canary works on, and how. It takes the place of a source.
type Canary struct {
	// Addresses of the nodes that take writes, as URLs: postgres://user@host:port/database, mysql://user@host:port/,
	// sqlite:///folder/canary.db, badger:///folder/canary.
	Targets []Address `yaml:"targets"`
	// Addresses of the nodes that are only read.
	Replicas []Address `yaml:"replicas"`
	// The file that holds the account's password, for addresses with a user and without one, and for Redis; an end of
	// line at its end is not part of it.
	PasswordFile string `yaml:"password_file"`
	// The isolation level that transactions ask the database for, by the database's name with hyphens, such as
	// repeatable-read. Empty: the one that docs/canary.md names first, whatever the server's settings say.
	Isolation string `yaml:"isolation"`
	// Settings that the sessions that write take in turn: name=value, a comma before the next setting of the same
	// session, a semicolon before the next session's, as in synchronous_commit=remote_apply;synchronous_commit=off.
	SessionSettings string `yaml:"session_settings"`
	// What transactions do; one after the other, each for a group of keys: names that monitor canary --help lists.
	Workloads []string `yaml:"workloads"`
	// How many sessions are at work, spread over the nodes, with a connection to each that it uses. On a replica a
	// session only reads.
	Sessions int `yaml:"sessions"`
	// Which nodes a session uses, as applications do: pinned, one alone; split, one to write and another to read;
	// wander, each transaction on any of them. A session's transactions are in its order wherever they run, as for
	// whoever uses the application.
	Access string `yaml:"access" of:"pinned split wander"`
	// How many transactions a second are begun at most, by all sessions together. 0: as many as the database takes.
	Rate int `yaml:"rate"`
	// The mean of the pauses between a transaction's operations, which make transactions overlap.
	Pause time.Duration `yaml:"pause"`
	// How many keys a group has: few make transactions collide.
	Keys int `yaml:"keys"`
	// How popular the keys of a group are: uniform, zipf, hotspot (four in five operations go to one key in five).
	Distribution string `yaml:"distribution" of:"uniform zipf hotspot"`
	// How many operations a transaction has, at most for append; mini-transactions and lwt have their own number.
	Operations int `yaml:"operations"`
	// After how many transactions a new group of keys is used; the old one is read once more and removed, so that
	// tables stay small.
	Group int `yaml:"group"`
	// An operational alert is raised, and an event kept, when what a replica shows is older. 0: never.
	LagMax  time.Duration `yaml:"lag_max"`
	StopIf  StopIf        `yaml:"stop_if"`
	Publish *CanaryTopic  `yaml:"publish"`
	Faults  CanaryFaults  `yaml:"faults"`
	// Whether the account may be one that may do anything.
	AllowSuperuser bool `yaml:"allow_superuser"`

	// Password is the contents of PasswordFile, read by Load.
	Password Secret `yaml:"-"`
}

// StopIf is when a canary stops by itself, as it or what it works on is in trouble.
type StopIf struct {
	// How many in a hundred transactions and attempts to connect may fail, other than by a conflict or a deadlock;
	// with more the canary stops: with an operational alert that says why, and exit status 4. 0: it goes on whatever
	// fails.
	Errors int `yaml:"errors"`
	// It stops likewise when more than one transaction in a hundred takes longer. 0: however long they take.
	P99 time.Duration `yaml:"p99"`
	// How long that has to last.
	For time.Duration `yaml:"for"`
}

// CanaryTopic is a topic that the records are sent to, instead of being checked by the canary itself.
type CanaryTopic struct {
	// Addresses to start from, host:port.
	Brokers []string `yaml:"brokers"`
	// The topic that the records are sent to, instead of being checked here. It must exist.
	Topic string `yaml:"topic"`
	TLS   *TLS   `yaml:"tls"`
	SASL  *SASL  `yaml:"sasl"`
}

// CanaryFaults is harm that the owner of the database allows to be done to it.
type CanaryFaults struct {
	// How long after one fault is over the next is begun.
	Every time.Duration `yaml:"every"`
	// How long a fault that has undo lasts.
	For time.Duration `yaml:"for"`
	// The faults that there are. Nothing is run but what --faults names.
	Commands []CanaryFault `yaml:"commands"`
}

// CanaryFault is a fault by commands of the owner's. They are run as they stand, without a shell.
type CanaryFault struct {
	// The name by which --faults asks for it.
	Name string `yaml:"name"`
	// The program that does harm, and its arguments: [docker, pause, pg-2].
	Do []string `yaml:"do"`
	// The program that ends the harm, if it does not end by itself. It is also run when the canary ends.
	Undo []string `yaml:"undo"`
}

// The values of Canary.Access.
const (
	AccessPinned = "pinned"
	AccessSplit  = "split"
	AccessWander = "wander"
)

func (c *Canary) setDefaults() {
	c.Workloads = []string{"mini", "snapshots", "append", "snapshots", "general", "ranges", "snapshots", "bank"}
	c.LagMax, c.StopIf.For = 10*time.Second, 30*time.Second
	c.Faults.Every, c.Faults.For = 30*time.Second, 5*time.Second
	c.Access, c.Distribution = AccessPinned, "uniform"
	c.Sessions, c.Rate, c.Pause, c.Keys, c.Operations, c.Group = 8, 50, 2*time.Millisecond, 6, 4, 250
}

// Address is the URL of a database's node. Printed, it has no password.
type Address string

func parseAddress(s string) (Address, error) {
	u, err := url.Parse(s)
	// The error would have the password in it. An @ behind a host ends a password, of which the host is a part then.
	if err != nil || u.Scheme == "" || u.Host != "" && strings.Contains(u.EscapedPath()+u.RawQuery+u.Fragment, "@") {
		return "", errors.New("wants an address such as postgres://canary@db-1:5432/shop; in a password write %2F for /, " +
			"%25 for %, %23 for #, %3F for ?, %40 for @")
	}
	return Address(u.String()), nil // as all read it
}

// String is the address without its password, and without those that drivers take as parameters, such as sslpassword.
func (a Address) String() string {
	u, err := url.Parse(string(a))
	if err != nil {
		return "[not an address]"
	}
	given := u.Query()
	for name := range given {
		if strings.Contains(strings.ToLower(name), "password") {
			given.Set(name, "xxxxx")
			u.RawQuery = given.Encode()
		}
	}
	return u.Redacted()
}

// WithPassword is the address with a password, if it has none and there is whom it could be of.
func (a Address) WithPassword(p Secret) string {
	u, err := url.Parse(string(a))
	if err != nil || p == "" || !a.hasAccount() {
		return string(a)
	}
	if _, has := u.User.Password(); !has {
		u.User = url.UserPassword(u.User.Username(), string(p))
	}
	return u.String()
}

// hasAccount tells whether the address says whose password it takes. Redis has one without a user.
func (a Address) hasAccount() bool {
	u, err := url.Parse(string(a))
	return err == nil && (u.User != nil || u.Scheme == "redis" || u.Scheme == "rediss")
}

// stopForMax bounds what is remembered of how transactions went.
const stopForMax = time.Hour

// pauseMax bounds the pauses within a transaction: a canary that is asked to stop finishes what it is at.
const pauseMax = time.Second

// canary checks what a canary is asked to do; what only a database knows is checked when it is opened.
func (v *validator) canary(c *Canary) {
	if c == nil {
		return
	}
	if len(c.Targets) == 0 {
		v.errorf("canary.targets", "is missing: give the address of the database, such as postgres://canary@db-1:5432/shop")
	}
	for _, f := range []struct {
		path          string
		value, lo, hi int
	}{{"canary.sessions", c.Sessions, 1, 1000}, {"canary.keys", c.Keys, 1, 10_000},
		{"canary.operations", c.Operations, 1, 100}, {"canary.group", c.Group, 1, 100_000},
		{"canary.rate", c.Rate, 0, 1_000_000}, {"canary.stop_if.errors", c.StopIf.Errors, 0, 99}} {
		if f.value < f.lo || f.value > f.hi {
			v.errorf(f.path, "must be from %d to %d, not %d", f.lo, f.hi, f.value)
		}
	}
	v.atLeast("canary.lag_max", c.LagMax, 0)
	v.atLeast("canary.stop_if.p99", c.StopIf.P99, 0)
	v.atLeast("canary.stop_if.for", c.StopIf.For, time.Second)
	if c.StopIf.For > stopForMax {
		v.errorf("canary.stop_if.for", "must be at most %s, not %s", printDuration(stopForMax), printDuration(c.StopIf.For))
	}
	v.atLeast("canary.pause", c.Pause, 0)
	if c.Pause > pauseMax {
		v.errorf("canary.pause", "must be at most %s, not %s", printDuration(pauseMax), printDuration(c.Pause))
	}
	if p := c.Publish; p != nil {
		v.cluster("canary.publish", p.Brokers, p.Topic, p.TLS, p.SASL)
	}
	v.atLeast("canary.faults.every", c.Faults.Every, time.Second)
	v.atLeast("canary.faults.for", c.Faults.For, 0)
	for i, f := range c.Faults.Commands {
		if f.Name == "" || len(f.Do) == 0 {
			v.errorf(fmt.Sprintf("canary.faults.commands[%d]", i), "wants a name, and in do the program that does the harm")
		}
	}
	v.oneOf("canary.access", c.Access)
	v.oneOf("canary.distribution", c.Distribution)
	if len(c.Workloads) == 0 {
		v.errorf("canary.workloads", "is empty: name one at least")
	}
	if _, err := c.Work(); err != nil {
		v.errorf("canary.workloads", "%v", err)
	}
}

// Work is what the workloads are, as generate has them.
func (c *Canary) Work() (out []generate.Config, err error) {
	d, _ := generate.ParseDistribution(c.Distribution)
	for _, name := range c.Workloads {
		w, err := generate.Live(name, c.Keys, c.Operations, d)
		if err != nil {
			return nil, err
		}
		out = append(out, w)
	}
	return out, nil
}
