package alerts

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/isowatch/isowatch/alerts/name"
	"github.com/isowatch/isowatch/incremental/verdict"
)

// IDBytes is the length of an id before it is written in hexadecimal: 128 bits
// can't collide by chance.
const IDBytes = 16

// Hash is an id of what some parts say. Every part is preceded by its length, so that no two
// lists of parts have the same bytes.
func Hash(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		h.Write([]byte(p))
	}
	return hex.EncodeToString(h.Sum(nil)[:IDBytes])
}

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

// alert is the id of an alert: a hash of the database, what it is, the weakest configured
// levels that are broken (none of which implies another), the name, and the canonical form.
func (i identifier) alert(db, what string, n name.Name, v verdict.Violation) string {
	weakest := slices.DeleteFunc(slices.Clone(n.Breaks), func(l verdict.Level) bool {
		return slices.ContainsFunc(n.Breaks, func(m verdict.Level) bool { return l != m && l.Implies(m) })
	})
	return Hash(append([]string{db, what + strings.Join(verdict.Names(weakest), " "), n.Name}, i.canonical(v, n)...)...)
}

// canonical is what makes an anomaly this one and not another, whatever the
// engine met first:
//
//   - a cycle: the ids around it, starting so that the list is the least; if it
//     is woven of several missed writes, the ids of all of these in order;
//   - a divergence: its two overwriters in order, which is what they are as a
//     cycle;
//   - a read: the reader, and then the other transactions in order;
//   - a key read twice, as a cycle or not: the reader;
//   - two lists that contradict each other: their readers in order;
//   - no possible order: the ids in order.
//
// Keys and values are no part of it. The hash has no secret, as the id of an anomaly is
// the same with every monitor: who has the rest of an alert whose data is hidden could try
// all balances until one fits. Places of operations would not do in their stead: they are
// others in what is left of a forgotten transaction, and in evidence.
func (i identifier) canonical(v verdict.Violation, n name.Name) []string {
	if reader, _, ok := name.Repeated(v, n, i.lookup); ok {
		return []string{i.of(reader)}
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
	if v.Kind == verdict.Unsatisfiable || v.Kind == verdict.IncompatibleOrder || len(ids) == 0 {
		slices.Sort(ids)
		return ids
	}
	slices.Sort(ids[1:])
	return ids
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
