// Package streamtest holds the property tests of a stream as a whole: order,
// segments, frontier, engines, checkpoints and alerts together. It has nothing but tests:
//
//   - However a history comes in, in which pieces, from which partitions first, and
//     however often the monitor is killed between, it finds the same anomalies
//     under the same ids.
//   - Where nothing was forgotten its verdicts are those of the batch engine; where
//     something was, it tells nothing that the batch engine does not call violated.
//   - What it tells is proved by its evidence.
package streamtest
