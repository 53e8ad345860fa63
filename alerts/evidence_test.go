package alerts_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/alerts/list"
	"github.com/isowatch/isowatch/incremental"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/lab/alerttest"
	"github.com/isowatch/isowatch/internal/lab/oracle"
	"github.com/isowatch/isowatch/internal/lab/oracle/script"
	"github.com/isowatch/isowatch/internal/lab/oracle/tiny"
	"github.com/isowatch/isowatch/internal/lab/race"
)

// ambiguous draws a history with duplicate values, unknown outcomes and lists.
func ambiguous(seed uint64, mutations int) (script.Script, *rand.Rand) {
	rng := rand.New(rand.NewPCG(seed, 4))
	s := tiny.Random(rng, tiny.Config{Times: true, Duplicates: true, Aborted: true, Unknown: true, Appends: true,
		Partial: seed%2 == 0, Keys: 1 + int(seed%3), Mutations: mutations, Back: 10 * int(seed%4)})
	if seed%5 == 0 {
		initial := record.InitialAny
		s.Header.Initial = &initial
	}
	if mutations > 0 {
		mutateLists(rng, s.Txns)
	}
	return s, rng
}

// mutateLists changes what is read of a list now and then.
func mutateLists(rng *rand.Rand, txns []record.Transaction) {
	for i := range txns {
		for j := range txns[i].Ops {
			op := &txns[i].Ops[j]
			es, _ := list.Elements(op.Value)
			if op.Kind != record.Read || len(es) == 0 || rng.IntN(4) > 0 {
				continue
			}
			a, b := rng.IntN(len(es)), rng.IntN(len(es))
			switch rng.IntN(3) {
			case 0:
				es[a], es[b] = es[b], es[a]
			case 1:
				es = es[:a]
			case 2:
				es = slices.Insert(es, a, es[b])
			}
			text := "["
			for n, e := range es {
				if n > 0 {
					text += ","
				}
				text += e.String()
			}
			op.Value = record.Value{Kind: record.KindList, Text: text + "]"}
		}
	}
}

// exhibits are operations at random, and with them what the engine promises to
// have in the evidence: of a read that is needed all that may have written it,
// whatever their outcome; of a list all appenders of elements that several
// appended, and somebody who shows that it is one. Whether the writes of these
// are exhibited too is left to chance.
func exhibits(rng *rand.Rand, txns []record.Transaction) (ids []verdict.TxnID, out []verdict.Exhibit) {
	reads, writes := make([]map[string]bool, len(txns)), make([]map[string]bool, len(txns))
	appenders := map[record.Cell]int{}
	lists := map[string]bool{}
	for i := range txns {
		reads[i], writes[i] = map[string]bool{}, map[string]bool{}
		for _, op := range txns[i].Ops {
			if op.Kind == record.Append {
				appenders[op.Cell()]++
				lists[op.Key] = true
			}
			if op.Kind == record.Read && rng.IntN(3) > 0 {
				reads[i][op.Key] = true
			} else if op.Kind != record.Read && rng.IntN(2) == 0 {
				writes[i][op.Key] = true
			}
		}
	}
	needed, elements, bare := map[record.Cell]bool{}, map[record.Cell]bool{}, map[string]bool{}
	for i := range txns {
		for _, op := range txns[i].Ops {
			if op.Kind == record.Read && reads[i][op.Key] {
				needed[op.Cell()] = true
				bare[op.Key] = lists[op.Key]
				es, _ := list.Elements(op.Value)
				for _, e := range es {
					elements[record.Cell{Key: op.Key, Value: e}] = true
				}
			}
		}
	}
	member := make([]bool, len(txns))
	for i := range txns {
		for _, op := range txns[i].Ops {
			e := op.Cell()
			if op.Kind == record.Write && needed[op.Cell()] ||
				op.Kind == record.Append && (elements[e] && appenders[e] > 1 || bare[op.Key]) {
				member[i] = true
				bare[op.Key] = false
				if rng.IntN(2) == 0 {
					writes[i][op.Key] = true
				}
			}
		}
	}
	names := func(m map[string]bool) []string {
		var out []string
		for k := range m {
			out = append(out, k)
		}
		slices.Sort(out)
		return out
	}
	for i := range txns {
		if member[i] || len(reads[i])+len(writes[i]) > 0 {
			ids = append(ids, verdict.TxnID(i))
			out = append(out, verdict.Exhibit{Txn: verdict.TxnID(i), Reads: names(reads[i]), Writes: names(writes[i])})
		}
	}
	return ids, out
}

