package generate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/isowatch/isowatch/incremental/certificate"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/predicate"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/oracle"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
	"github.com/isowatch/isowatch/internal/lab/race"
)

func history(t testing.TB, cfg Config) (*Generator, []record.Transaction) {
	t.Helper()
	g, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return g, slices.Collect(g.Transactions())
}

// Tiny histories with much contention hold their level, by the oracle, and use
// its freedom: some hold no stronger one.
func TestTinyHistoriesHoldTheirLevel(t *testing.T) {
	for _, level := range verdict.Levels() {
		broken := map[verdict.Level]int{}
		n := race.Few(200, 800)
		for seed := range uint64(n) {
			cfg := Config{Level: level, Seed: seed, Transactions: 6, Sessions: 4, Operations: 3, Keys: 2, Stale: 0.4, Pause: time.Millisecond,
				Initial: record.Initial(seed % 3)}
			if chooses(level) {
				cfg.Sessions, cfg.Transactions, cfg.Stale = 3, 7, 0.7
			}
			if seed%2 == 0 {
				cfg.AbortRate, cfg.UnknownRate = 0.1, 0.1
			}
			if seed%5 == 0 {
				cfg.MaxSkew = 400 * time.Microsecond
			}
			if seed%7 == 0 {
				cfg.Workload = Mini
			}
			if seed%3 == 0 {
				cfg.Duplicates, cfg.DuplicateValues = 0.5*float64(1+seed%2), 3
			}
			if kind := seed % 7; (kind == 1 || kind == 2) && cfg.Initial != record.InitialZero && level != verdict.LIN {
				cfg.Workload, cfg.ListAppends = Append+Workload(kind-1), 3
				if cfg.Workload == Append {
					cfg.Duplicates = 0
				}
			}
			g, txns := history(t, cfg)
			opt := record.Assumptions{}.Override(g.Header())
			if !oracle.Holds(level, txns, opt) {
				t.Fatalf("seed %d: not %v:\n%s", seed, level, script.Format(script.Script{Header: g.Header(), Txns: txns}))
			}
			for _, l := range oracle.Levels(txns) {
				if !oracle.Holds(l, txns, opt) {
					broken[l]++
				}
			}
		}
		t.Logf("%v breaks %v", level, broken)
		for _, l := range verdict.Levels() {
			// Of transactions of one key, lin is as strong as sser but for the sessions, whose
			// transactions never overlap here.
			implied := level.Implies(l) || level == verdict.LIN || l == verdict.LIN
			if !implied && broken[l] < n/100 {
				t.Errorf("of %d histories of level %v all but %d are %v", n, level, broken[l], l)
			}
		}
	}
}

