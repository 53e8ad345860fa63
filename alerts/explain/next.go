package explain

import "slices"

// Next says what to look at next for an anomaly: causes that have been behind
// it in real systems, most likely first, with the names of settings where
// databases have one. What is said of one of its aliases goes first. Never empty.
func Next(name string, aliases []string) []string {
	n, ok := next[name]
	if !ok {
		n = next[""]
	}
	if slices.Contains(aliases, phantom) {
		n = slices.Concat(next[phantom], n)
	}
	return n
}

// phantom is the alias of anomalies that are about what matches a condition.
const phantom = "phantom"

// What several anomalies have in common.
const (
	lookSession = "Check which isolation level these sessions really ran at; drivers, pools and frameworks have " +
		"defaults of their own. " +
		"PostgreSQL: SHOW transaction_isolation, default_transaction_isolation; MySQL: @@transaction_isolation; " +
		"SQL Server: sys.dm_exec_sessions.transaction_isolation_level."
	lookUncommitted = "Check the isolation level of the reader: read uncommitted does this. " +
		"MySQL: READ UNCOMMITTED; SQL Server: the hints NOLOCK and READUNCOMMITTED; Db2: UR; MongoDB: readConcern local or " +
		"available."
	lookCommitted = "Check the isolation level of the reader: read committed does this, as each of its statements sees " +
		"a snapshot of its own. " +
		"It is the default of PostgreSQL, Oracle and SQL Server; repeatable read or snapshot isolation is asked for with " +
		"SET TRANSACTION or BEGIN ISOLATION LEVEL."
	lookReplica = "Look for reads that were answered by a replica that lags, or a pool or proxy that changes nodes on " +
		"the way. " +
		"PostgreSQL: pg_stat_replication, synchronous_commit = remote_apply; MySQL: group_replication_consistency; Galera: " +
		"wsrep_sync_wait; " +
		"MongoDB: readPreference with causally consistent sessions."
	lookClocks = "Check the clocks of the clients: is their difference within max_skew? chronyc tracking or ntpq -p " +
		"say it."
	lookDeposed = "Look for a leader that was deposed and did not know it: a failover or a network split shortly " +
		"before, reads that need no quorum or lease."
	lookSerial = "If the database promises serializability, check that every one of these sessions asked for it: one " +
		"that did not is enough. PostgreSQL: SERIALIZABLE; Oracle's SERIALIZABLE is snapshot isolation."
	lookPromise = "If the promise is snapshot isolation, leave ser out of levels: it allows this."
	repairSkew  = "Guard the invariant: lock what is read (SELECT … FOR UPDATE or FOR SHARE), or have both " +
		"transactions write one row that stands for the invariant, or express it as a constraint of the database."
	lookTwoNodes = "Look for two nodes that accept writes of the same keys (several primaries, a failover, a split) and " +
		"settle which one wins by themselves, such as by last write wins."
)