// oneOf is one of the levels that the oracle judges a history at.
func oneOf(rng *rand.Rand, txns []record.Transaction) verdict.Level {
	ls := oracle.Levels(txns)
	return ls[rng.IntN(len(ls))]
}

// Of a proper history no evidence of a violation can be made, whatever part of
// it a mistaken engine takes for one: all that the judge is asked about is
// proper too.
func TestNoEvidenceOfWhatDidNotHappen(t *testing.T) {
	n := uint64(race.Draws(400, 4000))
	asked := 0
	for seed := range n {
		s, rng := ambiguous(seed, int(seed%2))
		opt := record.Assumptions{}.Override(s.Header)
		level := oneOf(rng, s.Txns)
		if len(s.Txns) == 0 || !oracle.Holds(level, s.Txns, opt) {
			continue
		}
		v := verdict.Violation{Kind: []verdict.Kind{verdict.Unsatisfiable, verdict.IncompatibleOrder, verdict.Divergence}[rng.IntN(3)], Level: level, Read: -1}
		v.Evidence, v.Exhibits = exhibits(rng, s.Txns)
		if len(v.Evidence) == 0 {
			continue
		}
		v.Txns, v.Key = v.Evidence[:1], "x"
		ctx := context(s, level)
		ctx.Judge = func(l verdict.Level, h record.Header, txns []record.Transaction) verdict.Outcome {
			asked++
			if *h.Initial == opt.Initial && level.Implies(l) && alerttest.Judge(l, h, txns) == verdict.Violated { // else it asks what if
				t.Fatalf("seed %d: %v holds in\n%sbut not in its part\n%s\n%+v", seed, l, script.Format(s), script.Format(script.Script{Header: h, Txns: txns}), v.Exhibits)
			}
			if rng.IntN(2) == 0 {
				return verdict.Violated // and it goes on shrinking
			}
			return verdict.Satisfied
		}
		_, _ = alerts.New(v, ctx) // the judge's answers are random
	}
	if asked < int(n)*2 {
		t.Errorf("the judge was asked %d times only", asked)
	}
}

// What breaks a level has evidence: records that the oracle condemns by
// themselves, each a part of what was recorded.
func TestEvidenceOfAmbiguousHistories(t *testing.T) {
	n := uint64(race.Draws(300, 3000))
	proved, kinds := 0, map[string]int{}
	for seed := range n {
		s, rng := ambiguous(seed, 3)
		level := oneOf(rng, s.Txns)
		if alerttest.Judge(level, s.Header, s.Txns) != verdict.Violated {
			continue
		}
		v := verdict.Violation{Kind: verdict.Unsatisfiable, Level: level, Read: -1, ClockDependent: level >= verdict.StrongSI && level != verdict.SER}
		for i := range s.Txns {
			id := verdict.TxnID(i)
			var keys []string
			for _, op := range s.Txns[i].Ops {
				keys = append(keys, op.Key)
			}
			v.Evidence = append(v.Evidence, id)
			v.Exhibits = append(v.Exhibits, verdict.Exhibit{Txn: id, All: keys})
		}
		if id, key, ok := thinAir(s.Txns); ok {
			v.Kind, v.Txns, v.Key = verdict.ThinAirRead, []verdict.TxnID{id}, key
		}
		a, err := alerts.New(v, context(s, level))
		if err != nil {
			t.Fatalf("seed %d, %v: %v\n%s", seed, level, err, script.Format(s))
		}
		proved++
		rest := recheck(t, a)
		part(t, s.Txns, rest)
		candidates(t, s.Txns, rest, a)
		for _, c := range contents(s.Txns) {
			kinds[c]++
		}
		if t.Failed() {
			t.Fatalf("seed %d:\n%s", seed, script.Format(s))
		}
	}
	for _, c := range []string{"duplicates", "unknown", "lists"} {
		if kinds[c] < int(n)/60 {
			t.Errorf("of %d violations only %d had %s", proved, kinds[c], c)
		}
	}
	t.Log(proved, kinds)
}

