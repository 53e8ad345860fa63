package segment

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"slices"

	"github.com/isowatch/isowatch/ingest/record"
)

// state is all that a Cutter knows, to be kept: JSON, and its CRC-32C. Names and
// texts are bytes there, as they need not be UTF-8.
type state struct {
	Form                int
	Next                uint64
	Now                 int64
	Last                Cut
	LastCount           [2]uint64
	CutPlace, Straddled uint64
	Gone                uint64
	Sessions            []sessionState
	Steps               []stepState
	Step                stepState
	Unknown, Untimed    []uint64
	Fences              fenceState
	Keys                []keyState
	Since               uint64
	Off                 bool
	Blind               []uint64 `json:",omitempty"`
}

type sessionState struct {
	Name            []byte
	First, Last     uint64
	Seen, End       int64
	Timed, Partial  bool
	Fenced, Snapped uint64
	Marks           [][3]uint64
}

type stepState struct {
	Pos   uint64
	End   int64
	Count [2]uint64
}

type valueState struct {
	Kind record.ValueKind
	Num  int64
	Text []byte
}

type fenceState struct {
	Votes     []voteState
	Key       []byte
	On        bool
	Ring      []valueState
	First     valueState
	Top, Base uint64
	Wait      []waitState
}

type voteState struct {
	Key []byte
	N   int
}

type waitState struct {
	Read, Wrote valueState
	N           uint64
	Session     []byte
	Certain     bool
}

type keyState struct {
	Key    []byte
	Writes []writeState
	Met    uint64
}

type writeState struct {
	Value   valueState
	Pos     uint64
	Session []byte
}

// stateForm changes with what the fields mean.
const stateForm = 1

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Snapshot appends all that the Cutter knows to dst. Equal Cutters give equal
// bytes. Cost: O(what is followed); with few sessions some kilobytes.
func (c *Cutter) Snapshot(dst []byte) []byte {
	st := state{Form: stateForm, Next: c.next, Now: c.now, Last: c.last, LastCount: c.lastCount.pack(), CutPlace: c.cutPlace,
		Straddled: c.straddled, Gone: c.sessions.gone, Step: c.steps.now.pack(), Unknown: c.steps.unknown, Untimed: c.steps.untimed,
		Fences: c.fences.pack(), Keys: c.snaps.pack(), Since: c.snaps.since, Off: c.snaps.off, Blind: c.snaps.blind}
	for _, s := range c.sessions.sorted() {
		st.Sessions = append(st.Sessions, s.pack())
	}
	for _, s := range c.steps.list {
		st.Steps = append(st.Steps, s.pack())
	}
	from := len(dst)
	text, err := json.Marshal(st)
	if err != nil {
		panic("segment: can't happen, because the state has only plain fields: " + err.Error())
	}
	dst = append(dst, text...)
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[from:], castagnoli))
}

var errDamaged = errors.New("segment: the state of the cuts is damaged: rebuild the store")

// Restore makes the Cutter of which Snapshot told. The options need not be the
// same; other bounds hold from the next cut on.
func Restore(opt Options, data []byte) (*Cutter, error) {
	n := len(data) - 4
	if n < 0 || crc32.Checksum(data[:n], castagnoli) != binary.LittleEndian.Uint32(data[n:]) {
		return nil, errDamaged
	}
	var st state
	if err := json.Unmarshal(data[:n], &st); err != nil || st.Form != stateForm || !st.sound() {
		return nil, errDamaged
	}
	c := New(opt)
	c.next, c.now, c.last, c.lastCount = st.Next, st.Now, st.Last, unpackCount(st.LastCount)
	c.cutPlace, c.straddled, c.sessions.gone = st.CutPlace, st.Straddled, st.Gone
	for _, s := range st.Sessions {
		c.sessions.by[string(s.Name)] = s.unpack()
	}
	c.steps.list = c.steps.list[:0]
	for _, s := range st.Steps {
		c.steps.list = append(c.steps.list, s.unpack())
	}
	c.steps.now, c.steps.unknown, c.steps.untimed = st.Step.unpack(), st.Unknown, st.Untimed
	c.fences.unpack(st.Fences)
	for _, k := range st.Keys {
		c.snaps.keys[string(k.Key)] = k.unpack()
	}
	c.snaps.since, c.snaps.off, c.snaps.blind = st.Since, st.Off, st.Blind
	return c, nil
}

// placeMost is more than positions in a stream and places in a chain reach.
const placeMost = 1 << 62

