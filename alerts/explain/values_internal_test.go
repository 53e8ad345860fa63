package explain

import (
	"testing"

	"github.com/isowatch/isowatch/ingest/record"
)

// Of two long lists that one sentence tells what differs is in it.
func TestTwoLists(t *testing.T) {
	read := func(elements string) fact {
		return fact{op: record.Op{Kind: record.Read, Key: "x", Value: record.Value{Kind: record.KindList, Text: elements}}, known: true}
	}
	const begin = "[1000001,1000002,1000003,1000004,1000005,1000006,1000007,1000008,1000009"
	first, then := values(read(begin+",1000010]"), read(begin+",1000011,1000012]"))
	if first != "[…, 1000008, 1000009, 1000010] (10 elements)" || then != "[…, 1000008, 1000009, 1000011, 1000012] (11 elements)" {
		t.Errorf("first %s, then %s", first, then)
	}
}
