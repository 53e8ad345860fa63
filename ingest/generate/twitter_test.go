package generate

import (
	"strings"
	"testing"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// C-Twitter's transactions have the shapes and shares that its documentation says,
// and what is shown hangs together: whoever sees that a tweet is a user's last sees the
// tweet.
func TestCTwitter(t *testing.T) {
	var cfg Config
	if err := cfg.Preset("c-twitter"); err != nil {
		t.Fatal(err)
	}
	cfg.Level, cfg.Transactions, cfg.Keys, cfg.Initial = verdict.SSER, 40_000, 200, record.InitialAbsent
	if cfg.Sessions != 50 {
		t.Errorf("%d sessions", cfg.Sessions)
	}
	_, txns := history(t, cfg)
	shapes := map[string]int{}
	ops, longest := 0, map[string]int{}
	for _, x := range txns {
		shape, last := "", record.Null
		for i, op := range x.Ops {
			table, _, _ := strings.Cut(op.Key, ":")
			if i < 4 {
				shape += op.Kind.String() + " " + table + ","
			}
			if op.Kind != record.Read {
				continue
			}
			switch table {
			case "last":
				last = op.Value
			case "tweet":
				if op.Value.IsNull() && op.Key == "tweet:"+last.String() {
					t.Fatalf("%s sees that %s is somebody's last tweet, and does not see it", x.ID, op.Key)
				}
			}
		}
		kind := shape
		switch {
		case strings.HasPrefix(shape, "r follows,r last,"):
			kind = "timeline"
		case strings.HasPrefix(shape, "r last,"):
			kind = "show tweets"
		}
		shapes[kind]++
		longest[kind] = max(longest[kind], len(x.Ops))
		ops += len(x.Ops)
	}
	for kind, want := range map[string]float64{"w tweet,w last,": 0.2, "w followers,w following,r follows,w follows,": 0.4,
		"timeline": 0.1, "r follows,": 0.1, "show tweets": 0.2} {
		if got := float64(shapes[kind]) / float64(len(txns)); got < want-0.02 || got > want+0.02 {
			t.Errorf("%.3f of the transactions are %q, want %v", got, kind, want)
		}
	}
	if longest["timeline"] != lookMax || longest["show tweets"] != 2+tweetsShown {
		t.Errorf("the longest are of %v operations", longest)
	}
	if got := float64(ops) / float64(len(txns)); got < 7 || got > 8.7 {
		t.Errorf("%.2f operations on average", got)
	}
}

func TestLightweight(t *testing.T) {
	var cfg Config
	if err := cfg.Preset("lwt"); err != nil {
		t.Fatal(err)
	}
	cfg.Level, cfg.Transactions = verdict.LIN, 3000
	sets := 0
	_, txns := history(t, cfg)
	for _, x := range txns {
		if len(x.Ops) != 2 || x.Ops[0].Kind != record.Read || x.Ops[1].Kind != record.Write || x.Ops[0].Key != x.Ops[1].Key {
			t.Fatalf("%s does %v", x.ID, x.Ops)
		}
	}
	cfg.NoReads, cfg.ReadShare = false, 0.25
	_, txns = history(t, cfg)
	for _, x := range txns {
		sets += len(x.Ops) - 1
	}
	if got := float64(sets) / float64(len(txns)); got < 0.72 || got > 0.78 {
		t.Errorf("%.3f set something, want 0.75", got)
	}
}

// At lin every transaction of every workload keeps to one key.
func TestOneKeyAtLin(t *testing.T) {
	for _, w := range []Workload{General, BlindW, Mini, ReadOnly, Lightweight} {
		_, txns := history(t, Config{Level: verdict.LIN, Workload: w, Transactions: 500, Keys: 30})
		for _, x := range txns {
			for _, op := range x.Ops {
				if op.Key != x.Ops[0].Key {
					t.Fatalf("%v: %s uses %s and %s", w, x.ID, x.Ops[0].Key, op.Key)
				}
			}
		}
	}
}
