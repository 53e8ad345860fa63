package history

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/isowatch/isowatch/ingest/reject"
)

// drawJudged is draw with what the header says of sessions.
func drawJudged(h History) string {
	text := draw(h)
	if h.Header.Sessions != nil {
		text = strings.Replace(text, "\n", " sessions="+h.Header.Sessions.String()+"\n", 1)
	}
	return text
}

func TestOperations(t *testing.T) {
	for _, c := range []struct{ file, want string }{
		{"jepsen-edn/list-append.edn", `
jepsen-edn default initial=absent max_skew=0 failed=3
p0#1 [p0 1] committed append(11,1) r(11,[1]) 1..4
p1#1 [p1 1] unknown append(:x,7) 3..5
p0#2 [p0 2] committed r(11,null) append(k,":first") r(:y,[":first","s",2]) 6..7
p3#1 [p3 1] aborted append(:x,8) 8..9
p4#1 [p4 1] unknown append(:x,9) 10..11
`},
		{"jepsen-edn/clojure.edn", `
jepsen-edn default initial=absent max_skew=0
p0#1 [p0 1] committed w(:a,"#1/2") w(:b,"#0x1F") w("3","###Inf") 1..2
p1#1 [p1 1] committed r(3,99999999999999999999) r(:a/b,"\":k\"") r(nil,1.5) 3..4
p1#2 [p1 2] committed w(#{1 2},"{:a [nil] :b #{}}") w('foo,"\\x") w([],true) 5..6
`},
		{"jepsen-edn/completions.edn", `
jepsen-edn default initial=absent failed=1
p0#1 [p0 1] committed r(:x,1)
p1#1 [p1 1] unknown w(:x,1)
p0#2 [p0 2] committed r(:y,null)
`},
		{"jepsen-edn/register.edn", `
jepsen-edn default initial=absent max_skew=0 failed=1
p0#1 [p0 1] committed w(register,3) 1..3
p1#1 [p1 1] committed r(register,3) w(register,4) 2..4
p0#2 [p0 2] aborted w(register,5) 5..7
p1#2 [p1 2] committed r(register,4) 6..8
p0#3 [p0 3] unknown r(register,4) w(register,6) 9..12
p1#3 [p1 3] aborted 10..11
`},
		{"jepsen-edn/independent.edn", `
jepsen-edn default initial=absent max_skew=0
p0#1 [p0 1] committed w(7,3) 1..3
p1#1 [p1 1] committed r(8,null) 2..4
p1#2 [p1 2] committed r(7,3) w(7,4) 5..6
`},
		{"jepsen-edn/long-fork.edn", `
jepsen-edn default initial=absent max_skew=0 sessions=ignore
process#1 [process 1] committed w(3,1) 1..2
process#2 [process 2] committed r(3,1) r(4,null) 3..4
process#3 [process 3] committed r(3,null) r(4,null) 0..5
`},
		{"jepsen-edn/nobody.edn", `
jepsen-edn default initial=absent max_skew=0 sessions=ignore
process#1 [process 1] unknown 1..8
process#2 [process 2] committed append(:x,1) r(:y,null) 0..3
process#3 [process 3] committed append(:y,1) 0..4
process#4 [process 4] unknown append(:x,2) 5..8
process#5 [process 5] committed append(:x,3) 6..7
`},
		{"jepsen-edn/set.edn", `
jepsen-edn default initial=absent max_skew=0
p0#1 [p0 1] committed w(set/1,true) 1..2
p0#2 [p0 2] unknown w(set/:two,true) 3..4
p1#1 [p1 1] committed r(set/1,true) r(set/:two,null) r(set/9,true) 5..6
`},
		{"jepsen-edn/mutex.edn", `
jepsen-edn default initial=absent max_skew=0
p0#1 [p0 1] committed r(mutex,null) w(mutex,"held") 1..2
p1#1 [p1 1] aborted 3..4
p0#2 [p0 2] unknown r(mutex,"held") w(mutex,null) 5..6
`},
		{"jepsen-edn/bank-reads.edn", `
jepsen-edn default initial=any max_skew=0
p0#1 [p0 1] aborted 1..2
p0#2 [p0 2] committed r(9,101) r(10,-1) 3..4
`},
		{"jepsen-edn/unread-counter.edn", `
jepsen-edn default initial=absent max_skew=0
p0#1 [p0 1] committed append(total,1) 1..2
p0#2 [p0 2] committed append(total,3) 3..4
`},
		{"jepsen-json/rw-register.json", `
jepsen-json default initial=absent max_skew=0
p0#1 [p0 1] committed w(x,2) r(y,null) 1..3
p0#2 [p0 2] committed r(x,12345678901234567890) append([1 "a"],"v") 4..5
`},
		{"jepsen-json/bank-lines.json", `
jepsen-json default initial=any max_skew=0
p0#1 [p0 1] committed r(9,1.5) r(10,5) 1..2
`},
		{"porcupine-etcd-log/cas.log", `
porcupine-etcd-log default initial=absent max_skew=0 failed=1
p0#1 [p0 1] committed w(register,3) w(register = 1,null) 1..3
p1#1 [p1 1] committed r(register = 1,null) 2..4
p0#2 [p0 2] aborted 5..6
p1#2 [p1 2] unknown r(register,3) w(register,1) w(register = 1,true) 7..8
p2#1 [p2 1] committed r(register,null) 9..10
`},
		{"porcupine-kv-edn/strings.edn", `
porcupine-kv-edn default initial=absent max_skew=0
p0#1 [p0 1] committed w(7,"…x 0 0 y") 1..3
p1#1 [p1 1] committed w(7,"x 1 0 y") 2..4
p1#2 [p1 2] committed r(7,"x 1 0 y") w(7,"…x 1 1 y") 5..6
p0#2 [p0 2] committed r(7,"…x 1 1 y") 7..8
p0#3 [p0 3] committed r(8,null) 9..10
p0#4 [p0 4] committed r(7,"nowhere") 11..12
p0#5 [p0 5] committed r(7,"\\!x 1 1 y") 13..14
p0#6 [p0 6] committed w(9,"\\…b") 15..16
p0#7 [p0 7] committed w(9,"…b") 17..18
p0#8 [p0 8] committed r(9,"\\…b") 19..20
`},
		{"porcupine-kv-edn/again.edn", `
porcupine-kv-edn default initial=absent max_skew=0
p0#1 [p0 1] committed r(7,null) w(7,"…a") 1..2
p0#2 [p0 2] committed r(7,"…a") 3..4
p0#3 [p0 3] committed w(7,"b") 5..6
p0#4 [p0 4] committed r(7,"b") w(7,"\\2…a") 7..8
p0#5 [p0 5] committed r(7,"\\2…a") 9..10
p0#6 [p0 6] committed w(7,"a") 11..12
p0#7 [p0 7] committed r(7,"a") 13..14
p0#8 [p0 8] committed r(7,"a") w(7,"…b") 15..16
p0#9 [p0 9] committed r(7,"…b") 17..18
`},
	} {
		t.Run(c.file, func(t *testing.T) {
			b, err := os.ReadFile(filepath.Join("testdata", c.file))
			if err != nil {
				t.Fatal(err)
			}
			for _, packed := range [][]byte{b, gzipBytes(t, b), zstdBytes(t, b), append([]byte("\xef\xbb\xbf"), b...)} {
				hs, err := Read("h", strings.NewReader(string(packed)), Options{})
				if err != nil {
					t.Fatal(err)
				}
				checkInvariants(t, hs[0])
				if diff := cmp.Diff(strings.TrimLeft(c.want, "\n"), drawJudged(hs[0])); diff != "" {
					t.Fatal(diff)
				}
			}
		})
	}
}

