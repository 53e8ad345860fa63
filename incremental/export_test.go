package incremental

// ClosureBytes is the memory that reachability takes.
func ClosureBytes(e *Engine) int { return e.closureBytes() }