var next = map[string][]string{
	phantom: {
		"A row that is not there matches no condition. " +
			"Check what guards conditions, and not only rows: a lock on the rows that were found does not keep others from " +
			"coming. " +
			"PostgreSQL: SERIALIZABLE; MySQL and MariaDB: next-key locks (SELECT … FOR UPDATE at REPEATABLE READ, or " +
			"SERIALIZABLE); SQL Server: SERIALIZABLE or HOLDLOCK.",
		"Guard the condition by something that both have to write: a constraint (UNIQUE, EXCLUDE), or a row that stands " +
			"for the range.",
	},
	"": {
		lookSession,
		"Look for a failover, a restored backup or a changed setting shortly before the first of these transactions.",
	},
	"thin-air-read": {
		"Check that every client that writes is recorded, migrations and administrators too; if not, coverage is partial.",
		"Check what unwritten keys hold: --initial, or the initial of the history's header.",
		"If both are right, look for corruption: a torn page, a wrong decoding of values, a key that is used by two " +
			"applications.",
	},
	"aborted-read": {
		lookUncommitted,
		"Look at how the writer was rolled back: an error at commit that was taken for a rollback although the commit was " +
			"done, a rollback on one shard only.",
		"Look whether a retry of the writer wrote the same value under another id.",
	},
	"future-read": {
		"Look at the client library: a statement that was sent early or reordered, a pipeline, a cache that is filled " +
			"before the read.",
		"Check how the record is made: are the operations in the order in which they were sent?",
	},
	"not-my-last-write": {
		"Look for a read within the transaction that was answered by another connection, a replica or a cache: a pool that " +
			"splits reads from writes does this.",
		"Look whether the second write failed, or touched no row, without the client being told (0 rows updated, an " +
			"ignored error).",
	},
	"not-my-own-write": {
		"Look for a read within the transaction that was answered by another connection, a replica or a cache: a pool that " +
			"splits reads from writes does this.",
		"Check for locks or leases that were lost without the client being told, and for writes whose statement failed " +
			"unnoticed.",
		"Look whether the transaction was over without the client knowing (autocommit, a statement that commits " +
			"implicitly, such as MySQL's DDL).",
	},
	"intermediate-read": {
		lookUncommitted,
		"Look at whether the writer's statements were committed one by one (autocommit).",
	},
	"non-repeatable-reads": {
		lookCommitted,
		"Look at whether its statements ran in one transaction at all (autocommit), and on one connection.",
	},
	"session-guarantee-violation": {
		lookReplica,
		"Check that what is recorded as one session is one to the database: one connection, or one causal token that is " +
			"handed on (MongoDB: afterClusterTime; Cosmos DB: session token).",
		"Look for caches between application and database that are filled late or invalidated late.",
	},
	"non-monotonic-read": {
		"Look for reads of one transaction that were answered by different replicas or shards, of which one lags.",
		"Check whether commits become visible one write at a time.",
		lookSession,
	},
	"fractured-read": {
		lookCommitted,
		"Look for a transaction across shards or tables whose parts become visible one by one.",
		"Look at whether the writer's statements were committed one by one (autocommit).",
	},
	"causality-violation": {
		"Look for replicas that apply transactions in different orders, or a reader that moved to a replica that lags.",
		"Look at whether the clients pass on what they have seen (a causal token, an after-cluster time) when they change " +
			"nodes. MongoDB: causally consistent sessions with majority read and write concern.",
		lookReplica,
	},
	"commit-order-cycle": {
		lookTwoNodes,
		lookSession,
	},
	"prefix-violation": {
		"Look for replicas or shards that make transactions visible in different orders.",
		"Look at how a snapshot is chosen: by one clock or log for all shards, or by each shard for itself?",
	},
	"snapshot-cycle": {
		lookSession,
		"Look for overlapping writers of one key that were both let through: first-committer-wins has to refuse the second " +
			"one.",
		"Look for a snapshot that was taken at different times on different shards.",
	},
	"serialization-cycle": {
		lookSerial,
		lookPromise,
		repairSkew,
	},
	"long-fork": {
		"Look for replicas or shards that make transactions visible in different orders: readers on two of them see two " +
			"commits in opposite orders.",
		"Look at how a snapshot is chosen: from one counter, clock or log for all, or by each node for itself? " +
			"PostgreSQL: a standby makes commits visible in the order of its log, the primary in another one; read both kinds " +
			"of transactions from one node.",
	},
	"lost-update": {
		"Check that write conflicts are detected (first committer, or first updater, wins): both transactions ran at the " +
			"same time and wrote the same key, and both were let commit. " +
			"PostgreSQL: only REPEATABLE READ and SERIALIZABLE refuse the second (40001), READ COMMITTED overwrites; MySQL: " +
			"REPEATABLE READ overwrites too, " +
			"only SERIALIZABLE or a locking read prevents it; SQL Server: SNAPSHOT refuses (3960), READ_COMMITTED_SNAPSHOT " +
			"does not.",
		"Lock what will be written when it is read (SELECT … FOR UPDATE), write relative to what is there (SET balance = " +
			"balance - 10), or guard the write with what was read (WHERE version = 7) and see that a row was updated.",
		"Check how the application retries: a transaction that failed to commit has to be run again from its first read, " +
			"not from its write.",
		"Look whether the two wrote to two nodes: several primaries, a failover that lost the newest commits, last write " +
			"wins.",
		"Repair: find the update that is missing from the key's later values and apply it again.",
	},
	"write-skew": {
		lookSerial,
		lookPromise,
		repairSkew,
	},
	"read-only-anomaly": {
		"Check that the reader, too, ran serializably: a read-only transaction outside of it sees states that no serial " +
			"order has. " +
			"PostgreSQL: SERIALIZABLE READ ONLY DEFERRABLE is safe; a hot standby can't run SERIALIZABLE.",
		lookPromise,
	},
	"read-skew": {
		lookCommitted,
		"Look for overlapping writers that were both let through.",
	},
	"incompatible-order": {
		"Look for a failover, or a split into two leaders, that took back or moved elements that were already read.",
		lookUncommitted,
	},
	"duplicate-elements": {
		"Look for a statement or a commit that was sent twice: a driver, a pool or a proxy that retries after a timeout.",
		"Check that elements are unique across restarts of the clients.",
	},
	"stale-read": {
		lookReplica,
		lookDeposed,
		lookClocks,
	},
	"real-time-violation": {
		lookClocks,
		lookDeposed,
		lookReplica,
	},
	"dirty-write": {
		"Look for writes that were applied by different replicas or shards in different orders.",
		lookTwoNodes,
		"Check that writers hold their locks until they commit.",
	},
	"circular-information-flow": {
		lookUncommitted,
		"Check that ids and values are unique across restarts of the clients.",
	},
}
