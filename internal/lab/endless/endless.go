// Package endless makes histories without an end, for what measures and torments: blind transactions that are
// serializable in real time but for the anomalies that are planted.
package endless

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/generate"
	"github.com/isowatch/isowatch/ingest/record"
)

// Config says what an endless history is like. Zero fields have the defaults that
// their comments name.
type Config struct {
	Seed uint64

	Sessions     int // 24
	Operations   int // 8 per transaction
	Keys         int // 10000; at most 4194304, as all are tabled
	Distribution generate.Distribution
	Exponent     float64 // of Zipf; 0.99
	// ReadShare is the share of transactions that only read; 0.5. The others only
	// write (BlindW).
	ReadShare float64

	// Rate is how many transactions end in a second of the stream's time; 120000.
	// Sessions are busy all the time, so it says how long transactions last.
	Rate float64
	// Start is when the stream begins, Unix nanoseconds; 1732160000e9.
	Start int64
	// MaxSkew bounds the difference of the sessions' clocks; 0.
	MaxSkew time.Duration

	AbortRate   float64 // share of transactions that abort
	UnknownRate float64 // share of transactions whose outcome the client never learns

	// Every is after how many transactions an anomaly is planted, again and again;
	// 0: never. One is planted at a time: the next waits for the last one's end.
	Every int64
	// Anomalies are planted in turn; Anomalies.
	Anomalies []string
	// Shared plants on keys of the workload, which nobody else touches from the
	// anomaly's first transaction to its last; else on keys of its own.
	Shared bool
}

// keysMax bounds the keys, which are all tabled.
const keysMax = 1 << 22

// Anomalies lists the anomalies that can be proved without having seen every
// write, in the order in which a stream plants them. All but write-skew break si, and all
// break ser.
func Anomalies() []string {
	return []string{"lost-update", "write-skew", "long-fork", "fractured-read", "causality-violation", "aborted-read",
		"intermediate-read",
		"non-monotonic-read", "non-repeatable-reads", "session-guarantee-violation", "not-my-last-write", "not-my-own-write"}
}

func (c Config) withDefaults() (Config, error) {
	full, err := generate.Config{Level: verdict.SSER, Workload: generate.BlindW, Seed: c.Seed, Sessions: c.Sessions,
		Operations: c.Operations, Keys: c.Keys, Distribution: c.Distribution,
		Exponent: c.Exponent, ReadShare: c.ReadShare, MaxSkew: c.MaxSkew, Start: c.Start, AbortRate: c.AbortRate,
		UnknownRate: c.UnknownRate}.WithDefaults()
	if err != nil {
		return c, err
	}
	c.Sessions, c.Operations, c.Keys, c.Exponent, c.ReadShare, c.Start = full.Sessions, full.Operations, full.Keys,
		full.Exponent, full.ReadShare, full.Start
	if c.Rate == 0 {
		c.Rate = 120_000
	}
	if c.Anomalies == nil {
		c.Anomalies = Anomalies()
	}
	if c.Keys > keysMax {
		return c, fmt.Errorf("keys: %d are more than a stream tables; use at most %d", c.Keys, keysMax)
	}
	if !(c.Rate > 0 && c.Rate <= 1e9) {
		return c, fmt.Errorf("rate: %v is out of range; use a number above 0 and up to 1e9", c.Rate)
	}
	if c.Every < 0 || c.Every > 0 && len(c.Anomalies) == 0 {
		return c, fmt.Errorf("anomalies: %d every %d transactions can't be planted", len(c.Anomalies), c.Every)
	}
	for _, name := range c.Anomalies {
		sessions, keys := 0, 0
		null := func() record.Value { return record.Null }
		for _, x := range generate.Script(name, record.Null, func() string { keys++; return "" }, null) {
			sessions = max(sessions, x.Session+1)
		}
		if sessions == 0 || slices.Contains(generate.ListAnomalies(), name) {
			return c, fmt.Errorf("anomaly %q: a stream has registers alone; use some of %v", name, generate.Anomalies())
		}
		if c.Every > 0 && sessions > c.Sessions {
			return c, fmt.Errorf("anomaly %s takes %d sessions, and there are %d", name, sessions, c.Sessions)
		}
		// One that nobody is using has to be found by drawing.
		if need := 2*c.Sessions*c.Operations + keys; c.Every > 0 && c.Shared && c.Keys < need {
			return c, fmt.Errorf("anomaly %s is planted on keys that %d sessions share, which takes %d keys, and there are %d",
				name, c.Sessions, need, c.Keys)
		}
	}
	return c, nil
}

