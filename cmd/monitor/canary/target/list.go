package target

import (
	"strings"

	"github.com/isowatch/isowatch/ingest/record"
)

// listOf is the list that is stored as its elements, each with a comma after it.
func listOf(elements string) record.Value {
	return record.Value{Kind: record.KindList, Text: "[" + strings.TrimSuffix(elements, ",") + "]"}
}