// thinAir finds a read of a list with an element that nobody appended.
func thinAir(txns []record.Transaction) (verdict.TxnID, string, bool) {
	appended := map[record.Cell]bool{}
	lists := map[string]bool{}
	for i := range txns {
		for _, op := range txns[i].Ops {
			if op.Kind == record.Append {
				appended[op.Cell()] = true
				lists[op.Key] = true
			}
		}
	}
	for i := range txns {
		for _, op := range txns[i].Ops {
			es, _ := list.Elements(op.Value)
			if op.Kind == record.Read && lists[op.Key] && txns[i].Status == record.Committed &&
				slices.ContainsFunc(es, func(e record.Value) bool { return !appended[record.Cell{Key: op.Key, Value: e}] }) {
				return verdict.TxnID(i), op.Key, true
			}
		}
	}
	return 0, "", false
}

func contents(txns []record.Transaction) []string {
	var out []string
	seen := map[record.Op]bool{}
	has := map[string]bool{}
	for i := range txns {
		has["unknown"] = has["unknown"] || txns[i].Status == record.Unknown
		for _, op := range txns[i].Ops {
			has["lists"] = has["lists"] || op.Kind == record.Append
			has["duplicates"] = has["duplicates"] || op.Kind != record.Read && seen[op]
			seen[op] = true
		}
	}
	for c, ok := range has {
		if ok {
			out = append(out, c)
		}
	}
	return out
}

// part checks that rest is an honest part of all: every transaction one of all,
// in the same order, with the same outcome, times and session, its operations
// some of that one's in the same order.
func part(t *testing.T, all, rest []record.Transaction) {
	t.Helper()
	at := 0
	for _, r := range rest {
		for at < len(all) && all[at].ID != r.ID {
			at++
		}
		if at == len(all) {
			t.Errorf("%s is not of the history, or not in its place", r.ID)
			return
		}
		o := all[at]
		if r.Status != o.Status || r.Session != o.Session || r.HasTimes != o.HasTimes || r.Start != o.Start || r.End != o.End {
			t.Errorf("%s is not what it was", r.ID)
		}
		next := 0
		for _, op := range r.Ops {
			i := slices.Index(o.Ops[next:], op)
			if i < 0 {
				t.Errorf("%s did not do %v %s %v there", r.ID, op.Kind, op.Key, op.Value)
				break
			}
			next += i + 1
		}
	}
}

// candidates checks that the evidence has all transactions that may be the source
// of a read in it: that wrote the value last, or appended the element of the
// list, and committed or may have. With partial coverage it may have none
// instead, and then nobody who wrote it otherwise either. What a transaction read
// of its own write is no matter of others.
func candidates(t *testing.T, all, rest []record.Transaction, a alerts.Alert) {
	t.Helper()
	h, err := codec.DecodeHeader(a.Evidence[0])
	if err != nil {
		t.Fatal(err)
	}
	check := func(reader, read string, kind record.OpKind, key, text string) {
		was, _ := sources(all, reader, kind, key, text)
		is, others := sources(rest, reader, kind, key, text)
		none := *h.Coverage == record.CoveragePartial && is == 0 && others == 0
		if is != was && !none {
			t.Errorf("%s, and %d transactions may be the source of %s; %d of them are in the evidence, and %d others who wrote it", read, was, text, is, others)
		}
	}
	for i := range rest {
		own := map[string]bool{}
		for _, op := range rest[i].Ops {
			if own[op.Key] = own[op.Key] || op.Kind != record.Read; own[op.Key] {
				continue
			}
			read := fmt.Sprintf("%s read %s = %v", rest[i].ID, op.Key, op.Value)
			check(rest[i].ID, read, record.Write, op.Key, op.Value.String())
			es, _ := list.Elements(op.Value)
			for _, e := range es {
				check(rest[i].ID, read, record.Append, op.Key, e.String())
			}
		}
	}
}

// sources counts the transactions other than the reader that a read may be of,
// and the others that wrote what it returned.
func sources(txns []record.Transaction, reader string, kind record.OpKind, key, text string) (n, others int) {
	for i := range txns {
		wrote, last := false, false
		for _, op := range txns[i].Ops {
			if op.Key == key && op.Kind == kind {
				is := op.Value.String() == text
				wrote = wrote || is
				last = is || kind == record.Append && last
			}
		}
		switch {
		case txns[i].ID == reader:
		case last && txns[i].Status != record.Aborted:
			n++
		case wrote:
			others++
		}
	}
	return n, others
}

