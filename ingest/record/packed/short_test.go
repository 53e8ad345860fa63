package packed

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/isowatch/isowatch/ingest/record"
)

// texts are of lengths around those that matter, in letters of one to four bytes, some of them
// escaped in JSON, and often with a common beginning.
func texts(rng *rand.Rand, n int) []string {
	var out []string
	letters := []string{"a", "é", "…", "😀", `"`, `\`, "\n", "\x01", ",", "]", "}", ":"}
	for range n {
		size := []int{0, 1, 3, beginning - 1, beginning, TextMax - 2, TextMax - 1, TextMax, TextMax + 1, TextMax + 2, 3 * TextMax, 20 * TextMax}[rng.IntN(12)]
		var b strings.Builder
		letter := letters[rng.IntN(len(letters))]
		for b.Len() < size {
			if b.Len() > size-2*utf8.UTFMax {
				letter = letters[rng.IntN(len(letters))]
			}
			b.WriteString(letter)
		}
		out = append(out, b.String())
	}
	return out
}

// A short text is short, text, stands for one text only, and for itself.
func TestShortened(t *testing.T) {
	of := map[string]string{}
	for _, text := range texts(rand.New(rand.NewPCG(1, 1)), 3000) {
		short := Shortened(text)
		if len(short) > TextMax || !utf8.ValidString(short) || Shortened(short) != short || len(text) <= TextMax && short != text {
			t.Fatalf("%d bytes become %q", len(text), short)
		}
		if was, ok := of[short]; ok && was != text {
			t.Fatalf("%.200q stands for two texts", short)
		}
		if string(Shortened([]byte(text))) != short {
			t.Fatalf("bytes become another text than %q", short)
		}
		of[short] = text
	}
	if got, want := Shortened(strings.Repeat("a", TextMax+1)), strings.Repeat("a", beginning)+"…(1025 bytes, sha256 "; !strings.HasPrefix(got, want) {
		t.Errorf("it is %q, which a person can't tell from any other", got)
	}
}

// An element of a list that is read is what was appended, short or not; and what is made short is
// canonical.
func TestShortElements(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		var elements, want []record.Value
		list := []byte{'['}
		for i, text := range texts(rng, rng.IntN(6)) {
			v := record.String(text)
			switch rng.IntN(5) {
			case 0:
				v = record.Int(rng.Int64())
			case 1:
				v = record.Value{Kind: record.KindNumber, Text: "1." + strings.Repeat("3", len(text)+1)}
			case 2:
				v = record.Value{Kind: record.KindList, Text: "[null," + record.String(text).String() + "]"}
			case 3:
				v = record.Value{Kind: record.KindObject, Text: `{"` + strings.Repeat("n", len(text)) + `":` + record.String(text).String() + "}"}
			}
			elements = append(elements, v)
			want = append(want, shortValue(v))
			if i > 0 {
				list = append(list, ',')
			}
			list = v.AppendJSON(list)
		}
		list = append(list, ']')
		got := shortValue(record.Value{Kind: record.KindList, Text: string(list)}).Elements()
		if len(list) <= TextMax {
			want = elements
		}
		for i := range want {
			want[i] = shortValue(want[i])
		}
		if len(got) != len(want) {
			t.Fatalf("%d elements become %d", len(want), len(got))
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("element %d is %+.200v in the list, %+.200v alone", i, got[i], want[i])
			}
		}
	}
}

// What a record keeps of its texts is bounded, whatever they are; the form of a value is kept,
// and so are short records.
func TestShortRecords(t *testing.T) {
	long := strings.Repeat("long ", TextMax)
	x := record.Transaction{DB: "d", Session: long + "s", ID: long + "i", Ops: []record.Op{
		{Kind: record.Write, Key: long, Value: record.Int(1)},
		{Kind: record.Write, Key: long + "2", Value: record.Null},
		{Kind: record.Append, Key: "k", Value: record.String(long)},
		{Kind: record.Read, Key: "k", Value: record.Value{Kind: record.KindList, Text: fmt.Sprintf(`["%s",1,{"a":"%s"}]`, long, long)}},
		{Kind: record.Read, Key: "row", Value: record.Value{Kind: record.KindObject, Text: fmt.Sprintf(`{"a":"%s","%s":1}`, long, long)}},
		{Kind: record.Read, Key: "π", Value: record.Value{Kind: record.KindNumber, Text: "3." + strings.Repeat("1", 5000)}},
	}}
	sealed := func(shortening bool, records ...record.Transaction) *Block {
		c := Chunk{Summing: true, Shortening: shortening}
		for i := range records {
			c.Add(&records[i])
		}
		return c.Seal()
	}
	short := sealed(true, x).Copy(0)
	names := len(short.Session) + len(short.ID)
	if names > 2*TextMax || !strings.HasPrefix(short.Session, "long long ") {
		t.Errorf("the names are %q and %q", short.Session, short.ID)
	}
	for i, op := range short.Ops {
		bounded := len(op.Value.Text) <= 2*TextMax || i == 4 // but for the names of fields
		if op.Kind != x.Ops[i].Kind || len(op.Key) > TextMax || !bounded || op.Value.Kind != x.Ops[i].Value.Kind && i != 5 {
			t.Errorf("operation %d is %+v", i, op)
		}
	}
	if a, b := short.Ops[2].Value, short.Ops[3].Value.Elements()[0]; a != b {
		t.Errorf("%q was appended and %q read", a, b)
	}
	if again := sealed(true, short).Copy(0); fmt.Sprint(again) != fmt.Sprint(short) {
		t.Error("short records change when they are added again")
	}
	usual := typical(100)
	if a, b := sealed(true, usual...).Marshal(nil), sealed(false, usual...).Marshal(nil); string(a) != string(b) {
		t.Error("the usual records change")
	}
}