// Long histories hold their level: the store's own execution proves it.
func TestLongHistoriesHoldTheirLevel(t *testing.T) {
	for _, cfg := range []Config{
		{Level: verdict.SSER, Keys: 50},
		{Level: verdict.SER, Keys: 50, Distribution: Zipf},
		{Level: verdict.StrongSI, Distribution: Hotspot, Keys: 500, AbortRate: 0.05},
		{Level: verdict.SI, Keys: 200, Distribution: Zipf, Exponent: 1.5, MaxSkew: 5 * time.Millisecond, UnknownRate: 0.01},
		{Level: verdict.SI, Workload: Mini, Keys: 300, Initial: record.InitialAny},
		{Level: verdict.SER, Workload: BlindW, ReadShare: 0.8, Initial: record.InitialAbsent, NoTimes: true},
		{Level: verdict.SSER, Duplicates: 1, DuplicateExponent: 1.5, Initial: record.InitialZero},
		{Level: verdict.SI, Workload: ReadOnly, Operations: 2},
		{Level: verdict.SI, Workload: Append, Keys: 10, Operations: 4, UnknownRate: 0.02, AbortRate: 0.05},
		{Level: verdict.SER, Workload: Append, Keys: 3, ListAppends: 1},
		{Level: verdict.SSER, Workload: Mix, Keys: 100, Duplicates: 0.5, UnknownRate: 0.01},
		{Level: verdict.StrongSI, Workload: Mix, Keys: 1000, Distribution: Zipf, Duplicates: 0.3, Initial: record.InitialAbsent, Operations: 2},
		{Level: verdict.SI, Workload: Bank, Keys: 30, UnknownRate: 0.02, AbortRate: 0.05},
		{Level: verdict.SER, Workload: Ranges, Keys: 50, Initial: record.InitialAbsent},
		{Level: verdict.SI, Keys: 1 << 33, Distribution: Zipf, Operations: 4},
		{Level: verdict.PC, Keys: 100, UnknownRate: 0.02, AbortRate: 0.05},
		{Level: verdict.PC, Workload: CTwitter, Keys: 50, Initial: record.InitialAbsent},
		{Level: verdict.CC, Keys: 100, Distribution: Zipf, UnknownRate: 0.02, AbortRate: 0.05},
		{Level: verdict.CC, Workload: CTwitter, Keys: 50, Sessions: 50},
		{Level: verdict.CC, Workload: Mini, Keys: 3, Stale: 0.9, Initial: record.InitialZero},
		{Level: verdict.RA, Keys: 30, Stale: 0.5, UnknownRate: 0.02, AbortRate: 0.05},
		{Level: verdict.RA, Workload: CTwitter, Keys: 50, Stale: 1, Initial: record.InitialZero},
		{Level: verdict.RC, Keys: 30, Stale: 0.5, Operations: 20},
		{Level: verdict.RC, Workload: CTwitter, Keys: 50, Stale: 1, Sessions: 3},
		{Level: verdict.RC, Keys: 1 << 33, Distribution: Zipf, Operations: 4},
		{Level: verdict.G1, Keys: 30, Stale: 1, Initial: record.InitialAbsent},
		{Level: verdict.LIN, Workload: Lightweight, Keys: 20},
		{Level: verdict.LIN, Keys: 20, Operations: 3, UnknownRate: 0.02, MaxSkew: time.Millisecond},
		{Level: verdict.SER, Workload: CTwitter, Keys: 40, Sessions: 50},
		{Level: verdict.SI, Workload: CTwitter, Keys: 40, UnknownRate: 0.01, AbortRate: 0.05},
		{Level: verdict.SER, Workload: Predicates, Keys: 200, UnknownRate: 0.01, AbortRate: 0.05},
		{Level: verdict.SI, Workload: Predicates, Keys: 400, Operations: 2, UnknownRate: 0.01},
		{Level: verdict.SER, Workload: Booking, Initial: record.InitialAbsent, Keys: 20, UnknownRate: 0.01, AbortRate: 0.05},
		{Level: verdict.StrongSI, Workload: Booking, Initial: record.InitialAbsent, Keys: 50, Operations: 3, UnknownRate: 0.01},
		{Level: verdict.SER, Workload: Queue, Initial: record.InitialAbsent, Keys: 50, Operations: 2, UnknownRate: 0.01, AbortRate: 0.05},
		{Level: verdict.SI, Workload: Queue, Initial: record.InitialAbsent, Keys: 20, UnknownRate: 0.01},
		{Level: verdict.SSER, Workload: Unique, Initial: record.InitialAbsent, Keys: 50, Operations: 2, UnknownRate: 0.01},
		{Level: verdict.PC, Workload: Unique, Initial: record.InitialAbsent, Keys: 20, UnknownRate: 0.01, AbortRate: 0.05},
	} {
		t.Run(fmt.Sprintf("%v %v %v", cfg.Level, cfg.Workload, cfg.Distribution), func(t *testing.T) {
			cfg.Transactions, cfg.Seed = race.Few(5_000, 20_000), 5
			g, err := New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			type event struct {
				id     string
				commit bool
			}
			var events []event
			committed := map[string]bool{}
			g.trace = func(id string, commit bool) {
				events = append(events, event{id, commit})
				committed[id] = committed[id] || commit
			}
			txns := slices.Collect(g.Transactions())
			index := map[string]verdict.TxnID{}
			aborted := 0
			for i, x := range txns {
				index[x.ID] = verdict.TxnID(i)
				if x.Status == record.Aborted {
					aborted++
				}
			}
			var order []verdict.Event
			for _, e := range events {
				if committed[e.id] && (e.commit || certificate.KindOf(cfg.Level) == certificate.Events) {
					order = append(order, verdict.Event{Txn: index[e.id], Commit: e.commit})
				}
			}
			if cfg.Workload.HasRows() {
				h, err := predicate.Read(txns, nil, predicate.Unasked{}, func() bool { return false })
				if err != nil {
					t.Fatal(err)
				}
				if n := h.Explain(cfg.Level, order); n > 0 {
					t.Errorf("the execution does not explain %d rows that predicates were asked for", n)
				}
				txns = txns[:0]
				for x := range h.Transactions(false) {
					x.Ops = slices.Clone(x.Ops)
					txns = append(txns, *x)
				}
			}
			opt := record.Assumptions{Initial: cfg.Initial, MaxSkew: int64(cfg.MaxSkew)}
			if err := certificate.Replay(verdict.Result{Level: cfg.Level, ProvedBy: cfg.Level, Order: order}, txns, opt); err != nil {
				t.Fatal(err)
			}
			if len(txns) != cfg.Transactions || aborted == cfg.Transactions {
				t.Errorf("%d transactions of %d, %d aborted", len(txns), cfg.Transactions, aborted)
			}
		})
	}
}

