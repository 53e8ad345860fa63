package app

import (
	"testing"
	"time"
)

// TestCheckpointDue: what a restart has to work off again is bounded in records where they come
// fast, and in time where they do not; checkpoints that are large come less often.
func TestCheckpointDue(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name         string
		since, space time.Duration
		records      int
		want         bool
	}{
		{"nothing to speak of", 300 * ms, 0, 1, false},
		{"many records", 300 * ms, 0, checkpointRecords, true},
		{"one less", 300 * ms, 0, checkpointRecords - 1, false},
		{"many records at once", 100 * ms, 0, 10 * checkpointRecords, false},
		{"a long time", 2000 * ms, 0, 1, true},
		{"the last one was large", 2500 * ms, 3000 * ms, 10 * checkpointRecords, false},
		{"it was large, but long ago", 3000 * ms, 3000 * ms, 1, true},
	} {
		w := &worker{setting: &setting{tuning: defaultTuning}, space: c.space, dirty: c.records}
		if got := w.due(c.since); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if most := checkpointRecords + queueRecordsMax; most > 1<<18 {
		t.Errorf("a restart may have to work off %d records: no more than %d are worked off in 2 s", most, 1<<18)
	}
}

// TestEntryPassedOver: a history that is not given an entry does not judge on without it; one
// that it has already is no matter.
func TestEntryPassedOver(t *testing.T) {
	w := &worker{db: "db"}
	w.consumed.Store(4)
	for number, wrong := range map[uint64]bool{3: false, 4: false, 6: true} {
		if err := w.take(t.Context(), &entry{number: number}); (err != nil) != wrong {
			t.Errorf("entry %d behind entry 4: %v", number, err)
		}
	}
}
