// Command monitor watches a production database from outside and tells its
// owner, with a proof, when the database breaks the isolation level that it
// promises.
//
// A file per subcommand; each reads its flags, calls the package that does the
// work and turns the outcome into an exit status (exit.go). What runs for long is
// wired in package app.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(run(os.Args[1:])) }

// run is main without the exit, for tests.
func run(args []string) int {
	// The first signal asks for a graceful end; with the handler gone, a second
	// one ends the process at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	root := newRoot()
	root.SetArgs(args)
	return exitStatus(root.ExecuteContext(ctx), os.Stderr)
}