// Stream makes an endless history of blind transactions, serializable in real
// time but for the anomalies that are planted. It is Generator without all that a stream
// does not need: a transaction costs well under a microsecond and no allocation, and
// memory depends on the number of sessions and keys alone, however long the stream is.
//
// Transactions are handed out in the order in which they take effect, which is that
// of their ends up to the duration of a transaction, and that of every session. Records
// have times and no id of their own: it follows from session and seq.
type Stream struct {
	cfg      Config
	rng      *rand.Rand
	names    []string
	store    []int64              // by key: the last committed value, 0 the initial one
	popul    *generate.Popularity // the keys' popularity, for Zipf
	sessions []session
	instants instants
	taken    int // the session whose transaction was handed out last; -1: none

	duration, pause int64

	handed int64 // transactions handed out
	values int64 // the last value given out
	fresh  int   // keys used up beyond those of the workload

	due   int64 // handed out when the next anomaly is begun
	begun int   // anomalies begun
	plant planting
}

type session struct {
	name   string
	seq    int64
	skew   int64
	end    int64 // of its last or running transaction, by the true clock
	record record.Transaction
	ops    []record.Op // of the workload's transactions, used again and again
	keys   []int32     // of the same
	reads  bool        // whether they read
	takes  bool        // whether its writes take effect
	script []scripted
	played int // 1 + the script's step that is running; 0 for none
}

// scripted is a step of an anomaly that waits for its session to get to it.
type scripted struct {
	step       int
	status     record.Status
	ops        []record.Op
	start, end int64
}

// instants are when the sessions' transactions take effect, as a heap: no two are alike.
type instants []instant

type instant struct {
	at      int64
	session int32
}

func (h instants) Len() int { return len(h) }
func (h instants) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].session < h[j].session
}
func (h instants) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h instants) Push(any)      {}
func (h instants) Pop() any      { return nil }

// keyName names a key as package generate does.
func keyName(i int) string { return "k" + strconv.Itoa(i) }

// planting is the anomaly that is being played.
type planting struct {
	generate.Planting
	left int             // transactions still to be handed out
	keys map[int32]int64 // those of the workload that it uses, with what they hold afterwards
}

// New prepares a stream; its errors are those of an impossible configuration.
func New(cfg Config) (*Stream, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Stream{cfg: cfg, rng: rand.New(rand.NewPCG(cfg.Seed, 0x57_2ea3)), names: make([]string, cfg.Keys),
		store:    make([]int64, cfg.Keys),
		sessions: make([]session, cfg.Sessions), taken: -1, fresh: cfg.Keys, due: cfg.Every}
	for i := range s.names {
		s.names[i] = keyName(i)
	}
	if cfg.Distribution == generate.Zipf {
		s.popul = generate.NewZipf(cfg.Keys, cfg.Exponent)
	}
	// A transaction lasts half of the mean to one and a half times it, a pause up to
	// twice its mean; together they are what a session has for one.
	turn := float64(cfg.Sessions) / cfg.Rate * float64(time.Second)
	s.duration = max(int64(turn*5/6), 4)
	s.pause = max(int64(turn/6), 1)
	for i := range s.sessions {
		p := &s.sessions[i]
		p.name = "s" + strconv.Itoa(i)
		p.skew = s.within(int64(cfg.MaxSkew))
		p.end = cfg.Start + s.within(s.duration)
		p.ops, p.keys = make([]record.Op, cfg.Operations), make([]int32, cfg.Operations)
	}
	for i := range s.sessions {
		s.instants = append(s.instants, instant{session: int32(i)})
	}
	for i := range s.sessions {
		s.instants[i].at = s.schedule(i)
	}
	heap.Init(&s.instants)
	return s, nil
}

