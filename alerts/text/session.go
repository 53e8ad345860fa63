package text

import "github.com/isowatch/isowatch/ingest/record"

// Session is whose transaction t is, and where it ran if that is known: api-3/7 at db-2.
func Session(t *record.Transaction) string {
	if t.Node == "" {
		return Name(t.Session)
	}
	return Name(t.Session) + " at " + Name(t.Node)
}
