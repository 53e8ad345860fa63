package codec

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/record/packed"
	"github.com/isowatch/isowatch/ingest/reject"
)

var seeds = []string{
	`{"db":"orders","session":"api-3/7","seq":42,"id":"api-3/7#42","start":1732160000123456789,"end":1732160000125000000,"status":"committed","ops":[["r","acct:1",100],["w","acct:1",90],["append","feed:9",17],["r","feed:9",[3,17]]]}`,
	`{"session":"s","status":"unknown","ops":[["rp",{"table":"t","where":["==",{"column":"v"},"a\u0000"]},{}]]}`,
	`{"session":"s","status":"unknown","ops":[["rp",{"table":"t","where":"v1 >= 10"},{"t:7":{"v1":12}}],["wp",{"table":"t","where":"v == 2"},{"set":{"v":3}}]]}`,
	`{"session":"s\u00e9\n","seq":null,"status":"aborted","ops":[["w","k",{"b":[1.50,-0,1e400,"\ud83d\ude00"],"a":null,"c":{"x":true,"w":false}}]]}`,
	`{"session":"s","start":2,"end":1,"status":"committed","ops":[]}`,
	`{"session":"s","status":"committed","ops":[["r","k"]]}`,
	`{"session":"s","status":"committed","ops":[["r","k",{"a":1,"a":1}]],"x":0}`,
	"{\"session\":\"\xff\",\"status\":\"committed\",\"ops\":[]}",
	`{"history":{"initial":"zero","max_skew":"5ms"}}`,
}

// Decode never panics; what it accepts is JSON, is written back and read again
// as the same; and it agrees with the twin, which knows the format from the
// documentation and JSON from the standard library.
func FuzzDecode(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	shared := New(Options{NamesMax: 1})
	f.Fuzz(func(t *testing.T, in []byte) {
		before := slices.Clone(in)
		var got record.Transaction
		err := Decode(in, &got)
		if !bytes.Equal(before, in) {
			t.Fatal("the input was changed")
		}
		if err != nil {
			if e := reject.From(err); e == nil || e.Reason == reject.None || e.Detail == "" {
				t.Fatalf("an error without a reason: %v", err)
			}
		}
		want, wantErr := twin(in)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("Decode says %v, the twin %v", err, wantErr)
		}
		var again record.Transaction
		if errAgain := shared.Decode(in, &again); (errAgain == nil) != (err == nil) || !cmp.Equal(again, got) {
			t.Fatalf("a used decoder says %+v, %v, a new one %+v, %v", again, errAgain, got, err)
		}
		if err != nil {
			return
		}
		if !cmp.Equal(want, got) {
			t.Fatal(cmp.Diff(want, got))
		}
		text := AppendJSON(nil, &got)
		if !json.Valid(text) {
			t.Fatalf("written as %s, which is no JSON", text)
		}
		var back record.Transaction
		if err := Decode(text, &back); err != nil || !cmp.Equal(got, back) {
			t.Fatalf("written as %s: %v\n%s", text, err, cmp.Diff(got, back))
		}
		if b := AppendJSON(nil, &back); !bytes.Equal(b, text) {
			t.Fatalf("written as %s, then as %s", text, b)
		}
	})
}

// Pack does to each line what Decode and Add do: the same errors, the same
// records. The lines share a chunk, so that what one leaves behind would show in
// another.
func FuzzPack(f *testing.F) {
	f.Add([]byte(strings.Join(seeds, "\n")))
	var all []byte
	for _, s := range packSeeds {
		f.Add([]byte(s))
		all = append(append(all, s...), '\n')
	}
	f.Add(all)
	f.Fuzz(func(t *testing.T, in []byte) { comparePack(t, bytes.Split(in, []byte("\n"))) })
}

