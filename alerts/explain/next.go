package explain

// Next says what to look at next for an anomaly: causes that have been behind
// it in real systems, most likely first. Never empty.
func Next(name string) []string {
	if n, ok := next[name]; ok {
		return n
	}
	return next[""]
}

var next = map[string][]string{
	"": {
		"Check which isolation level the sessions of these transactions really ran at; drivers and pools have defaults of their own.",
		"Look for a failover, a restored backup or a changed setting shortly before the first of these transactions.",
	},
	"thin-air-read": {
		"Check that every client that writes is recorded; if not, coverage is partial.",
		"If it is, look for corruption: a torn page, a wrong decoding of values, a key that is used by two applications.",
	},
	"aborted-read": {
		"Look at how the writer was rolled back, and whether a retry of it wrote the same value under another id.",
		"Check the isolation level of the reader: read uncommitted does this.",
	},
	"future-read": {
		"Look at the client library: a statement that was sent early or reordered, or a cache that is filled before the read.",
	},
	"not-my-last-write": {
		"Look for a read that was answered by another connection, a replica or a cache.",
	},
	"not-my-own-write": {
		"Look for a read that was answered by another connection, a replica or a cache.",
		"Check for locks that were lost without the client being told.",
	},
	"intermediate-read": {
		"Check the isolation level of the reader: read uncommitted does this.",
		"Look at whether the writer's statements were committed one by one (autocommit).",
	},
	"non-repeatable-reads": {
		"Check the isolation level of the reader: read committed does this.",
		"Look at whether its statements ran in one transaction at all (autocommit).",
	},
	"session-guarantee-violation": {
		"Look for reads that go to a replica that lags, or a pool that changes nodes within a session.",
		"Check that what is recorded as one session is one to the database: one connection, or one causal token that is handed on.",
	},
	"non-monotonic-read": {
		"Look for reads of one transaction that were answered by different replicas.",
	},
	"fractured-read": {
		"Check the isolation level of the reader: read committed does this.",
		"Look for a transaction across shards whose parts become visible one by one.",
	},
	"causality-violation": {
		"Look for replicas that apply transactions in different orders, or a reader that moved to a replica that lags.",
		"Look at whether the clients pass on what they have seen (a causal token, an after-cluster time) when they change nodes.",
	},
	"commit-order-cycle": {
		"Look for two nodes that accept writes of the same keys and settle which one wins in different ways.",
		"Check that all of these transactions' sessions ran at the isolation level that is promised.",
	},
	"prefix-violation": {
		"Look for replicas or shards that make transactions visible in different orders.",
		"Look at how a snapshot is chosen: by one clock or log for all shards, or by each shard for itself?",
	},
	"snapshot-cycle": {
		"Check which isolation level the sessions of these transactions really ran at; drivers and pools have defaults of their own.",
		"Look for overlapping writers that were both let through, or a snapshot that was taken at different times on different shards.",
	},
	"serialization-cycle": {
		"If the database promises serializability, check that all of these sessions asked for it: one that did not is enough.",
		"If the promise is snapshot isolation, leave ser out of levels, and guard the invariant by locking what is read (SELECT … FOR UPDATE).",
	},
	"long-fork": {
		"Look for replicas or shards that make transactions visible in different orders.",
	},
	"lost-update": {
		"Look at conflict detection: is it switched off, is the writers' isolation level below snapshot isolation, did they write to two nodes?",
		"Check whether an application retried a failed commit without reading again.",
		"Repair: find the update that is missing from the key's later values and apply it again.",
	},
	"write-skew": {
		"If the database promises serializability, check that these sessions asked for it: snapshot isolation allows write skew.",
		"If the promise is snapshot isolation, leave ser out of levels, and guard the invariant by locking what is read (SELECT … FOR UPDATE).",
	},
	"read-only-anomaly": {
		"Check that the reader, too, ran serializably: a read-only transaction outside of it sees states that no serial order has.",
	},
	"read-skew": {
		"Check the isolation level of the reader: read committed does this.",
		"Look for overlapping writers that were both let through.",
	},
	"incompatible-order": {
		"Look for a failover, or a split into two leaders, that took back or moved elements that were already read.",
		"Check the isolation level of the readers: read uncommitted does this, when a writer is rolled back.",
	},
	"duplicate-elements": {
		"Look for a statement or a commit that was sent twice: a driver or a proxy that retries after a timeout.",
		"Check that elements are unique across restarts of the clients.",
	},
	"stale-read": {
		"Look for reads from a replica that lags, or a leader that was deposed and did not know it.",
		"Check the clocks of the two clients: is their difference within max_skew?",
	},
	"real-time-violation": {
		"Check the clocks of the clients: is their difference within max_skew?",
		"Look for a leader that was deposed and did not know it.",
	},
	"dirty-write": {
		"Look for writes that were applied by different replicas in different orders.",
	},
	"circular-information-flow": {
		"Check the isolation level: read uncommitted does this.",
		"Check that ids and values are unique across restarts of the clients.",
	},
}