// Records are well formed: in the order of ends, sessions going forward,
// sequence numbers and ids without holes, transactions of the length asked for.
func TestRecordsAreWellFormed(t *testing.T) {
	for _, level := range verdict.Levels() {
		g, txns := history(t, Config{Level: level, Transactions: 5000, Sessions: 7, MaxSkew: 3 * time.Millisecond, Anomaly: "lost-update", Planted: 15})
		seq, end := map[string]int64{}, map[string]int64{}
		planted := map[string]bool{}
		for _, p := range g.Planted() {
			for _, id := range p.Transactions {
				planted[id] = true
			}
		}
		if len(planted) != 15*3 {
			t.Errorf("%d transactions planted", len(planted))
		}
		ids := map[string]bool{}
		for i, x := range txns {
			if i > 0 && x.End < txns[i-1].End {
				t.Fatalf("%s ends before %s, which stands before it", x.ID, txns[i-1].ID)
			}
			if x.Start > x.End || x.Start < end[x.Session] {
				t.Fatalf("%s runs from %d to %d, its session's previous one until %d", x.ID, x.Start, x.End, end[x.Session])
			}
			if x.Seq != seq[x.Session] || ids[x.ID] || x.DB != record.DefaultDB || !x.HasSeq || !x.HasTimes {
				t.Fatalf("%+v", x)
			}
			if len(x.Ops) != 8 && !planted[x.ID] {
				t.Fatalf("%s has %d operations", x.ID, len(x.Ops))
			}
			seq[x.Session]++
			end[x.Session] = x.End
			ids[x.ID] = true
		}
		if len(txns) != 5000 || len(seq) != 7 {
			t.Errorf("%d transactions in %d sessions", len(txns), len(seq))
		}
		for id := range planted {
			if !ids[id] {
				t.Errorf("%s was planted and is not there", id)
			}
		}
	}
}

func TestSameSeedSameHistory(t *testing.T) {
	cfg := Config{Level: verdict.SI, Seed: 3, Transactions: 500, Keys: 20, AbortRate: 0.1, Duplicates: 0.3, Distribution: Zipf, Anomaly: "lost-update"}
	_, a := history(t, cfg)
	_, b := history(t, cfg)
	if d := cmp.Diff(a, b); d != "" {
		t.Error(d)
	}
	cfg.Seed = 4
	_, c := history(t, cfg)
	if cmp.Equal(a, c) {
		t.Error("another seed gives the same history")
	}
}

// A consumer may stop, and go on later.
func TestStopping(t *testing.T) {
	cfg := Config{Level: verdict.SSER, Transactions: 300}
	_, whole := history(t, cfg)
	g, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var parts []record.Transaction
	for len(parts) < 300 {
		for x := range g.Transactions() {
			parts = append(parts, x)
			if len(parts)%70 == 0 {
				break
			}
		}
	}
	if d := cmp.Diff(whole, parts); d != "" {
		t.Error(d)
	}
}

func TestMiniTransactions(t *testing.T) {
	_, txns := history(t, Config{Level: verdict.SSER, Workload: Mini, Transactions: 2000, Keys: 30})
	shapes := map[string]bool{}
	for _, x := range txns {
		reads, writes := map[string]bool{}, 0
		shape := ""
		for _, op := range x.Ops {
			shape += op.Kind.String()
			if op.Kind == record.Read {
				reads[op.Key] = true
			} else {
				writes++
				if !reads[op.Key] {
					t.Fatalf("%s writes %s without having read it", x.ID, op.Key)
				}
			}
		}
		if len(reads) > 2 || writes > 2 || len(x.Ops) > 4 {
			t.Fatalf("%s is no mini-transaction: %v", x.ID, x.Ops)
		}
		shapes[shape] = true
	}
	if len(shapes) != 7 {
		t.Errorf("shapes %v", shapes)
	}
}

