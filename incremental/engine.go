package incremental

import (
	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/record"
)

// Engine checks one history.
type Engine struct{ opt Options }

// New makes an engine.
func New(opt Options) *Engine { return &Engine{opt: opt} }

// Step takes in one transaction. The record is not kept: whoever calls keeps
// it under the returned number (0, 1, 2, … in the order of Step) for as long as
// evidence may be asked for. Records of a session come in session order.
// arrival is the broker's time for records without times, else ignored.
func (e *Engine) Step(t *record.Transaction, arrival int64) verdict.TxnID { return 0 }

// Tick says that no record ending before watermark will come, and solves.
func (e *Engine) Tick(watermark int64) Output { return Output{} }

// Close says that the input has ended and gives the verdicts, one per level of
// Options in that order. Violations that a Tick reported are in them too.
func (e *Engine) Close() []verdict.Result { return nil }
