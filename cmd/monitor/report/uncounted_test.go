package report

import (
	"strings"
	"testing"
)

// What was not counted is not said to be none.
func TestUncounted(t *testing.T) {
	for _, continued := range []bool{false, true} {
		var b strings.Builder
		if err := (Text{W: &b}).History(&History{File: "a.jsonl", Transactions: 3, Operations: 7, Uncounted: true, Continued: continued}); err != nil {
			t.Fatal(err)
		}
		if got, want := b.String(), "a.jsonl: 3 transactions, 7 operations\n"; !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
