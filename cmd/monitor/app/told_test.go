package app

import (
	"fmt"
	"testing"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/internal/wire"
)

// TestBrokenStaysSo: that a level is broken is remembered however many alerts come after it,
// of which the old ones are not, and over a restart, until another configuration is to say.
func TestBrokenStaysSo(t *testing.T) {
	told := newTold()
	told.breaks([]string{"lin"})
	for i := range 3 * toldMax {
		told.cover(fmt.Sprint("anomaly ", i), outcome{level: verdict.SER, id: fmt.Sprint("alert ", i)})
		told.breaks([]string{"ser"})
		if i%1000 == 0 {
			var c wire.Coder
			told.code(&c)
			r := wire.Reads(c.B)
			told = newTold()
			if told.code(&r); !r.Done() {
				t.Fatalf("after %d it is not read again", i)
			}
		}
	}
	if !told.broken("lin") || !told.broken("ser") || told.broken("si") {
		t.Errorf("broken: lin %v, ser %v, si %v", told.broken("lin"), told.broken("ser"), told.broken("si"))
	}
	if last := fmt.Sprint("alert ", 3*toldMax-1); !told.has(last) || told.has("alert 0") || len(told.cur)+len(told.old) > 2*toldMax {
		t.Errorf("it has the last: %v, the first: %v, %d in all", told.has(last), told.has("alert 0"), len(told.cur)+len(told.old))
	}
	if told.doubt(); told.broken("lin") || told.broken("ser") || !told.doubted() || !told.has(fmt.Sprint("alert ", 3*toldMax-1)) {
		t.Error("another configuration does not begin without what was broken, and with what was told")
	}
}