func TestOperationErrors(t *testing.T) {
	const good = "{:type :invoke, :process 0, :f :txn, :value []}\n"
	const goodJSON = `{"type":"invoke","process":0,"f":"txn","value":[]}` + "\n"
	etcd := func(event string) string {
		return "INFO  jepsen.util - 0\t:invoke\t:write\t3\nINFO  jepsen.util - " + event
	}
	kv := func(lines ...string) string {
		out := ""
		for i, l := range lines {
			out += fmt.Sprintf("{:type :invoke, :process %d, :key \"k\", %s}\n{:type :ok, :process %d, :key \"k\", %s}\n", i, l, i, l)
		}
		return out
	}
	for _, c := range []struct {
		name, format, in string
		want             string
	}{
		{"cut map", jepsenEDN, good + "{:type :ok, ", "h:2: the input ends in the middle of the operation (truncated)"},
		{"cut string", jepsenEDN, good + `{:type "ok`, "h:2: the input ends in the middle of the operation (truncated)"},
		{"cut list", jepsenEDN, "[" + good, "h:2: the input ends before the list of operations does (truncated)"},
		{"cut tag", jepsenEDN, good + "#jepsen.history.Op", "h:2: the input ends in the middle of the operation (truncated)"},
		{"other bracket", jepsenEDN, good + "{:type :ok]", `h:2: ']' closes nothing that is open (bad-structure)`},
		{"more brackets", jepsenEDN, good + "}", `h:2: '}' closes nothing that is open (bad-structure)`},
		{"deep", jepsenEDN, good + "{:value " + strings.Repeat("[", 100_000), "h:2: the operation nests more than 72 lists, maps or tags (too-deep)"},
		{"tags on tags", jepsenEDN, good + strings.Repeat("#a ", 100_000), "h:2: the operation nests more than 72 lists, maps or tags (too-deep)"},
		{"discards", jepsenEDN, good + strings.Repeat("#_ ", 100_000), "h:2: the operation nests more than 72 lists, maps or tags (too-deep)"},
		{"long", jepsenEDN, good + "{" + strings.Repeat("1 ", 1<<20), "h:2: the operation has more than 1048576 bytes, the limit of a record (too-large)"},
		{"long word", jepsenEDN, good + strings.Repeat("a", 2<<20), "h:2: a word has more than 1048576 bytes, the limit of a record (too-large)"},
		{"odd map", jepsenEDN, good + "{:type}", "h:2: the operation is not EDN: a map has a key without a value (bad-structure)"},
		{"no map", jepsenEDN, good + "[:type :ok]", "h:2: want the map of an operation, {:type :invoke, …}, not :type (wrong-type)"},
		{"two words in one", jepsenEDN, good + "nil\u00a0nil", "h:2: the operation is not EDN: \"nil\\u00a0nil\" is no word (bad-structure)"},
		{"no type", jepsenEDN, good + "{:process 1}", "h:2: field :type: an operation needs a :type"},
		{"type", jepsenEDN, good + "{:process 1 :type :done}", "h:2: field :type: want :invoke, :ok, :fail or :info, not :done (unknown-status)"},
		{"process", jepsenEDN, good + "\n\n{:process 1.5 :type :ok}", "h:4: field :process: want an integer or :nemesis, not 1.5 (wrong-type)"},
		{"f", jepsenEDN, good + "{:process 1 :type :ok :f 3}", "h:2: field :f: want a keyword, not 3 (wrong-type)"},
		{"txn", jepsenEDN, good + "{:process 1 :type :ok :f :txn :value 3}", "h:2: field :value: want a vector of micro-operations"},
		{"micro", jepsenEDN, good + "{:process 1 :type :ok :f :txn :value [[:r :x 1] 3]}", "h:2: field :value[1]: want a micro-operation, [:r k v], [:w k v] or [:append k v], not 3 (wrong-type)"},
		{"micro-operation", jepsenEDN, good + "{:process 1 :type :ok :f :txn :value [[:inc :x 1]]}", "h:2: field :value[0]: no record can say what the micro-operation [:inc :x 1] does"},
		{"micro length", jepsenEDN, good + "{:process 1 :type :ok :f :txn :value [[:w :x]]}", "h:2: field :value[0]: a micro-operation has three elements, not 2: [:w :x] (wrong-length)"},
		{"append of nil", jepsenEDN, good + "{:process 1 :type :ok :f :txn :value [[:append :x nil]]}", "h:2: field :value[0]: nil is appended"},
		{"nothing", jepsenEDN, "; no operation\n", "h: there is no operation in the file (empty-input)"},
		{"nemesis alone", jepsenEDN, "{:type :info, :process :nemesis, :f :start}", "h: there is no operation in the file (empty-input)"},
		{"counter", jepsenEDN, "{:type :ok, :process 1, :f :read, :value 3}\n{:type :ok, :process 0, :f :add, :value 1}", "h:2: a counter's add does not say what it added to"},
		{"transfer", jepsenEDN, "{:type :ok, :process 1, :f :read, :value {0 1}}\n{:type :ok, :process 0, :f :transfer, :value {:from 0 :to 1 :amount 1}}", "h:2: a transfer adds to balances without saying what they were"},
		{"queue", jepsenEDN, good + "{:type :ok, :process 9, :f :dequeue, :value 1}", "h:2: field :f: no record can say what :dequeue does"},
		{"no f", jepsenEDN, "{:type :ok, :process 0, :value 1}", "h:1: field :f: an operation without :f must have micro-operations"},
		{"cas", jepsenEDN, "{:type :ok, :process 0, :f :cas, :value 1}", "h:1: a cas has [old new] for its value, not 1 (wrong-type)"},
		{"set's read", jepsenEDN, "{:type :ok, :process 0, :f :add, :value 1}\n{:type :ok, :process 0, :f :read, :value #{1}}\n{:type :ok, :process 0, :f :read, :value 2}", "h:3: other reads return sets, and this one 2 (wrong-type)"},
		{"bank's read", jepsenEDN, "{:type :ok, :process 0, :f :read, :value {1 1}}\n{:type :ok, :process 0, :f :read, :value 2}", "h:2: want the map of accounts to balances, not 2 (wrong-type)"},

		{"json", jepsenJSON, goodJSON + `{"type":ok}`, "h:2: the operation is not JSON: \"ok\" is no value"},
		{"json of EDN", jepsenJSON, goodJSON + `{"type" #{}}`, "h:2: the operation is not JSON"},
		{"json cut", jepsenJSON, "[" + goodJSON, "h:2: the input ends before the list of operations does (truncated)"},
		{"json deep", jepsenJSON, goodJSON + strings.Repeat("[", 100_000), "h:2: the operation nests more than 72"},

		{"etcd process", porcupineLog, etcd("x\t:ok\t:write\t3"), "h:2: field :process: want an integer or :nemesis"},
		{"etcd type", porcupineLog, etcd("0\t:done\t:write\t3"), "h:2: field :type: want :invoke, :ok, :fail or :info"},
		{"etcd value", porcupineLog, etcd("0\t:ok\t:write\t3 4"), `h:2: want one EDN value, not "3 4" (bad-structure)`},
		{"etcd cut value", porcupineLog, etcd("0\t:ok\t:cas\t[3"), `h:2: the input ends in the middle of the operation (truncated)`},
		{"etcd short", porcupineLog, etcd("0\t:ok"), "h:2: want process, type, function and value behind"},
		{"etcd other text", porcupineLog, etcd("0\t:ok\t:write\t3\nabc"), `h:3: want a line of a log, INFO  jepsen.util - 3 :invoke :read nil, not "abc" (foreign-bytes)`},
		{"etcd long", porcupineLog, etcd("0\t:ok\t:write\t3\n" + strings.Repeat("x", 2<<20)), "h:3: the line has more than 1048576 bytes, the limit of a record (too-large)"},

		{"kv key", porcupineKV, "{:type :ok, :process 0, :f :put, :value \"x\"}", "h:1: field :key: a put needs the :key"},
		{"kv value", porcupineKV, kv(":f :put, :value 3"), "h:1: field :value: want a string, not 3 (wrong-type)"},
		{"kv txn", porcupineKV, kv(":f :txn, :value []"), "h:1: field :value: want a string or nil, not micro-operations (wrong-type)"},
		{"kv f", porcupineKV, kv(":f :write, :value nil"), "h:1: field :f: no record can say what :write does"},
		{"kv two ways", porcupineKV, kv(`:f :append, :value "a"`, `:f :append, :value "b"`, `:f :put, :value "ab"`, `:f :get, :value "ab"`), `h:7: the text "ab" can be put together from what was put and appended in more than one way`},
		{"kv twice", porcupineKV, "{:type :invoke, :process 8, :f :append, :key \"k\", :value \"a\"}\n{:type :invoke, :process 9, :f :append, :key \"k\", :value \"a\"}\n" + kv(`:f :get, :value "a"`), `h:3: the text shows "a", which was appended or put 2 times, and nothing tells which one it is`},
	} {
		t.Run(c.name, func(t *testing.T) {
			hs, err := Read("h", strings.NewReader(c.in), Options{Format: c.format, RecordMax: 1 << 20})
			if err == nil {
				t.Fatalf("accepted: %s", drawAll(hs))
			}
			if reject.From(err) == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("\ngot  %v\nwant %s", err, c.want)
			}
		})
	}
}

