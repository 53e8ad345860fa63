package record

// Event is something that happened around databases: a failover, a deployment, a node that was lost.
// It is no transaction and changes no verdict: it is told beside what is found near it.
type Event struct {
	At   int64  `json:"at"`             // Unix nanoseconds
	DB   string `json:"db,omitempty"`   // the history that it is about; empty: all
	Node string `json:"node,omitempty"` // where it happened, as transactions name it
	Kind string `json:"kind,omitempty"` // such as failover
	Text string `json:"text"`           // for a person, on one line
}

// The limits of an event's texts, in bytes.
const (
	EventNameMax = 256
	EventTextMax = 1024
)
