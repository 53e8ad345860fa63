// Package lab is what Isowatch is judged, measured and tormented with. None of it is in the monitor, and nothing of
// the monitor imports it but tests: the test beside this file holds that.
//
// Who says what is right:
//
//	oracle      the definitions of the levels by brute force; it shares with the engine only the types of what is judged
//	  script    tiny histories as a person writes them: "s1 T1: r(x,0) w(x,1)"
//	  tiny      tiny histories at random, and mutants of them: what the oracle judges in volume
//	anomalies   the 14 anomalies of MTC (testdata/anomalies), and the levels that each breaks
//	alerttest   a violation of each kind by hand, with its name; the oracle as a judge of evidence
//	made        alerts as the engine makes them, for what shows them
//	endless     histories without an end, with anomalies planted again and again
//	streamtest  a stream as a whole, however it comes in and whenever it is killed, beside the batch engine
//
// What stands in for the world:
//
//	storetest   the store in memory, which fails and dies at the n-th write, and what every store has to do
//	realkafka   Apache Kafka for tests of one package; node starts and kills it
//	rig         the monitor as a process between a broker and a receiver of alerts, watched from outside
//
//	databases   MariaDB with Galera, Redis, etcd, pgbouncer, and harm to a PostgreSQL
//
// A broker that a test only needs is kfake, in the process of the test. PostgreSQL is started by internal/servers,
// as `monitor demo --database postgres` does.
//
// What uses all of it:
//
//	bench       the suites of cmd/bench: time and memory beside the papers' figures
//	soak        the whole monitor while broker, disk, clocks and producer fail
//	census      a command that counts packages, lines and names of the monitor, before and after a change
//	findings    the canary on real databases, and a drill in which PostgreSQL is harmed and nobody accused
//
// What tests of any package take:
//
//	seeds       what random tests begin from, the same each time (-seed N)
//	race        whether the race detector is on, and how much tests are to do (VOLUME)
//	golden      what was made, beside a file that a person has read (-update)
//	scripts     command lines with their exit status and what they print (testscript)
//	leak        tests that leave goroutines behind
//	mounts      what becomes of tests that need a file system of their own
//
// ingest/generate is no part of it: the monitor has it as a command, and its histories are as large as
// asked for and valid by construction, where those of tiny are at random and judged.
package lab
