// Package node runs a real Apache Kafka broker, for tests (realkafka) and
// benchmarks: one node that is broker and controller (KRaft), on free ports of the
// loopback interface, with a data directory of its own.
//
//	b, err := node.New(ctx, dir, node.Options{})
//	err = b.Start(ctx)
//	err = b.CreateTopic(ctx, "transactions", 4, nil)
//	… produce to b.Addr() …
//	b.Kill()             // SIGKILL: nothing is flushed
//	err = b.Start(ctx)   // the same data directory and port
//
// The broker's jars are fetched once with Maven, as the user's Maven is set up,
// into the user's cache directory (ISOWATCH_KAFKA_DIR names another). Nothing
// is installed elsewhere. Where Java 17 or Maven is missing, or the jars can't be
// fetched, New says what to install.
package node
