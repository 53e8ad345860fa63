package postgres

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/internal/sql"
)

var classes = map[uint32]sql.Class{pgtype.Int2OID: sql.ClassInt, pgtype.Int4OID: sql.ClassInt, pgtype.Int8OID: sql.ClassInt, pgtype.TextOID: sql.ClassText,
	pgtype.VarcharOID: sql.ClassText, pgtype.BoolOID: sql.ClassBool, pgtype.UUIDOID: sql.ClassUUID, pgtype.NumericOID: sql.ClassNumeric}

// sqlNull is what a column of a row that is there holds where SQL says NULL. A row that is not there is record.Null.
var sqlNull = record.Value{Kind: record.KindObject, Text: `{"null":true}`}

var (
	yes = record.Value{Kind: record.KindBool, Text: "true"}
	no  = record.Value{Kind: record.KindBool, Text: "false"}
)

// received is a value of a type as PostgreSQL or its client sent it; false: it has no one form.
func received(c sql.Class, binaryFormat bool, b []byte) (record.Value, bool) {
	if b == nil {
		return sqlNull, true
	}
	if !binaryFormat {
		return written(c, string(b), 0)
	}
	switch {
	case c == sql.ClassInt && len(b) == 2:
		return record.Int(int64(int16(binary.BigEndian.Uint16(b)))), true
	case c == sql.ClassInt && len(b) == 4:
		return record.Int(int64(int32(binary.BigEndian.Uint32(b)))), true
	case c == sql.ClassInt && len(b) == 8:
		return record.Int(int64(binary.BigEndian.Uint64(b))), true
	case c == sql.ClassText:
		return written(c, string(b), 0)
	case c == sql.ClassBool && len(b) == 1 && b[0] <= 1:
		if b[0] == 1 {
			return yes, true
		}
		return no, true
	case c == sql.ClassUUID && len(b) == 16:
		return record.String(uuidOf(hex.EncodeToString(b))), true
	case c == sql.ClassNumeric:
		var n pgtype.Numeric
		if err := (pgtype.NumericCodec{}).PlanScan(nil, pgtype.NumericOID, pgtype.BinaryFormatCode, &n).
			Scan(b, &n); err != nil {
			return record.Value{}, false
		}
		text, err := n.Value()
		if s, ok := text.(string); err == nil && ok {
			return written(c, s, 0)
		}
	}
	return record.Value{}, false
}

// written is what a column of a class holds when it is given a text. most is how many characters, or digits behind the
// point, it may have and stay what it is; 0: any.
func written(c sql.Class, text string, most int) (record.Value, bool) {
	switch c {
	case sql.ClassInt:
		n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		return record.Int(n), err == nil
	case sql.ClassText:
		if !utf8.ValidString(text) || strings.IndexByte(text, 0) >= 0 || most > 0 && utf8.RuneCountInString(text) > most {
			return record.Value{}, false
		}
		return record.String(text), true
	case sql.ClassBool:
		switch text {
		case "t", "true":
			return yes, true
		case "f", "false":
			return no, true
		}
	case sql.ClassUUID:
		digits := strings.ReplaceAll(strings.ToLower(text), "-", "")
		if _, err := hex.DecodeString(digits); len(digits) == 32 && err == nil {
			return record.String(uuidOf(digits)), true
		}
	case sql.ClassNumeric:
		return decimal(text, most)
	}
	return record.Value{}, false
}

func uuidOf(digits string) string {
	return digits[:8] + "-" + digits[8:12] + "-" + digits[12:16] + "-" + digits[16:20] + "-" + digits[20:]
}

// decimal is a number without zeros in front and behind, as text: 10.50 is 10.5.
func decimal(text string, scaleMax int) (record.Value, bool) {
	digits, negative := strings.CutPrefix(text, "-")
	whole, part, _ := strings.Cut(digits, ".")
	for _, s := range []string{whole, part} {
		for i := range len(s) {
			if s[i] < '0' || s[i] > '9' {
				return record.Value{}, false
			}
		}
	}
	if len(whole)+len(part) == 0 || len(digits) > 1000 {
		return record.Value{}, false
	}
	whole, part = strings.TrimLeft(whole, "0"), strings.TrimRight(part, "0")
	if scaleMax > 0 && len(part) > scaleMax-1 {
		return record.Value{}, false
	}
	out := cmp.Or(whole, "0")
	if part != "" {
		out += "." + part
	}
	if negative && out != "0" {
		out = "-" + out
	}
	return record.String(out), true
}