// The first refused operation is named, whichever core meets it.
func TestFirstOperationIsNamed(t *testing.T) {
	text := strings.Repeat("{:type :ok, :process 0, :f :txn, :value [[:r :x nil]]}\n", 20_000)
	for _, at := range []int{1, 4096, 4097, 13_000, 19_999} {
		lines := strings.SplitAfter(text, "\n")
		for i := at - 1; i < len(lines)-1; i += 37 {
			lines[i] = "{:type :bad}\n"
		}
		_, err := Read("h", strings.NewReader(strings.Join(lines, "")), Options{})
		if e := reject.From(err); e == nil || e.Pos.Line != int64(at) || e.Pos.Offset != int64(55*(at-1)) {
			t.Errorf("line %d is bad: %v", at, err)
		}
	}
}

func TestOperationReadErrors(t *testing.T) {
	for format, text := range map[string]string{
		jepsenEDN: "{:type :ok, :process 0, :f :txn, :value []}\n", jepsenJSON: `{"type":"ok","process":0,"f":"txn","value":[]}`,
		porcupineLog: "INFO  jepsen.util - 0\t:ok\t:write\t3\n", porcupineKV: "{:type :ok, :process 0, :f :get, :key \"k\"} abc",
	} {
		if _, err := Read("h", &failing{[]byte(text)}, Options{Format: format}); !os.IsPermission(err) {
			t.Errorf("%s: %v", format, err)
		}
	}
}

