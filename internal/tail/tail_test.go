package tail_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/isowatch/isowatch/internal/tail"
)

// Of what is written the end is kept, whatever pieces it comes in.
func TestTheEndIsKept(t *testing.T) {
	for _, piece := range []int{1, 1000, tail.Max - 1, tail.Max, tail.Max + 1, 3 * tail.Max} {
		var all strings.Builder
		var w tail.Writer
		for i := 0; all.Len() < 2*tail.Max; i++ {
			p := strings.Repeat(fmt.Sprint(i%10), piece)
			all.WriteString(p)
			if n, err := w.Write([]byte(p)); n != piece || err != nil {
				t.Fatalf("Write = %d, %v", n, err)
			}
			if want := all.String()[max(0, all.Len()-tail.Max):]; w.String() != want {
				t.Fatalf("in pieces of %d bytes: after %d bytes %d others are kept", piece, all.Len(), len(w.String()))
			}
			if piece == 1 && i == 2000 {
				break // the length of a piece is what matters
			}
		}
	}
}
