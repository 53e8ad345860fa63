package history

import (
	"archive/tar"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/reject"
)

// writeCobra writes the logs as a tar, which is what a stream can hold.
func writeCobra(w *writer) error {
	c, err := newCobraWriter(w)
	if err != nil {
		return err
	}
	out := tar.NewWriter(w.out)
	for s := range w.sessions {
		b := c.log(s)
		// Errors of out stay until Flush, as the writer's all do.
		_ = out.WriteHeader(&tar.Header{Name: c.name(s), Size: int64(len(b)), Mode: 0o644, Typeflag: tar.TypeReg,
			Format: tar.FormatUSTAR})
		_, _ = out.Write(b)
	}
	_ = out.Close()
	return nil
}

// WriteDir writes h as Cobra's logs, which are the files of a directory, made if
// need be. It must be empty, so that no old log becomes a session of the
// history. See Write.
func WriteDir(dir string, h *History, opt WriteOptions) (notes []string, err error) {
	if opt.Format != cobraFormat {
		return nil, reject.New(reject.Unsupported, "only %s is a directory, not %s", cobraFormat, opt.Format)
	}
	w, err := newWriter(h, find(cobraFormat).spec, opt)
	if err != nil {
		return nil, err
	}
	c, err := newCobraWriter(w)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if old, err := os.ReadDir(dir); err != nil {
		return nil, err
	} else if len(old) > 0 {
		return nil, reject.New(reject.Unsupported,
			"the directory is not empty, and what is in it would become part of the history: name a new one").At(whole(dir))
	}
	for s := range w.sessions {
		if err := os.WriteFile(filepath.Join(dir, c.name(s)), c.log(s), 0o644); err != nil {
			return nil, err
		}
	}
	return w.notes, nil
}

// cobraWriter makes logs.
type cobraWriter struct {
	*writer
	keys    map[string]uint64
	numbers []uint64 // of sessions
	wids    map[record.Cell]uint64
	writers map[record.Cell]int // of the first that wrote it
}

func (c *cobraWriter) name(s int) string { return fmt.Sprintf("T%d.log", c.numbers[s]) }

func isMagic(n uint64) bool {
	switch n {
	case cobraInit, cobraNull, cobraDelete, cobraMissing, 0x23332333, 0x66666666:
		return true
	}
	return false
}

func newCobraWriter(w *writer) (*cobraWriter, error) {
	c := &cobraWriter{writer: w, wids: map[record.Cell]uint64{}, writers: map[record.Cell]int{}}
	// What has no commit in its log can only be at the end of it.
	for t := range w.txns {
		s := w.sessions[w.session[t]].txns
		if w.txns[t].Status == record.Unknown && s[len(s)-1] != t {
			return nil, w.cannot(t, -1, "its outcome is unknown, and its session goes on; a log can only end with such a one")
		}
	}
	own := true
	holder := map[uint64]record.Cell{} // of an id of a write
	for t := range w.txns {
		for i, op := range w.txns[t].Ops {
			if w.isInitial(op.Key, op.Value) {
				continue
			}
			v := op.Cell()
			if op.Kind == record.Write {
				if by, twice := c.writers[v]; twice {
					return nil, w.cannot(t, i, "it writes %.40s to key %.80q, as transaction %.80q does: every write has an id of "+
						"its own, and a read names one", op.Value, op.Key, w.txns[by].ID)
				}
				c.writers[v] = t
			}
			if _, known := c.wids[v]; known {
				continue
			}
			c.wids[v] = uint64(len(c.wids)) + 1
			n, ok := wid(op.Value)
			if other, taken := holder[n]; !ok || isMagic(n) || taken && other != v {
				own = false
			} else {
				holder[n] = v
			}
		}
	}
	if own {
		for n, v := range holder {
			c.wids[v] = n
		}
	} else {
		w.note("writes have ids from 1 in the order in which they appear: a value is the id of its write")
	}
	c.keys = w.numberedKeys(math.MaxUint64)
	c.numbers = w.numbered(math.MaxInt32)
	return c, nil
}

// wid is the value as the id of a write.
func wid(v record.Value) (uint64, bool) {
	switch v.Kind {
	case record.KindInt:
		return uint64(v.Num), v.Num >= 0
	case record.KindNumber:
		return canonical(v.Text)
	}
	return 0, false
}

// log is the log of a session; transactions are numbered from 1.
func (c *cobraWriter) log(s int) []byte {
	var b []byte
	words := func(kind byte, ns ...uint64) {
		b = append(b, kind)
		for _, n := range ns {
			b = binary.BigEndian.AppendUint64(b, n)
		}
	}
	for _, t := range c.sessions[s].txns {
		words('S', uint64(t)+1)
		for _, op := range c.txns[t].Ops {
			key, v := c.keys[op.Key], op.Cell()
			id := c.wids[v]
			switch {
			case op.Kind == record.Write:
				words('W', id, key, id)
			case c.isInitial(op.Key, op.Value):
				words('R', cobraInit, cobraInit, key, 0)
			default:
				by := uint64(0) // of nobody
				if t, ok := c.writers[v]; ok {
					by = uint64(t) + 1
				}
				words('R', by, id, key, id)
			}
		}
		if c.txns[t].Status == record.Committed {
			words('C', uint64(t)+1)
		}
	}
	return b
}
