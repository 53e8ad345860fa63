package certfile

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
)

// Describe counts and digests a history. Its digest is the SHA-256 of its records
// as canonical JSON lines, but for what changes no verdict, sessions in the order of their names' bytes and each
// session's transactions in session order; how sessions are interleaved in the
// input does not matter.
func Describe(txns []record.Transaction) Records {
	bySession := map[string][]int{}
	out := Records{Transactions: len(txns)}
	for n := range txns {
		bySession[txns[n].Session] = append(bySession[txns[n].Session], n)
		out.Operations += len(txns[n].Ops)
	}
	names := make([]string, 0, len(bySession))
	for s := range bySession {
		names = append(names, s)
	}
	slices.Sort(names)
	out.Sessions = len(names)
	h := sha256.New()
	var line []byte
	for _, s := range names {
		for _, n := range bySession[s] {
			t := txns[n]
			t.Node, t.Statements, t.XID = "", "", ""
			line = append(codec.AppendJSON(line[:0], &t), '\n')
			h.Write(line)
		}
	}
	out.SHA256 = hex.EncodeToString(h.Sum(nil))
	return out
}