// A transfer reads what it writes, an audit reads all; a range is read whole.
func TestRanges(t *testing.T) {
	shapes := map[string]int{}
	_, txns := history(t, Config{Level: verdict.SSER, Workload: Bank, Transactions: 500, Keys: 5})
	_, more := history(t, Config{Level: verdict.SSER, Workload: Ranges, Transactions: 500, Keys: 3, Operations: 5})
	for _, x := range slices.Concat(txns, more) {
		shape := ""
		for _, op := range x.Ops {
			shape += op.Kind.String()
			if op.Kind == record.Write && !slices.ContainsFunc(x.Ops, func(o record.Op) bool { return o.Kind == record.Read && o.Key == op.Key }) {
				t.Fatalf("%s writes %s without having read it", x.ID, op.Key)
			}
		}
		shapes[shape]++
	}
	for _, want := range []string{"rrww", "rrrrr", "rrr", "rrrw"} {
		if shapes[want] < 100 {
			t.Errorf("shapes %v: not enough of %s", shapes, want)
		}
	}
	if len(shapes) != 4 {
		t.Errorf("shapes %v", shapes)
	}
}

// Shares and distributions are what was asked for, within a few percent.
func TestShares(t *testing.T) {
	count := func(cfg Config) (reads, writes int, keys map[string]int, txns []record.Transaction) {
		cfg.Transactions = 5000
		_, txns = history(t, cfg)
		keys = map[string]int{}
		for _, x := range txns {
			for _, op := range x.Ops {
				keys[op.Key]++
				if op.Kind == record.Read {
					reads++
				} else {
					writes++
				}
			}
		}
		return reads, writes, keys, txns
	}
	var cfg Config
	for name, want := range map[string]float64{"rh": 0.95, "bl": 0.5, "wh": 0.3, "blindw-rh": 0.8, "blindw-wr": 0.5, "blindw-wh": 0.2, "blindw-rr": 1} {
		cfg = Config{Level: verdict.SSER}
		if err := cfg.Preset(name); err != nil {
			t.Fatal(err)
		}
		reads, writes, _, txns := count(cfg)
		if got := float64(reads) / float64(reads+writes); got < want-0.03 || got > want+0.03 {
			t.Errorf("%s: %.3f of the operations read, want %v", name, got, want)
		}
		if strings.HasPrefix(name, "blindw") {
			for _, x := range txns {
				for _, op := range x.Ops {
					if op.Kind != x.Ops[0].Kind {
						t.Fatalf("%s: %s both reads and writes", name, x.ID)
					}
				}
			}
		}
	}
	if err := cfg.Preset("nonsense"); err == nil {
		t.Error("nonsense is a workload")
	}

	_, _, keys, _ := count(Config{Level: verdict.SSER, Distribution: Zipf, Exponent: 1, Keys: 100})
	// The harmonic number of 100 is 5.187.
	if got := float64(keys["k0"]) / 40_000; got < 0.18 || got > 0.21 {
		t.Errorf("zipf: the first key has %.3f of the operations, want 0.193", got)
	}
	if got := float64(keys["k9"]) / 40_000; got < 0.015 || got > 0.024 {
		t.Errorf("zipf: the tenth key has %.4f of the operations, want 0.0193", got)
	}
	_, _, keys, _ = count(Config{Level: verdict.SSER, Distribution: Hotspot, Keys: 10})
	if got := float64(keys["k0"]+keys["k1"]) / 40_000; got < 0.77 || got > 0.83 {
		t.Errorf("hotspot: two of ten keys have %.3f of the operations, want 0.8", got)
	}
	_, _, _, txns := count(Config{Level: verdict.SSER, Duplicates: 0.5, Keys: 20, NoReads: true, AbortRate: 0.25, DuplicateValues: 10, DuplicateExponent: 1})
	common, aborted, first := 0, 0, 0
	kinds := map[string]map[bool]bool{} // by key: its values are common, are not
	for _, x := range txns {
		if x.Status == record.Aborted {
			aborted++
		}
		for _, op := range x.Ops {
			if op.Kind == record.Read {
				t.Fatal("a read with NoReads")
			}
			if op.Value.Num <= 10 {
				common++
			}
			if op.Value.Num == 1 {
				first++
			}
			if kinds[op.Key] == nil {
				kinds[op.Key] = map[bool]bool{}
			}
			kinds[op.Key][op.Value.Num <= 10] = true
		}
	}
	if common < 19_000 || common > 21_000 || aborted < 1100 || aborted > 1400 {
		t.Errorf("%d common values of 40000, want half; %d aborted of 5000, want a quarter", common, aborted)
	}
	// The harmonic number of 10 is 2.929.
	if got := float64(first) / float64(common); got < 0.32 || got > 0.36 {
		t.Errorf("the most common value has %.3f of the common ones, want 0.341", got)
	}
	duplicate := 0
	for key, k := range kinds {
		if len(k) != 1 {
			t.Errorf("key %s has both common and new values", key)
		}
		if k[true] {
			duplicate++
		}
	}
	if duplicate != 10 || !kinds["k1"][true] || !kinds["k18"][false] {
		t.Errorf("%d keys of 20 have common values, want every other one", duplicate)
	}
}

