package app

import (
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/race"
)

// crowd are so many histories' names, each so much longer.
func crowd(letter string, histories, longer int) (names []string) {
	for i := range histories {
		names = append(names, fmt.Sprintf("%s%04d%s", letter, i, strings.Repeat("x", longer)))
	}
	return names
}

// crowded are records of histories, so many of each.
func crowded(names []string, records int) (txns []record.Transaction) {
	for n := range records {
		for _, name := range names {
			txns = append(txns, chain(name, "s", n, n+1)...)
		}
	}
	return txns
}

// together has what comes together be one commit.
func together(a *App) { a.tuning.groupBytes = 1 << 30 }

// reported are how many transactions were judged, by history, of an input that has ended.
func (r *running) reported(t *testing.T) map[string]int {
	t.Helper()
	if err := r.wait(t); err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	for _, h := range r.Reports() {
		out[h.DB] = h.Transactions
	}
	return out
}

// TestLongNames: as many histories as are watched by default begin with one batch, with names so
// long that their first checkpoints are more than one transaction of the store's database holds,
// and so is what goes when the store is used for another input. Each history is judged, and goes on
// after a stop, also if the configuration has changed and all begin anew together.
func TestLongNames(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store")
	for _, letter := range []string{"a", "b"} {
		in := newInput(t, letter+".jsonl")
		names := crowd(letter, config.Default().Window.Histories, 1000)
		in.add(t, crowded(names, 2)...)
		want := map[string]int{}
		for _, name := range names {
			want[name] = 2
		}
		watch(t, in.follow(path), want, together)
		in.add(t, chain(names[1], "s", 2, 4)...)
		want[names[1]] += 2
		c := in.follow(path)
		c.Solver.Conflicts++
		if got := start(t, c, nil, true, together).reported(t); !maps.Equal(got, want) {
			t.Errorf("input %s: %d histories are reported, want %d", letter, len(got), len(want))
		}
		if ids := whole(t, path); len(ids) > 0 {
			t.Errorf("input %s: %d alerts", letter, len(ids))
		}
	}
}

// TestManyHistories: a batch of one partition begins so many histories that their first checkpoints are
// more than one transaction of the store's database holds, and they go together when
// the store is used for another topic.
func TestManyHistories(t *testing.T) {
	brokers := cluster(t)
	c := testConfig(brokers)
	c.Store.Path = filepath.Join(t.TempDir(), "store")
	c.Window.Histories = config.HistoriesMax
	topics, histories, longer := []string{"one", "two"}, 2300, 0
	if race.Brief() { // what goes is in TestLongNames, too; as many bytes are names of fewer
		topics, histories, longer = topics[:1], 256, 1000
	}
	for _, topic := range topics {
		names := crowd(topic, histories, longer)
		topicOf(t, brokers, topic, crowded(names, 1))
		c.Source.Kafka.Topic = topic
		want := map[string]int{}
		for _, name := range names {
			want[name] = 1
		}
		if got := start(t, c, nil, true, together).reported(t); !maps.Equal(got, want) {
			t.Errorf("topic %s: %d histories are reported, want %d", topic, len(got), len(want))
		}
		if ids := whole(t, c.Store.Path); len(ids) > 0 {
			t.Errorf("topic %s: %d alerts", topic, len(ids))
		}
	}
}
