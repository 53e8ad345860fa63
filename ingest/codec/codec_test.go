package codec

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/reject"
)

func mustDecode(t *testing.T, s string) record.Transaction {
	t.Helper()
	var txn record.Transaction
	if err := Decode([]byte(s), &txn); err != nil {
		t.Fatalf("%s\n%v", s, err)
	}
	return txn
}

func list(text string) record.Value   { return record.Value{Kind: record.KindList, Text: text} }
func object(text string) record.Value { return record.Value{Kind: record.KindObject, Text: text} }
func number(text string) record.Value { return record.Value{Kind: record.KindNumber, Text: text} }

func TestDecode(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     record.Transaction
	}{
		{
			"the example of the documentation",
			`{"db":"orders","session":"api-3/7","seq":42,"id":"api-3/7#42","start":1732160000123456789,"end":1732160000125000000,
			 "status":"committed","ops":[["r","acct:1",100],["w","acct:1",90],["append","feed:9",17],["r","feed:9",[3,17]]]}`,
			record.Transaction{DB: "orders", Session: "api-3/7", Seq: 42, HasSeq: true, ID: "api-3/7#42",
				Start: 1732160000123456789, End: 1732160000125000000, HasTimes: true, Status: record.Committed,
				Ops: []record.Op{
					{Kind: record.Read, Key: "acct:1", Value: record.Int(100)},
					{Kind: record.Write, Key: "acct:1", Value: record.Int(90)},
					{Kind: record.Append, Key: "feed:9", Value: record.Int(17)},
					{Kind: record.Read, Key: "feed:9", Value: list("[3,17]")},
				}},
		},
		{
			"predicates",
			`{"session":"s","status":"unknown","ops":[["rp",{"table":"t","where":"v1 >= 10 && v1 < 20"},{"t:7":{"v1":12}}],["wp",{"where":"v == 2","table":"t"},{"set":{"v":3}}]]}`,
			record.Transaction{DB: "default", Session: "s", Status: record.Unknown, Ops: []record.Op{
				{Kind: record.PredicateRead, Key: "t", Where: "v1 >= 10 && v1 < 20", Value: object(`{"t:7":{"v1":12}}`)},
				{Kind: record.PredicateWrite, Key: "t", Where: "v == 2", Value: object(`{"set":{"v":3}}`)},
			}},
		},
		{
			"a condition as a tree",
			`{"session":"s","status":"unknown","ops":[["rp",{"table":"t","where":["<", {"column": "v"},1.0]},{}]]}`,
			record.Transaction{DB: "default", Session: "s", Status: record.Unknown, Ops: []record.Op{
				{Kind: record.PredicateRead, Key: "t", Where: `["<",{"column":"v"},1]`, Value: object(`{}`)},
			}},
		},
		{
			"no id, but session and seq",
			`{"session":"a/b","seq":7,"status":"aborted","ops":[]}`,
			record.Transaction{DB: "default", Session: "a/b", Seq: 7, HasSeq: true, ID: "a/b#7", Status: record.Aborted},
		},
		{
			"where the database's log has it",
			`{"session":"s","status":"committed","xid":"735","ops":[["w","k",1]],"lsn":26842696}`,
			record.Transaction{DB: "default", Session: "s", XID: "735", LSN: 26842696, Ops: []record.Op{{Kind: record.Write, Key: "k", Value: record.Int(1)}}},
		},
		{
			"null is not given",
			`{"db":null,"session":"s","seq":null,"id":null,"start":null,"end":null,"status":"committed","ops":[]}`,
			record.Transaction{DB: "default", Session: "s"},
		},
		{
			"blanks everywhere, escapes in names",
			" \r\n\t{ \"\\u0073ession\" : \"\\u00e9\\ud83d\\ude00\\n\" , \"status\":\"comm\\u0069tted\" , \"ops\" : [ [ \"\\u0072\" , \"k\\/\" , -7 ] ] } \n",
			record.Transaction{DB: "default", Session: "é😀\n", Ops: []record.Op{{Kind: record.Read, Key: "k/", Value: record.Int(-7)}}},
		},
		{
			"times may be equal, and zero",
			`{"session":"s","start":0,"end":0,"status":"committed","ops":[]}`,
			record.Transaction{DB: "default", Session: "s", HasTimes: true},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, mustDecode(t, c.in)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Values written differently are the same value; different ones are not.
func TestValues(t *testing.T) {
	nines := strings.Repeat("9", 50)
	for _, c := range []struct {
		want record.Value
		in   []string
	}{
		{record.Null, []string{"null"}},
		{record.Int(0), []string{"0", "-0", "0.0", "-0e7", "0e99999999999999999999"}},
		{record.Int(1), []string{"1", "1.0", "1e0", "10e-1", "0.1E+1", "0.00001e5"}},
		{record.Int(-120), []string{"-120", "-1.2e2", "-12e1", "-1200000e-4"}},
		{record.Int(9223372036854775807), []string{"9223372036854775807", "9.223372036854775807e18", "9223372036854775807.000"}},
		{record.Int(-9223372036854775808), []string{"-9223372036854775808", "-922337203685477580.8e1"}},
		{number("9223372036854775808"), []string{"9223372036854775808", "9223372036854775808.0", "922337203685477580.8e1"}},
		{number("-9223372036854775809"), []string{"-9223372036854775809"}},
		{number("18446744073709551615"), []string{"18446744073709551615"}},
		{number("100000000000000000000"), []string{"1e20", "100000000000000000000"}},
		{number("1e30"), []string{"1e30", "1000000000000000000000000000000", "0.1e31"}},
		{number(nines), []string{nines, nines + "e0", "0." + nines + "e50"}},
		{number("1.5"), []string{"1.5", "15e-1", "1.50", "0.15e1"}},
		{number("-0.00001"), []string{"-1e-5", "-0.00001"}},
		{number("1e-30"), []string{"1e-30", "0." + strings.Repeat("0", 29) + "1"}},
		{number("1.25e-30"), []string{"125e-32"}},
		{number("1e999999999999"), []string{"1e999999999999", "10e999999999998"}},
		{record.Value{Kind: record.KindBool, Text: "true"}, []string{"true"}},
		{record.Value{Kind: record.KindBool, Text: "false"}, []string{"false"}},
		{record.String("a/\"\\\u2028"), []string{`"a/\"\\` + "\u2028\"", `"\u0061\/\u0022\u005c\u2028"`}},
		{record.String(""), []string{`""`}},
		{record.String("1"), []string{`"1"`}},
		{list("[]"), []string{"[]", " [ ] "}},
		{list(`[1,1.5,"x/",null,[true],{}]`), []string{`[1,1.5,"x/",null,[true],{}]`, ` [ 1.0 , 15e-1 , "\u0078\/" , null , [ true ] , { } ] `}},
		{object("{}"), []string{"{}"}},
		{object(`{"a":1,"b":{"c":2,"d":3},"e":[]}`), []string{
			`{"a":1,"b":{"c":2,"d":3},"e":[]}`, `{"e":[],"b":{"d":3,"c":2.0},"a":1e0}`, `{"b":{"\u0064":3,"c":2},"\u0061":1,"e":[]}`}},
	} {
		for _, in := range c.in {
			got, err := ParseValue([]byte(in))
			if err != nil || got != c.want {
				t.Errorf("%s is %+v, %v; want %+v", in, got, err, c.want)
				continue
			}
			if back, err := ParseValue(got.AppendJSON(nil)); err != nil || back != got {
				t.Errorf("%s is written as %s, which is %+v, %v", in, got, back, err)
			}
			txn := mustDecode(t, `{"session":"s","status":"committed","ops":[["w","k",`+in+`]]}`)
			if txn.Ops[0].Value != c.want {
				t.Errorf("%s is %+v in a record", in, txn.Ops[0].Value)
			}
		}
	}
}

// Every refusal names its reason and its place.
func TestRefusals(t *testing.T) {
	op := func(o string) string { return `{"session":"s","status":"committed","ops":[["r","k",1],` + o + `]}` }
	head := func(fields string) string { return `{"session":"s","status":"committed","ops":[],` + fields + `}` }
	for _, c := range []struct{ in, want string }{
		{``, `the record ends where one JSON object should follow (bad-json)`},
		{`[]`, `want one JSON object, not a list (wrong-type)`},
		{`nonsense`, ``},
		{`{"session":"s"`, `(bad-json)`},
		{head(`"seq":1}`), `(bad-json)`},
		{head(`"seq":1`) + `{}`, `at byte 53: want the end of the record, not '{' (bad-json)`},
		{head(`"seq":1,`), `(bad-json)`},
		{head(`"seq" 1`), `want ':', not '1' (bad-json)`},
		{head(`seq:1`), `want a field's name in quotes, not 's' (bad-json)`},
		{head(`"sequence":1`), `field sequence: no field is called "sequence"`},
		{head(`"ops":[]`), `field ops: the field "ops" is there twice (duplicate-field)`},
		{head(`"db":null,"d\u0062":"x"`), `field db: the field "db" is there twice (duplicate-field)`},
		{`{"history":{}}`, `(misplaced-header)`},
		{`{}`, `field session: a record needs the field "session" (missing-field)`},
		{`{"session":"s","ops":[]}`, `field status: a record needs the field "status" (missing-field)`},
		{`{"session":"s","status":"aborted"}`, `field ops: a record needs the field "ops" (missing-field)`},
		{`{"session":null}`, `field session: want a string for the session, not null (wrong-type)`},
		{`{"session":7}`, `field session: want a string for the session, not a number (wrong-type)`},
		{`{"session":""}`, `field session: the session is the empty string (empty-name)`},
		{head(`"db":""`), `field db: the history is the empty string (empty-name)`},
		{head(`"db":"` + strings.Repeat("d", HistoryMax+1) + `"`), `field db: the name of the history has 1025 bytes, more than the limit of 1024 (too-large)`},
		{head(`"db":"\u0000events 0"`), `field db: the name of the history has the character U+0000, at byte 0 (nul-in-name)`},
		{`{"session":"s\u0000"}`, `field session: the name of the session has the character U+0000, at byte 1 (nul-in-name)`},
		{head(`"id":""`), `field id: the id is the empty string (empty-name)`},
		{head(`"seq":"1"`), `field seq: want an integer, not a string (wrong-type)`},
		{head(`"seq":1.0`), `field seq: want an integer, written without fraction or exponent, not 1.0 (wrong-type)`},
		{head(`"seq":-1`), `field seq: -1 is negative (negative)`},
		{head(`"seq":-99999999999999999999`), `field seq: -99999999999999999999 is negative (negative)`},
		{head(`"seq":01`), `(bad-json)`},
		{head(`"seq":-`), `(bad-json)`},
		{head(`"start":9223372036854775808,"end":1`), `field start: 9223372036854775808 is more than 9223372036854775807 (out-of-range)`},
		{head(`"start":1`), `field end: there is a start and no end (one-time-only)`},
		{head(`"start":null,"end":1`), `field start: there is an end and no start (one-time-only)`},
		{head(`"start":2,"end":1`), `field end: the transaction ends at 1, 1 ns before its start at 2 (time-backwards)`},
		{`{"status":"done"}`, `field status: no status is called "done": want committed, aborted or unknown (unknown-status)`},
		{`{"status":true}`, `field status: want a string for the status, not a boolean (wrong-type)`},
		{`{"ops":{}}`, `field ops: want a list of operations, not an object (wrong-type)`},
		{op(`7`), `field ops[1]: want an operation: a list of its kind, its key and its value, not a number (wrong-type)`},
		{op(`[]`), `field ops[1]: an operation has three elements, this one has 0 (wrong-length)`},
		{op(`["r"]`), `field ops[1]: an operation has three elements, this one has 1 (wrong-length)`},
		{op(`["r","k"]`), `field ops[1]: an operation has three elements, this one has 2 (wrong-length)`},
		{op(`["r","k",1,2]`), `field ops[1]: an operation has three elements, this one has more (wrong-length)`},
		{op(`["x","k",1]`), `field ops[1][0]: no operation is called "x": want r, w, append, rp or wp (unknown-op)`},
		{op(`[1,"k",1]`), `field ops[1][0]: want a string for the operation's kind, not a number (wrong-type)`},
		{op(`["r",1,1]`), `field ops[1][1]: want a string for the key, not a number (wrong-type)`},
		{op(`["r","",1]`), `field ops[1][1]: the key is the empty string (empty-name)`},
		{op(`["r","k",]`), `(bad-json)`},
		{op(`["r","k",01]`), `field ops[1][2]: at byte`},
		{op(`["r","k",1.]`), `field ops[1][2]: at byte`},
		{op(`["r","k",1e]`), `field ops[1][2]: at byte`},
		{op(`["r","k",+1]`), `field ops[1][2]: at byte`},
		{op(`["r","k",nul]`), `field ops[1][2]: at byte`},
		{op(`["r","k",True]`), `field ops[1][2]: at byte`},
		{op(`["r","k",1e1099511627777]`), `(out-of-range)`},
		{op(`["r","k",1e-99999999999999999999]`), `(out-of-range)`},
		{op(`["r","k",[1,{"a":[2,}]}]]`), `field ops[1][2][1].a[1]: at byte`},
		{op(`["r","k",{"a":1,"b":2,"a":3}]`), `field ops[1][2].a: the object has this field twice (duplicate-field)`},
		{op(`["r","k",{"b":1,"a":{"x":1,"x":3}}]`), `field ops[1][2].a.x: the object has this field twice (duplicate-field)`},
		{op(`["rp","t",{}]`), `field ops[1][1]: want an object, {"table":…,"where":…}, not a string (wrong-type)`},
		{op(`["rp",{"table":"t"},{}]`), `field ops[1][1].where: a predicate needs the field "where"`},
		{op(`["rp",{"where":"w"},{}]`), `field ops[1][1].table: a predicate needs the field "table"`},
		{op(`["wp",{"table":"t","where":"w","x":1},{}]`), `field ops[1][1].x: no field is called "x"`},
		{op(`["wp",{"table":"t","where":"w","table":"t"},{}]`), `field ops[1][1].table: the field "table" is there twice (duplicate-field)`},
		{op(`["wp",{"table":"t","where":3},{}]`), `field ops[1][1].where: want a string for the predicate, not a number (wrong-type)`},
		{op(`["rp",{"table":"t","where":"w"},[]]`), `field ops[1][2]: want an object, not a list (wrong-type)`},
		{op("[\"r\",\"k\xff\",1]"), `field ops[1][1]: the string at byte 60 is not valid UTF-8 (invalid-utf8)`},
		{op("[\"r\",\"k\\n\xff\",1]"), `(invalid-utf8)`},
		{op(`["r","k","\ud800"]`), `field ops[1][2]: the string at byte 64 escapes half of a surrogate pair (invalid-utf8)`},
		{op(`["r","k","\ud800\u0041"]`), `(invalid-utf8)`},
		{op(`["r","k","\udc00\ud800"]`), `(invalid-utf8)`},
		{op(`["r","k","\u12g4"]`), `want four hexadecimal digits`},
		{op(`["r","k","\x41"]`), `(bad-json)`},
		{op("[\"r\",\"k\",\"a\nb\"]"), `want an escape sequence for a control character, not '\n' (bad-json)`},
		{op("[\"r\",\"k\",\"" + `\n` + "a\nb\"]"), `want an escape sequence for a control character, not '\n' (bad-json)`},
		{op(`["r","k",` + strings.Repeat("[", DepthMax+1) + strings.Repeat("]", DepthMax+1) + `]`), `(too-deep)`},
		{op(`["r","k",` + strings.Repeat("[", 1_000_000)), `(too-deep)`},
		{op(`["r","k",` + strings.Repeat(`{"a":`, 1_000_000)), `(too-deep)`},
	} {
		txn := record.Transaction{Session: "left over"}
		err := Decode([]byte(c.in), &txn)
		e := reject.From(err)
		switch {
		case e == nil:
			t.Errorf("%.200s\nis accepted; want %s", c.in, c.want)
		case e.Reason == reject.None || !strings.Contains(err.Error(), c.want):
			t.Errorf("%.200s\ngot  %s\nwant %s", c.in, err, c.want)
		case !cmp.Equal(txn, record.Transaction{}):
			t.Errorf("%.200s\nleaves %+v", c.in, txn)
		}
	}
}

// Messages are logged and kept: they stay short whatever is wrong.
func TestMessagesAreShort(t *testing.T) {
	long := strings.Repeat("é", 100_000)
	for _, in := range []string{
		`{"` + long + `":1}`,
		`{"status":"` + long + `"}`,
		`{"seq":` + strings.Repeat("9", 100_000) + `}`,
		`{"seq":1.` + strings.Repeat("9", 100_000) + `}`,
		`{"ops":[["` + long + `","k",1]]}`,
		`{"ops":[["r","k",{"` + long + `":1,"` + long + `":1}]]}`,
		`{"ops":[["r","k",` + strings.Repeat(`{"`+long[:2000]+`":`, DepthMax) + `x`,
		`{"ops":[["rp",{"` + long + `":1},{}]]}`,
	} {
		err := Decode([]byte(in), new(record.Transaction))
		if e := reject.From(err); e == nil || len(err.Error()) > 5000 || !utf8.ValidString(err.Error()) {
			t.Errorf("%.60s… gives a message of %d bytes", in, len(fmt.Sprint(err)))
		}
	}
	header := `{"history":{"` + long + `":1}}`
	if _, err := DecodeHeader([]byte(header)); err == nil || len(err.Error()) > 500 {
		t.Errorf("%.60s… gives a long message, or none", header)
	}
}

func TestEqual(t *testing.T) {
	in := `{"db":"d","session":"s","seq":1,"id":"i","start":1,"end":2,"status":"committed","ops":[["w","k",{"b":1,"a":2}]]}`
	a := mustDecode(t, in)
	same := mustDecode(t, `{"ops":[["w","k",{"a":2.0,"b":1}]],"end":2,"start":1,"status":"committed","id":"i","seq":1,"session":"s","db":"d"}`)
	if !Equal(&a, &same) {
		t.Error("records that say the same are not equal")
	}
	for _, change := range [][2]string{{`"d"`, `"e"`}, {`"s"`, `"t"`}, {`"seq":1`, `"seq":2`}, {`"seq":1,`, ``}, {`"i"`, `"j"`}, {`"start":1`, `"start":0`},
		{`"end":2`, `"end":3`}, {`"start":1,"end":2,`, ``}, {`committed`, `aborted`}, {`"w"`, `"r"`}, {`"k"`, `"l"`}, {`"b":1`, `"b":3`}, {`[["w","k",{"b":1,"a":2}]]`, `[]`}} {
		b := mustDecode(t, strings.Replace(in, change[0], change[1], 1))
		if Equal(&a, &b) {
			t.Errorf("equal although %s became %s", change[0], change[1])
		}
	}
}

func TestDepthMaxIsAllowed(t *testing.T) {
	deep := strings.Repeat("[", DepthMax) + strings.Repeat("]", DepthMax)
	if v, err := ParseValue([]byte(deep)); err != nil || v != list(deep) {
		t.Errorf("%d levels: %v", DepthMax, err)
	}
}

func TestSizeMax(t *testing.T) {
	in := []byte(`{"session":"s","status":"committed","ops":[]}`)
	var txn record.Transaction
	if err := New(Options{SizeMax: len(in)}).Decode(in, &txn); err != nil {
		t.Error(err)
	}
	err := New(Options{SizeMax: len(in) - 1}).Decode(in, &txn)
	if e := reject.From(err); e == nil || e.Reason != reject.TooLarge {
		t.Errorf("a record above the limit: %v", err)
	}
	if err := Decode(append(in, make([]byte, SizeDefault)...), &txn); reject.From(err).Reason != reject.TooLarge {
		t.Errorf("a record above the default limit: %v", err)
	}
}

// Canonical text never grows by an exponent.
func TestNumbersAllocateByTheirText(t *testing.T) {
	for _, in := range []string{"1e999999999", "-1.5e-999999999", "123456789e20", "1e1099511627775"} {
		v, err := ParseValue([]byte(in))
		if err != nil {
			t.Fatal(err)
		}
		if limit := len(in) + zerosMax + 3; len(v.String()) > limit {
			t.Errorf("%s is written with %d bytes", in, len(v.String()))
		}
	}
}

// A record stays what it is when the decoder goes on and its input is overwritten.
func TestRecordsAreIndependent(t *testing.T) {
	for _, opt := range []Options{{}, {NamesMax: 1}} {
		d := New(opt)
		buf := make([]byte, 0, 1024)
		var got, want []record.Transaction
		for i := range 5000 {
			txn := record.Transaction{DB: "d", Session: fmt.Sprintf("s%d", i%7), Seq: int64(i), HasSeq: true, ID: fmt.Sprintf("id%d", i)}
			for j := range i % 11 {
				v := record.Int(int64(j))
				if j%3 == 1 {
					v = record.String(fmt.Sprintf("v%d", i))
				}
				if j%3 == 2 {
					v = list(fmt.Sprintf("[%d]", i))
				}
				txn.Ops = append(txn.Ops, record.Op{Kind: record.OpKind(j % 3), Key: fmt.Sprintf("k%d", (i*j)%1000), Value: v})
			}
			buf = AppendJSON(buf[:0], &txn)
			var out record.Transaction
			if err := d.Decode(buf, &out); err != nil {
				t.Fatal(err)
			}
			clear(buf)
			got, want = append(got, out), append(want, txn)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%+v: %s", opt, diff)
		}
	}
}

func TestHeader(t *testing.T) {
	ptr := func(n int64) *int64 { return &n }
	zero, keep, enforce, partial := record.InitialZero, record.SessionsKeep, record.ClockEnforce, record.CoveragePartial
	for _, c := range []struct {
		in   string
		want record.Header
	}{
		{`{"history":{}}`, record.Header{}},
		{` { "history" : {"max_skew":"5ms"} } `, record.Header{MaxSkew: ptr(5e6)}},
		{`{"history":{"max_skew":1234567}}`, record.Header{MaxSkew: ptr(1234567)}},
		{`{"history":{"initial":"zero","sessions":"keep","clock":"enforce","max_skew":0,"coverage":"partial"}}`,
			record.Header{Initial: &zero, Sessions: &keep, Clock: &enforce, MaxSkew: ptr(0), Coverage: &partial}},
	} {
		if !IsHeader([]byte(c.in)) {
			t.Errorf("%s is not taken for a header", c.in)
		}
		got, err := DecodeHeader([]byte(c.in))
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", c.in, err, diff)
		}
		back, err := DecodeHeader(AppendHeader(nil, &got))
		if diff := cmp.Diff(got, back); err != nil || diff != "" {
			t.Errorf("%s is written as %s: %v\n%s", c.in, AppendHeader(nil, &got), err, diff)
		}
	}
	for _, in := range []string{``, `{}`, `[]`, `{"session":"history"}`, `"history"`, `{"histor`} {
		if IsHeader([]byte(in)) {
			t.Errorf("%s is taken for a header", in)
		}
	}
	for _, c := range []struct{ in, want string }{
		{`{}`, `field history: a header needs the field "history" (missing-field)`},
		{`{"history":{}`, `(bad-json)`},
		{`{"history":{}}x`, `(bad-json)`},
		{`{"history":[]}`, `field history: want an object of settings, not a list (wrong-type)`},
		{`{"history":{},"x":1}`, `field x: no field is called "x"`},
		{`{"history":{},"history":{}}`, `(duplicate-field)`},
		{`{"history":{"clock":"prune","clock":"prune"}}`, `field history.clock: the field "clock" is there twice (duplicate-field)`},
		{`{"history":{"max-skew":1}}`, `field history.max-skew: no setting is called "max-skew"`},
		{`{"history":{"initial":"one"}}`, `field history.initial: want any, absent or zero, not "one" (unknown-setting)`},
		{`{"history":{"initial":0}}`, `field history.initial: want a string: any, absent or zero, not a number (wrong-type)`},
		{`{"history":{"max_skew":"5"}}`, `field history.max_skew: want a duration with its unit, such as "5ms", not "5" (unknown-setting)`},
		{`{"history":{"max_skew":"-5ms"}}`, `field history.max_skew: -5ms is negative (negative)`},
		{`{"history":{"max_skew":-5}}`, `field history.max_skew: -5 is negative (negative)`},
		{`{"history":{"max_skew":true}}`, `(wrong-type)`},
	} {
		if _, err := DecodeHeader([]byte(c.in)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\ngot  %v\nwant %s", c.in, err, c.want)
		}
	}
}

func ExampleDecoder() {
	d := New(Options{})
	for _, line := range []string{
		`{"session":"s1","seq":1,"status":"committed","ops":[["w","x",1]]}`,
		`{"session":"s1","seq":2,"status":"committed","ops":[["read","x",1]]}`,
	} {
		var t record.Transaction
		if err := d.Decode([]byte(line), &t); err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(t.ID, t.Ops[0].Key, t.Ops[0].Value)
	}
	// Output:
	// s1#1 x 1
	// field ops[0][0]: no operation is called "read": want r, w, append, rp or wp (unknown-op)
}
