package incremental

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// An engine that has given its memory to the next one is not kept by it.
func TestSpareEnginesAreLetGo(t *testing.T) {
	const engines = 40
	var e *Engine
	var gone atomic.Int32
	for n := range engines {
		e = New(Options{Levels: []verdict.Level{verdict.SER, verdict.SI, verdict.PC}, Online: true, Spare: e})
		runtime.AddCleanup(e, func(int) { gone.Add(1) }, n)
		for i := range 200 {
			at := int64(n*1000+i) * 10
			x := record.Transaction{Session: fmt.Sprint("s", i%5), HasTimes: true, Start: at, End: at + 5, Status: record.Committed,
				Ops: []record.Op{{Kind: record.Write, Key: fmt.Sprint(i % 7), Value: record.Int(at)}}}
			e.Step(&x, 0)
		}
		e.Tick(int64(n*1000+500) * 10)
	}
	for range 100 { // cleanups run some time after a collection
		if runtime.GC(); gone.Load() >= engines-1 {
			break
		}
		runtime.Gosched()
	}
	if n := gone.Load(); n < engines-2 {
		t.Errorf("%d of %d engines are gone", n, engines)
	}
	runtime.KeepAlive(e)
}
