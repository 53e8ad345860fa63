package codec

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/reject"
)

// What is wrong with an event of the world is said with its field.
func TestWorldEventErrors(t *testing.T) {
	for _, c := range []struct {
		in, field string
		reason    reject.Reason
	}{
		{`{"event":{"at":5,"text":"x"}}`, "", reject.None},
		{` { "event" : {"text":"x","at":5,"node":"pg-2","kind":"failover","db":"shop"} } `, "", reject.None},
		{`{"event":{"at":5,"text":"x","node":null,"kind":null,"db":null}}`, "", reject.None},
		{`{"event":{"text":"x"}}`, "event.at", reject.MissingField},
		{`{"event":{"at":5}}`, "event.text", reject.MissingField},
		{`{"event":{"at":5,"text":""}}`, "event.text", reject.EmptyName},
		{`{"event":{"at":"5","text":"x"}}`, "event.at", reject.WrongType},
		{`{"event":{"at":-5,"text":"x"}}`, "event.at", reject.Negative},
		{`{"event":{"at":9223372036854775808,"text":"x"}}`, "event.at", reject.OutOfRange},
		{`{"event":{"at":5,"text":"x","at":6}}`, "event.at", reject.DuplicateField},
		{`{"event":{"at":5,"text":"x","who":"me"}}`, "event.who", reject.UnknownField},
		{`{"event":{"at":5,"text":"x"},"session":"s"}`, "session", reject.UnknownField},
		{`{"event":{"at":5,"text":"x"},"event":{}}`, "event", reject.DuplicateField},
		{`{"event":{"at":5,"text":"x","db":"a\u0000"}}`, "event.db", reject.NulInName},
		{`{"event":{"at":5,"text":"` + strings.Repeat("x", record.EventTextMax+1) + `"}}`, "event.text", reject.TooLarge},
		{`{"event":{"at":5,"text":"x","node":"` + strings.Repeat("x", record.EventNameMax+1) + `"}}`, "event.node", reject.TooLarge},
		{"{\"event\":{\"at\":5,\"text\":\"\xff\"}}", "event.text", reject.InvalidUTF8},
		{`{"event":{"at":5,"text":"x"}`, "", reject.BadJSON},
		{`{"event":{"at":5,"text":"x"}} {}`, "", reject.BadJSON},
	} {
		if !IsWorldEvent([]byte(c.in)) {
			t.Errorf("%s: not recognised", c.in)
		}
		_, err := DecodeWorldEvent([]byte(c.in), 0)
		switch e := reject.From(err); {
		case c.reason == reject.None && err != nil:
			t.Errorf("%s: %v", c.in, err)
		case c.reason != reject.None && (e == nil || e.Field != c.field || e.Reason != c.reason):
			t.Errorf("%s: %v, want %s in %q", c.in, err, c.reason, c.field)
		}
	}
	for _, other := range []string{`{"event":"begin","session":"s","txn":"t"}`, `{"session":"s","event":{}}`, `{"event"`, `{`, ``, `[]`, `{"history":{}}`} {
		if IsWorldEvent([]byte(other)) {
			t.Errorf("%s: recognised", other)
		}
	}
}

// DecodeWorldEvent never panics, names a reason, and what it accepts is written back and read again as the
// same.
func FuzzWorldEvent(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Add([]byte(`{"event":{"at":1732160000123456789,"db":"shop","node":"pg-2","kind":"failover","text":"became \"primary\"\n"}}`))
	f.Add([]byte(`{"event":{"at":-1,"text":"\ud800"}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		e, err := DecodeWorldEvent(in, 0)
		if err != nil {
			if r := reject.From(err); r == nil || r.Reason == reject.None || r.Detail == "" {
				t.Fatalf("an error without a reason: %v", err)
			}
			return
		}
		if !IsWorldEvent(in) && in[0] == '{' && !strings.Contains(string(in), `\`) {
			t.Fatalf("accepted, and not recognised")
		}
		text := AppendWorldEvent(nil, &e)
		if back, err := DecodeWorldEvent(text, 0); err != nil || back != e || !json.Valid(text) || !IsWorldEvent(text) {
			t.Fatalf("written as %s: %v, %+v, want %+v", text, err, back, e)
		}
	})
}
