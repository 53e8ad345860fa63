package codec

import (
	"math"
	"strconv"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/reject"
)

// A number is ±0.D × 10^point, where D is its digits without zeros at either
// end. Two numbers are equal exactly if sign, D and point are, so that the text
// made from these three alone is canonical. It is
//
//	123000       an integer, while no more than zerosMax zeros are to be written
//	12.3, 0.0012 a decimal fraction, with no more than zerosMax zeros after "0."
//	1.23e-30     otherwise
//
// and never longer than what was read plus zerosMax and a few bytes: the
// exponent never says how much is allocated.
const (
	zerosMax = 20
	// pointMax bounds |point|. A larger exponent is refused: no database holds
	// such a number, and arithmetic on it stays far from overflow.
	pointMax = 1 << 40
)

// number takes the number at d.p.
func (d *Decoder) number() record.Value {
	negative, point, err := d.decompose()
	if err != nil {
		d.fail(err)
		return record.Value{}
	}
	if n, ok := integral(negative, d.digits, point); ok {
		return record.Int(n)
	}
	var room [64]byte
	return record.Value{Kind: record.KindNumber, Text: string(appendNumber(room[:0], negative, d.digits, point))}
}

// decompose takes the number at d.p and leaves its D in d.digits.
func (d *Decoder) decompose() (negative bool, point int64, err *reject.Error) {
	b, p := d.b, d.p
	from := p
	if b[p] == '-' {
		negative = true
		p++
	}
	run := func() []byte { // takes digits
		start := p
		for p < len(b) && isDigit(b[p]) {
			p++
		}
		return b[start:p]
	}
	whole := run()
	if len(whole) == 0 {
		d.p = p
		return false, 0, d.syntax("a digit")
	}
	if whole[0] == '0' && len(whole) > 1 {
		d.p = p - len(whole) + 1
		return false, 0, d.syntax("no digit after a leading zero")
	}
	var fraction []byte
	if p < len(b) && b[p] == '.' {
		p++
		if fraction = run(); len(fraction) == 0 {
			d.p = p
			return false, 0, d.syntax("a digit")
		}
	}
	var exponent int64
	if p < len(b) && (b[p] == 'e' || b[p] == 'E') {
		p++
		minus := false
		if p < len(b) && (b[p] == '+' || b[p] == '-') {
			minus = b[p] == '-'
			p++
		}
		digits := run()
		if len(digits) == 0 {
			d.p = p
			return false, 0, d.syntax("a digit")
		}
		for _, c := range digits {
			exponent = min(exponent*10+int64(c-'0'), 4*pointMax) // no record is long enough to bring it back
		}
		if minus {
			exponent = -exponent
		}
	}
	d.p = p

	all := append(append(d.digits[:0], whole...), fraction...)
	lead := 0
	for lead < len(all) && all[lead] == '0' {
		lead++
	}
	for len(all) > lead && all[len(all)-1] == '0' {
		all = all[:len(all)-1]
	}
	d.digits = all[:copy(all, all[lead:])]
	if len(d.digits) == 0 {
		return false, 0, nil // zero has no sign
	}
	point = int64(len(whole)) - int64(lead) + exponent
	if point > pointMax || point < -pointMax {
		return false, 0, reject.New(reject.OutOfRange, "the exponent of %s is beyond %d", brief(b[from:p]), int64(pointMax))
	}
	return negative, point, nil
}

// integral returns the number if it is an int64.
func integral(negative bool, digits []byte, point int64) (int64, bool) {
	if len(digits) == 0 {
		return 0, true
	}
	if point > 19 || point < int64(len(digits)) {
		return 0, false
	}
	var u uint64 // below 10^19
	for i := range int(point) {
		u *= 10
		if i < len(digits) {
			u += uint64(digits[i] - '0')
		}
	}
	switch {
	case u <= math.MaxInt64 && negative:
		return -int64(u), true
	case u <= math.MaxInt64:
		return int64(u), true
	case negative && u == 1<<63:
		return math.MinInt64, true
	}
	return 0, false
}

// appendNumber appends the canonical text.
func appendNumber(b []byte, negative bool, digits []byte, point int64) []byte {
	if len(digits) == 0 {
		return append(b, '0')
	}
	if negative {
		b = append(b, '-')
	}
	const zeros = "00000000000000000000" // zerosMax of them
	n := int64(len(digits))
	switch {
	case n <= point && point-n <= zerosMax:
		return append(append(b, digits...), zeros[:point-n]...)
	case 0 < point && point < n:
		return append(append(append(b, digits[:point]...), '.'), digits[point:]...)
	case -zerosMax <= point && point <= 0:
		return append(append(append(b, "0."...), zeros[:-point]...), digits...)
	}
	b = append(b, digits[0])
	if n > 1 {
		b = append(append(b, '.'), digits[1:]...)
	}
	return strconv.AppendInt(append(b, 'e'), point-1, 10)
}
