package history

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/reject"
	"github.com/isowatch/isowatch/internal/lab/race"
)

// essence draws what verdicts depend on: sessions, outcomes, and which value of
// which key an operation has, whatever keys, values and sessions are called.
// "i" is what a key held first, as planned says of whole, of which h is all or a part.
func essence(h, whole *History, appends bool) string {
	// Without appends a list is a value like any other.
	w := &writer{h: whole, txns: whole.Transactions, spec: spec{lists: appends, scalars: true}, lists: listsOf(whole)}
	order, sessions := sessionOrder(h)
	keys, values := map[string]int{}, map[record.Cell]int{}
	name := func(key string, v record.Value) string {
		if _, known := values[record.Cell{Key: key, Value: v}]; !known {
			values[record.Cell{Key: key, Value: v}] = len(values)
		}
		return fmt.Sprint("v", values[record.Cell{Key: key, Value: v}])
	}
	var b strings.Builder
	for _, s := range order {
		b.WriteString("--\n")
		for _, i := range sessions[s] {
			t := &h.Transactions[i]
			fmt.Fprint(&b, t.Status)
			for _, op := range t.Ops {
				if _, known := keys[op.Key]; !known {
					keys[op.Key] = len(keys)
				}
				items, err := w.items(0, 0, op)
				fmt.Fprintf(&b, " %s(k%d", op.Kind, keys[op.Key])
				switch {
				case w.isInitialOp(op):
					b.WriteString(",i")
				case err != nil:
					panic(err)
				default:
					for _, v := range items {
						b.WriteString("," + name(op.Key, v))
					}
				}
				b.WriteString(")")
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// planned has the reads of h marked that are of an initial state that the header does
// not say; h where that can't be known, which only our own records say.
func planned(t testing.TB, h *History) *History {
	t.Helper()
	w := &writer{h: h, txns: h.Transactions}
	if w.planInitial() != nil {
		return h
	}
	out := *h
	out.Transactions = w.txns
	return &out
}

// listsOf has the keys that somebody appends to.
func listsOf(h *History) map[string]bool {
	lists := map[string]bool{}
	for _, t := range h.Transactions {
		for _, op := range t.Ops {
			lists[op.Key] = lists[op.Key] || op.Kind == record.Append
		}
	}
	return lists
}

func appends(h *History) bool {
	return slices.ContainsFunc(h.Transactions, func(t record.Transaction) bool {
		return slices.ContainsFunc(t.Ops, func(op record.Op) bool { return op.Kind == record.Append })
	})
}

// sessionOrder lists sessions by their numbers, if all have one, else as they appear,
// and the places of their transactions.
func sessionOrder(h *History) (order []string, sessions map[string][]int) {
	sessions = map[string][]int{}
	numeric := true
	for i, t := range h.Transactions {
		name := t.Session
		if h.Header.Sessions != nil && *h.Header.Sessions == record.SessionsIgnore {
			name = fmt.Sprint("s", i)
		}
		if _, known := sessions[name]; !known {
			order = append(order, name)
			_, err := strconv.Atoi(strings.TrimLeft(name, "sp"))
			numeric = numeric && err == nil
		}
		sessions[name] = append(sessions[name], i)
	}
	if numeric {
		sort.SliceStable(order, func(a, b int) bool {
			x, _ := strconv.Atoi(strings.TrimLeft(order[a], "sp"))
			y, _ := strconv.Atoi(strings.TrimLeft(order[b], "sp"))
			return x < y
		})
	}
	return order, sessions
}

// before draws which transactions ended before which began, in the order of sessions.
func before(h *History) string {
	var all []*record.Transaction
	order, sessions := sessionOrder(h)
	for _, s := range order {
		for _, i := range sessions[s] {
			all = append(all, &h.Transactions[i])
		}
	}
	skew := int64(0)
	if h.Header.MaxSkew != nil {
		skew = *h.Header.MaxSkew
	}
	var b strings.Builder
	for i, x := range all {
		for j, y := range all {
			if x.Session != y.Session && x.Status != record.Unknown && x.End+skew < y.Start {
				fmt.Fprint(&b, i, "<", j, " ")
			}
		}
	}
	return b.String()
}

func rewrite(t testing.TB, h *History, opt WriteOptions) (*History, []string, error) {
	t.Helper()
	var b, again bytes.Buffer
	notes, err := Write(&b, h, opt)
	if err != nil {
		return nil, nil, err
	}
	if _, err := Write(&again, h, opt); err != nil || !bytes.Equal(b.Bytes(), again.Bytes()) {
		t.Fatalf("written twice, it is not the same: %v", err)
	}
	for _, format := range []string{Auto, opt.Format} {
		hs, err := Read("h", bytes.NewReader(b.Bytes()), Options{Format: format})
		if err != nil || len(hs) != 1 || hs[0].Format != opt.Format {
			t.Fatalf("what was written as %s can't be read: %v\n%.2000s", opt.Format, err, b.Bytes())
		}
		checkInvariants(t, hs[0])
		if format == opt.Format {
			return &hs[0], notes, nil
		}
	}
	panic("can't happen, because the last format is that one")
}

// randomHistory makes a small history of random reads and writes: what it says
// need not be possible.
func randomHistory(r *rand.Rand) *History {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	initial := record.Initial(r.IntN(3))
	h := &History{DB: record.DefaultDB, Format: isowatchFormat, Header: record.Header{Initial: &initial}}
	if r.IntN(4) == 0 {
		ignore := record.SessionsIgnore
		h.Header.Sessions = &ignore
	}
	if r.IntN(4) == 0 {
		skew := int64(r.IntN(3))
		h.Header.MaxSkew = &skew
	}
	lists, timed, spread := r.IntN(3) == 0, r.IntN(2) == 0, 1+r.IntN(30)
	single, keys := r.IntN(4) == 0, 1+r.IntN(3) // one operation a transaction, or a read and a write
	aborts, unknowns := r.IntN(3) == 0, r.IntN(3) == 0
	sessionStyle, keyStyle, valueStyle := pick("s%d", "api/%d", "%d", "p%d"), pick("%d", "k%d", ":k%d", "\"%d", "é %d\n"), r.IntN(4)
	next := 0
	value := func(fresh bool) record.Value {
		n := next
		if fresh {
			next++
		} else {
			n = r.IntN(next + 2)
		}
		switch valueStyle {
		case 0:
			return record.Int(int64(n) + 1)
		case 1:
			return record.Int(int64(r.IntN(4)) - 1)
		case 2:
			return record.String(fmt.Sprintf(pick(":v%d", "v%d", "%d", "\"%d\""), n))
		}
		if n%5 == 4 {
			return record.Null
		}
		return record.Value{Kind: record.KindNumber, Text: fmt.Sprint(uint64(1)<<63 + uint64(n))}
	}
	clocks := map[string]int64{}
	seqs := map[string]int64{}
	for i := range 1 + r.IntN(12) {
		s := fmt.Sprintf(sessionStyle, 1+r.IntN(4))
		seqs[s]++
		t := record.Transaction{DB: h.DB, Session: s, Seq: seqs[s], HasSeq: true, ID: fmt.Sprintf("t%d", 3*i+1)}
		if timed {
			t.HasTimes = true
			t.Start = clocks[s] + int64(r.IntN(spread))
			t.End = t.Start + int64(r.IntN(spread))
			clocks[s] = t.End + int64(r.IntN(2))
		}
		if aborts && r.IntN(4) == 0 {
			t.Status = record.Aborted
		}
		if unknowns && r.IntN(5) == 0 {
			t.Status = record.Unknown
		}
		count, swap := 1+r.IntN(4), single && r.IntN(3) == 0
		key := fmt.Sprintf(keyStyle, r.IntN(keys))
		if single {
			count = either(swap, 2, 1)
		}
		for n := range count {
			if !single {
				key = fmt.Sprintf(keyStyle, r.IntN(keys))
			}
			op := record.Op{Key: key, Kind: record.OpKind(r.IntN(2))}
			if swap {
				op.Kind = record.OpKind(n) // record.Read, then record.Write
			}
			switch {
			case lists && op.Kind == record.Write:
				op.Kind, op.Value = record.Append, record.Int(int64(i))
			case lists && r.IntN(2) == 0:
				op.Value = record.Value{Kind: record.KindList, Text: fmt.Sprintf("[%d,%d]", r.IntN(12), r.IntN(12))}
			case lists:
			case op.Kind == record.Read && r.IntN(3) == 0 && initial == record.InitialZero:
				op.Value = record.Int(0)
			case op.Kind == record.Read && r.IntN(3) == 0:
			default:
				op.Value = value(op.Kind == record.Write)
			}
			t.Ops = append(t.Ops, op)
		}
		h.Transactions = append(h.Transactions, t)
	}
	return h
}

// without removes what a format leaves out, as its notes say.
func without(h *History, opt WriteOptions) *History {
	out := *h
	out.Transactions = nil
	for _, t := range h.Transactions {
		if t.Status == record.Aborted && opt.DropAborted && !find(opt.Format).aborted {
			continue
		}
		if opt.Format == polysiFormat && t.Status == record.Aborted {
			t.Ops = slices.DeleteFunc(slices.Clone(t.Ops), func(op record.Op) bool { return op.Kind == record.Read })
			if len(t.Ops) == 0 {
				continue
			}
		}
		if strings.HasPrefix(opt.Format, "jepsen") && t.Status != record.Committed {
			t.Ops = slices.DeleteFunc(slices.Clone(t.Ops), func(op record.Op) bool {
				w := &writer{h: h, lists: listsOf(h)}
				return op.Kind == record.Read && w.isInitialOp(op)
			})
		}
		if strings.HasPrefix(opt.Format, "porcupine") && t.Status != record.Committed && len(t.Ops) == 1 && t.Ops[0].Kind == record.Read {
			t.Ops = nil
		}
		out.Transactions = append(out.Transactions, t)
	}
	return &out
}

// timedFor is a history whose times are the database's own, where a format has no others.
func timedFor(h *History, format string) *History {
	if find(format).times != timesAlways {
		return h
	}
	database, out := record.ClockDatabase, *h
	out.Header.Clock = &database
	return &out
}

// Written in any format and read again, a history is what it was, or it is
// refused with a reason and a place.
func TestWriteRandom(t *testing.T) {
	rounds := race.Few(60, 500)
	written, refused := map[string]int{}, map[string]int{}
	for seed := range uint64(rounds) {
		r := rand.New(rand.NewPCG(seed, 7))
		drawn := randomHistory(r)
		for _, format := range WrittenFormats() {
			h := timedFor(drawn, format)
			opt := WriteOptions{Format: format, DropAborted: r.IntN(2) == 0, DropTimes: r.IntN(8) == 0}
			got, notes, err := rewrite(t, h, opt)
			if err != nil {
				if e := reject.From(err); e == nil || e.Reason != reject.Unsupported && e.Reason != reject.EmptyInput || e.Detail == "" {
					t.Fatalf("seed %d, %s: %v", seed, format, err)
				}
				refused[format]++
				continue
			}
			written[format]++
			whole := planned(t, h)
			want := without(whole, opt)
			merged := format == polysiFormat && slices.ContainsFunc(h.Transactions, func(t record.Transaction) bool { return t.Status == record.Aborted })
			if diff := cmp.Diff(essence(want, whole, appends(h)), essence(planned(t, got), got, appends(h))); diff != "" && !merged {
				t.Fatalf("seed %d, %s: %v\n%s\n%s\n%s", seed, format, notes, draw(*h), draw(*got), diff)
			}
			timed := find(format).times != timesNone && h.Transactions[0].HasTimes && !opt.DropTimes
			if timed && h.Header.Sessions == nil {
				if diff := cmp.Diff(before(want), before(got)); diff != "" {
					t.Fatalf("seed %d, %s: %v\n%s\n%s\n%s", seed, format, notes, draw(*h), draw(*got), diff)
				}
			}
		}
	}
	for _, format := range WrittenFormats() {
		t.Logf("%-20s %d written, %d refused", format, written[format], refused[format])
		if written[format] < rounds/50 {
			t.Errorf("%s: only %d were written", format, written[format])
		}
	}
}

// Every file of the corpus (of the large ones some), written in its own format, is what it was.
func TestWriteCorpus(t *testing.T) {
	dir := corpus(t)
	tested := map[string]int{}
	for _, m := range manifest(t, dir) {
		if find(m.Format) == nil || m.Format == isowatchFormat && m.Txns > 20_000 {
			continue
		}
		if m.Ops > race.Few(2_000, 50_000) && tested[m.Format] >= race.Few(2, 20) {
			continue // enough of the large ones
		}
		hs, err := Open(filepath.Join(dir, m.File), Options{})
		if e := reject.From(err); e != nil && (e.Reason == reject.Unsupported || e.Reason == reject.EmptyInput) {
			continue // no record can say it
		}
		if err != nil {
			t.Fatal(err)
		}
		h := &hs[0]
		if find(m.Format).write == nil { // it is only read
			m.Format = isowatchFormat
		}
		var b bytes.Buffer
		// In one session of all that names no process clocks step back.
		if _, err := Write(&b, h, WriteOptions{Format: m.Format, DropTimes: h.Header.Sessions != nil}); err != nil {
			t.Errorf("%s: %v", m.File, err)
			continue
		}
		again, err := Read(m.File, &b, Options{})
		if err != nil || len(again) != 1 || again[0].Format != m.Format {
			t.Errorf("%s: what was written can't be read: %v", m.File, err)
			continue
		}
		got := &again[0]
		checkInvariants(t, *got)
		tested[m.Format]++
		if strings.HasPrefix(m.Format, "jepsen") || strings.HasPrefix(m.Format, "porcupine") {
			if diff := cmp.Diff(essence(without(planned(t, h), WriteOptions{Format: m.Format}), planned(t, h), appends(h)), essence(planned(t, got), got, appends(h))); diff != "" {
				t.Errorf("%s: %.3000s", m.File, diff)
			}
			if len(h.Transactions) < 500 && h.Header.Sessions == nil && before(h) != before(got) {
				t.Errorf("%s: other order in time", m.File)
			}
			continue
		}
		if !slices.EqualFunc(h.Transactions, got.Transactions, func(a, b record.Transaction) bool { return codec.Equal(&a, &b) }) ||
			!bytes.Equal(codec.AppendHeader(nil, &h.Header), codec.AppendHeader(nil, &got.Header)) || h.DB != got.DB {
			t.Errorf("%s: %.3000s", m.File, cmp.Diff(draw(*h), draw(*got)))
		}
	}
	t.Log(tested)
}

// Whatever a record says, what is written can be read.
func FuzzWrite(f *testing.F) {
	for _, b := range testdata(f, "isowatch") {
		f.Add(b)
	}
	for seed := range uint64(20) {
		var b bytes.Buffer
		if _, err := Write(&b, randomHistory(rand.New(rand.NewPCG(seed, 9))), WriteOptions{Format: isowatchFormat}); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		hs, err := Read("h", bytes.NewReader(in), Options{Format: isowatchFormat, SizeMax: 1 << 16, RecordMax: 1 << 14})
		if err != nil {
			return
		}
		for _, format := range WrittenFormats() {
			var b bytes.Buffer
			if _, err := Write(&b, &hs[0], WriteOptions{Format: format}); err != nil {
				if reject.From(err) == nil {
					t.Fatalf("%s: an error without reason: %v", format, err)
				}
				continue
			}
			again, err := Read("h", bytes.NewReader(b.Bytes()), Options{Format: format})
			if err != nil || len(again) != 1 {
				t.Fatalf("%s can't be read: %v\n%s", format, err, b.Bytes())
			}
			checkInvariants(t, again[0])
		}
	})
}
