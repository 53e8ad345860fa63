// Package life makes few notices of many alerts: what a person is told, when, and
// when it is over. It is a pure state machine: no clock, no goroutine, no I/O. What
// was found and the time go in, notices come out; the same input gives the same
// notices, byte for byte.
//
//	alerts ─▶ Anomaly ──┐     ┌────────┐
//	                    ├───▶ │ groups │ ─▶ Next: at most RateMax notices in any RatePer
//	trouble ─▶ Raise ───┤     │ the    │
//	           Over     │     │ line   │ ─▶ Snapshot: for the page, the CLI, and Overlay
//	time ───▶ Tick ─────┘     └────────┘
//
// # The life of a group
//
// Alerts of one database, name and weakest level that is broken are one group. The first is told at
// once, further ones when there are ten times as many as when it was told last, or
// after Config.Repeat. A group is over when enough was judged without more of it, which is
// told too, if anything was; time that only passes ends none. Trouble of the monitor itself is a group
// as well, a condition: it is over when somebody says so, and was for half a minute.
//
// # A storm
//
// While there is room for two notices in the rate, groups are told of one by one. The
// last place is for a summary: once a group had to wait, all wait for it, so that one
// notice tells of all. It comes when there is room, RatePer/RateMax after the notice
// before it, and lists the id of every alert that it is the news of. So 10,000
// anomalies in a minute are four notices at once, a summary after twelve seconds, and
// then one every twelve seconds as long as it goes on.
//
// Groups that only summaries told of are over together: a summary names a burst, which
// is resolved like a group.
//
// # Files
//
//   - life.go: what comes in, and time.
//   - next.go: what goes out.
//   - silence.go: what is kept back.
//   - group.go: groups, and how readers see them.
//   - standing.go: how far databases are judged, and how their promises stand.
//   - notice.go: what receivers get.
//   - config.go: when something is news; the bounds.
//   - codec.go: the state as bytes.
//
// # Non-obvious
//
//   - Every id of an alert is in one notice sooner or later, or a silence counted
//     it. Until then it is part of the state. When there are Config.WithheldMax of
//     them Full says that no more are to be brought: they wait in the store.
//   - A notice's id is a hash of what it says. Made again after a crash, from the
//     state before it, it is the same notice.
//   - An anomaly that a silence kept back is told of when the silence ends, if its
//     group is not over by then; its id is not: it was counted.
//   - A group whose end was not told yet, and that begins again, has not ended.
package life
