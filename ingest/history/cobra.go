package history

import (
	"bytes"
	"encoding/binary"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/reject"
)

// Cobra logs: a folder of T<n>.log, one per client thread, of big-endian records
//
//	'S' txn:i64 [time:i64]                        start
//	'C' txn:i64 [time:i64]                        commit
//	'W' wid:u64 key:u64 val:u64                   write
//	'R' wtxn:u64 wid:u64 key:u64 val:u64          read
//
// A wid is unique in the history, so it stands for the value. Aborted
// transactions are not logged; one without its commit at the end of a log is
// one whose outcome the client never learned.

const cobraFormat = "cobra-logs"

// Magic numbers in place of a writer (and, for INIT and NULL, of the wid).
const (
	cobraInit    = 0xbebeebee // the key existed before the run
	cobraNull    = 0xdeadbeef // the key was absent
	cobraDelete  = 0xabcdefab
	cobraMissing = 0xadeafbee
)

// Sizes in bytes.
const (
	cobraMark  = 1 + 8   // S and C
	cobraWrite = 1 + 3*8 // W
	cobraRead  = 1 + 4*8 // R
	cobraTime  = 8       // behind S and C, with time order on
)

// cobraLogName takes the number from T<n>.log.
func cobraLogName(name string) (int, bool) {
	digits, ok := strings.CutSuffix(name, ".log")
	if !ok {
		return 0, false
	}
	return cobraNumber(digits)
}

func cobraNumber(name string) (int, bool) {
	digits, ok := strings.CutPrefix(name, "T")
	n, err := strconv.ParseUint(digits, 10, 31)
	return int(n), ok && err == nil
}

// isCobraExtra recognises the text files that Cobra leaves beside its logs.
func isCobraExtra(name string) bool {
	stem, ext, _ := strings.Cut(name, ".")
	_, ok := cobraNumber(stem)
	return ok && (ext == "debug" || ext == "error")
}

// looksCobra recognises a single log: a start, then any record's first byte.
func looksCobra(head []byte) bool {
	if len(head) < 2*cobraMark || head[0] != 'S' {
		return false
	}
	for _, mark := range []int{cobraMark, cobraMark + cobraTime} {
		if mark < len(head) && bytes.IndexByte([]byte("CWR"), head[mark]) >= 0 {
			return true
		}
	}
	return false
}

// readCobraLog reads a log that came alone.
func readCobraLog(in *input) ([]History, error) {
	b, err := io.ReadAll(in.r)
	if err != nil {
		return nil, err
	}
	c := newCobra(in.name)
	if err := c.log(in, 0, b); err != nil {
		return nil, err
	}
	return one(c.history())
}

// cobra gathers the logs of one history.
type cobra struct {
	builder
	name     string
	sessions map[int][]record.Transaction
}

func newCobra(name string) *cobra {
	return &cobra{builder: newBuilder(), name: name, sessions: map[int][]record.Transaction{}}
}

// log takes in T<number>.log.
func (c *cobra) log(in *input, number int, b []byte) error {
	if _, twice := c.sessions[number]; twice {
		return in.reject(reject.BadStructure, "the history has the log T%d.log twice", number)
	}
	txns, err := c.parse(in, number, b, 0)
	if err != nil {
		var timed error
		if txns, timed = c.parse(in, number, b, cobraTime); timed != nil {
			return err
		}
	}
	c.sessions[number] = txns
	return nil
}

// parse reads a log whose S and C have extra bytes behind them.
func (c *cobra) parse(in *input, number int, b []byte, extra int) ([]record.Transaction, error) {
	var txns []record.Transaction
	c.ops = c.ops[:0]
	session := c.session(uint64(number))
	open, txn := false, uint64(0)
	commit := func(status record.Status) {
		txns = append(txns, c.transaction(session, len(txns)+1, status))
		open = false
	}
	for p := 0; p < len(b); {
		bad := func(r reject.Reason, format string, args ...any) error {
			e := in.reject(r, format, args...)
			e.Pos.Offset = int64(p)
			return e
		}
		var size int
		kind := b[p]
		switch kind {
		case 'S', 'C':
			size = cobraMark + extra
		case 'W':
			size = cobraWrite
		case 'R':
			size = cobraRead
		default:
			return nil, bad(reject.BadStructure, "a record begins with S, C, W or R, not with %q", kind)
		}
		if len(b)-p < size {
			return nil, bad(reject.Truncated, "the log ends in the middle of a record")
		}
		word := func(i int) uint64 { return binary.BigEndian.Uint64(b[p+1+8*i:]) }
		switch {
		case kind == 'S' && open:
			return nil, bad(reject.BadStructure, "a transaction starts before transaction %d has ended", txn)
		case kind == 'S':
			open, txn = true, word(0)
		case !open:
			return nil, bad(reject.BadStructure, "the record %q stands outside of a transaction", kind)
		case kind == 'C' && word(0) != txn:
			return nil, bad(reject.BadStructure, "transaction %d is committed inside transaction %d", word(0), txn)
		case kind == 'C':
			commit(record.Committed)
		case kind == 'W':
			c.op(record.Write, word(1), c.value(word(0)))
		case word(0) == cobraInit || word(0) == cobraNull || word(1) == cobraInit || word(1) == cobraNull:
			c.op(record.Read, word(2), record.Null)
		case word(1) == cobraDelete || word(1) == cobraMissing:
			return nil, bad(reject.Unsupported, "the read of key %d returned the mark %#x for a deleted or missing key", word(2),
				word(1))
		default:
			c.op(record.Read, word(2), c.value(word(1)))
		}
		p += size
	}
	if open {
		commit(record.Unknown)
	}
	return txns, nil
}

// history puts the sessions one after the other.
func (c *cobra) history() (History, error) {
	var sessions [][]record.Transaction
	for _, n := range slices.Sorted(maps.Keys(c.sessions)) {
		sessions = append(sessions, c.sessions[n])
	}
	return c.made(c.name, cobraFormat, record.InitialAbsent, slices.Concat(sessions...),
		"the logs have no transaction in them")
}
