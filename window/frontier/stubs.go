package frontier

import (
	"slices"
	"strconv"

	"github.com/isowatch/isowatch/ingest/record"
)

// place is where a version lies, while stubs are put together.
type place struct {
	number uint64
	key    string
	ref    Ref
	raw    []byte
}

// All are the stubs of all keys, what is left of their writers with their writes of them, in the order of Number, if
// these are in memory and at most max, and never took more than WideBytes; else it answers false.
//
// A stub that is given to an engine after a later record of its session must go
// there as a session of its own, since the engine takes the order of a session
// from the order in which it gets its transactions.
//
// Cost: O(v log v) for v versions.
func (f *Frontier) All(max int) ([]Stub, bool) {
	if f.gone || f.wide || f.table.count > max {
		return nil, false
	}
	places := make([]place, 0, f.versions)
	for slot := range f.table.slots {
		if e := f.table.at(slot); e.flags&flagLive != 0 {
			places = appendPlaces(places, slot, f.table.body(e))
		}
	}
	return f.stubsOf(places), true
}

func appendPlaces(places []place, slot uint32, body []byte) []place {
	if body[1] == 0 {
		return places
	}
	return appendVersions(places, string(keyOf(body)), Ref(slot), body)
}

// appendVersions appends the places of the versions of a key.
func appendVersions(places []place, key string, r Ref, body []byte) []place {
	for versions := versionsOf(body); versions.Len() > 0; {
		raw := versions.Bytes()
		v, _ := parse(raw)
		places = append(places, place{v.number, key, r, raw})
	}
	return places
}

// stubsOf puts the versions of each transaction together.
func (f *Frontier) stubsOf(places []place) []Stub {
	slices.SortFunc(places, byNumber)
	var out []Stub
	for i := range places {
		p := &places[i]
		if i > 0 && places[i-1].number == p.number && places[i-1].key == p.key {
			continue // asked for twice
		}
		v, _ := parse(p.raw)
		if len(out) == 0 || out[len(out)-1].Number != p.number {
			out = append(out, f.stubOf(&v))
		}
		t := &out[len(out)-1].Txn
		t.Ops = appendOps(t.Ops, p)
	}
	return out
}

// stubOf is a version's transaction, still without operations.
func (f *Frontier) stubOf(v *version) Stub {
	t := f.writerOf(v, nil)
	t.Session = string(v.session)
	if t.ID = string(v.id); v.flags&versionID == 0 {
		t.ID = t.Session + "#" + strconv.FormatInt(v.seq, 10)
	}
	return Stub{Txn: t, Number: v.number, Arrival: v.end}
}

// writerOf is a version's transaction but for its session and ID.
func (f *Frontier) writerOf(v *version, ops []record.Op) record.Transaction {
	t := record.Transaction{DB: f.opt.DB, Seq: v.seq, HasSeq: v.flags&versionSeq != 0, HasTimes: v.timed(), Ops: ops}
	if t.HasTimes {
		t.Start, t.End = v.start, v.end
	}
	if !v.committed() {
		t.Status = record.Unknown
	}
	return t
}