func TestConfigErrors(t *testing.T) {
	for want, cfg := range map[string]Config{
		"transactions: -1":                {Level: verdict.SSER, Transactions: -1},
		"keys":                            {Level: verdict.SSER, Keys: 1 << 41},
		"initial: a list":                 {Level: verdict.SSER, Workload: Mix, Initial: record.InitialZero},
		"is never zero":                   {Level: verdict.SSER, Anomaly: "incompatible-order", Initial: record.InitialZero},
		"always new":                      {Level: verdict.SSER, Workload: Append, Duplicates: 0.1},
		"read share: 2":                   {Level: verdict.SSER, ReadShare: 2},
		"zipf exponent":                   {Level: verdict.SSER, Exponent: -1},
		"can't be negative":               {Level: verdict.SSER, MaxSkew: -1},
		"use at most":                     {Level: verdict.SSER, Pause: 100 * time.Hour},
		"this package's":                  {Level: 17},
		`anomaly "stale": use`:            {Level: verdict.SSER, Anomaly: "stale"},
		"takes 4 sessions":                {Level: verdict.SSER, Anomaly: "long-fork", Sessions: 3},
		"takes 30 transactions,":          {Level: verdict.SSER, Anomaly: "lost-update", Planted: 10, Transactions: 29},
		"workload append":                 {Level: verdict.LIN, Workload: Append},
		"workload c-twitter have several": {Level: verdict.LIN, Workload: CTwitter},
		"anomaly write-skew have several": {Level: verdict.LIN, Anomaly: "write-skew"},
		"number is its own":               {Level: verdict.SSER, Workload: CTwitter, Duplicates: 0.5},
		"users: ":                         {Level: verdict.SSER, Workload: CTwitter, Keys: 1 << 21},
		"from one state of the table":     {Workload: Predicates, Level: verdict.RC},
		"no duplicates":                   {Level: verdict.SSER, Workload: Predicates, Duplicates: 0.1},
	} {
		_, err := New(cfg)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want %q in it", cfg, err, want)
		}
	}
}

// Lists are as Elle's workload makes them: each gets so many elements, 1, 2, …,
// and then no more; so many are in use at a time; a read returns what was
// committed, a prefix of 1, 2, … but for what aborted.
func TestLists(t *testing.T) {
	const appends, active = 5, 4
	_, txns := history(t, Config{Level: verdict.SSER, Workload: Append, Transactions: 3000, Operations: 4, Keys: active, ListAppends: appends, AbortRate: 0.1})
	elements, first, last := map[string]int64{}, map[string]int{}, map[string]int{}
	lengths, read := map[int]bool{}, 0
	for i, x := range txns {
		lengths[len(x.Ops)] = true
		for _, op := range x.Ops {
			if _, ok := first[op.Key]; !ok {
				first[op.Key] = i
			}
			last[op.Key] = i
			switch {
			case op.Kind == record.Append:
				elements[op.Key]++
				if n := op.Value.Num; n < 1 || n > appends {
					t.Fatalf("%s is given element %d", op.Key, n)
				}
			case op.Kind != record.Read || op.Value.Kind != record.KindList && !op.Value.IsNull():
				t.Fatalf("%s: %v", x.ID, op)
			case !op.Value.IsNull():
				read++
			}
		}
	}
	if len(lengths) != 4 || read < 1000 {
		t.Errorf("%d lengths of transactions, %d lists read", len(lengths), read)
	}
	short := 0
	for key, n := range elements {
		if n > appends {
			t.Errorf("%s was given %d elements", key, n)
		}
		if n < appends {
			short++
		}
	}
	if short > active {
		t.Errorf("%d lists of %d were retired early", short, len(elements))
	}
	for key := range first {
		// A transaction may be written long after it took its list.
		if last[key]-first[key] > 200 {
			t.Errorf("%s is in use from transaction %d to %d", key, first[key], last[key])
		}
	}
}

