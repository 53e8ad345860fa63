// Package bench measures the monitor: cmd/bench is its command.
//
//	Suite ──── Row    one piece of work at one level, with its target and the paper's figure
//	                  │ Measure(ctx, *Env)
//	                  ▼
//	                 Measured  median seconds, peak memory, verdicts
//
// A row runs `monitor check` as a process of its own, so that time is what a person
// waits for and memory is what the system gave, reading the file included. The online rows,
// which measure the engine alone, run it in this process; they come last, so that what they take from the system is
// not counted for others.
//
// Where a row's peer can be run, it is run on the same history after ours (Options.Peer).
//
// Histories are made by `monitor generate` when a row first asks for them, into a
// directory that goes away with the run, or are looked up in a corpus of recorded ones. A row whose
// recordings are not there is skipped and says where they come from.
//
// A further suite is a file with a function that returns its rows, and a line in
// Suites.
package bench
