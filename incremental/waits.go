package incremental

import (
	"iter"

	"github.com/isowatch/isowatch/internal/heap"
)

// waitingRead is a read that waits for who may still come.
type waitingRead struct {
	index ordinal
	cell  cellID
	by    int64 // the latest time its writer's record can carry
}

// sooner tells which of two reads is given up first.
func sooner(a, b *waitingRead) bool { return a.by < b.by || a.by == b.by && a.index < b.index }

// waits are reads in the order in which they are given up: nearly all come in that order, and the others are a heap.
type waits struct{ queue, late []waitingRead }

// push adds a read. O(1), of the late ones O(log n).
func (q *waits) push(w waitingRead) {
	if n := len(q.queue); n > 0 && sooner(&w, &q.queue[n-1]) {
		heap.Push(&q.late, w, sooner)
		return
	}
	q.queue = append(q.queue, w)
}

// due takes out, one after the other, the reads whose time is before the watermark, or all; also what is added meanwhile.
func (q *waits) due(watermark int64, all bool) iter.Seq[waitingRead] {
	return func(yield func(waitingRead) bool) {
		for {
			late := len(q.late) > 0 && (len(q.queue) == 0 || sooner(&q.late[0], &q.queue[0]))
			of := q.queue
			if late {
				of = q.late
			}
			if len(of) == 0 || !all && of[0].by >= watermark {
				return
			}
			w := of[0]
			if late {
				heap.Pop(&q.late, sooner)
			} else {
				q.queue = q.queue[1:]
			}
			if !yield(w) {
				return
			}
		}
	}
}