// A transaction that may have written what was read is part of the evidence,
// and so is the cycle that it would close.
func TestEveryCandidateWriterStays(t *testing.T) {
	s, err := script.Parse(`
		initial zero
		s1 T1: w(x,1)
		s2 T2: w(x,1) w(y,1)
		s3 T3: r(x,1) r(y,0)
		s3 T4: r(x,0) w(z,5)
		s4 T5: r(z,5)`)
	if err != nil {
		t.Fatal(err)
	}
	v := verdict.Violation{Kind: verdict.Cycle, Level: verdict.SI, Read: -1, Txns: []verdict.TxnID{0, 2, 3}, Evidence: []verdict.TxnID{0, 1, 2, 3}}
	p := alerttest.NewParser(s.Txns)
	v.Cycle = p.Cycle(t, "T1 wr(x,elimination: T2 wr(x,case) T3 rw(y,initial) T2) T3 so T4 rw(x,initial) T1")
	a, err := alerts.New(v, context(s, verdict.SI))
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, txn := range recheck(t, a) {
		ids = append(ids, txn.ID)
	}
	if !slices.Equal(ids, []string{"T1", "T2", "T3", "T4"}) {
		t.Errorf("evidence %v; without T2's write, nobody else can have written what T3 read", ids)
	}
}

// A read that the engine does not exhibit may be of a writer that is not in the
// evidence, though somebody in it wrote the same. So may what a transaction read
// when it read an exhibited key once more and got something else.
func TestReadsThatAreNotExhibitedGo(t *testing.T) {
	s, err := script.Parse(`
		s0 T0: w(x,0)
		s9 T9: w(y,3) w(x,9)
		s1 T1: r(x,0) r(x,9) w(x,1) w(y,3)
		s2 T2: r(y,3) r(x,0) w(x,2)`)
	if err != nil {
		t.Fatal(err)
	}
	x := []string{"x"}
	v := verdict.Violation{Kind: verdict.Divergence, Level: verdict.SI, Key: "x", Read: 0, Txns: []verdict.TxnID{2, 3}, Evidence: []verdict.TxnID{0, 2, 3},
		Exhibits: []verdict.Exhibit{{Txn: 0, Writes: x}, {Txn: 2, Reads: x, Writes: x}, {Txn: 3, Reads: x, Writes: x}}}
	ctx := context(s, verdict.SI)
	ctx.Judge = func(l verdict.Level, h record.Header, txns []record.Transaction) verdict.Outcome {
		for i := range txns {
			if slices.ContainsFunc(txns[i].Ops, func(op record.Op) bool { return op.Kind == record.Read && op.Value != record.Int(0) }) {
				t.Errorf("the judge is told that %s read y = 3 or x = 9, and not that T9 may have written it", txns[i].ID)
			}
		}
		return verdict.Unknown
	}
	_, _ = alerts.New(v, ctx)
}

