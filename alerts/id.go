package alerts

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/incremental/verdict"
)

// idBytes is the length of an id before it is written in hexadecimal: 128 bits
// can't collide by chance.
const idBytes = 16

// identifier knows transactions by the ids of their records.
type identifier struct{ lookup name.Lookup }

// of is a transaction's id; empty for no transaction.
func (i identifier) of(id verdict.TxnID) string {
	if id == verdict.NoTxn {
		return ""
	}
	if r, ok := i.lookup.Find(id); ok {
		return r.ID
	}
	return fmt.Sprintf("#%d", id)
}

// alert is the id of an alert: a hash of the database, the weakest configured
// level that is broken, the name, and the canonical form. Every part is
// preceded by its length, so that no two lists of parts have the same bytes.
func (i identifier) alert(db, level string, n name.Name, v verdict.Violation) string {
	h := sha256.New()
	for _, part := range append([]string{db, level, n.Name}, i.canonical(v, n)...) {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(part)))
		h.Write(n[:])
		h.Write([]byte(part))
	}
	return hex.EncodeToString(h.Sum(nil)[:idBytes])
}

// canonical is what makes an anomaly this one and not another, whatever the
// engine met first:
//
//   - a cycle: the ids around it, starting so that the list is the least; if it
//     is woven of several missed writes, the ids of all of these in order;
//   - a divergence: its two overwriters in order, which is what they are as a
//     cycle;
//   - a read: the reader, the key, what it read, and then the other
//     transactions in order;
//   - a key read twice, as a cycle or not: the reader, the key, and the first other
//     value that it read;
//   - two lists that contradict each other: the key, and their readers in order;
//   - no possible order: the ids in order.
func (i identifier) canonical(v verdict.Violation, n name.Name) []string {
	if reader, key, value, ok := name.Repeated(v, n, i.lookup); ok {
		return []string{i.of(reader), key, value.String()}
	}
	switch v.Kind {
	case verdict.Cycle:
		if txns, ok := name.Woven(v, n); ok {
			ids := make([]string, len(txns))
			for j, t := range txns {
				ids[j] = i.of(t)
			}
			slices.Sort(ids)
			return ids
		}
		ids := make([]string, len(v.Cycle))
		for j, e := range v.Cycle {
			ids[j] = i.of(e.From)
		}
		return leastRotation(ids)
	case verdict.Divergence:
		if a, b, ok := name.Overwriters(v, i.lookup); ok {
			return leastRotation([]string{i.of(a), i.of(b)})
		}
	}
	ids := make([]string, len(v.Txns))
	for j, t := range v.Txns {
		ids[j] = i.of(t)
	}
	if v.Kind == verdict.Unsatisfiable || len(ids) == 0 {
		slices.Sort(ids)
		return ids
	}
	if v.Kind == verdict.IncompatibleOrder {
		slices.Sort(ids)
		return append([]string{v.Key}, ids...)
	}
	slices.Sort(ids[1:])
	read := ""
	if at := name.Read(v, i.lookup); at >= 0 {
		r, _ := i.lookup.Find(v.Txns[0])
		read = r.Ops[at].Value.String()
	}
	return append([]string{ids[0], v.Key, read}, ids[1:]...)
}

// leastRotation is the rotation of ids that comes first in order. Ids are
// mostly different, so that comparing is quick: linear in practice.
func leastRotation(ids []string) []string {
	best := ids
	for j := 1; j < len(ids); j++ {
		if ids[j] > best[0] {
			continue
		}
		r := slices.Concat(ids[j:], ids[:j])
		if slices.Compare(r, best) < 0 {
			best = r
		}
	}
	return best
}
