package record

// Assumptions are what a history is judged under: what its owner says of it, and no record shows. The zero value is an
// unknown initial state, complete coverage, sessions kept, and clocks that matter only to levels that hold real time.
// The JSON form is part of the fingerprint of a stream's configuration; what it leaves out a stream finds out by
// itself.
type Assumptions struct {
	Initial  Initial
	Coverage Coverage
	Tables   Tables `json:",omitempty"` // whose coverage is another one
	Clock    Clock
	Sessions Sessions
	MaxSkew  int64 // nanoseconds; bounds the difference of any two clocks
	// UnseenUnique: with partial coverage, no unseen transaction writes a value that a recorded one wrote to the same
	// key. If that is false an unseen writer is a candidate for every read, and none of them proves anything. nil: it is
	// believed until the records show that values repeat. It is not said of an attempt that was aborted and made again,
	// where any may be lost.
	UnseenUnique *bool `json:"-"`
	// Lossy: coverage is partial because records are known to be missing, and any of them may be that of a second
	// attempt of what was aborted.
	Lossy bool `json:"-"`
}

// Override replaces what a header states.
func (a Assumptions) Override(h Header) Assumptions {
	if h.Initial != nil {
		a.Initial = *h.Initial
	}
	if h.Sessions != nil {
		a.Sessions = *h.Sessions
	}
	if h.Clock != nil {
		a.Clock = *h.Clock
	}
	if h.Coverage != nil {
		a.Coverage = *h.Coverage
	}
	if h.Tables != nil {
		a.Tables = h.Tables
	}
	if h.MaxSkew != nil {
		a.MaxSkew = *h.MaxSkew
	}
	if h.UniqueValues != nil {
		a.UnseenUnique = h.UniqueValues
	}
	return a
}

// Header states every assumption.
func (a Assumptions) Header() Header {
	return Header{Initial: &a.Initial, Sessions: &a.Sessions, Clock: &a.Clock, Coverage: &a.Coverage, Tables: a.Tables,
		MaxSkew: &a.MaxSkew, UniqueValues: a.UnseenUnique}
}

// SomeUnseen tells whether coverage is partial, or that of a table.
func (a Assumptions) SomeUnseen() bool {
	return a.Coverage == CoveragePartial || a.Tables.Has(CoveragePartial)
}

// UnseenRepeat tells whether somebody unseen may have written any value that a recorded transaction wrote.
func (a Assumptions) UnseenRepeat() bool {
	return a.SomeUnseen() && a.UnseenUnique != nil && !*a.UnseenUnique
}
