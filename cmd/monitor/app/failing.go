package app

import (
	"errors"
	"sync"

	"github.com/isowatch/isowatch/ingest/source/kafka"
)

// failing are the parts of a source that can't be read: it works again when all of them
// do, not when another one does. Any goroutine may use it.
type failing struct {
	mu    sync.Mutex
	parts map[int]bool // partitions; wholeSource for what is of no partition
}

const wholeSource = -1

// begin notes a failure.
func (f *failing) begin(err error) {
	part := wholeSource
	var of *kafka.PartitionError
	if errors.As(err, &of) {
		part = of.Partition
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.parts == nil {
		f.parts = map[int]bool{}
	}
	f.parts[part] = true
}

// end notes that a partition can be read, and so that the source can be asked; it tells
// whether nothing fails any more.
func (f *failing) end(partition int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.parts, partition)
	delete(f.parts, wholeSource)
	return len(f.parts) == 0
}
