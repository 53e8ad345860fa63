package record_test

import (
	"testing"

	"github.com/isowatch/isowatch/ingest/record"
)

// Is takes what Element would, and nothing else: not the beginning of a number, nor a name as it is without escapes.
func TestRest(t *testing.T) {
	object := record.Value{Kind: record.KindObject, Text: `{"a\\":12,"b":[1,"x"],"c":{}}`}
	for _, tc := range []struct {
		text string
		is   bool
		left int
	}{
		{`"a\\"`, true, 5}, {`"a\"`, false, 6}, {`"a`, false, 6}, {`"a\\":12`, true, 4}, {`"a\\":1`, false, 6},
		{`"a\\":12,"b":[1,"x"],"c":{}`, true, 0}, {`"a\\":12,"b":[1,"x"],"c":{}}`, false, 6},
	} {
		rest := object.Inside(record.KindObject)
		if is := rest.Is(tc.text); is != tc.is {
			t.Errorf("%s: %v", tc.text, is)
		}
		n := 0
		for ; !rest.Ended(); n++ {
			rest.Element()
		}
		if n != tc.left {
			t.Errorf("%s: %d are left, not %d", tc.text, n, tc.left)
		}
	}
	for _, v := range []record.Value{{Kind: record.KindList, Text: `["a",1]`}, record.Null, record.String("[1]")} {
		if rest := v.Inside(record.KindObject); !rest.Ended() {
			t.Errorf("%v is no object", v)
		}
	}
}
