package decode

import "github.com/isowatch/isowatch/ingest/source"

// places knows of each partition what was handed out before a restart.
type places struct {
	offsets, seen map[int]int64
	next          map[int]int64 // where the partition's last batch ended
}

func newPlaces(o *Options) *places {
	p := &places{offsets: o.Offsets, seen: map[int]int64{}, next: map[int]int64{}}
	for partition, seen := range o.Seen {
		p.seen[partition] = seen
	}
	return p
}

// follow tells before which offset the messages of b's partition were handed out;
// and whether its offsets begin anew, because a topic was created anew or a file
// replaced: what was stored means nothing then.
func (p *places) follow(b *source.Batch) (seen int64, anew bool) {
	first := b.Next
	if len(b.Messages) > 0 {
		first = b.Messages[0].Pos.Offset
	}
	last, started := p.next[b.Partition]
	if !started {
		last = p.offsets[b.Partition]
	}
	anew = first < last
	for _, g := range b.Gaps {
		anew = anew || g.To <= g.From // nobody knows how much is missing
	}
	if anew {
		delete(p.seen, b.Partition)
	}
	p.next[b.Partition] = b.Next
	return p.seen[b.Partition], anew
}
