package wire

import (
	"bytes"
	"encoding/binary"
	"math"
	"reflect"
	"slices"
	"testing"
)

func TestWhatIsWrittenIsRead(t *testing.T) {
	ints := []int64{0, 1, -1, 63, 64, -64, -65, 127, 128, math.MaxInt32, math.MinInt32, math.MaxInt64, math.MinInt64}
	var b []byte
	for _, n := range ints {
		b = binary.AppendVarint(b, n)
		b = binary.AppendUvarint(b, uint64(n))
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
		b = AppendText(append(b, byte(n)), "é"+string(rune(n&0x7f)))
		b = AppendText(b, binary.AppendVarint(nil, n))
	}
	for _, minimal := range []bool{false, true} {
		r := NewReader(b)
		r.Minimal = minimal
		for _, n := range ints {
			if i, u, f, c := r.Int(), r.Uint(), r.Fixed(), r.Byte(); i != n || u != uint64(n) || f != uint64(n) || c != byte(n) {
				t.Errorf("%d was read as %d, %d, %d, %d", n, i, u, f, c)
			}
			if s, raw := r.Text(), r.Bytes(); s != "é"+string(rune(n&0x7f)) || !bytes.Equal(raw, binary.AppendVarint(nil, n)) {
				t.Errorf("behind %d are %q and %x", n, s, raw)
			}
		}
		if !r.Done() {
			t.Errorf("%d bytes are left, OK: %t", r.Len(), r.OK())
		}
	}
}

func TestWhatIsCutIsRefused(t *testing.T) {
	for name, read := range map[string]func(*Reader){
		"byte":  func(r *Reader) { r.Byte() },
		"uint":  func(r *Reader) { r.Uint() },
		"int":   func(r *Reader) { r.Int() },
		"fixed": func(r *Reader) { r.Fixed() },
		"take":  func(r *Reader) { r.Take(8) },
		"text":  func(r *Reader) { _ = r.Text() },
	} {
		whole := map[string][]byte{"byte": {7}, "uint": {0x80, 1}, "int": {0xff, 1}, "fixed": make([]byte, 8), "take": make([]byte, 8), "text": {2, 'a', 'b'}}[name]
		for cut := range len(whole) {
			r := NewReader(whole[:cut])
			read(&r)
			if r.OK() || r.Done() || r.Len() > 0 {
				t.Errorf("%s of %d of %d bytes: OK %t, %d left", name, cut, len(whole), r.OK(), r.Len())
			}
		}
		r := NewReader(whole)
		if read(&r); !r.Done() {
			t.Errorf("%s of %d bytes is refused", name, len(whole))
		}
	}
}

func TestNothingFollowsWhatIsRefused(t *testing.T) {
	r := NewReader([]byte{5, 'a', 1, 2, 3, 4, 5, 6, 7, 8, 9})
	r.Byte()
	r.Fail()
	if r.Byte() != 0 || r.Uint() != 0 || r.Int() != 0 || r.Fixed() != 0 || r.Count(9, 1) != 0 || r.Text() != "" || len(r.Take(0)) != 0 || r.OK() || r.Done() {
		t.Error("a reader goes on after Fail")
	}
}

func TestCount(t *testing.T) {
	for _, c := range []struct {
		bytes      []byte
		most, each int
		want       int
		ok         bool
	}{
		{[]byte{2, 0, 0}, 9, 1, 2, true},
		{[]byte{2, 0, 0}, 2, 1, 2, true},
		{[]byte{2, 0, 0}, 1, 1, 0, false},
		{[]byte{3, 0, 0}, 9, 1, 0, false},
		{[]byte{2, 0, 0, 0}, 9, 2, 0, false},
		{[]byte{2, 0, 0, 0, 0}, 9, 2, 2, true},
		{[]byte{0}, 9, 2, 0, true},
		{[]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, math.MaxInt, 1, 0, false},
	} {
		r := NewReader(c.bytes)
		if n := r.Count(c.most, c.each); n != c.want || r.OK() != c.ok {
			t.Errorf("Count(%d, %d) of % x is %d, OK %t; want %d, %t", c.most, c.each, c.bytes, n, r.OK(), c.want, c.ok)
		}
	}
}

func TestMinimal(t *testing.T) {
	for _, b := range [][]byte{{0x80, 0}, {0x85, 0x80, 0}, {0xff, 0xff, 0}} {
		lax, strict := NewReader(b), NewReader(b)
		strict.Minimal = true
		if want, _ := binary.Uvarint(b); lax.Uint() != want || !lax.Done() {
			t.Errorf("% x is not %d", b, want)
		}
		if strict.Uint(); strict.OK() {
			t.Errorf("% x is taken for minimal", b)
		}
	}
}

