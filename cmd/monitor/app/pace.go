package app

import (
	"net/http"
	"time"
)

// The pace that clients have to keep.
const (
	// bodyTimeout is for all of a request's body. What is sent to the monitor is small.
	bodyTimeout = 10 * time.Second
	// writePatience is how long a reader may take for each paceBytes of an answer.
	writePatience = 30 * time.Second
	paceBytes     = 64 << 10
	// connectionsMax is how many connections a listener has at once (places), and streamsMax how many
	// requests there are on each at once under HTTP/2.
	connectionsMax = 512
	streamsMax     = 32
)

// paced ends what does not go on: a body that does not come, and an answer that is not
// read. How long all of an answer takes is up to its reader, as long as it reads.
// Who streams sets deadlines of its own.
func paced(next http.Handler, now func() time.Time) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Every connection of a listener has deadlines.
		control := http.NewResponseController(w)
		if r.ContentLength != 0 {
			_ = control.SetReadDeadline(now().Add(bodyTimeout))
		}
		p := &pacer{ResponseWriter: w, control: control, now: now}
		p.more() // those of the request before still hold
		next.ServeHTTP(p, r)
	})
}

// pacer moves the deadline with what is read of an answer.
type pacer struct {
	http.ResponseWriter

	control *http.ResponseController
	now     func() time.Time
}

// Unwrap is for http.ResponseController.
func (p *pacer) Unwrap() http.ResponseWriter { return p.ResponseWriter }

func (p *pacer) more() { _ = p.control.SetWriteDeadline(p.now().Add(writePatience)) }

// Write implements http.ResponseWriter.
func (p *pacer) Write(b []byte) (n int, err error) {
	for {
		part := b[n:min(len(b), n+paceBytes)]
		p.more()
		m, err := p.ResponseWriter.Write(part)
		if n += m; err != nil || n == len(b) {
			return n, err
		}
	}
}
