package alerts

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/isowatch/isowatch/alerts/text"
	"github.com/isowatch/isowatch/alerts/veil"
	"github.com/isowatch/isowatch/incremental/verdict"
)

// NewWithin is New with an alert whose JSON form has at most so many bytes, which are at
// least WithinMin. What makes it larger is given in other words, which it says at the end
// of its explanation: first all long keys and values by their hashes, with which the
// evidence proves the same (unless Veil hides all of them anyway); if that is not enough,
// there is no evidence, and no more of the cycle, of cases and of the explanation than
// fits. Id, name and transactions are the same, though of very many not all are named.
func NewWithin(v verdict.Violation, ctx Context, most int) (Alert, error) {
	a, err := New(v, ctx)
	size := len(a.JSON())
	if size <= most {
		return a, err
	}
	if ctx.Veil.Mode() == veil.Full {
		ctx.Veil = veil.New(veil.Long, nil)
		a, err = New(v, ctx)
		a.Explanation = strings.TrimRight(a.Explanation,
			"\n") + fmt.Sprintf("\n\nWith its data as it was recorded this alert would have %d bytes, more than the %d that "+
			"are kept. So each key and value of %d bytes or more is given by its hash, in all that is said here and in the "+
			"evidence, which proves the same. The data itself is in the input.", size, most, veil.LongMin)
		if size = len(a.JSON()); size <= most {
			return a, err
		}
	}
	return a.cut(size, most), err
}

// WithinMin is the least that NewWithin can be held to.
const WithinMin = 1 << 20

// The limits of an alert that is still too large: of cycles and transactions, how many are
// named, of texts how many bytes. A byte may take six in JSON: all of it is less than
// WithinMin.
const (
	cutEdges = 64
	cutTxns  = 256
	cutText  = 32 << 10
	cutShort = 128 // of each key, id and sentence of these
)

// cut is an alert without evidence, and with bounded parts.
func (a Alert) cut(size, most int) Alert {
	records := max(len(a.Evidence)-1, 0)
	left := fmt.Sprintf("\n\nThis alert would have %d bytes, more than the %d that are kept. So its evidence (%d "+
		"transactions) is left out, and what is said here is shortened; there are %d transactions in it, and %d steps in "+
		"its cycle. The records are in the input: give them to monitor check.",
		size, most, records, len(a.Transactions), len(a.Cycle))
	a.Evidence, a.Cases = []json.RawMessage{}, nil
	a.Explanation = strings.Replace(a.Explanation, "\n\n"+maySmaller, "", 1) // there is none
	a.Summary = text.Cut(a.Summary, cutText)
	a.Explanation = strings.TrimRight(text.Cut(a.Explanation, cutText), "\n") + left
	txns := make([]string, 0, cutTxns)
	for _, id := range a.Transactions[:min(len(a.Transactions), cutTxns)] {
		txns = append(txns, text.Cut(id, cutShort))
	}
	a.Transactions = txns
	keys := make([]string, len(a.Keys))
	for i, k := range a.Keys {
		keys[i] = text.Cut(k, cutShort)
	}
	a.Keys = keys
	cycle := make([]Edge, 0, cutEdges)
	for _, e := range a.Cycle[:min(len(a.Cycle), cutEdges)] {
		e.From, e.To, e.Key, e.Why = text.Cut(e.From, cutShort), text.Cut(e.To, cutShort), text.Cut(e.Key, cutShort),
			text.Cut(e.Why, cutShort)
		cycle = append(cycle, e)
	}
	a.Cycle = cycle
	return a
}
