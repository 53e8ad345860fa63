package history

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/ingest/reject"
)

// Formats of other tools that are text; see the files beside what they say.
func TestForeignTexts(t *testing.T) {
	for _, c := range []struct{ file, want string }{
		{"awdit-test/sessions.txt", `
awdit-test default initial=absent
s0#1 [s0 1] committed w(0,0) w(1,0)
s1#1 [s1 1] committed r(0,0) w(0,18446744073709551615)
s1#2 [s1 2] committed r(1,0)
s2#1 [s2 1] committed r(0,18446744073709551615)
`},
		{"dbcop-hist/versions.hist", `
dbcop-hist default initial=absent
s0#1 [s0 1] committed r(x,null) r(y,0)
s0#2 [s0 2] committed w(x,1) w(y,0)
s0#3 [s0 3] aborted w(x,0) w(z,0)
s2#1 [s2 1] committed r(y,0) r(y,null) r(z,null)
s2#2 [s2 2] committed r(x,1) w(_Key2,18446744073709551615)
s3#1 [s3 1] committed r(_Key2,18446744073709551615)
`},
		{"dbcop-json/wrapped.json", `
dbcop-json default initial=absent
s0#1 [s0 1] committed r(0,null) w(0,18446744073709551615)
s2#1 [s2 1] committed r(0,18446744073709551615) r(one,null)
s2#2 [s2 2] aborted w(one,0)
`},
		{"dbcop-json/bare.json", `
dbcop-json default initial=absent
s0#1 [s0 1] committed w(0,0)
s1#1 [s1 1] committed
s1#2 [s1 2] committed r(0,0)
`},
		{"dbcop-yaml/failed.yaml", `
dbcop-yaml default initial=zero failed=3
s0#1 [s0 1] committed r(3,0) w(3,1)
s0#2 [s0 2] committed
s1#1 [s1 1] committed r(7,9223372036854775808)
s1#2 [s1 2] aborted w(3,3) w(4,1)
`},
		// 9 commits where it starts, after "one" has committed at the same timestamp.
		{"timekiller-kv-json/equal.json", `
timekiller-kv-json default initial=absent
9 [b 1] committed r(1,5) 3..3
one [7 1] committed r(1,null) w(1,5) r(2,null) 1..2
10 [b 2] committed w(1,-3) w(2,null) 3..4
`},
		{"timekiller-kv-json/zero.json", `
timekiller-kv-json default initial=zero
1 [1 1] committed r(1,0) w(1,1) 1..2
2 [1 2] committed r(1,1) 3..4
`},
		{"timekiller-list-json/lists.json", `
timekiller-list-json default initial=absent
1 [1 1] committed r(3,null) append(3,1) 1..3
2 [2 1] committed append(4,2) 2..4
3 [1 2] committed r(3,[1]) r(4,[2]) r(5,null) 5..5
`},
		{"polysi-text/large.txt", `
polysi-text default initial=zero
t1 [s1 1] committed w(18446744073709551615,18446744073709551615) w(-9223372036854775808,-9223372036854775808)
`},
		{"3ts-log/sums.log", `
3ts-log default initial=absent
prepare#1 [prepare 1] committed w(t1:0,{"k":0,"v":10}) w(t1:1,{"k":1,"v":20}) w(prepared,true) 0..0
T1#1 [T1 1] committed r(prepared,true) rp(t1 where v >= 20,{"t1:1":{"v":20}}) wp(t1 where k == 0,{"delete":true,"hit":["t1:0"]}) w(over T1#1,true) 1..9
T2#1 [T2 1] committed r(prepared,true) r(t1:1,{"k":1,"v":20}) wp(t1 where k == 1,{"hit":["t1:1"],"set":{}}) w(t1:1,{"k":1,"v":25}) rp(t1 where v < 15,{}) w(over T2#1,true) 5..14
T3#1 [T3 1] committed r(prepared,true) r(over T1#1,true) r(over T2#1,true) rp(t1 where k == 1,{"t1:1":{"k":1,"v":25}}) 15..18
`},
		{"3ts-log/rollback.log", `
3ts-log default initial=absent failed=2
prepare#1 [prepare 1] committed w(a:o'neil,x,{"kind":"x","n":5,"name":"o'neil"}) w(a:"a,b",7,{"kind":"7","name":"a,b"}) w(prepared,true) 0..0
T1#1 [T1 1] aborted r(prepared,true) rp(a where name == "o'neil",{"a:o'neil,x":{"kind":"x","n":5,"name":"o'neil"}}) 1..7
T2#1 [T2 1] unknown r(prepared,true) rp(a where SELECT kind FROM a WHERE n is null,{}) 3..7
`},
		{"hermitage-sql/skew.sql", `
hermitage-sql default initial=absent
prepare#1 [prepare 1] committed w(test:1,{"id":1,"value":10}) w(test:2,{"id":2,"value":20}) w(prepared,true) 0..0
T1#1 [T1 1] committed r(prepared,true) rp(test where id == 1,{"test:1":{"id":1,"value":10}}) rp(test where value % 3 == 0,{"test:3":{"id":3,"value":30}}) wp(test where value == 20,{"delete":true,"hit":[]}) 1..11
T2#1 [T2 1] committed r(prepared,true) rp(test where true,{"test:1":{"id":1,"value":10},"test:2":{"id":2,"value":20}}) r(test:1,{"id":1,"value":10}) wp(test where id == 1,{"hit":["test:1"],"set":{}}) w(test:1,{"id":1,"value":12}) wp(test where value % 3 == 2,{"hit":["test:2"],"set":{"value":18}}) w(test:2,{"id":2,"value":18}) r(test:3,null) w(test:3,{"id":3,"value":30}) 2..8
`},
		{"hermitage-sql/blocks.sql", `
hermitage-sql default initial=absent failed=2
prepare#1 [prepare 1] committed w(shop.test:1,{"id":1,"value":10}) w(shop.test:2,{"id":2,"value":20}) w(prepared,true) 0..0
T1#1 [T1 1] committed r(prepared,true) wp(shop.test where id == 1,{"hit":["shop.test:1"],"set":{"value":11}}) w(shop.test:1,{"id":1,"value":11}) 1..7
T2#1 [T2 1] aborted r(prepared,true) 2..11
T3#1 [T3 1] unknown r(prepared,true) rp(shop.test where true,{"shop.test:1":{"id":1,"value":11},"shop.test:2":{"id":2,"value":20}}) rp(shop.test where select * from shop.test where id in (1, 2) for update;,{}) wp(shop.test where value > 11,{"delete":true}) 3..10
T1#2 [T1 2] aborted r(prepared,true) 12..13
`},
	} {
		t.Run(c.file, func(t *testing.T) {
			file := filepath.Join("testdata", c.file)
			hs, err := Open(file, Options{})
			wantDrawn(t, hs, err, c.want)
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			format, _, _ := strings.Cut(c.file, "/")
			for _, packed := range [][]byte{text, gzipBytes(t, text), zstdBytes(t, append([]byte("\xef\xbb\xbf \r\n\t\n"), text...))} {
				hs, err := Read("h", bytes.NewReader(packed), Options{})
				wantDrawn(t, hs, err, c.want)
				hs, err = Read("h", bytes.NewReader(packed), Options{Format: format})
				wantDrawn(t, hs, err, c.want)
			}
		})
	}
}