// Two readers that saw a list of a thousand elements in different orders are
// the evidence, with somebody who shows that it is a list; not its thousand
// appenders. The same for a duplicate, and for an update that a reader missed.
func TestEvidenceOfLongListsIsSmall(t *testing.T) {
	const length = 1000
	var txns []record.Transaction
	var whole []string
	add := func(session string, ops ...record.Op) verdict.TxnID {
		id := verdict.TxnID(len(txns))
		txns = append(txns, record.Transaction{DB: record.DefaultDB, Session: session, ID: fmt.Sprintf("T%d", id), Ops: ops})
		return id
	}
	read := func(es []string) record.Op {
		text := "["
		for i, e := range es {
			if i > 0 {
				text += ","
			}
			text += e
		}
		return record.Op{Kind: record.Read, Key: "l", Value: record.Value{Kind: record.KindList, Text: text + "]"}}
	}
	for i := range length {
		v := record.Int(int64(i))
		add("a", record.Op{Kind: record.Append, Key: "l", Value: v}, record.Op{Kind: record.Append, Key: "other", Value: v})
		whole = append(whole, v.String())
	}
	swapped := slices.Clone(whole)
	swapped[700], swapped[701] = swapped[701], swapped[700]
	doubled := slices.Insert(slices.Clone(whole), 900, whole[3])
	good, bad, twice, short := add("r1", read(whole)), add("r2", read(swapped)), add("r3", read(doubled)), add("a", read(whole[:500]))

	initial, complete := record.InitialAbsent, record.CoverageComplete
	s := script.Script{Header: record.Header{Initial: &initial, Coverage: &complete}, Txns: txns}
	for _, c := range []struct {
		kind  verdict.Kind
		txns  []verdict.TxnID
		cycle []verdict.Edge
		is    func([]record.Transaction) bool // stands for the engine, as the oracle can't
		most  int
	}{
		{verdict.IncompatibleOrder, []verdict.TxnID{good, bad}, nil, alerttest.Disagree, 3},
		{verdict.DuplicateElements, []verdict.TxnID{twice}, nil, alerttest.Doubled, 2},
		{verdict.Cycle, []verdict.TxnID{500, short}, []verdict.Edge{
			{From: 500, To: short, Type: verdict.SO, Why: verdict.BySession},
			{From: short, To: 500, Type: verdict.RW, Key: "l", Why: verdict.ByList}}, alerttest.Missed, 2},
	} {
		v := verdict.Violation{Kind: c.kind, Level: verdict.SI, Key: "l", Read: 0, Txns: c.txns, Cycle: c.cycle}
		for i := range txns {
			v.Evidence = append(v.Evidence, verdict.TxnID(i))
		}
		ctx := context(s, verdict.SI)
		calls := 0
		ctx.Judge = func(_ verdict.Level, _ record.Header, rest []record.Transaction) verdict.Outcome {
			calls++
			if c.is(rest) {
				return verdict.Violated
			}
			return verdict.Satisfied
		}
		a, err := alerts.New(v, ctx)
		if err != nil {
			t.Fatalf("%v: %v", c.kind, err)
		}
		if n := len(a.Evidence) - 1; n > c.most {
			t.Errorf("%v: %d transactions of evidence where %d do", c.kind, n, c.most)
		}
		if calls > 40 {
			t.Errorf("%v: the judge was asked %d times", c.kind, calls)
		}
		if len(a.Explanation)+len(a.Summary) > 4000 {
			t.Errorf("%v: %d bytes of explanation:\n%s", c.kind, len(a.Explanation), a.Explanation)
		}
		h, err := codec.DecodeHeader(a.Evidence[0])
		if err != nil || *h.Coverage != record.CoveragePartial {
			t.Errorf("%v: coverage %v (%v), where not all appenders are shown", c.kind, h.Coverage, err)
		}
	}
}

// Complete coverage is not claimed of a list whose appenders are not all shown,
// and those who are not needed are not shown to the judge to begin with.
func TestListsAndCoverage(t *testing.T) {
	s, err := script.Parse(`
		initial absent
		s0 T0: append(l,1)
		s1 T1 aborted: append(l,2)
		s2 T2: r(l,[3,1,2])
		s3 T3: append(l,3)`)
	if err != nil {
		t.Fatal(err)
	}
	l := []string{"l"}
	v := verdict.Violation{Kind: verdict.AbortedRead, Level: verdict.SI, Key: "l", Read: 0, Txns: []verdict.TxnID{2, 1}, Evidence: []verdict.TxnID{1, 2, 3},
		Exhibits: []verdict.Exhibit{{Txn: 1, Writes: l}, {Txn: 2, All: l}, {Txn: 3}}}
	ctx := context(s, verdict.SI)
	asked := map[record.Coverage]int{}
	ctx.Judge = func(_ verdict.Level, h record.Header, txns []record.Transaction) verdict.Outcome {
		reads, appends := 0, 0
		for i := range txns {
			for _, op := range txns[i].Ops {
				if op.Kind == record.Read {
					reads++
				} else {
					appends++
				}
			}
		}
		if asked[*h.Coverage] == 0 && appends != 1 {
			t.Errorf("%v: %d appends are shown, and 1 is exhibited", *h.Coverage, appends)
		}
		if asked[*h.Coverage]++; (reads == 1) != (*h.Coverage == record.CoveragePartial) {
			t.Errorf("%v: %d lists are shown, which T0 appended to, who is not", *h.Coverage, reads)
		}
		return verdict.Satisfied
	}
	_, _ = alerts.New(v, ctx)
	if asked[record.CoveragePartial] != 2 || asked[record.CoverageComplete] != 2 {
		t.Errorf("asked %v times", asked)
	}
}