// packSeeds are records as AppendJSON writes them, and nearly.
var packSeeds = func() (out []string) {
	const whole = `{"db":"d","session":"s","seq":1,"id":"s#1","start":3,"end":7,"status":"committed","ops":[["r","k",1],["w","a longer key:17",12345678],["r","k",null],["append","l",-5],["r","l",[3,17]],["w","k2",99999999999]]}`
	out = append(out, whole)
	for _, change := range [][2]string{
		{`"db":"d",`, ``}, {`"db":"d",`, `"db":null,`}, {`"db":"d"`, `"db":""`}, {`"db":"d"`, `"db":"\u0064"`}, {`"db":"d"`, `"db":"é"`},
		{`"seq":1,`, ``}, {`"seq":1,`, `"seq":-1,`}, {`"seq":1,`, `"seq":-0,`}, {`"seq":1,`, `"seq":01,`}, {`"seq":1,`, `"seq":1.0,`}, {`"seq":1,`, `"seq":9223372036854775808,`},
		{`"id":"s#1",`, ``}, {`"s#1"`, `"s#01"`}, {`"s#1"`, `"s1"`}, {`"s#1"`, `"S#1"`}, {`"s#1"`, `"s#2"`}, {`"s#1"`, `"#1"`}, {`"s#1"`, `""`},
		{`"start":3,"end":7,`, ``}, {`"end":7`, `"end":2`}, {`"end":7,`, ``}, {`"start":3,`, ``}, {`"start":3`, `"start":1732160000123456789`}, {`"end":7`, `"end":1732160000123456789`},
		{`committed`, `aborted`}, {`committed`, `unknown`}, {`committed`, `lost`},
		{`1],`, `1],,`}, {`,1]`, `,1 ]`}, {`,1]`, `, 1]`}, {`,1]`, `,01]`}, {`,1]`, `,0]`}, {`,1]`, `,1,1]`}, {`,1]`, `,]`}, {`,1]`, `]`}, {`,1]`, `,1e3]`}, {`,1]`, `,-9223372036854775808]`},
		{`"k",1`, `"",1`}, {`"k",1`, `"\"",1`}, {`"k",1`, "\"\x00\",1"}, {`"k",1`, "\"\xff\",1"}, {`"k",1`, "\"k\x7f\",1"}, {`"k",1`, `"12345678",1`}, {`"k",1`, `"1234567\\",1`},
		{`null]`, `nul]`}, {`null]`, `nulll]`}, {`["r","k"`, `["q","k"`}, {`["r","k"`, `[ "r","k"`}, {`["r","k"`, `["rp","k"`},
		{`"ops":[`, `"ops":[]`}, {`]}`, `]} `}, {`]}`, `],"ops":[]}`}, {`]}`, `]`}, {`]}`, ``}, {`]}`, `]}}`}, {`{"db"`, ` {"db"`},
	} {
		out = append(out, strings.Replace(whole, change[0], change[1], 1))
	}
	return append(out, whole, `{"session":"s","status":"committed","ops":[]}`)
}()

// The seeds of FuzzPack, each alone, as a table.
func TestPackAgreesWithDecode(t *testing.T) {
	for _, s := range packSeeds {
		comparePack(t, [][]byte{[]byte(s)})
	}
}

func comparePack(t *testing.T, lines [][]byte) {
	t.Helper()
	var chunk packed.Chunk
	var want []record.Transaction
	d := New(Options{NamesMax: 1})
	for _, line := range lines {
		var one record.Transaction
		wantErr := Decode(line, &one)
		err := d.Pack(line, &chunk)
		if !cmp.Equal(reject.From(err), reject.From(wantErr)) {
			t.Fatalf("%s: Pack says %v, Decode %v", line, err, wantErr)
		}
		if err == nil {
			want = append(want, one)
		}
	}
	var b packed.Builder
	b.Append(chunk.Part())
	got := b.Records()
	if all := got.Transactions(); len(want) > 0 && !cmp.Equal(all, want) {
		t.Fatal(cmp.Diff(want, all))
	}
	if sum := packed.Of(want).Summary(); got.Summary() != sum {
		t.Fatalf("packed %+v, then summed up as %+v", got.Summary(), sum)
	}
}

// Eight bytes at a time see what one byte at a time does.
func FuzzWord(f *testing.F) {
	f.Add([]byte("12345678"))
	f.Add([]byte(`1 "]\x7f\x80\x1f`))
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) < 8 {
			return
		}
		w := binary.LittleEndian.Uint64(in)
		plain, number := 0, 0
		for plain < 8 && plainByte[in[plain]] {
			plain++
		}
		for number < 8 && isDigit(in[number]) {
			number++
		}
		if plainBytes(w) != plain || leadingDigits(w) != number {
			t.Fatalf("%q: %d plain bytes and %d digits, not %d and %d", in[:8], plainBytes(w), leadingDigits(w), plain, number)
		}
		if number == 0 {
			return
		}
		if want, err := strconv.ParseUint(string(in[:number]), 10, 64); err != nil || eightDigits(w<<(64-8*number)) != want {
			t.Fatalf("%q is %d: %v", in[:number], eightDigits(w<<(64-8*number)), err)
		}
	})
}

// A value means what the standard library and big.Rat say it means.
func FuzzParseValue(f *testing.F) {
	for _, s := range []string{`1.0`, `-0`, `15e-1`, `123456789012345678901234567890`, `1e-30`, `0.000e9`, `"\u0061"`, `[1,{"b":2,"a":[]}]`, `1e999999999999999`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		got, err := ParseValue(in)
		want, wantErr := twinValue(in)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("ParseValue says %v, the twin %v", err, wantErr)
		}
		if err != nil {
			return
		}
		if got != want {
			t.Fatalf("%s is %+v, the twin says %+v", in, got, want)
		}
		if back, err := ParseValue(got.AppendJSON(nil)); err != nil || back != got {
			t.Fatalf("%s is written as %s, which is %+v, %v", in, got, back, err)
		}
	})
}