// What unwritten keys of TimeKiller's hold is said by what is read from them.
func TestTimekillerInitial(t *testing.T) {
	for _, c := range []struct{ ops, want string }{
		{`{"t":"r","k":1,"v":7}`, "absent"},
		{`{"t":"r","k":1,"v":0}`, "zero"},
		{`{"t":"r","k":1}`, "absent"},
		{`{"t":"r","k":1,"v":0},{"t":"r","k":2,"v":null}`, "absent"},
		{`{"t":"r","k":1,"v":0},{"t":"w","k":1,"v":0}`, "absent"},
		{`{"t":"r","k":1,"v":0},{"t":"w","k":2,"v":0}`, "zero"},
		{`{"t":"w","k":1,"v":null}`, "absent"},
	} {
		text := `[{"tid":1,"sid":1,"sts":{"p":1,"l":1},"cts":{"p":1,"l":2},"ops":[` + c.ops + `]}]`
		hs, err := Read("h", strings.NewReader(text), Options{})
		if err != nil || hs[0].Header.Initial.String() != c.want {
			t.Errorf("%s: %v, want %s", c.ops, err, c.want)
		}
	}
}

// A history of lists is one, however late the first list comes.
func TestTimekillerListsLate(t *testing.T) {
	var b strings.Builder
	b.WriteString("[")
	for i := range 200 {
		fmt.Fprintf(&b, `{"tid":%d,"sid":1,"sts":{"p":%d,"l":1},"cts":{"p":%d,"l":2},"ops":[{"t":"r","k":1,"v":null}]},`, i, i, i)
	}
	b.WriteString(`{"tid":"x","sid":1,"sts":{"p":1,"l":1},"cts":{"p":1,"l":2},"ops":[{"t":"r","k":1,"v":[4]}]}]`)
	hs, err := Read("h", strings.NewReader(b.String()), Options{})
	if err != nil || hs[0].Format != timekillerList {
		t.Fatalf("%v, %+v", err, hs)
	}
	if _, err := Read("h", strings.NewReader(b.String()), Options{Format: timekillerKV}); reject.From(err) == nil {
		t.Errorf("read as what it is not: %v", err)
	}
}

