package history

import (
	"archive/tar"
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dustin/go-humanize/english"
	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/reject"
)

// draw writes a history down, a line per transaction:
//
//	s1#1 [s1 1] committed r(x,1) w(x,2)
func draw(h History) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", h.Format, h.DB)
	if h.Header.Initial != nil {
		fmt.Fprintf(&b, " initial=%s", h.Header.Initial)
	}
	if h.Header.MaxSkew != nil {
		fmt.Fprintf(&b, " max_skew=%d", *h.Header.MaxSkew)
	}
	if h.Header.Coverage != nil {
		fmt.Fprintf(&b, " coverage=%s", h.Header.Coverage)
	}
	if h.Duplicates > 0 {
		fmt.Fprintf(&b, " duplicates=%d", h.Duplicates)
	}
	if h.FailedOps > 0 {
		fmt.Fprintf(&b, " failed=%d", h.FailedOps)
	}
	b.WriteByte('\n')
	for _, t := range h.Transactions {
		fmt.Fprintf(&b, "%s [%s", t.ID, t.Session)
		if t.HasSeq {
			fmt.Fprintf(&b, " %d", t.Seq)
		}
		fmt.Fprintf(&b, "] %s", t.Status)
		for _, op := range t.Ops {
			if op.Where != "" {
				fmt.Fprintf(&b, " %s(%s where %s,%s)", op.Kind, op.Key, op.Where, op.Value)
				continue
			}
			fmt.Fprintf(&b, " %s(%s,%s)", op.Kind, op.Key, op.Value)
		}
		if t.HasTimes {
			fmt.Fprintf(&b, " %d..%d", t.Start, t.End)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func drawAll(hs []History) string {
	var all []string
	for _, h := range hs {
		all = append(all, draw(h))
	}
	return strings.Join(all, "---\n")
}

func wantDrawn(t *testing.T, hs []History, err error, want string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range hs {
		checkInvariants(t, h)
	}
	if diff := cmp.Diff(strings.TrimLeft(want, "\n"), drawAll(hs)); diff != "" {
		t.Error(diff)
	}
}

func TestTextFormats(t *testing.T) {
	for _, c := range []struct{ file, want string }{
		{"isowatch/header.jsonl", `
isowatch default initial=zero max_skew=5000000 coverage=complete
a#1 [a 1] committed w(x,1)
a#2 [a 2] aborted w(x,2)
b#1 [b 1] unknown r(x,1) w(y,1)
`},
		{"isowatch/databases.jsonl", `
isowatch orders
a#1 [a 1] committed w(x,1)
b#1 [b 1] committed r(x,1)
---
isowatch billing
a#1 [a 1] committed w(x,1)
---
isowatch default
b#1 [b 1] committed
`},
		{"isowatch/unordered.jsonl", `
isowatch default
a#1 [a 1] committed r(x,3)
b#1 [b 1] committed r(x,2)
a#2 [a 2] committed r(x,5)
mine [b 7] committed r(x,4)
a#3 [a 3] committed r(x,1)
`},
		{"isowatch/duplicates.jsonl", `
isowatch default duplicates=2
a#1 [a 1] committed r(x,1)
a#2 [a 2] committed r(x,[1,2])
`},
		{"isowatch/no-seq.jsonl", `
isowatch default
a@1 [a] committed w(x,1)
b@2 [b] committed r(x,1)
a@3 [a] committed w(x,1)
named [a] committed
`},
		{"polysi-text/sessions.txt", `
polysi-text default initial=zero
t8 [s1 1] committed w(0,1) w(0,2)
t3 [s2 1] committed r(5,0) r(0,1)
t4 [s1 2] committed r(0,2)
t9 [s2 2] committed w(5,-7)
`},
		{"polysi-text/aborted.txt", `
polysi-text default initial=zero
s1#1 [s1 1] aborted w(0,1) w(3,4)
s2#1 [s2 1] aborted w(0,2)
t5 [s1 2] committed w(0,3)
s1#3 [s1 3] aborted w(0,4)
`},
	} {
		t.Run(c.file, func(t *testing.T) {
			hs, err := Open(filepath.Join("testdata", c.file), Options{})
			wantDrawn(t, hs, err, c.want)
		})
	}
}

// dbcopEventT is one event of a history in the test's own notation.
type dbcopEventT struct {
	write      bool
	key, value uint64
	failed     bool
}

type dbcopTxnT struct {
	events []dbcopEventT
	failed bool
}

// dbcopBytes encodes sessions of transactions as dbcop does.
func dbcopBytes(sessions [][]dbcopTxnT) []byte {
	var b []byte
	u64 := func(n int) { b = binary.LittleEndian.AppendUint64(b, uint64(n)) }
	flag := func(set bool) {
		if set {
			b = append(b, 1)
		} else {
			b = append(b, 0)
		}
	}
	for _, n := range []int{1, len(sessions), 10, 2, 2} {
		u64(n)
	}
	for _, s := range []string{"TestDB", "2019-04-03T10:48:51.745128276+02:00", "2019-04-03T10:48:56+02:00"} {
		u64(len(s))
		b = append(b, s...)
	}
	u64(len(sessions))
	for _, txns := range sessions {
		u64(len(txns))
		for _, t := range txns {
			u64(len(t.events))
			for _, e := range t.events {
				flag(e.write)
				b = binary.LittleEndian.AppendUint64(b, e.key)
				b = binary.LittleEndian.AppendUint64(b, e.value)
				flag(!e.failed)
			}
			flag(!t.failed)
		}
	}
	return b
}

var dbcopSample = dbcopBytes([][]dbcopTxnT{
	{
		{events: []dbcopEventT{{key: 3}, {write: true, key: 3, value: 1}}},
		{},
	},
	{
		{events: []dbcopEventT{{key: 3, failed: true}, {write: true, key: 3, value: 2, failed: true}, {key: 7, value: 1 << 63}}},
		{events: []dbcopEventT{{write: true, key: 3, value: 3}, {key: 3, failed: true}, {write: true, key: 4, value: 1, failed: true}}, failed: true},
	},
})

const dbcopDrawn = `
dbcop-bincode default initial=zero failed=3
s0#1 [s0 1] committed r(3,0) w(3,1)
s0#2 [s0 2] committed
s1#1 [s1 1] committed r(7,9223372036854775808)
s1#2 [s1 2] aborted w(3,3) w(4,1)
`

func TestDbcop(t *testing.T) {
	hs, err := Read("h", bytes.NewReader(dbcopSample), Options{})
	wantDrawn(t, hs, err, dbcopDrawn)
}

// cobraLogT encodes a log from words: "S 1", "W wid key", "R wtxn wid key", "C 1".
// Numbers may be hexadecimal; extra zero bytes follow S and C.
func cobraLogT(t testing.TB, text string, extra int) []byte {
	t.Helper()
	var b []byte
	for line := range strings.Lines(text) {
		var kind string
		var n [3]uint64
		if _, err := fmt.Sscan(line, &kind); err != nil {
			continue
		}
		count := map[string]int{"S": 1, "C": 1, "W": 2, "R": 3}[kind]
		rest := strings.Fields(line)[1:]
		if len(rest) != count {
			t.Fatalf("the test's line %q", line)
		}
		b = append(b, kind[0])
		for i, f := range rest {
			if _, err := fmt.Sscanf(f, "%v", &n[i]); err != nil {
				t.Fatal(err)
			}
			b = binary.BigEndian.AppendUint64(b, n[i])
		}
		if count == 1 {
			b = append(b, make([]byte, extra)...)
		} else {
			b = append(b, "hashhash"...)
		}
	}
	return b
}

var cobraTexts = map[string]string{
	"T3.log": `
S 100
R 0xbebeebee 0xbebeebee 5
W 18446744073709551615 5
C 100
S 101
R 0xdeadbeef 0xdeadbeef 6
R 100 18446744073709551615 5
C 101`,
	"T12.log": `
S 200
W 71 6
C 200
S 201
W 72 6`,
}

const cobraDrawn = `
cobra-logs default initial=absent
s3#1 [s3 1] committed r(5,null) w(5,18446744073709551615)
s3#2 [s3 2] committed r(6,null) r(5,18446744073709551615)
s12#1 [s12 1] committed w(6,71)
s12#2 [s12 2] unknown w(6,72)
`

func cobraDir(t *testing.T, extra int) string {
	dir := t.TempDir()
	for name, text := range cobraTexts {
		write(t, filepath.Join(dir, name), cobraLogT(t, text, extra))
	}
	write(t, filepath.Join(dir, "T3.debug"), []byte("text"))
	return dir
}

func write(t *testing.T, file string, b []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestCobraDirectory(t *testing.T) {
	for _, extra := range []int{0, 8} {
		dir := cobraDir(t, extra)
		hs, err := Open(dir, Options{})
		wantDrawn(t, hs, err, cobraDrawn)
		if format, err := Recognise(dir); format != "cobra-logs" || err != nil {
			t.Errorf("recognised as %q, %v", format, err)
		}
	}
}

func TestCobraLogAlone(t *testing.T) {
	hs, err := Read("T3.log", bytes.NewReader(cobraLogT(t, cobraTexts["T3.log"], 0)), Options{})
	wantDrawn(t, hs, err, `
cobra-logs default initial=absent
s0#1 [s0 1] committed r(5,null) w(5,18446744073709551615)
s0#2 [s0 2] committed r(6,null) r(5,18446744073709551615)
`)
}

type tarFile struct {
	name string
	b    []byte
}

func tarBytes(t testing.TB, files ...tarFile) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		if err := w.WriteHeader(&tar.Header{Name: f.name, Size: int64(len(f.b)), Mode: 0o644, Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(f.b); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gzipBytes(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func zstdBytes(t testing.TB, b []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	return w.EncodeAll(b, nil)
}

func TestPacking(t *testing.T) {
	logs := tarBytes(t,
		tarFile{"run/T12.log", cobraLogT(t, cobraTexts["T12.log"], 0)},
		tarFile{"run/T12.debug", []byte("text")},
		tarFile{"run/.hidden", []byte("text")},
		tarFile{"run/T3.log", cobraLogT(t, cobraTexts["T3.log"], 0)})
	one := []byte(`{"session":"a","seq":1,"status":"committed","ops":[["w","x",1]]}`)
	const oneDrawn = "isowatch default\na#1 [a 1] committed w(x,1)\n"
	several := tarBytes(t, tarFile{"a.jsonl", one}, tarFile{"b.bincode.gz", gzipBytes(t, dbcopSample)}, tarFile{"c.tar", logs})
	for _, c := range []struct {
		name, want string
		b          []byte
	}{
		{"gzip", oneDrawn, gzipBytes(t, one)},
		{"zstd", oneDrawn, zstdBytes(t, one)},
		{"gzip twice", oneDrawn, append(gzipBytes(t, one), gzipBytes(t, []byte("\n"))...)},
		{"zstd in gzip", oneDrawn, gzipBytes(t, zstdBytes(t, one))},
		{"byte order mark", oneDrawn, append([]byte("\xef\xbb\xbf"), one...)},
		{"CRLF", oneDrawn, append([]byte("\r\n"), append(one, "\r\n"...)...)},
		{"tar", cobraDrawn, logs},
		{"tar in gzip", cobraDrawn, gzipBytes(t, logs)},
		{"tar in zstd", cobraDrawn, zstdBytes(t, logs)},
		{"tar of several", oneDrawn + "---" + dbcopDrawn + "---" + cobraDrawn, several},
	} {
		t.Run(c.name, func(t *testing.T) {
			hs, err := Read("h", bytes.NewReader(c.b), Options{})
			wantDrawn(t, hs, err, c.want)
			file := filepath.Join(t.TempDir(), "h")
			write(t, file, c.b)
			if format, err := Recognise(file); err != nil || format != hs[0].Format {
				t.Errorf("recognised as %q, %v", format, err)
			}
		})
	}
}

// Every bad input gets a reason and a place.
func TestRefusals(t *testing.T) {
	line := `{"session":"a","seq":1,"status":"committed","ops":[["w","x",1]]}` + "\n"
	log := cobraLogT(t, cobraTexts["T3.log"], 0)
	cobra := func(text string) []byte { return cobraLogT(t, text, 0) }
	deep := []byte(line)
	for range 6 {
		deep = gzipBytes(t, deep)
	}
	damaged := gzipBytes(t, bytes.Repeat([]byte(line), 100))
	damaged[len(damaged)/2] ^= 0x55
	badFlag := bytes.Clone(dbcopSample)
	badFlag[len(badFlag)-1] = 7
	for _, c := range []struct {
		name string
		in   []byte
		opt  Options
		want string
	}{
		{"empty", nil, Options{}, "h: the file is empty (empty-input)"},
		{"empty gzip", gzipBytes(t, nil), Options{}, "h: the file is empty (empty-input)"},
		{"blanks", []byte(" \n\n"), Options{Format: "isowatch"}, "h: there is no transaction in the file (empty-input)"},
		{"header only", []byte(`{"history":{}}`), Options{}, "h: there is no transaction in the file (empty-input)"},
		{"foreign", []byte("# Read me\nplease"), Options{}, `h: the bytes, beginning with "# Read me", are of no format that is recognised: ` + english.WordSeries(Formats(), "and") + ` (foreign-bytes)`},
		{"unknown format", []byte(line), Options{Format: "xml"}, `no format is called "xml": want auto, ` + english.WordSeries(Formats(), "and") + ` (unsupported)`},
		{"bad record", []byte(line + "\n" + `{"session":"a","status":"committed","ops":[["w","x",1],["r",7,1]]}` + "\n"), Options{},
			`h:3: field ops[1][1]: want a string for the key, not a number (wrong-type)`},
		{"bad header", []byte(`{"history":{"initial":7}}` + "\n" + line), Options{}, `h:1: field history.initial: want a string`},
		{"header behind", []byte(line + `{"history":{}}`), Options{}, `h:2: field history: a header is no record: it stands only on the first line of a file (misplaced-header)`},
		{"cut record", []byte(line + line[:20]), Options{}, `h:2: the record ends where ':' should follow; the input ends in this line (truncated)`},
		{"not JSON lines", []byte("{\"session\":\n\"a\"}"), Options{}, `h:1: field session: the record ends where`},
		{"long line", []byte(line + `{"session":"` + strings.Repeat("a", 3<<20) + `"}`), Options{RecordMax: 1 << 20}, "h:2: the line has more than 1048576 bytes, the limit of a record (too-large)"},
		{"longer line", []byte(line + `{"session":"` + strings.Repeat("a", 500) + `"}`), Options{RecordMax: 100}, "h:2: the record has 514 bytes, more than the limit of 100 (too-large)"},
		{"other content", []byte(line + strings.Replace(line, `"x",1`, `"x",2`, 1)), Options{}, `h:2: field id: line 1 has the id "a#1" too, with other content (duplicate-id)`},
		{"other status", []byte(line + strings.Replace(line, `committed`, `aborted`, 1)), Options{}, `(duplicate-id)`},
		{"same seq", []byte(line + strings.Replace(line, `"seq":1`, `"seq":1,"id":"other"`, 1)), Options{}, `h:2: field seq: line 1 has the seq 1 of session "a" too (duplicate-seq)`},
		{"mixed", []byte(strings.Replace(line, `"seq":1,`, `"seq":2,`, 1) + strings.Replace(line, `"seq":1,`, ``, 1) + line), Options{},
			`h:2: field seq: the record of session "a" has no seq, and the others are not in the order of theirs (seq-mixed)`},
		{"input too large", bytes.Repeat([]byte(line), 100), Options{SizeMax: 1000}, "h: the input has more than 1000 bytes when unpacked, the limit (too-large)"},
		{"bomb", gzipBytes(t, make([]byte, 10<<20)), Options{Format: "isowatch", SizeMax: 1 << 20}, "h: the input has more than 1048576 bytes when unpacked, the limit (too-large)"},
		{"cut gzip", gzipBytes(t, []byte(line))[:30], Options{}, "h: the gzip data ends in the middle (truncated)"},
		{"cut gzip head", gzipBytes(t, []byte(line))[:5], Options{}, "h: the compressed data ends in the middle (truncated)"},
		{"cut zstd", zstdBytes(t, []byte(line))[:30], Options{}, "h: the zstd data ends in the middle (truncated)"},
		{"damaged gzip", damaged, Options{}, "h: the gzip data is damaged"},
		{"packed too often", deep, Options{}, "h: the input is packed more than 4 times"},
		{"cut tar", tarBytes(t, tarFile{"a.jsonl", bytes.Repeat([]byte(line), 20)})[:900], Options{}, "h: the tar ends in the middle (truncated)"},
		{"empty tar", tarBytes(t, tarFile{".x", nil}), Options{}, "h: the tar has no history in it (empty-input)"},
		{"bad file in tar", tarBytes(t, tarFile{"d/a.jsonl", []byte(line + "{}")}), Options{}, "h!d/a.jsonl:2: field session"},

		{"dbcop cut", dbcopSample[:len(dbcopSample)-20], Options{}, "h: field byte "},
		{"dbcop cut head", dbcopSample[:50], Options{Format: "dbcop-bincode"}, "the history ends in the middle (truncated)"},
		{"dbcop longer", append(bytes.Clone(dbcopSample), 0), Options{}, "something follows the last session (bad-structure)"},
		{"dbcop flag", badFlag, Options{}, "h at byte 334: field s1#2: the success of the transaction is 7, neither 0 nor 1 (bad-structure)"},
		{"dbcop empty", dbcopBytes(nil), Options{}, "h: the history has no transaction in it (empty-input)"},
		{"dbcop of text", []byte(line), Options{Format: "dbcop-bincode"}, "bytes (bad-structure)"},

		{"polysi number", []byte("r(0,1,1,1)\nr(0,x,1,1)\n"), Options{}, `h:2: field value: want an integer, not "x" (wrong-type)`},
		{"polysi range", []byte("r(0,1,1,1)\nr(99999999999999999999,1,1,1)\n"), Options{}, `h:2: field key: 99999999999999999999 does not fit 64 bits (out-of-range)`},
		{"polysi count", []byte("r(0,1,1,1)\nr(0,1,1)\n"), Options{}, `h:2: an operation has four numbers`},
		{"polysi more", []byte("r(0,1,1,1)\nr(0,1,1,1,1)\n"), Options{}, `h:2: an operation has four numbers`},
		{"polysi cut", []byte("r(0,1,1,1)\nr(0,1,1,1"), Options{}, `h:2: the line has no closing bracket (truncated)`},
		{"polysi foreign", []byte("r(0,1,1,1)\n\nx(0,1,1,1)\n"), Options{}, `h:3: want r(key,value,session,txn) or w(key,value,session,txn), not "x(0,1,1,1)" (foreign-bytes)`},
		{"polysi txn", []byte("r(0,1,1,1)\nr(0,1,1,-2)\n"), Options{}, `h:2: field txn: -2 is negative`},
		{"polysi session", []byte("r(0,1,1,1)\nr(0,1,-1,1)\n"), Options{}, `h:2: field session: -1 is negative (negative)`},
		{"polysi two sessions", []byte("r(0,1,1,1)\nr(0,1,2,1)\n"), Options{}, `h:2: field session: transaction 1 is of session 1 already, not of session 2 (bad-structure)`},
		{"polysi long line", []byte("r(0,1,1,1)\n" + strings.Repeat("r", 10_000)), Options{}, `h:2: the line has more than 4096 bytes (too-large)`},
		{"polysi of aborted reads", []byte("r(0,1,1,-1)\n"), Options{}, `h: there is no operation in the file (empty-input)`},

		{"cobra cut", log[:len(log)-4], Options{}, "the log ends in the middle of a record (truncated)"},
		{"cobra byte", append(bytes.Clone(log), 'A'), Options{}, `a record begins with S, C, W or R, not with 'A' (bad-structure)`},
		{"cobra nested", cobra("S 1\nW 1 1\nS 2\n"), Options{}, "h at byte 34: a transaction starts before transaction 1 has ended (bad-structure)"},
		{"cobra outside", cobra("S 1\nC 1\nW 1 1\n"), Options{}, "h at byte 18: the record 'W' stands outside of a transaction (bad-structure)"},
		{"cobra other commit", cobra("S 1\nC 2\n"), Options{}, "transaction 2 is committed inside transaction 1 (bad-structure)"},
		{"cobra deleted", cobra("S 1\nR 5 0xabcdefab 1\nC 1"), Options{}, "(unsupported)"},
		{"cobra twice", tarBytes(t, tarFile{"T1.log", log}, tarFile{"T01.log", log}), Options{}, "h!T01.log: the history has the log T1.log twice (bad-structure)"},
		{"cobra empty logs", tarBytes(t, tarFile{"T1.log", nil}), Options{}, "h: the logs have no transaction in them (empty-input)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			hs, err := Read("h", bytes.NewReader(c.in), c.opt)
			if err == nil {
				t.Fatalf("accepted: %s", drawAll(hs))
			}
			e := reject.From(err)
			if e == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("\ngot  %v\nwant %s", err, c.want)
			}
			if c.name != "unknown format" && e != nil && !strings.HasPrefix(e.Pos.Source, "h") {
				t.Errorf("the error has no place: %v", err)
			}
		})
	}
}

// A record that ends without its line break and without its end was cut.
func TestCutLineIsTruncated(t *testing.T) {
	line := `{"session":"a","seq":1,"status":"committed","ops":[["w","x",1]]}`
	for n := 1; n < len(line); n++ {
		_, err := Read("h", strings.NewReader(line+"\n"+line[:n]), Options{})
		if e := reject.From(err); e == nil || e.Reason != reject.Truncated || e.Pos.Line != 2 {
			t.Errorf("%s\n%v", line[:n], err)
		}
	}
}

// The pipeline gives the same, and the first error, whatever the chunks.
func TestLargeInput(t *testing.T) {
	var b bytes.Buffer
	b.WriteString(`{"history":{"initial":"absent"}}` + "\n")
	const n = 30_000
	for i := range n {
		if i%1000 == 0 {
			b.WriteString(strings.Repeat("\n", i%7))
		}
		fmt.Fprintf(&b, `{"session":"s%d","seq":%d,"status":"committed","ops":[["w","k%d",%d],["r","k%d","text %d"]]}`+"\n", i%13, i, i%97, i, i%89, i)
	}
	hs, err := Read("h", bytes.NewReader(b.Bytes()), Options{})
	if err != nil || len(hs) != 1 || len(hs[0].Transactions) != n || *hs[0].Header.Initial != record.InitialAbsent {
		t.Fatalf("%d histories, %v", len(hs), err)
	}
	for i, x := range hs[0].Transactions {
		want := record.Transaction{DB: "default", Session: fmt.Sprintf("s%d", i%13), Seq: int64(i), HasSeq: true, ID: fmt.Sprintf("s%d#%d", i%13, i),
			Ops: []record.Op{{Kind: record.Write, Key: fmt.Sprintf("k%d", i%97), Value: record.Int(int64(i))},
				{Kind: record.Read, Key: fmt.Sprintf("k%d", i%89), Value: record.String(fmt.Sprintf("text %d", i))}}}
		if !codec.Equal(&x, &want) {
			t.Fatalf("transaction %d is %+v", i, x)
		}
	}
	// Every later line may be wrong as well: the first is named.
	lines := bytes.SplitAfter(b.Bytes(), newline)
	for _, at := range []int{3, 5000, 17_000, len(lines) - 2} {
		bad := bytes.Join(lines[:at], nil)
		bad = append(bad, bytes.Repeat([]byte("{}\n"), 20_000)...)
		_, err := Read("h", bytes.NewReader(bad), Options{})
		if e := reject.From(err); e == nil || e.Pos.Line != int64(at+1) || e.Pos.Offset != int64(len(bytes.Join(lines[:at], nil))) {
			t.Errorf("line %d is bad: %v", at+1, err)
		}
	}
}

// expanded are packed histories in the other form.
func expanded(t *testing.T, hs []History) []History {
	t.Helper()
	for i := range hs {
		if hs[i].Records == nil || hs[i].Transactions != nil {
			t.Fatal("not packed as asked for")
		}
		hs[i].Transactions, hs[i].Records = hs[i].Records.Transactions(), nil
	}
	return hs
}

// Packed or not, a history is the same, in every format and however irregular.
func TestPackedIsTheSame(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "*", "*"))
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	regular := 0
	for _, file := range files {
		want, err := Open(file, Options{})
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		packed, err := Open(file, Options{Packed: true})
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		for _, h := range packed {
			if h.Records.Summary().Regular {
				regular++
			}
		}
		if got := expanded(t, packed); !cmp.Equal(got, want) {
			t.Errorf("%s: %s", file, cmp.Diff(want, got))
		}
	}
	if regular == 0 || regular == len(files) {
		t.Errorf("%d of %d histories are regular: no test of both ways", regular, len(files))
	}
}

func TestWalk(t *testing.T) {
	root := t.TempDir()
	line := []byte(`{"session":"a","seq":1,"status":"committed","ops":[]}`)
	write(t, filepath.Join(root, "b.jsonl"), line)
	write(t, filepath.Join(root, "README.md"), []byte("# Read me"))
	write(t, filepath.Join(root, ".git", "x.jsonl"), line)
	write(t, filepath.Join(root, ".hidden"), line)
	write(t, filepath.Join(root, "a", "h.bincode.gz"), gzipBytes(t, dbcopSample))
	write(t, filepath.Join(root, "a", "cobra", "T1.log"), cobraLogT(t, cobraTexts["T3.log"], 0))
	write(t, filepath.Join(root, "a", "cobra", "T1.debug"), []byte("text"))
	write(t, filepath.Join(root, "a", "empty"), nil)
	write(t, filepath.Join(root, "a", "cut.gz"), gzipBytes(t, line)[:20])
	got, err := Walk(root)
	if err != nil {
		t.Fatal(err)
	}
	want := []Entry{
		{"README.md", ""},
		{"a/cobra", "cobra-logs"},
		{"a/cut.gz", ""},
		{"a/empty", ""},
		{"a/h.bincode.gz", "dbcop-bincode"},
		{"b.jsonl", "isowatch"},
	}
	for i := range want {
		want[i].Path = filepath.Join(root, filepath.FromSlash(want[i].Path))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	one, err := Walk(filepath.Join(root, "b.jsonl"))
	if diff := cmp.Diff(want[5:], one); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if cobra, err := Walk(filepath.Join(root, "a", "cobra")); err != nil || len(cobra) != 1 || cobra[0].Format != "cobra-logs" {
		t.Errorf("a directory that is one history: %v, %v", cobra, err)
	}
	if _, err := Walk(filepath.Join(root, "nowhere")); !os.IsNotExist(err) {
		t.Errorf("no such path: %v", err)
	}
	if _, err := Walk(t.TempDir()); reject.From(err) == nil || reject.From(err).Reason != reject.EmptyInput {
		t.Errorf("an empty directory: %v", err)
	}
}

func TestOpenErrors(t *testing.T) {
	if _, err := Open(filepath.Join(t.TempDir(), "nowhere"), Options{}); !os.IsNotExist(err) || reject.From(err) != nil {
		t.Errorf("no such file: %v", err)
	}
	if _, err := Open(t.TempDir(), Options{}); reject.From(err) == nil || reject.From(err).Reason != reject.ForeignBytes {
		t.Errorf("a directory that is no history: %v", err)
	}
	twice := cobraDir(t, 0)
	write(t, filepath.Join(twice, "T003.log"), nil)
	if _, err := Open(twice, Options{}); reject.From(err) == nil || reject.From(err).Reason != reject.BadStructure {
		t.Errorf("two logs with one number: %v", err)
	}
	if _, err := Open(cobraDir(t, 0), Options{SizeMax: 10}); reject.From(err) == nil || reject.From(err).Reason != reject.TooLarge {
		t.Errorf("logs above the limit: %v", err)
	}
}

// failing is a disk that fails after some bytes.
type failing struct{ left []byte }

func (f *failing) Read(p []byte) (int, error) {
	if len(f.left) == 0 {
		return 0, os.ErrPermission
	}
	n := copy(p, f.left)
	f.left = f.left[n:]
	return n, nil
}

// The environment's failures are not the input's fault.
func TestReadErrors(t *testing.T) {
	line := []byte(`{"session":"a","seq":1,"status":"committed","ops":[]}` + "\n")
	for name, b := range map[string][]byte{
		"at once":      nil,
		"isowatch":     line,
		"gzip":         gzipBytes(t, line)[:20],
		"zstd":         zstdBytes(t, bytes.Repeat(line, 100))[:30],
		"tar":          tarBytes(t, tarFile{"a.jsonl", line})[:600],
		"dbcop":        dbcopSample[:len(dbcopSample)-1],
		"dbcop's end":  dbcopSample,
		"polysi":       []byte("r(0,1,1,1)\n"),
		"cobra":        cobraLogT(t, cobraTexts["T3.log"], 0),
		"before bytes": []byte("{"),
	} {
		if _, err := Read("h", &failing{b}, Options{}); !os.IsPermission(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