// FuzzReader reads any bytes by any program of reads, beside encoding/binary.
func FuzzReader(f *testing.F) {
	f.Add([]byte{1, 0x80, 1, 3, 'a', 'b', 'c', 0, 0, 0, 0, 0, 0, 0, 0}, []byte{0, 1, 5, 3}, false)
	f.Add([]byte{0x80, 0x80, 0}, []byte{2, 2, 4}, true)
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, []byte{1}, false)
	f.Fuzz(func(t *testing.T, data, program []byte, minimal bool) {
		r := NewReader(slices.Clone(data))
		r.Minimal = minimal
		rest, ok := data, true
		take := func(n uint64) []byte {
			if !ok || n > uint64(len(rest)) {
				rest, ok = nil, false
				return nil
			}
			out := rest[:n]
			rest = rest[n:]
			return out
		}
		number := func() uint64 {
			v, n := binary.Uvarint(rest)
			if n <= 0 || minimal && len(binary.AppendUvarint(nil, v)) != n {
				rest, ok = nil, false
				return 0
			}
			rest = rest[n:]
			return v
		}
		for _, step := range program {
			switch step % 6 {
			case 0:
				want := take(1)
				if c := r.Byte(); len(want) == 1 && c != want[0] {
					t.Fatalf("byte %d, want %d", c, want[0])
				}
			case 1:
				if got, want := r.Uint(), number(); got != want {
					t.Fatalf("uint %d, want %d", got, want)
				}
			case 2:
				if got, want := r.Int(), number(); !bytes.Equal(binary.AppendVarint(nil, got), binary.AppendUvarint(nil, want)) {
					t.Fatalf("int %d, want zigzag %d", got, want)
				}
			case 3:
				if got, want := r.Fixed(), take(8); len(want) == 8 && got != binary.LittleEndian.Uint64(want) {
					t.Fatalf("fixed %x, want % x", got, want)
				}
			case 4:
				if got, want := r.Bytes(), take(number()); !bytes.Equal(got, want) {
					t.Fatalf("text %q, want %q", got, want)
				}
			case 5:
				got, n := r.Count(int(step), 2), number()
				if n > uint64(min(int(step), len(rest)/2)) {
					rest, ok, n = nil, false, 0
				}
				if uint64(got) != n {
					t.Fatalf("count %d, want %d", got, n)
				}
			}
			if r.OK() != ok || !bytes.Equal(r.Rest(), rest) {
				t.Fatalf("after step %d: OK %t, % x left; want %t, % x", step%6, r.OK(), r.Rest(), ok, rest)
			}
		}
	})
}

// TestCoder: what a Coder lists is read as it was written, and what is cut or too much is refused.
func TestCoder(t *testing.T) {
	type item struct {
		n    int64
		name string
		deep []uint64
	}
	type state struct {
		a, b  bool
		small uint8
		items []item
		by    map[string]uint64
	}
	code := func(c *Coder, s *state) {
		c.Flags(&s.a, &s.b)
		Number(c, &s.small)
		List(c, &s.items, 3, 3, func(x *item) {
			c.Ints(&x.n)
			c.Texts(&x.name)
			List(c, &x.deep, 9, 1, func(n *uint64) { c.Uints(n) })
		})
		Table(c, s.by, 9, 1, func(_ string, n *uint64) { c.Uints(n) })
	}
	want := state{b: true, small: 200, items: []item{{-5, "é", nil}, {1 << 40, "", []uint64{7, 1 << 63}}}, by: map[string]uint64{"y": 2, "": 1}}
	var w Coder
	code(&w, &want)
	got := state{by: map[string]uint64{}}
	r := Reads(w.B)
	if code(&r, &got); !r.Done() || !reflect.DeepEqual(got, want) {
		t.Fatalf("%+v, want %+v", got, want)
	}
	for n := range w.B {
		r := Reads(w.B[:n])
		if code(&r, &state{by: map[string]uint64{}}); r.Done() {
			t.Errorf("%d bytes of %d are taken", n, len(w.B))
		}
	}
	many := state{items: make([]item, 4)}
	w = Coder{}
	code(&w, &many)
	r = Reads(w.B)
	if code(&r, &state{by: map[string]uint64{}}); r.OK() {
		t.Error("more items than there may be are taken")
	}
	r = Reads([]byte{0, 0x80, 2})
	if code(&r, &state{by: map[string]uint64{}}); r.OK() {
		t.Error("256 is taken for a uint8")
	}
}