// The generator forgets the lists that nobody can use any more.
func TestListsAreForgotten(t *testing.T) {
	g, txns := history(t, Config{Level: verdict.SI, Workload: Mix, Keys: 300, Transactions: 5000, ListAppends: 2, AbortRate: 0.1, UnknownRate: 0.1})
	if g.lists.made < 1000 || len(txns) != 5000 {
		t.Errorf("%d lists made in %d transactions", g.lists.made, len(txns))
	}
	if len(g.lists.all) != len(g.lists.active) {
		t.Errorf("%d lists are kept, %d of them in use", len(g.lists.all), len(g.lists.active))
	}
}

func TestNames(t *testing.T) {
	for _, d := range []Distribution{Uniform, Zipf, Hotspot} {
		if got, ok := ParseDistribution(d.String()); !ok || got != d {
			t.Errorf("distribution %v is parsed as %v, %v", d, got, ok)
		}
	}
	if _, ok := ParseDistribution("normal"); ok {
		t.Error("normal is a distribution")
	}
}

// BenchmarkGenerate makes transactions of 8 operations on 10,000 keys in 24
// sessions, as the engine's benchmarks use them; then a billion keys, and lists.
func BenchmarkGenerate(b *testing.B) {
	for _, cfg := range []Config{
		{Level: verdict.SER, Workload: BlindW},
		{Level: verdict.SI},
		{Level: verdict.SSER, Distribution: Zipf, Keys: 1_000_000},
		{Level: verdict.SI, Workload: Mini},
		{Level: verdict.SI, Operations: 15, Sessions: 20, Keys: 1_000_000_000},
		{Level: verdict.SI, Operations: 15, Sessions: 20, Keys: 1_000_000_000, Distribution: Zipf},
		{Level: verdict.SER, Workload: Append, Operations: 4, Keys: 10},
		{Level: verdict.SER, Workload: CTwitter, Keys: 5000, Sessions: 50},
		{Level: verdict.PC, Workload: CTwitter, Keys: 5000, Sessions: 50},
		{Level: verdict.CC, Workload: CTwitter, Keys: 5000, Sessions: 50},
		{Level: verdict.RA, Workload: CTwitter, Keys: 5000, Sessions: 50},
		{Level: verdict.RC, Workload: CTwitter, Keys: 5000, Sessions: 50},
		{Level: verdict.G1},
		{Level: verdict.RA, Stale: 1},
		{Level: verdict.LIN, Workload: Lightweight},
	} {
		b.Run(fmt.Sprintf("%v/%v/%v/%d", cfg.Level, cfg.Workload, cfg.Distribution, cfg.Keys), func(b *testing.B) {
			cfg.Transactions = 1<<31 - 1
			g, err := New(cfg)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			b.ResetTimer()
			n := 0
			for range g.Transactions() {
				if n++; n == b.N {
					break
				}
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "txn/s")
		})
	}
}

// Mini-transactions write two keys in the order of the keys, whatever they read first.
func TestMiniWritesInOrder(t *testing.T) {
	d := NewDrawer(Config{Level: verdict.SSER, Workload: Mini, Keys: 5, ReadShare: 0.5}, rand.New(rand.NewPCG(1, 2)))
	both := 0
	for range 1000 {
		var written []int
		for _, s := range d.Draw() {
			if s.Kind == record.Write {
				written = append(written, s.Item)
			}
		}
		if !slices.IsSorted(written) {
			t.Fatalf("writes %v", written)
		}
		if len(written) == 2 {
			both++
		}
	}
	if both < 100 {
		t.Errorf("%d of 1,000 write two keys", both)
	}
}

// A condition of blindw-pred matches a tenth of the rows or, where some were given one value twice, not much more,
// whatever has happened since its transaction began.
func TestConditionsMatchFew(t *testing.T) {
	for _, level := range []verdict.Level{verdict.SSER, verdict.SER, verdict.SI} {
		_, txns := history(t, Config{Level: level, Workload: Predicates, Keys: 500, Operations: 1, Transactions: 3000})
		for _, x := range txns {
			for _, op := range x.Ops {
				found := 0
				for key, v := range op.Value.Members() {
					switch {
					case op.Kind == record.PredicateRead:
						found++
					case op.Kind == record.PredicateWrite && key == record.Hit:
						for range v.Elements() {
							found++
						}
					}
				}
				if found > 150 {
					t.Fatalf("%v: %s matches %d rows of 500: %s", level, x.ID, found, op.Where)
				}
			}
		}
	}
}
