package history

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/reject"
)

// TimeKiller's JSON: one array, in no order of time but in session order per sid, of
//
//	{"tid":7,"sid":3,"sts":{"p":17,"l":0},"cts":{"p":18,"l":2},"ops":[{"t":"w","k":1,"v":5}]}
//
// All are committed. There are two formats, alike but for their operations: keys
// and values (w, r), and lists (a, r). The first of these that is not a read of what
// nobody wrote tells which it is.
//
// # The clock
//
// sts and cts are the database's own timestamps, of a hybrid clock: p, then l. They
// order everything, so they become numbers by their rank, which fit an int64
// whatever p and l are. A snapshot at sts has in it what committed at cts <= sts: at
// equal timestamps the commit comes first. So the order of events is that of
// (p, l, commit before start), and dense ranks of those are Start and End. Then
// End(A) < Start(B), strictly, says exactly that A's commit stands before B's
// snapshot, also at equal timestamps: they are instants of one clock (record.ClockDatabase). A commit at its own start
// (sts = cts, a read-only transaction) can't stand before that start, as no transaction ends before it
// begins: it takes the rank of the start, and so precedes nothing that starts at
// that timestamp. That claims less than the tool would, never more: two such
// transactions at one timestamp would each precede the other.
//
// # The initial state
//
// What an unwritten key holds is an option of the tool and not in the file: null, unless it
// says 0. A read of null is one of the initial state under either reading of the file. If
// there is none, and 0 is read from a key to which nobody writes 0, then 0 is what unwritten
// keys hold: else that read would be out of thin air in a history that never saw an
// unwritten key. If both are read, null is the initial state and the 0 is thin air.

const (
	timekillerKV   = "timekiller-kv-json"
	timekillerList = "timekiller-list-json"
)

var (
	looksArray       = begins(`^\s*\[\s*\{`)
	timekillerFields = regexp.MustCompile(`"(tid|sid|sts|cts|ops|type)"\s*:`)
)

// looksTimekiller tells whether an input is one of the two.
func looksTimekiller(head []byte) bool {
	known := map[string]bool{}
	for _, m := range timekillerFields.FindAllSubmatch(head, -1) {
		known[string(m[1])] = true
	}
	return looksArray(head) && (len(known) > 1 || len(known) == 1 && len(head) == headMax) && !known["type"]
}

type timekiller struct {
	builder
	*forms
	decoder *codec.Decoder
	format  string // "" as long as it is open which it is
	txns    []record.Transaction
	clocks  [][2]codec.Timestamp // of txns: start, commit
	ids     map[string]bool
	seqs    map[string]int // how many transactions a session has
}

func readTimekillerKV(in *input) ([]History, error)   { return readTimekiller(in, timekillerKV) }
func readTimekillerList(in *input) ([]History, error) { return readTimekiller(in, timekillerList) }

func readTimekiller(in *input, format string) ([]History, error) {
	k := &timekiller{builder: newBuilder(), forms: newForms(in, in.r, true), decoder: codec.New(codec.Options{}),
		format: format, ids: map[string]bool{}, seqs: map[string]int{}}
	if in.opt.Format == Auto {
		k.format = "" // what follows says it
	}
	k.what = "history"
	k.keep = true
	k.elements("an array of transactions", func(int) {
		if _, ok := k.forms.value(0); ok {
			k.transaction(bytes.TrimLeft(k.raw, ", \t\r\n"))
		}
	})
	if k.end(); k.err != nil {
		return nil, k.err
	}
	k.rank()
	k.format = cmp.Or(k.format, format)
	h, err := k.made(in.name, k.format, timekillerInitial(k.txns), k.txns, noTransaction)
	h.Header.Clock = new(record.ClockDatabase)
	return one(h, err)
}

// timekillerForm is how an element of the array is read, here and in a stream.
var timekillerForm = codec.TimeKiller(1)