// sound tells whether what is used without another look is as it must be.
func (st *state) sound() bool {
	ascending := slices.IsSortedFunc(st.Steps, func(a, b stepState) int { return cmp.Compare(a.Pos, b.Pos) })
	if len(st.Steps) == 0 || !ascending || st.Steps[len(st.Steps)-1].Pos > st.Next || st.Last.From > st.Next || st.Next > placeMost ||
		st.Fences.Top > placeMost || st.Fences.Base > st.Fences.Top+1 || st.Last.Kind > Fence || len(st.Fences.Wait) > waitMost ||
		len(st.Fences.Votes) > votesMost || len(st.Fences.Ring) > chainMost || uint64(len(st.Fences.Ring)) > st.Fences.Top || st.Fences.Base == 0 {
		return false
	}
	for _, k := range st.Keys {
		if len(k.Writes) == 0 || len(k.Writes) > writesKept {
			return false
		}
	}
	for _, s := range st.Sessions {
		if len(s.Marks) > marksMost {
			return false
		}
	}
	return true
}

func (n count) pack() [2]uint64           { return [2]uint64{n.untimed, n.unknown} }
func unpackCount(n [2]uint64) count       { return count{untimed: n[0], unknown: n[1]} }
func (s step) pack() stepState            { return stepState{s.pos, s.end, s.count.pack()} }
func (s stepState) unpack() step          { return step{s.Pos, s.End, unpackCount(s.Count)} }
func packValue(v record.Value) valueState { return valueState{v.Kind, v.Num, []byte(v.Text)} }
func (v valueState) unpack() record.Value {
	return record.Value{Kind: v.Kind, Num: v.Num, Text: string(v.Text)}
}

func (s *session) pack() sessionState {
	out := sessionState{Name: []byte(s.name), First: s.first, Last: s.last, Seen: s.seen, End: s.end, Timed: s.timed, Partial: s.partial,
		Fenced: s.fenced, Snapped: s.snapped}
	for _, m := range s.marks {
		out.Marks = append(out.Marks, [3]uint64{m.place, m.pos, m.next})
	}
	return out
}

func (s sessionState) unpack() *session {
	out := &session{name: string(s.Name), first: s.First, last: s.Last, seen: s.Seen, end: s.End, timed: s.Timed, partial: s.Partial,
		fenced: s.Fenced, snapped: s.Snapped}
	for _, m := range s.Marks {
		out.marks = append(out.marks, mark{place: m[0], pos: m[1], next: m[2]})
	}
	return out
}

func (f *fences) pack() fenceState {
	out := fenceState{Key: []byte(f.key), On: f.on, First: packValue(f.first), Top: f.top, Base: f.base}
	for k, n := range f.votes {
		out.Votes = append(out.Votes, voteState{[]byte(k), n})
	}
	slices.SortFunc(out.Votes, func(a, b voteState) int { return slices.Compare(a.Key, b.Key) })
	for _, v := range f.ring {
		out.Ring = append(out.Ring, packValue(v))
	}
	for _, w := range f.wait {
		out.Wait = append(out.Wait, waitState{packValue(w.read), packValue(w.wrote), w.n, []byte(w.session), w.certain})
	}
	return out
}

func (f *fences) unpack(st fenceState) {
	f.key, f.on, f.first, f.top, f.base = string(st.Key), st.On, st.First.unpack(), st.Top, st.Base
	for _, v := range st.Votes {
		f.votes[string(v.Key)] = v.N
	}
	for i, v := range st.Ring {
		f.ring = append(f.ring, v.unpack())
		f.places[v.unpack()] = st.Top - uint64(len(st.Ring)-1-i)
	}
	for _, w := range st.Wait {
		f.wait = append(f.wait, waiting{w.Read.unpack(), w.Wrote.unpack(), w.N, string(w.Session), w.Certain})
	}
}

func (ss *snapshots) pack() (out []keyState) {
	for key, k := range ss.keys {
		st := keyState{Key: []byte(key), Met: k.met}
		for _, w := range k.writes[:k.n] {
			st.Writes = append(st.Writes, writeState{packValue(w.value), w.pos, []byte(w.session)})
		}
		out = append(out, st)
	}
	slices.SortFunc(out, func(a, b keyState) int { return slices.Compare(a.Key, b.Key) })
	return out
}

func (k keyState) unpack() *written {
	out := &written{met: k.Met, n: len(k.Writes)}
	for i, w := range k.Writes {
		out.writes[i] = write{w.Value.unpack(), w.Pos, string(w.Session)}
	}
	return out
}