// Next hands out the next transaction, which is valid until Next is called again. The
// planting is not nil with the last transaction of an anomaly, and is the caller's.
func (s *Stream) Next() (*record.Transaction, *generate.Planting) {
	if s.taken >= 0 {
		if s.cfg.Every > 0 && s.plant.left == 0 && s.handed >= s.due {
			s.begin()
		}
		s.instants[0].at = s.schedule(s.taken)
		heap.Fix(&s.instants, 0)
	}
	s.taken = int(s.instants[0].session)
	s.handed++
	p := &s.sessions[s.taken]
	if p.played > 0 {
		return &p.record, s.play(p)
	}
	s.take(p)
	return &p.record, nil
}

// Handed is how many transactions were handed out.
func (s *Stream) Handed() int64 { return s.handed }

// take lets a transaction of the workload happen.
func (s *Stream) take(p *session) {
	if p.reads {
		for i, k := range p.keys {
			v := record.Null
			if x := s.store[k]; x != 0 {
				v = record.Int(x)
			}
			p.ops[i].Value = v
		}
		return
	}
	if p.takes {
		for i, k := range p.keys {
			s.store[k] = p.ops[i].Value.Num
		}
	}
}

// play notes that a step of the anomaly was handed out, and ends it with the last.
func (s *Stream) play(p *session) *generate.Planting {
	s.plant.Transactions[p.played-1] = p.record.ID
	p.played = 0
	if s.plant.left--; s.plant.left > 0 {
		return nil
	}
	for k, v := range s.plant.keys {
		s.store[k] = v
	}
	done := s.plant.Planting
	s.plant = planting{}
	return &done
}

// within is a random number from 0 to n.
func (s *Stream) within(n int64) int64 {
	if n <= 0 {
		return 0
	}
	return s.rng.Int64N(n + 1)
}

func (s *Stream) chance(p float64) bool { return p > 0 && s.rng.Float64() < p }

// schedule gives session i its next transaction, and returns when it takes effect.
func (s *Stream) schedule(i int) int64 {
	p := &s.sessions[i]
	if len(p.script) > 0 {
		x := p.script[0]
		p.script = p.script[1:]
		p.record = record.Transaction{Session: p.name, Seq: p.seq, ID: p.name + "#" + strconv.FormatInt(p.seq, 10),
			Start: x.start + p.skew, End: x.end + p.skew,
			HasSeq: true, HasTimes: true, Status: x.status, Ops: x.ops}
		p.played = x.step + 1
		p.seq++
		p.end = x.end
		return x.end
	}
	start := p.end + s.within(2*s.pause)
	length := s.duration/2 + s.within(s.duration)
	p.end = start + length
	p.record = record.Transaction{Session: p.name, Seq: p.seq, Start: start + p.skew, End: p.end + p.skew, HasSeq: true,
		HasTimes: true, Ops: p.ops}
	p.seq++
	p.takes = true
	switch {
	case s.chance(s.cfg.AbortRate):
		p.record.Status, p.takes = record.Aborted, false
	case s.chance(s.cfg.UnknownRate):
		p.record.Status, p.takes = record.Unknown, s.rng.IntN(2) == 0
	}
	s.work(p)
	return start + s.within(length)
}

