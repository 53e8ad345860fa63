package app

import (
	"testing"

	"github.com/isowatch/isowatch/ingest/record"
)

// A record that names itself by neither id nor seq is recognised by what it says,
// if it has times; what differs in anything is another record.
func TestContentID(t *testing.T) {
	a := record.Transaction{DB: "d", Session: "s", Start: 1, End: 2, HasTimes: true,
		Ops: []record.Op{{Kind: record.Read, Key: "x", Value: record.Int(1)}}}
	b, c, d := a, a, a
	c.End = 3
	d.Ops = []record.Op{{Kind: record.Read, Key: "x", Value: record.Int(2)}}
	if contentID(&a) != contentID(&b) {
		t.Error("the same record has two ids")
	}
	if contentID(&a) == contentID(&c) || contentID(&a) == contentID(&d) {
		t.Error("different records have one id")
	}
}
