package wire

import (
	"encoding/binary"
	"maps"
	"slices"
)

// Coder writes a state or, if it is Reading, reads one: what a state is made of is listed once, for both. Writing
// changes nothing, as others may be reading the state. What is read is looked at once, at the end, as with Reader.
type Coder struct {
	B       []byte // what was written
	Reading bool
	Reader  // what is read
}

// Reads makes a Coder that reads b.
func Reads(b []byte) Coder { return Coder{Reading: true, Reader: NewReader(b)} }

// Ints are numbers.
func (c *Coder) Ints(ns ...*int64) {
	for _, n := range ns {
		if c.Reading {
			*n = c.Int()
		} else {
			c.B = binary.AppendVarint(c.B, *n)
		}
	}
}

// Uints are numbers that are not negative.
func (c *Coder) Uints(ns ...*uint64) {
	for _, n := range ns {
		if c.Reading {
			*n = c.Uint()
		} else {
			c.B = binary.AppendUvarint(c.B, *n)
		}
	}
}

// Flags are at most eight, in a byte.
func (c *Coder) Flags(flags ...*bool) {
	b := byte(0)
	for i, f := range flags {
		if *f {
			b |= 1 << i
		}
	}
	if !c.Reading {
		c.B = append(c.B, b)
		return
	}
	b = c.Byte()
	for i, f := range flags {
		*f = b>>i&1 != 0
	}
}

// Raw are as many bytes as there is room for.
func (c *Coder) Raw(b []byte) {
	if c.Reading {
		copy(b, c.Take(uint64(len(b))))
	} else {
		c.B = append(c.B, b...)
	}
}

// Octet is a number in a byte.
func Octet[T ~uint8](c *Coder, n *T) {
	b := [1]byte{byte(*n)}
	if c.Raw(b[:]); c.Reading {
		*n = T(b[0])
	}
}

// Words are numbers of eight bytes, the least first.
func (c *Coder) Words(ns ...*uint64) {
	for _, n := range ns {
		if c.Reading {
			*n = c.Fixed()
		} else {
			c.B = binary.LittleEndian.AppendUint64(c.B, *n)
		}
	}
}

// Number is one of another type, and not negative.
func Number[T ~uint8 | ~uint16 | ~uint32 | ~int32 | ~int](c *Coder, n *T) {
	u := uint64(*n)
	if c.Uints(&u); c.Reading {
		if *n = T(u); uint64(*n) != u {
			c.Fail()
		}
	}
}

// Texts are texts.
func (c *Coder) Texts(ts ...*string) {
	for _, t := range ts {
		if c.Reading {
			*t = c.Text()
		} else {
			c.B = AppendText(c.B, *t)
		}
	}
}

// List is at most so many items, each of at least so many bytes (one or more).
func List[T any](c *Coder, l *[]T, most, each int, item func(*T)) {
	if !c.Reading {
		c.B = binary.AppendUvarint(c.B, uint64(len(*l)))
	} else if *l = nil; true {
		if n := c.Count(most, each); n > 0 {
			*l = make([]T, n)
		}
	}
	for i := range *l {
		item(&(*l)[i])
	}
}

// Table is at most so many values, each of at least so many bytes, by their names, in the order of these.
func Table[V any](c *Coder, m map[string]V, most, each int, value func(name string, v *V)) {
	names := slices.Sorted(maps.Keys(m))
	List(c, &names, most, each+1, func(name *string) {
		c.Texts(name)
		v := m[*name]
		if value(*name, &v); c.Reading {
			m[*name] = v
		}
	})
}