// work decides what a transaction of the workload does.
func (s *Stream) work(p *session) {
	p.reads = s.chance(s.cfg.ReadShare)
	for i := range p.ops {
		k := s.key()
		p.keys[i] = k
		if p.reads {
			p.ops[i] = record.Op{Kind: record.Read, Key: s.names[k]}
			continue
		}
		s.values++
		p.ops[i] = record.Op{Kind: record.Write, Key: s.names[k], Value: record.Int(s.values)}
	}
}

// key draws a key that no anomaly is using.
func (s *Stream) key() int32 {
	for {
		k := s.draw()
		if len(s.plant.keys) == 0 {
			return k
		}
		if _, used := s.plant.keys[k]; !used {
			return k
		}
	}
}

func (s *Stream) draw() int32 {
	n := s.cfg.Keys
	switch s.cfg.Distribution {
	case generate.Zipf:
		return int32(s.popul.Draw(s.rng))
	case generate.Hotspot:
		hot := max(1, n/5)
		if n == hot || s.rng.IntN(5) < 4 {
			return int32(s.rng.IntN(hot))
		}
		return int32(hot + s.rng.IntN(n-hot))
	default:
		return int32(s.rng.IntN(n))
	}
}

// begin begins the next anomaly: it gives its steps to sessions, which take them up
// after what they are doing.
func (s *Stream) begin() {
	name := s.cfg.Anomalies[s.begun%len(s.cfg.Anomalies)]
	s.begun++
	s.due += s.cfg.Every
	s.plant = planting{keys: map[int32]int64{}}
	taking := s.rng.Perm(len(s.sessions))
	steps := s.instantiate(name)
	s.plant.Planting, s.plant.left = generate.Planting{Anomaly: name, Transactions: make([]string, len(steps))}, len(steps)
	sessions := 0
	for _, x := range steps {
		sessions = max(sessions, x.Session+1)
	}
	taking = taking[:sessions]
	var begin int64
	for _, i := range taking {
		begin = max(begin, s.sessions[i].end)
	}
	span := max(s.duration, 16)
	for n, x := range steps {
		// A stage takes one span and a half. Starts fall into its first quarter
		// of the span, ends into the last.
		from := begin + 1 + int64(x.Stage)*(span+span/2)
		at := &s.sessions[taking[x.Session]]
		at.script = append(at.script, scripted{step: n, status: x.Status, ops: x.Ops, start: from + s.within(span/4),
			end: from + span - s.within(span/4)})
	}
}

// instantiate gives the script keys and values.
func (s *Stream) instantiate(anomaly string) []generate.Scripted {
	names := map[string]int32{} // of keys of the workload
	initial := map[string]record.Value{}
	key := func() string {
		if !s.cfg.Shared {
			s.fresh++
			return keyName(s.fresh - 1)
		}
		k := s.idle()
		s.plant.keys[k] = s.store[k]
		names[s.names[k]] = k
		if v := s.store[k]; v != 0 {
			initial[s.names[k]] = record.Int(v)
		}
		return s.names[k]
	}
	value := func() record.Value {
		s.values++
		return record.Int(s.values)
	}
	// What a key held before is put in afterwards, as it differs from key to key.
	unset := record.String("initial")
	steps := generate.Script(anomaly, unset, key, value)
	for _, x := range steps {
		for i := range x.Ops {
			op := &x.Ops[i]
			if op.Kind == record.Read && op.Value == unset {
				op.Value = initial[op.Key]
			}
			if k, ok := names[op.Key]; ok && op.Kind == record.Write && x.Status == record.Committed {
				s.plant.keys[k] = op.Value.Num
			}
		}
	}
	return steps
}

// idle draws a key that no transaction is using.
func (s *Stream) idle() int32 {
	for {
		k := int32(s.rng.IntN(s.cfg.Keys))
		used := false
		for i := range s.sessions {
			p := &s.sessions[i]
			used = used || p.played == 0 && i != s.taken && slices.Contains(p.keys, k)
		}
		if _, planted := s.plant.keys[k]; !used && !planted {
			return k
		}
	}
}
