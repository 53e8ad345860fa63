package record

// Head is what must be known of a record to put it in order: all but its
// operations. A record that waits is kept packed, and its head beside it.
type Head struct {
	DB      string
	Session string
	Seq     int64 // meaningful if HasSeq
	Start   int64 // Unix nanoseconds of the client; meaningful if HasTimes
	End     int64
	// ID and Content are hashes: of the record's ID, and of all that it says.
	// Records of equal ID and Content are the same record delivered twice.
	ID, Content uint64
	Ops         int // how many operations it has
	Status      Status
	HasSeq      bool
	HasTimes    bool
}
