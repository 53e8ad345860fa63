package postgres

import (
	"sync"
	"time"
)

// side is whose bytes they are.
type side uint8

const (
	client side = iota
	server
	closed // nobody's: the connection ended
)

// chunk is what came over a connection at once.
type chunk struct {
	of   *Connection
	from side
	at   int64 // when it came
	end  int   // of its bytes in the text
}

// tape is what came over all connections, in its order.
type tape struct {
	text   []byte
	chunks []chunk
}

const (
	// gather is how long what comes waits for more: decoded one by one, between system calls and other processes'
	// turns, it takes several times as long.
	gather = 50 * time.Millisecond
	// tapeMax is how much may wait for that. Who brings more waits.
	tapeMax = 8 << 20
)

// reel is what is not decoded yet.
type reel struct {
	mu     sync.Mutex
	coming tape
	timer  *time.Timer // decodes it
}

// keep takes what came over a connection: whatever happens because it is sent on is kept after it.
func (c *Connection) keep(from side, b []byte) (wait func()) {
	if c.ignored.Load() {
		return nil
	}
	r := &c.capture.reel
	r.mu.Lock()
	t := &r.coming
	t.text = append(t.text, b...)
	t.chunks = append(t.chunks, chunk{c, from, c.capture.rec.Now(), len(t.text)})
	isFirst, isFull := len(t.chunks) == 1, len(t.text) >= tapeMax
	r.mu.Unlock()
	if isFirst {
		r.timer.Reset(gather)
	}
	if from == client && c.mayDefine(b) || isFull {
		return c.capture.decode
	}
	return nil
}

// decode takes in all that was kept before it is called.
func (c *Capture) decode() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reel.mu.Lock()
	t := c.reel.coming
	c.reel.coming, c.spare = c.spare, tape{}
	c.reel.mu.Unlock()
	from := 0
	for _, k := range t.chunks {
		k.of.take(k, t.text[from:k.end])
		from = k.end
	}
	clear(t.chunks)
	c.spare = tape{t.text[:0], t.chunks[:0]}
}

// mayDefine tells whether what the client sends may change which tables there are, or what was prepared so before.
// It looks for the words that do: others may have them too.
func (c *Connection) mayDefine(b []byte) bool {
	for _, x := range b {
		switch letter := x | 0x20; {
		case 'a' <= letter && letter <= 'z', '0' <= x && x <= '9', x == '_':
			c.word = c.word<<8 | uint64(letter)
		case c.word != 0: // what stands before it may be a byte of the message's length
			six, five, four := c.word&(1<<48-1), c.word&(1<<40-1), c.word&(1<<32-1)
			c.hasDefined = c.hasDefined || six == wordCreate || five == wordAlter || four == wordDrop
			c.word = 0
		}
	}
	return c.hasDefined
}

// The words, by their letters.
const (
	wordCreate = 'c'<<40 | 'r'<<32 | 'e'<<24 | 'a'<<16 | 't'<<8 | 'e'
	wordAlter  = 'a'<<32 | 'l'<<24 | 't'<<16 | 'e'<<8 | 'r'
	wordDrop   = 'd'<<24 | 'r'<<16 | 'o'<<8 | 'p'
)