// Every bad text gets a reason and a place.
func TestForeignRefusals(t *testing.T) {
	const create, run = "Q0-T1 execute sql: 'CREATE TABLE t1 (k INT PRIMARY KEY, v INT);'\n", "----------x test run----------\n"
	const tk = `[{"tid":1,"sid":1,"sts":{"p":1,"l":1},"cts":{"p":1,"l":2},"ops":[{"t":"w","k":1,"v":1}]}`
	for _, c := range []struct{ format, in, want string }{
		{"awdit-test", "w 0 0\n----\nr 0\n", "h:3: an operation is r or w, a key and a value, not \"r 0\" (wrong-length)"},
		{"awdit-test", "w 0 0\nx 0 1\n", `h:2: want r KEY VALUE or w KEY VALUE, not "x 0 1" (foreign-bytes)`},
		{"awdit-test", "w 0 18446744073709551616\n", "h:1: field value: 18446744073709551616 does not fit 64 bits (out-of-range)"},
		{"awdit-test", "w 0 one\n", `h:1: field value: want an unsigned integer, not "one" (wrong-type)`},
		{"awdit-test", "===\n---\n", "h: there is no operation in the file (empty-input)"},

		{"3ts-log", "Q0-T1 execute sql: 'CREATE TABLE t1 (k INT PRIMARY KEY, v INT);'\n" + run, "h: no session did anything (empty-input)"},
		{"3ts-log", run + "Q1-T1 execute opt: 'BEGIN;'\nQ2 finished at: 2022-4-1 17:40:44:255:190", "h:3: Q2 is over, and session 1 did not send it (bad-structure)"},
		{"3ts-log", run + "Q1-T1 execute opt: 'BEGIN;'\nQ2-T1 execute opt: 'COMMIT';", "h:3: session 1 sends another statement, and Q1 is not over (bad-structure)"},
		{"3ts-log", run + "Q1-T1 execute sql: 'SELECT * FROM t1 WHERE k=0;'", `h:2: nothing creates the table "t1": "SELECT * FROM t1 WHERE k=0;" (unsupported)`},
		{"3ts-log", create + run + "Q1-T1 execute sql: 'SELECT * FROM t1, t1 b'", `h:3: a select that is not of one table is not understood: "SELECT * FROM t1, t1 b" (unsupported)`},
		{"3ts-log", create + run + "Q1-T1 execute sql: 'SELECT * FROM t1'\ncurrent_result:\n(0) (1,2)\nQ1 finished at: 2022-4-1 17:40:44:255:190", `h:3: the row (0) has not the columns ["k" "v"] (wrong-length)`},
		{"3ts-log", create + run + "Q1-T1 execute sql: 'SELECT * FROM t1'\ncurrent_result:\n(0,1) 2", `h:5: field current_result: want rows, (0,1) (1,1), or null, not "(0,1) 2" (bad-structure)`},
		{"3ts-log", create + run + "current_result:", "h:3: session 1 has a result, and no statement that has none (bad-structure)"},
		{"3ts-log", create + run + "Q1-T1 executes", `h:3: want a statement, Q1-T1 execute sql: '…', what came of it, or its end, not "Q1-T1 executes" (foreign-bytes)`},
		{"3ts-log", create + run + "Q1-T1 execute sql: 'UPDATE t1 SET k = 2'", `h:3: an update of a key is not understood: "UPDATE t1 SET k = 2" (unsupported)`},
		{"3ts-log", create + run + "Q1-T1 execute sql: 'VACUUM; CALL f()'", `h:3: the statement is not understood: "VACUUM; CALL f()" (unsupported)`},
		{"3ts-log", create + run + "Q1-T1 execute sql: 'SELECT 'x'", `h:3: the statement "SELECT 'x" has a quote or comment that does not end (bad-structure)`},

		{"hermitage-sql", "begin; -- T1\nselect * from test;", `h:2: field session: want the session behind the statement, as in -- T1, not "" (missing-field)`},
		{"hermitage-sql", "insert into test values (3, now()); -- T1", `h:1: a row that is inserted is not understood: "insert into test values (3, now());" (unsupported)`},
		{"hermitage-sql", "insert into test values (3, 1) on conflict do nothing; -- T1", `h:1: an insert that may do something else is not understood`},
		{"hermitage-sql", "begin; -- T1\ndelete from test; -- T1\nbegin; -- T1", `h:3: a transaction within another is not understood: "begin;" (unsupported)`},
		{"hermitage-sql", "savepoint a; -- T1", `h:1: the statement is not understood: "savepoint a;" (unsupported)`},
		{"hermitage-sql", "update test set value = 1 where id = 1;\nbegin; -- T1", `h:1: a statement before the sessions is not understood`},
		{"hermitage-sql", "-- nothing\nselect 1; -- either", "h: no session did anything (empty-input)"},

		{"dbcop-hist", "[x:=1]\n[x==1", `h:2: the transaction is not closed on its line: a ] is missing (truncated)`},
		{"dbcop-hist", "[x:=?]", `h:1: field version of x: want an unsigned integer, not "?" (wrong-type)`},
		{"dbcop-hist", "[x:=1y==2]", `h:1: want a blank or ] behind an event, not "y==2]" (bad-structure)`},
		{"dbcop-hist", "[x=1]", `h:1: want := (a write) or == (a read) behind the variable x, not "=1]" (bad-structure)`},
		{"dbcop-hist", "[x:=1]!!", `h:1: want a transaction in [ ], a comment behind //, or a line of dashes, not "!" (foreign-bytes)`},
		{"dbcop-hist", "[x:=99999999999999999999]", `does not fit 64 bits (out-of-range)`},
		{"dbcop-hist", "// nothing\n---\n", "h: there is no transaction in the file (empty-input)"},

		{"dbcop-json", `{"params":{}}`, "h:1: field data: the object has no field data with the sessions (missing-field)"},
		{"dbcop-json", "[[{\"events\":[],\"committed\":true},\n{\"events\":[]}]]", "h:2: field [0][1].committed: want true or false, by which a transaction says whether it committed, and it is not there (missing-field)"},
		{"dbcop-json", `[[{"committed":true}]]`, "h:1: field [0][0].events: want the events of a transaction, which are an array, and it is not there (missing-field)"},
		{"dbcop-json", `[[{"events":[{"Read":{"variable":0,"version":-1}}],"committed":true}]]`, "h:1: field [0][0].events[0].Read.version: want an unsigned integer"},
		{"dbcop-json", `[[{"events":[{"Write":{"variable":0,"version":null}}],"committed":true}]]`, "events[0].Write.version: want an unsigned integer, and it is not there (missing-field)"},
		{"dbcop-json", `[[{"events":[{}],"committed":true}]]`, "events[0]: an event is either a Read or a Write (bad-structure)"},
		{"dbcop-json", `[[{"events":[{"Read":{"variable":0,"version":1}}],"committed":true}]`, "h:1: the input ends in the middle of the history (truncated)"},
		{"dbcop-json", `[[{"events":[],"committed":true}]] x`, "something follows the end of the history (bad-structure)"},
		{"dbcop-json", "[\n[{\"events\":7}]]", "h:2: field [0][0].events: want the events of a transaction, which are an array, not 7 (wrong-type)"},
		{"dbcop-json", `[7]`, "h:1: field [0]: want a session, which is an array of transactions, not 7 (wrong-type)"},
		{"dbcop-json", `[[]]`, "h: the history has no transaction in it (empty-input)"},

		{"dbcop-yaml", "- - events: []\n    success: yes\n", `h:2: field success: want true or false, not "yes" (wrong-type)`},
		{"dbcop-yaml", "- - events:\n    - {write: true, variable: 1, value: -1, success: true}\n    success: true\n", `h:2: field value: want an unsigned integer, not "-1" (wrong-type)`},
		{"dbcop-yaml", "- - events:\n    - {write: true, variable: 1, success: true}\n    success: true\n", `h:2: field value: want a mapping with write, variable, value and success (missing-field)`},
		{"dbcop-yaml", "- - events: []\n    success: true\n    more: 1\n", `h:3: field "more": want a mapping with events and success (unknown-field)`},
		{"dbcop-yaml", "- - events: [\n", "h:1: did not find expected node content (bad-structure)"},
		{"dbcop-yaml", "- &a\n  - events: []\n    success: true\n- *a\n", "h:4: want a session, which is a list of transactions (wrong-type)"},
		{"dbcop-yaml", "[]", "h: the history has no transaction in it (empty-input)"},

		{"timekiller-kv-json", tk, "h:1: the input ends in the middle of the history (truncated)"},
		{"timekiller-kv-json", tk + ",\n" + tk[1:] + "]", "h:2: field [1].tid: another transaction has the tid \"1\" too (duplicate-id)"},
		{"timekiller-kv-json", strings.Replace(tk, `"l":2`, `"l":0`, 1) + "]", "h:1: field [0].cts: transaction 1 commits before it starts (time-backwards)"},
		{"timekiller-kv-json", strings.Replace(tk, `"p":1`, `"p":1.5`, 1) + "]", "field [0].sts.p: want an integer, not 1.5 (wrong-type)"},
		{"timekiller-kv-json", strings.Replace(tk, `"p":1`, `"p":"99999999999999999999"`, 1) + "]", "does not fit 64 bits (out-of-range)"},
		{"timekiller-kv-json", strings.Replace(tk, `"cts"`, `"xts"`, 1) + "]", "field [0].cts: want a value, and it is not there (missing-field)"},
		{"timekiller-kv-json", strings.Replace(tk, `"w"`, `"x"`, 1) + "]", `field [0].ops[0].t: no operation is called "x": want one of r, read, w, write, a, append`},
		{"timekiller-kv-json", strings.Replace(tk, `"w"`, `"a"`, 1) + "]", "field [0].ops[0].t: an append does not belong into timekiller-kv-json"},
		{"timekiller-list-json", tk + "]", "field [0].ops[0].t: a write does not belong into timekiller-list-json"},
		{"timekiller-list-json", strings.Replace(tk, `"t":"w","k":1,"v":1`, `"t":"a","k":1`, 1) + "]", "field [0].ops[0].v: want a value, and it is not there (missing-field)"},
		{"timekiller-kv-json", strings.Replace(tk, `"k":1`, `"k":[1]`, 1) + "]", "field [0].ops[0].k: want a name or an integer, not [1] (wrong-type)"},
		{"timekiller-kv-json", strings.Replace(tk, `"sid":1`, `"sid":null`, 1) + "]", "field [0].sid: want a value, and it is not there (missing-field)"},
		{"timekiller-kv-json", "[]", "h: the history has no transaction in it (empty-input)"},
		{"timekiller-kv-json", "[{]", "h:1: field [0]: ']' closes nothing that is open"},
	} {
		hs, err := Read("h", strings.NewReader(c.in), Options{Format: c.format})
		if err == nil {
			t.Errorf("%s: %.80s\naccepted: %s", c.format, c.in, drawAll(hs))
			continue
		}
		if e := reject.From(err); e == nil || !strings.Contains(err.Error(), c.want) || e.Pos.Source != "h" {
			t.Errorf("%s: %.80s\ngot  %v\nwant %s", c.format, c.in, err, c.want)
		}
	}
}

func FuzzThreeTS(f *testing.F)   { fuzz(f, "3ts-log", testdata(f, "3ts-log")...) }
func FuzzHermitage(f *testing.F) { fuzz(f, "hermitage-sql", testdata(f, "hermitage-sql")...) }

func FuzzAwdit(f *testing.F)     { fuzz(f, "awdit-test", testdata(f, "awdit-test")...) }
func FuzzHist(f *testing.F)      { fuzz(f, "dbcop-hist", testdata(f, "dbcop-hist")...) }
func FuzzDbcopJSON(f *testing.F) { fuzz(f, "dbcop-json", testdata(f, "dbcop-json")...) }
func FuzzDbcopYAML(f *testing.F) { fuzz(f, "dbcop-yaml", testdata(f, "dbcop-yaml")...) }
func FuzzTimekillerKV(f *testing.F) {
	fuzz(f, "timekiller-kv-json", testdata(f, "timekiller-kv-json")...)
}
func FuzzTimekillerList(f *testing.F) {
	fuzz(f, "timekiller-list-json", testdata(f, "timekiller-list-json")...)
}
