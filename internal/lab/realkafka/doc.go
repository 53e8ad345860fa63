// Package realkafka runs a real Apache Kafka broker for tests: one node that is
// broker and controller (KRaft), on free ports of the loopback interface, with
// a data directory of its own.
//
//	b := realkafka.Start(t)
//	b.CreateTopic(t, "transactions", 4, nil)
//	… produce to b.Addr() …
//	b.Kill()        // SIGKILL: nothing is flushed
//	b.Restart(t)    // the same data directory and port
//
// Package node has what it does. Where it can't run the broker the test is skipped
// and says what to install; where the environment variable CI is set it fails instead.
//
// A broker takes about four seconds to start and 400 MB of memory. Tests
// of a package should share one, with a topic each.
package realkafka