// A header that is accepted is written and read back; nothing panics.
func FuzzDecodeHeader(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Add([]byte(`{"history":{"initial":"any","sessions":"ignore","clock":"prune","max_skew":17,"coverage":"complete"}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		h, err := DecodeHeader(in)
		if err != nil {
			return
		}
		if !json.Valid(in) || !IsHeader(in) {
			t.Fatalf("accepted, valid JSON: %v, a header: %v", json.Valid(in), IsHeader(in))
		}
		back, err := DecodeHeader(AppendHeader(nil, &h))
		if err != nil || !cmp.Equal(h, back) {
			t.Fatalf("written as %s: %v", AppendHeader(nil, &h), err)
		}
	})
}

// The twin: slow, simple, and without a line in common with the decoder.

// Parsed JSON is one of nil, bool, json.Number, string, []any, fields.
type fields []field
type field struct {
	name  string
	value any
}

var errTwin = errors.New("refused")

func refuseIf(bad bool) error {
	if bad {
		return errTwin
	}
	return nil
}

// parseTree parses one JSON text and nothing else, with fields in their order.
func parseTree(in []byte) (any, error) {
	if !json.Valid(in) || !utf8.Valid(in) || loneSurrogate(in) {
		return nil, errTwin
	}
	dec := json.NewDecoder(bytes.NewReader(in))
	dec.UseNumber()
	v, err := parseNode(dec)
	if err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errTwin
	}
	return v, nil
}

func parseNode(dec *json.Decoder) (any, error) {
	tok, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch tok {
	case json.Delim('['):
		list := []any{}
		for dec.More() {
			v, err := parseNode(dec)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := dec.Token()
		return list, err
	case json.Delim('{'):
		obj := fields{}
		for dec.More() {
			name, err := dec.Token()
			if err != nil {
				return nil, err
			}
			v, err := parseNode(dec)
			if err != nil {
				return nil, err
			}
			obj = append(obj, field{name.(string), v})
		}
		_, err := dec.Token()
		return obj, err
	}
	return tok, nil
}

// loneSurrogate looks for half a pair among the escapes of valid JSON.
func loneSurrogate(in []byte) bool {
	high := false // the escape just before was the first half
	for i := 0; i < len(in); i++ {
		if in[i] != '\\' {
			if high {
				return true
			}
			continue
		}
		i++
		if in[i] != 'u' {
			if high {
				return true
			}
			continue
		}
		n, _ := strconv.ParseUint(string(in[i+1:i+5]), 16, 16)
		i += 4
		low := n >= 0xdc00 && n < 0xe000
		if low != high {
			return true
		}
		high = n >= 0xd800 && n < 0xdc00
	}
	return high
}

func twin(in []byte) (t record.Transaction, err error) {
	tree, err := parseTree(in)
	if err != nil {
		return t, err
	}
	obj, ok := tree.(fields)
	if !ok {
		return t, errTwin
	}
	return twinOf(obj)
}

// twinOf is the record that an object says.
func twinOf(obj fields) (t record.Transaction, err error) {
	get := map[string]any{}
	for _, f := range obj {
		if _, twice := get[f.name]; twice {
			return t, errTwin
		}
		get[f.name] = f.value
	}
	known := []string{"db", "session", "seq", "id", "start", "end", "status", "ops"}
	for name := range get {
		if !slices.Contains(known, name) {
			return t, errTwin
		}
	}
	str := func(name, absent string) string {
		s, ok := get[name].(string)
		if get[name] == nil && absent != "" {
			return absent
		}
		if !ok || s == "" || name != "id" && strings.ContainsRune(s, 0) {
			err = errTwin
		}
		return s
	}
	num := func(name string) (int64, bool) {
		if get[name] == nil {
			return 0, false
		}
		text, _ := get[name].(json.Number)
		n, bad := strconv.ParseInt(text.String(), 10, 64)
		if bad != nil || n < 0 {
			err = errTwin
		}
		return n, true
	}
	const none = "\x00none"
	t.DB, t.Session, t.ID = str("db", "default"), str("session", ""), str("id", none)
	var hasStart, hasEnd bool
	t.Seq, t.HasSeq = num("seq")
	t.Start, hasStart = num("start")
	t.End, hasEnd = num("end")
	t.HasTimes = hasStart
	if t.ID == none {
		if t.ID = ""; t.HasSeq {
			t.ID = t.Session + "#" + strconv.FormatInt(t.Seq, 10)
		}
	}
	status, ok := parseStatus(str("status", ""))
	t.Status = status
	ops, isList := get["ops"].([]any)
	if err != nil || !ok || !isList || hasStart != hasEnd || t.End < t.Start {
		return t, errTwin
	}
	for _, o := range ops {
		op, err := twinOp(o)
		if err != nil {
			return t, err
		}
		t.Ops = append(t.Ops, op)
	}
	return t, nil
}

func twinOp(o any) (op record.Op, err error) {
	parts, ok := o.([]any)
	if !ok || len(parts) != 3 {
		return op, errTwin
	}
	kind, _ := parts[0].(string)
	if op.Kind, ok = record.ParseOpKind(kind); !ok {
		return op, errTwin
	}
	if op.Value, err = canonicalTwin(parts[2]); err != nil {
		return op, err
	}
	if op.Kind < record.PredicateRead {
		op.Key, _ = parts[1].(string)
		return op, refuseIf(op.Key == "")
	}
	predicate, _ := parts[1].(fields)
	if len(predicate) != 2 || op.Value.Kind != record.KindObject {
		return op, errTwin
	}
	for _, f := range predicate {
		s, _ := f.value.(string)
		switch f.name {
		case "table":
			op.Key = s
		case "where":
			if op.Where = s; s == "" {
				if v, err := canonicalTwin(f.value); err == nil && v.Kind == record.KindList {
					op.Where = v.Text
				}
			}
		}
	}
	return op, refuseIf(op.Key == "" || op.Where == "")
}

func twinValue(in []byte) (record.Value, error) {
	tree, err := parseTree(in)
	if err != nil {
		return record.Value{}, err
	}
	return canonicalTwin(tree)
}

func canonicalTwin(v any) (record.Value, error) {
	switch v := v.(type) {
	case nil:
		return record.Null, nil
	case bool:
		return record.Value{Kind: record.KindBool, Text: strconv.FormatBool(v)}, nil
	case string:
		return record.String(v), nil
	case json.Number:
		text, err := twinNumber(v.String())
		if n, bad := strconv.ParseInt(text, 10, 64); bad == nil {
			return record.Int(n), err
		}
		return record.Value{Kind: record.KindNumber, Text: text}, err
	}
	text, err := twinText(v, 1)
	kind := record.KindList
	if _, ok := v.(fields); ok {
		kind = record.KindObject
	}
	return record.Value{Kind: kind, Text: text}, err
}

func twinText(v any, depth int) (string, error) {
	var parts []string
	switch v := v.(type) {
	case []any:
		if depth > DepthMax {
			return "", errTwin
		}
		for _, e := range v {
			s, err := twinText(e, depth+1)
			if err != nil {
				return "", err
			}
			parts = append(parts, s)
		}
		return "[" + strings.Join(parts, ",") + "]", nil
	case fields:
		if depth > DepthMax {
			return "", errTwin
		}
		text := map[string]string{}
		for _, f := range v {
			s, err := twinText(f.value, depth+1)
			if err != nil {
				return "", err
			}
			name := record.String(f.name).String()
			if _, twice := text[name]; twice {
				return "", errTwin
			}
			text[name] = s
			parts = append(parts, name)
		}
		slices.SortFunc(parts, func(a, b string) int { return strings.Compare(a[1:len(a)-1], b[1:len(b)-1]) })
		for i, name := range parts {
			parts[i] = name + ":" + text[name]
		}
		return "{" + strings.Join(parts, ",") + "}", nil
	}
	value, err := canonicalTwin(v)
	return value.String(), err
}

// twinNumber writes a number by exact arithmetic where its exponent allows.
func twinNumber(s string) (string, error) {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(s), "e")
	zero := strings.Trim(mantissa, "-0.") == ""
	e := new(big.Int)
	if exponent != "" {
		e.SetString(exponent, 10)
	}
	if zero {
		return "0", nil
	}
	// As D × 10^(point - len(D)).
	whole, fraction, _ := strings.Cut(strings.TrimPrefix(mantissa, "-"), ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	point := new(big.Int).Add(e, big.NewInt(int64(len(digits)-len(fraction))))
	digits = strings.TrimRight(digits, "0")
	if point.CmpAbs(big.NewInt(pointMax)) > 0 {
		return "", errTwin
	}
	p, n := point.Int64(), int64(len(digits))
	sign := ""
	if mantissa[0] == '-' {
		sign = "-"
	}
	if p >= n && p-n <= 20 || p > 0 && p < n || p <= 0 && p >= -20 {
		r, _ := new(big.Rat).SetString(s)
		text := r.FloatString(int(max(0, n-p)))
		return text, nil
	}
	if n > 1 {
		digits = digits[:1] + "." + digits[1:]
	}
	return sign + digits + "e" + strconv.FormatInt(p-1, 10), nil
}

// parseStatus is the inverse of Status.String.
func parseStatus(s string) (status record.Status, ok bool) {
	for status := range record.Unknown + 1 {
		if status.String() == s {
			return status, true
		}
	}
	return 0, false
}
