package process

import (
	"fmt"
	"strings"
	"testing"
)

// Of what is written the end is kept, whatever pieces it comes in.
func TestTheEndIsKept(t *testing.T) {
	for _, piece := range []int{1, 1000, tailMax - 1, tailMax, tailMax + 1, 3 * tailMax} {
		var all strings.Builder
		var w tail
		for i := 0; all.Len() < 2*tailMax; i++ {
			p := strings.Repeat(fmt.Sprint(i%10), piece)
			all.WriteString(p)
			if n, err := w.Write([]byte(p)); n != piece || err != nil {
				t.Fatalf("Write = %d, %v", n, err)
			}
			if want := all.String()[max(0, all.Len()-tailMax):]; w.String() != want {
				t.Fatalf("in pieces of %d bytes: after %d bytes %d others are kept", piece, all.Len(), len(w.String()))
			}
			if piece == 1 && i == 2000 {
				break // the length of a piece is what matters
			}
		}
	}
}
