package target

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/isowatch/isowatch/ingest/record"
)

// listOf is the list that is stored as its elements, each with a comma after it.
func listOf(elements string) record.Value {
	return record.Value{Kind: record.KindList, Text: "[" + strings.TrimSuffix(elements, ",") + "]"}
}

// value is what the one column of a row holds of the item: an integer, or a list as listOf reads it.
func (i Item) value(scan func(...any) error) (record.Value, error) {
	if i.List {
		var elements string
		err := scan(&elements)
		return listOf(elements), err
	}
	var value int64
	err := scan(&value)
	return record.Int(value), err
}

// stored is what a text says that is stored of the item: a number, or a list as listOf reads it.
func (i Item) stored(text string) (record.Value, error) {
	if i.List {
		return listOf(text), nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return record.Null, fmt.Errorf("%s holds no number: %w", i.Name, err)
	}
	return record.Int(n), nil
}