// Of a read anomaly the evidence has the read that it is about, and not what
// else the transaction read of the key, which somebody may have written who is
// not there.
func TestOneReadOfAnAnomaly(t *testing.T) {
	s, err := script.Parse("initial zero\ns1 T1: w(x,3) w(x,2)\ns2 T2: w(x,2)\ns3 T3: r(x,3) r(x,2)")
	if err != nil {
		t.Fatal(err)
	}
	x := []string{"x"}
	v := verdict.Violation{Kind: verdict.IntermediateRead, Level: verdict.SI, Key: "x", Read: 0, Txns: []verdict.TxnID{2, 0}, Evidence: []verdict.TxnID{0, 2},
		Exhibits: []verdict.Exhibit{{Txn: 0, Writes: x}, {Txn: 2, All: x}}}
	a, err := alerts.New(v, context(s, verdict.SI))
	if err != nil {
		t.Fatal(err)
	}
	want, err := script.Parse("s1 T1: w(x,3) w(x,2)\ns3 T3: r(x,3)")
	if err != nil {
		t.Fatal(err)
	}
	if got := recheck(t, a); script.Format(want) != script.Format(script.Script{Txns: got}) {
		t.Errorf("evidence\n%swant\n%s", script.Format(script.Script{Txns: got}), script.Format(want))
	}
}

// Of who may not have taken effect the evidence has, with its writes, what it found of them, as that may be why; and of
// what it had read of others, who may not be known as yet, nothing.
func TestOwnReadsOfAnUnknownOutcome(t *testing.T) {
	s, err := script.Parse("initial absent\ns1 U unknown: r(x,7) w(x,1) r(x,2)\ns2 T: r(x,1)")
	if err != nil {
		t.Fatal(err)
	}
	x := []string{"x"}
	both := []verdict.TxnID{0, 1}
	v := verdict.Violation{Kind: verdict.Unsatisfiable, Level: verdict.SER, Read: -1, Txns: both, Evidence: both,
		Exhibits: []verdict.Exhibit{{Txn: 0, Writes: x}, {Txn: 1, Reads: x}}}
	a, err := alerts.New(v, context(s, verdict.SER))
	if err != nil {
		t.Fatal(err)
	}
	want := "s1 U unknown: w(x,1) r(x,2)\ns2 T: r(x,1)\n"
	if got := script.Format(script.Script{Txns: recheck(t, a)}); got != want {
		t.Errorf("evidence\n%swant\n%s", got, want)
	}
}

// A read of which the writer may still come is no part of a proof, where its transaction read the key before and that
// is one: nobody is there yet who wrote x = 9, and others may have written null.
func TestReadsThatAreOpenAreNoEvidence(t *testing.T) {
	for _, open := range []string{"9", "null"} {
		s, err := script.Parse(`
			initial absent
			s0 T1: w(x,1) w(b,1) w(y,5) @0-10
			s1 D: w(y,null) w(x,null) @0-20
			s1 T2: w(a,1) w(x,2) @20-30
			s2 R2: r(b,1) r(y,null) @50-100
			s3 R1: r(a,1) r(x,1) r(x,` + open + `) @60-200`)
		if err != nil {
			t.Fatal(err)
		}
		e := incremental.New(incremental.Options{Online: true, UniqueValues: true, Assumptions: record.Assumptions{UnseenUnique: new(true), Initial: record.InitialAbsent, Coverage: record.CoverageComplete}, Levels: []verdict.Level{verdict.RC}, MaxTransaction: 50})
		for i := range s.Txns {
			e.Step(&s.Txns[i], s.Txns[i].End)
		}
		told := append(e.Tick(201).Violations, e.Solve(true).Violations...)
		for _, v := range told {
			ctx := context(s, verdict.RC)
			ctx.Judge, ctx.Find = engineJudge, engineFind
			a, err := alerts.New(v, ctx)
			if err != nil {
				t.Fatalf("%v of %+v", err, v)
			}
			for _, x := range recheck(t, a) {
				if slices.ContainsFunc(x.Ops, func(op record.Op) bool { return op.Key == "x" && op.Value.String() == open }) {
					t.Errorf("%s is told with a read of x = %s, of which the writer may come\n%s", a.Name, open, a.Explanation)
				}
			}
		}
		if len(told) == 0 {
			t.Error("nothing is told")
		}
	}
}

