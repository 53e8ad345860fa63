package alerts

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/alerts/shrink"
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
)

// suspicion is all that New needs to make an alert of an anomaly, as it is stored.
type suspicion struct {
	Violation verdict.Violation `json:"violation"`
	Levels    []string          `json:"levels"`
	Header    json.RawMessage   `json:"header"` // what the engine assumed
	OneKey    bool              `json:"one_key,omitempty"`
	// Transactions are the engine's numbers of Records, which are the whole ones.
	Transactions []verdict.TxnID   `json:"transactions"`
	Records      []json.RawMessage `json:"records"`
}

// suspicionTxns bounds the transactions of a suspicion that is kept.
const suspicionTxns = 256

// ErrLarge is returned by Suspect where too much would have to be kept.
var ErrLarge = errors.New("what proves the anomaly is too much to be kept")

// Suspect keeps of an anomaly what is needed to make an alert of it when somebody asks for one:
// Explained then gives what New, in the same context, would give now. Nothing is judged, so that it takes
// some microseconds for each of its records. It has an id of its own: that of the alert is known only when there is
// one. The data is hidden as the context's veil asks.
//
// The error is ErrLarge, or says that a record is no longer there.
func Suspect(v verdict.Violation, ctx Context) (Alert, error) {
	ids := slices.Concat(v.Evidence, v.Txns)
	for _, c := range append([][]verdict.Edge{v.Cycle}, v.Cases...) {
		eachEdge(c, func(e verdict.Edge) { ids = append(ids, e.From, e.To) })
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	if len(ids) > suspicionTxns {
		return Alert{}, ErrLarge
	}
	n := name.Of(name.Plain(v, ctx.Lookup), ctx.Lookup, ctx.asked())
	id := identifier{lookup: ctx.Lookup}.alert(ctx.DB, "suspicion at ", n, v)
	hidden := ctx.Veil.Alert(ctx.Initial, ctx.Tables)
	h := header(v, ctx, ctx.Coverage, hidden.Tables())
	h.Clock = &ctx.Clock
	h.UniqueValues = new(!ctx.UnseenRepeat())
	s := suspicion{Violation: hidden.Violation(v), Levels: verdict.Names(ctx.Levels), Header: codec.AppendHeader(nil, &h),
		OneKey: ctx.OneKey}
	for _, id := range ids {
		r, ok := ctx.Lookup.Find(id)
		if !ok {
			continue // as for New
		}
		s.Transactions = append(s.Transactions, id)
		s.Records = append(s.Records, codec.AppendJSON(nil, hidden.Transaction(r)))
	}
	kept, err := json.Marshal(s)
	if err != nil {
		return Alert{}, err
	}
	a := begun(id, n, s.Violation, ctx)
	a.Weakest, a.Holds, a.State = n.Weakest.String(), verdict.Names(n.Holds()), Suspected
	a.Summary = "One more of its kind, which is explained when it is looked at."
	a.Cycle, a.Evidence, a.Suspicion = []Edge{}, []json.RawMessage{}, kept
	return a, nil
}

// Explained is the alert of what Suspect kept: the same, with the same id, as if it had been made when the
// anomaly was found. Its JSON form has at most so many bytes, see NewWithin. Any other alert is itself. The error is
// as New has it; the alert is usable all the same.
func (a Alert) Explained(judge shrink.Judge, find Finder, budget Budget, most int) (Alert, error) {
	if len(a.Suspicion) == 0 {
		return a, nil
	}
	var s suspicion
	if err := json.Unmarshal(a.Suspicion, &s); err != nil {
		return a, fmt.Errorf("alert %s: what was kept of it: %w", a.ID, err)
	}
	h, err := codec.DecodeHeader(s.Header)
	if err != nil {
		return a, fmt.Errorf("alert %s: what was kept of it: %w", a.ID, err)
	}
	records := map[verdict.TxnID]*record.Transaction{}
	for i, id := range s.Transactions {
		var t record.Transaction
		if err := codec.Decode(s.Records[i], &t); err != nil {
			return a, fmt.Errorf("alert %s: record %d of what was kept of it: %w", a.ID, i, err)
		}
		records[id] = &t
	}
	ctx := Context{DB: a.DB, Assumptions: record.Assumptions{}.Override(h), OneKey: s.OneKey,
		Judge: judge, Find: find, Budget: budget, Now: a.FirstSeen,
		Lookup: func(id verdict.TxnID) (*record.Transaction, bool) { t, ok := records[id]; return t, ok }}
	for _, text := range s.Levels {
		if l, ok := verdict.ParseLevel(text); ok {
			ctx.Levels = append(ctx.Levels, l)
		}
	}
	out, err := NewWithin(s.Violation, ctx, most)
	out.Group, out.At, out.Links = a.Group, a.At, a.Links
	if a.Values != "" {
		out.Values = a.Values
	}
	if err != nil {
		out.Explanation += "\n\n" + err.Error()
	}
	return out, err
}