// transaction takes in one element of the array.
func (k *timekiller) transaction(raw []byte) {
	v, err := k.decoder.Value(raw)
	if err != nil {
		k.refuse(reject.From(err))
		return
	}
	var t record.Transaction
	start, commit, bad := timekillerForm.Record(v, &t)
	switch {
	case bad != nil:
		k.refuse(bad)
		return
	case k.ids[t.ID]:
		k.refuse(reject.In("tid", reject.DuplicateID, "another transaction has the tid %.80q too", t.ID))
	case compare(start, commit) > 0:
		k.refuse(reject.In("cts", reject.TimeBackwards, "transaction %.80s commits before it starts", t.ID))
	}
	k.ops = k.ops[:0]
	for i := 0; i < len(t.Ops) && k.err == nil; i++ {
		k.operation(t.Ops[i])
		k.under(fmt.Sprintf("ops[%d]", i))
	}
	id, session := strings.Clone(t.ID), k.intern(t.Session)
	k.ids[id] = true
	k.seqs[session]++
	txn := k.builder.transaction(session, k.seqs[session], record.Committed)
	txn.ID, txn.HasTimes = id, true
	k.txns = append(k.txns, txn)
	k.clocks = append(k.clocks, [2]codec.Timestamp{start, commit})
}

func compare(c, d codec.Timestamp) int { return cmp.Or(cmp.Compare(c.P, d.P), cmp.Compare(c.L, d.L)) }

// settle makes the format what an operation says it is, in a field.
func (k *timekiller) settle(format, field, what string) {
	k.format = cmp.Or(k.format, format)
	if k.format != format {
		k.refuse(reject.In(field, reject.BadStructure, "%s does not belong into %s: the history is of %s", what, k.format,
			format))
	}
}

// operation takes in one operation, which says of which format the history is.
func (k *timekiller) operation(o record.Op) {
	switch {
	case o.Kind == record.Write:
		k.settle(timekillerKV, "t", "a write")
	case o.Kind == record.Append:
		k.settle(timekillerList, "t", "an append")
	case o.Value.Kind == record.KindList:
		k.settle(timekillerList, "v", "a read of a list")
	case !o.Value.IsNull():
		k.settle(timekillerKV, "v", "a read of a single value")
	}
	o.Key, o.Value.Text = k.intern(o.Key), k.texts.String([]byte(o.Value.Text))
	k.ops = append(k.ops, o)
}

// instant is a timestamp of a kind: of commits, then of starts.
type instant struct {
	codec.Timestamp
	start bool
}

func (e instant) compare(f instant) int {
	if c := compare(e.Timestamp, f.Timestamp); c != 0 || e.start == f.start {
		return c
	}
	if e.start {
		return 1
	}
	return -1
}

// rank makes Start and End of the timestamps; see above.
func (k *timekiller) rank() {
	events := make([]instant, 0, 2*len(k.txns))
	for _, c := range k.clocks {
		events = append(events, instant{c[0], true}, instant{c[1], c[0] == c[1]})
	}
	slices.SortFunc(events, instant.compare)
	events = slices.Compact(events)
	for i := range k.txns {
		start, _ := slices.BinarySearchFunc(events, instant{k.clocks[i][0], true}, instant.compare)
		end, _ := slices.BinarySearchFunc(events, instant{k.clocks[i][1], k.clocks[i][0] == k.clocks[i][1]}, instant.compare)
		k.txns[i].Start, k.txns[i].End = int64(start)+1, int64(end)+1
	}
}

// timekillerInitial finds what unwritten keys hold; see above.
func timekillerInitial(txns []record.Transaction) record.Initial {
	written := committedZeros(txns) // all have committed
	initial := record.InitialAbsent
	for i := range txns {
		for _, op := range txns[i].Ops {
			switch {
			case op.Kind != record.Read:
			case op.Value.IsNull():
				return record.InitialAbsent
			case op.Value == record.Int(0) && !written[op.Key]:
				initial = record.InitialZero
			}
		}
	}
	return initial
}