// What the engine was reminded of late, key by key, is one transaction in the evidence, and stands in its session where it
// was.
func TestEvidenceOfWhatCameToMindLate(t *testing.T) {
	txn := func(session string, seq, start int64, ops ...record.Op) record.Transaction {
		return record.Transaction{DB: record.DefaultDB, Session: session, Seq: seq, HasSeq: true, ID: fmt.Sprintf("%s#%d", session, seq), Start: start, End: start + 10, HasTimes: true, Ops: ops}
	}
	r := func(key string, value int64) record.Op {
		return record.Op{Kind: record.Read, Key: key, Value: record.Int(value)}
	}
	w := func(key string, value int64) record.Op {
		return record.Op{Kind: record.Write, Key: key, Value: record.Int(value)}
	}
	txns := []record.Transaction{
		txn("a", 1, 0, w("x", 1)),
		txn("a", 2, 200, r("y", 1), w("x", 2)),
		txn("a", 1, 0, w("y", 1)),
		txn("b", 1, 201, r("x", 1), w("y", 2)),
	}
	v := verdict.Violation{Kind: verdict.Unsatisfiable, Level: verdict.SER, Read: -1, Txns: []verdict.TxnID{1, 3}, Evidence: []verdict.TxnID{0, 1, 2, 3}}
	ctx := alerts.Context{DB: record.DefaultDB, Levels: []verdict.Level{verdict.SI, verdict.SER}, Assumptions: record.Assumptions{Coverage: record.CoveragePartial}, Lookup: alerttest.Lookup(txns), Judge: engineJudge, Find: engineFind}
	a, err := alerts.New(v, ctx)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, x := range recheck(t, a) {
		got = append(got, fmt.Sprint(x.ID, " ", len(x.Ops)))
	}
	if want := []string{"a#1 2", "a#2 2", "b#1 2"}; a.Name != "write-skew" || a.Level != "ser" || !slices.Equal(got, want) {
		t.Errorf("%s at %s, by %v, not write-skew at ser by %v\n%s", a.Name, a.Level, got, want, a.Explanation)
	}
}

// A clock that stepped back orders nothing in a part of the history either, where the
// transaction of the session that shows it is not there: of a proper history with such clocks
// no evidence can be made, whatever part of it is taken for a violation.
func TestSteppedClocksOrderNothingInAPart(t *testing.T) {
	asked, stepped := 0, 0
	for seed := range uint64(4000) {
		rng := rand.New(rand.NewPCG(seed, 57))
		s := tiny.Random(rng, tiny.Config{Txns: 7, Times: true, Keys: 2, Sessions: 3})
		if len(s.Txns) == 0 || !s.Txns[0].HasTimes {
			continue
		}
		for i := range s.Txns {
			if x := &s.Txns[i]; rng.IntN(3) == 0 {
				x.Start -= rng.Int64N(30)
				x.End = x.Start + rng.Int64N(x.End-x.Start+1)
			}
		}
		v := verdict.Violation{Kind: verdict.Unsatisfiable, Level: verdict.SSER, Read: -1, ClockDependent: true}
		type clock struct{ start, end int64 }
		last := map[string]clock{}
		for i := range s.Txns {
			x, id := &s.Txns[i], verdict.TxnID(i)
			if was, ok := last[x.Session]; ok && (x.Start < was.start || x.End < was.end) {
				v.Untimed = append(v.Untimed, id)
			} else {
				last[x.Session] = clock{x.Start, x.End}
			}
			if rng.IntN(3) > 0 {
				v.Evidence = append(v.Evidence, id)
			}
		}
		if len(v.Evidence) == 0 || engineJudge(v.Level, s.Header, s.Txns) != verdict.Satisfied {
			continue
		}
		v.Untimed = slices.DeleteFunc(v.Untimed, func(id verdict.TxnID) bool { return !slices.Contains(v.Evidence, id) })
		stepped += len(v.Untimed)
		v.Txns = v.Evidence[:1]
		ctx := context(s, v.Level)
		ctx.Coverage = record.CoveragePartial // it is a part
		ctx.Judge = func(l verdict.Level, h record.Header, txns []record.Transaction) verdict.Outcome {
			asked++
			if engineJudge(l, h, txns) == verdict.Violated {
				t.Fatalf("seed %d: %v holds in\n%sbut not in its part\n%s", seed, l, script.Format(s), script.Format(script.Script{Header: h, Txns: txns}))
			}
			return []verdict.Outcome{verdict.Violated, verdict.Satisfied}[rng.IntN(2)]
		}
		_, _ = alerts.New(v, ctx) // the judge's answers are random
	}
	if asked < 2000 || stepped < 300 {
		t.Errorf("the judge was asked %d times, of parts with %d clocks that stepped back", asked, stepped)
	}
}