func FuzzJepsenEDN(f *testing.F)    { fuzz(f, jepsenEDN, testdata(f, jepsenEDN)...) }
func FuzzJepsenJSON(f *testing.F)   { fuzz(f, jepsenJSON, testdata(f, jepsenJSON)...) }
func FuzzPorcupineLog(f *testing.F) { fuzz(f, porcupineLog, testdata(f, porcupineLog)...) }
func FuzzPorcupineKV(f *testing.F)  { fuzz(f, porcupineKV, testdata(f, porcupineKV)...) }

// Encodings that are larger than what they encode are bounded.
func TestEncodingsAreBounded(t *testing.T) {
	var set, log strings.Builder
	for i := range 2100 {
		fmt.Fprintf(&set, "{:type :ok, :process 0, :f :add, :value %d}\n{:type :ok, :process 1, :f :read, :value #{}}\n", i)
		fmt.Fprintf(&log, "INFO  jepsen.util - 0\t:fail\t:cas\t[%d 1]\nINFO  jepsen.util - 1\t:ok\t:write\t1\n", i)
	}
	for format, text := range map[string]string{jepsenEDN: set.String(), porcupineLog: log.String()} {
		_, err := Read("h", strings.NewReader(text), Options{Format: format})
		if e := reject.From(err); e == nil || e.Reason != reject.TooLarge {
			t.Errorf("%s: %v", format, err)
		}
	}
}
