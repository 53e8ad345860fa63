package app

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"
)

// pacedConn is a connection that takes so many bytes, and notes the deadlines it is given.
type pacedConn struct {
	*httptest.ResponseRecorder
	takes       int
	read, write []time.Time
	now         time.Time
}

func (c *pacedConn) SetReadDeadline(t time.Time) error  { c.read = append(c.read, t); return nil }
func (c *pacedConn) SetWriteDeadline(t time.Time) error { c.write = append(c.write, t); return nil }

func (c *pacedConn) Write(b []byte) (int, error) {
	c.now = c.now.Add(time.Second) // what its reader takes for it
	if len(b) > c.takes {
		return c.takes, io.ErrShortWrite
	}
	c.takes -= len(b)
	return c.ResponseRecorder.Write(b)
}

// TestPaceOfReaders: whoever reads gets all, however long that takes, and who does not is
// given up: the deadline moves with what is written.
func TestPaceOfReaders(t *testing.T) {
	body := bytes.Repeat([]byte("x"), 5*paceBytes/2)
	for _, takes := range []int{1 << 30, paceBytes} {
		c := &pacedConn{ResponseRecorder: httptest.NewRecorder(), takes: takes, now: time.Unix(1000, 0)}
		var n int
		var err error
		h := paced(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { n, err = w.Write(body) }), func() time.Time { return c.now })
		h.ServeHTTP(c, httptest.NewRequest(http.MethodGet, "/", nil))
		var want []time.Time
		after := func(seconds int64) time.Time { return time.Unix(1000+seconds, 0).Add(writePatience) }
		if takes > len(body) {
			want = []time.Time{after(0), after(0), after(1), after(2)}
			if n != len(body) || err != nil || !bytes.Equal(c.Body.Bytes(), body) {
				t.Errorf("%d bytes of %d were written: %v", n, len(body), err)
			}
		} else {
			want = []time.Time{after(0), after(0), after(1)}
			if n != paceBytes || !errors.Is(err, io.ErrShortWrite) {
				t.Errorf("%d bytes were written: %v", n, err)
			}
		}
		if !slices.Equal(c.write, want) || c.read != nil {
			t.Errorf("takes %d: write deadlines %v, want %v; read %v", takes, c.write, want, c.read)
		}
	}
}

// TestPaceOfBodies: a body has to come, and who streams sets deadlines as before.
func TestPaceOfBodies(t *testing.T) {
	c := &pacedConn{ResponseRecorder: httptest.NewRecorder(), takes: 1 << 20, now: time.Unix(1000, 0)}
	h := paced(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		control := http.NewResponseController(w)
		if err := errors.Join(control.SetWriteDeadline(time.Time{}), control.Flush()); err != nil {
			t.Error(err)
		}
	}), func() time.Time { return c.now })
	h.ServeHTTP(c, httptest.NewRequest(http.MethodPost, "/", bytes.NewReader([]byte("{}"))))
	if want := []time.Time{time.Unix(1000, 0).Add(bodyTimeout)}; !slices.Equal(c.read, want) {
		t.Errorf("read deadlines %v", c.read)
	}
	if !c.Flushed || len(c.write) != 2 || !c.write[1].IsZero() {
		t.Errorf("flushed %v, write deadlines %v", c.Flushed, c.write)
	}
}
