package deliver

import (
	"encoding/json"
	"fmt"

	"github.com/isowatch/isowatch/alerts/text"
)

// withoutEvidence is a notice without what makes it long, and with
// "truncated":true; the stored alert has all of it.
func withoutEvidence(body []byte) ([]byte, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, fmt.Errorf("the notice can't be read, and is given up: %w", err)
	}
	if fields == nil {
		fields = map[string]json.RawMessage{}
	}
	fields["evidence"] = json.RawMessage("[]")
	fields["truncated"] = json.RawMessage("true")
	for _, long := range []string{"explanation", "cycle", "cases", "transactions"} {
		if len(fields[long]) > plainMax {
			delete(fields, long)
		}
	}
	return encode(fields), nil
}

// merged is a JSON object with some fields replaced; nil takes one away.
func merged(body []byte, fields map[string]any) []byte {
	all := map[string]any{}
	var before map[string]json.RawMessage
	if json.Unmarshal(body, &before) == nil {
		for name, value := range before {
			all[name] = value
		}
	}
	for name, value := range fields {
		if all[name] = value; value == nil {
			delete(all, name)
		}
	}
	return encode(all)
}

// plainMax bounds a part of a notice without evidence, in bytes.
const plainMax = 64 << 10

// encode is v as JSON on one line, without markup escapes.
func encode(v any) []byte {
	b, err := text.JSON(v)
	if err != nil {
		panic("can't happen, because what is sent is made of text, numbers and JSON that was read: " + err.Error())
	}
	return b
}
