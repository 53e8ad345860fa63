// Package storetest has what tests of and above a store need: a twin of the
// Badger store that keeps everything in memory and fails or dies where it is told
// to, and the conformance suite that both pass.
//
// A test that nothing is lost whatever write fails runs the same work for
// every write that there is:
//
//	for n := 1; ; n++ {
//		disk := storetest.NewDisk()
//		disk.Plan(n, storetest.DieAfter)
//		work(disk) // until storetest.ErrDied; then open the disk again, go on
//		if !disk.Fired() {
//			break // the work has fewer than n writes
//		}
//	}
package storetest
