package history

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/reject"
)

// Strings that are put and appended to, in reads and writes.
//
// What an append found is what stands before its text in any get that shows it:
// it is a read of that and a write of what follows from it. If no get shows it,
// nobody looked between it and the next put, and no append that was shown came there
// either (it would show this one too): it is a write of something that is never read.
// Conversely, in any order in which these reads and writes are right, so are
// the strings. So that is exact, if the texts show which appends they consist of:
// a text that can be read in two ways is refused. A text that can't be put together at all, or shows an append in
// another place than an earlier one did, is a read of something that nobody wrote,
// as it is.
//
// Of several appends of one text that a get shows, or a put and an append, it is told by the order of lines which it
// was: one that began after the get had ended is not in what that shows, nor one that had ended before a put began
// that had ended before the get did begin; none stands behind one that began after it had ended, nor before one that
// ended before it began; and none has two places. That takes it that the store keeps real time, as lin has it: such a
// history has enforced clocks. Where it does not tell, the log is refused.
//
// A state is named by the last text in it, behind … if that was appended, which says
// the rest: each append that was shown has one place. The empty string is the
// absent key.

// stringKey is what is known of a key.
type stringKey struct {
	appends, puts map[string][]*attempt // by their text
	emptied       bool                  // the empty string was put
	done          []*attempt            // puts that committed, of whatever text
	// The lengths of texts that were appended, and of these and what was put, each once, ascending.
	appendLengths, firstLengths []int
	begun                       int64 // when something was put or appended for sure
	// found is, of an append that is shown, the state in which it was made; after which one was made in a state.
	found map[*attempt]record.Value
	after map[place]*attempt
	// gets are the states that gets show, by the place of their completion.
	gets map[int64]record.Value
}

// place is where a text was appended.
type place struct {
	state record.Value
	text  string
}

// put names the state behind a put; appended that behind an append, and
// contradiction one that nobody can have written. No two have the same name.
func put(text string) record.Value {
	if strings.HasPrefix(text, more) || strings.HasPrefix(text, `\`) {
		text = `\` + text
	}
	return record.String(text)
}

func appended(text string) record.Value { return record.String(more + text) }

// appendedBy is appended, where there are several of the text with the number of it.
func (k *stringKey) appendedBy(a *attempt, text string) record.Value {
	if n := slices.Index(k.appends[text], a); n > 0 {
		return record.String(`\` + strconv.Itoa(n+1) + more + text)
	}
	return appended(text)
}

func contradiction(text string) record.Value { return record.String(`\!` + text) }

// lastText is the last text of a state, and whether it was appended.
func lastText(state record.Value) (text string, appended bool) {
	if text, appended = strings.CutPrefix(state.Text, more); appended {
		return text, true
	}
	text, marked := strings.CutPrefix(text, `\`)
	if !marked {
		return text, false
	}
	if again, appended := strings.CutPrefix(strings.TrimLeft(text, "0123456789"), more); appended && text[0] <= '9' {
		return again, true
	}
	return strings.TrimPrefix(text, "!"), false
}

const more = "…"

// stringWorkMax bounds the bytes compared in taking the texts of gets apart.
const stringWorkMax = 1 << 28

// textOf is the string of a put, an append or a get; nil is the empty one.
func (e *encoder) textOf(a *attempt) (string, error) {
	if a.value == nil {
		return "", nil
	}
	s, isString := a.value.(string)
	if !isString {
		return "", e.in.at(reject.In(":value", reject.WrongType, "want a string, not %.60s", appendText(nil, a.value)),
			a.line, a.offset)
	}
	return s, nil
}

func (e *encoder) prepareStrings(list []attempt, timed bool) error {
	e.strings = map[string]*stringKey{}
	for i := range list {
		a := &list[i]
		if a.isTxn {
			return e.in.at(reject.In(":value", reject.WrongType, "want a string or nil, not micro-operations"), a.line, a.offset)
		}
		k := e.strings[a.key]
		if k == nil {
			k = &stringKey{appends: map[string][]*attempt{}, puts: map[string][]*attempt{}, found: map[*attempt]record.Value{},
				after: map[place]*attempt{}, gets: map[int64]record.Value{}, begun: math.MaxInt64}
			e.strings[a.key] = k
		}
		text, err := e.textOf(a)
		switch {
		case err != nil:
			return err
		case text == "":
			k.emptied = k.emptied || a.f == "put"
		case a.f == "append":
			k.appends[text] = append(k.appends[text], a)
		case a.f == "put":
			k.puts[text] = append(k.puts[text], a)
		}
		if a.status == record.Committed && a.f == "put" {
			k.done = append(k.done, a)
		}
		if a.status == record.Committed && a.f != "get" && text != "" {
			k.begun = min(k.begun, a.end)
		}
	}
	for _, k := range e.strings {
		for text := range k.appends {
			k.appendLengths = append(k.appendLengths, len(text))
		}
		k.firstLengths = slices.Clone(k.appendLengths)
		for text := range k.puts {
			k.firstLengths = append(k.firstLengths, len(text))
		}
		for _, lengths := range []*[]int{&k.appendLengths, &k.firstLengths} {
			slices.Sort(*lengths)
			*lengths = slices.Compact(*lengths)
		}
	}
	work := 0
	var left []*shownText // that don't tell yet what they are put together from
	for i := range list {
		if a := &list[i]; a.f == "get" && a.says() {
			s, err := e.show(a, &work)
			if err != nil {
				return err
			}
			if s != nil && !s.key.placeParts(s, timed) {
				left = append(left, s)
			}
		}
	}
	for n := 0; n != len(left); { // what one tells may tell of others
		n = len(left)
		left = slices.DeleteFunc(left, func(s *shownText) bool { return s.key.placeParts(s, timed) })
	}
	for _, s := range left {
		part := s.parts[s.key.several(s)]
		return s.get.bad(e.in, reject.Unsupported,
			"the text shows %.60q, which was appended or put %d times, and nothing tells which one it is: give each operation "+
				"a text of its own",
			part, len(s.key.appends[part])+len(s.key.puts[part]))
	}
	return nil
}

// shownText is what a get shows, taken apart.
type shownText struct {
	get   *attempt
	key   *stringKey
	text  string
	parts []string
}

// show takes the text of a get apart; nil if it is nothing that could be.
func (e *encoder) show(a *attempt, work *int) (*shownText, error) {
	text, err := e.textOf(a)
	if err != nil {
		return nil, err
	}
	k := e.strings[a.key]
	parts, ways := k.parse(text, work)
	switch {
	case *work > stringWorkMax:
		return nil, a.bad(e.in, reject.TooLarge, "the texts of the gets are too long to be taken apart: over %d comparisons",
			stringWorkMax)
	case ways > 1:
		return nil, a.bad(e.in, reject.Unsupported,
			"the text %.60q can be put together from what was put and appended in more than one way: give each operation a "+
				"text that shows where it ends", text)
	case ways == 0: // thin air
		k.gets[a.end] = put(text)
		return nil, nil
	}
	out := &shownText{a, k, text, parts}
	e.byTime = e.byTime || k.several(out) >= 0
	return out, nil
}

// several is the first part of a text that several may have made, where it matters who did: -1 if there is none.
func (k *stringKey) several(s *shownText) int {
	return slices.IndexFunc(s.parts, func(part string) bool {
		return len(k.appends[part]) > 1 || len(k.appends[part]) == 1 && part == s.parts[0] && len(k.puts[part]) > 0
	})
}

// placeParts gives each append that a get shows its place; false if it does not know yet which one it is.
func (k *stringKey) placeParts(s *shownText, timed bool) bool {
	may, impossible := k.makers(s, timed)
	state := record.Null
	states := make([]record.Value, 0, len(s.parts)) // in which each was made
	var made []*attempt
	for i := 0; i < len(s.parts) && !impossible; i++ {
		who, text := may[i], s.parts[i]
		states = append(states, state)
		if len(who) > 1 { // who has another place has not this one, nor who stands before it
			if x := k.after[place{state, text}]; x != nil && k.once(state) && (i > 0 || len(k.puts[text]) == 0) {
				who = []*attempt{x}
			} else {
				who = slices.DeleteFunc(slices.Clone(who), func(a *attempt) bool {
					found, known := k.found[a]
					return known && found != state || slices.Contains(made, a)
				})
			}
		}
		switch {
		case len(who) == 0:
			impossible = true
		case !slices.ContainsFunc(who, func(a *attempt) bool { return a.f == "append" }): // whichever put it was
			made, state = append(made, nil), put(text)
		case len(who) > 1:
			return false
		default:
			found, known := k.found[who[0]]
			impossible = known && found != state
			made, state = append(made, who[0]), k.appendedBy(who[0], text)
		}
	}
	if impossible {
		state = contradiction(s.text)
	} else {
		for i, a := range made {
			if a != nil {
				k.found[a], k.after[place{states[i], s.parts[i]}] = states[i], a
			}
		}
	}
	k.gets[s.get.end] = state
	return true
}

// once: the key was in a state at most once.
func (k *stringKey) once(state record.Value) bool {
	if state.IsNull() {
		return !k.emptied
	}
	return !slices.ContainsFunc(slices.Collect(maps.Keys(k.puts)),
		func(text string) bool { return put(text) == state && len(k.puts[text]) > 1 })
}

// makers are, by part, the operations that may have made it, as far as times tell; impossible if that is
// nobody of some part. One of which there are no others is taken whatever the times.
func (k *stringKey) makers(s *shownText, timed bool) (may [][]*attempt, impossible bool) {
	may = make([][]*attempt, len(s.parts))
	doubt := make([]bool, len(s.parts))
	for i, part := range s.parts {
		may[i] = k.appends[part]
		if i == 0 {
			may[i] = slices.Concat(k.puts[part], may[i])
		}
		doubt[i] = timed && len(may[i]) > 1 && len(k.appends[part]) > 0
	}
	if !slices.Contains(doubt, true) {
		return may, false
	}
	cleared := int64(math.MinInt64) // who had ended then was overwritten before the get began
	for _, p := range k.done {
		if p.end < s.get.start {
			cleared = max(cleared, p.start)
		}
	}
	for range 2 { // the second time others are fewer
		begun := int64(math.MinInt64) // when all before have
		for i := range s.parts {
			if doubt[i] {
				may[i] = slices.DeleteFunc(slices.Clone(may[i]), func(a *attempt) bool {
					late := i == 0 && a.f == "append" && !k.emptied && a.start > k.begun // there was something already
					return a.status == record.Aborted || a.start > s.get.end || a.over() < max(begun, cleared) || late
				})
			}
			first := int64(math.MaxInt64)
			for _, a := range may[i] {
				first = min(first, a.start)
			}
			begun = max(begun, first)
		}
		ended := int64(math.MaxInt64) // when the first behind has
		for i := len(s.parts) - 1; i >= 0; i-- {
			if doubt[i] {
				may[i] = slices.DeleteFunc(may[i], func(a *attempt) bool { return a.start > ended })
			}
			last := int64(math.MinInt64)
			for _, a := range may[i] {
				last = max(last, a.over())
			}
			ended = min(ended, last)
		}
	}
	return may, slices.ContainsFunc(may, func(who []*attempt) bool { return len(who) == 0 })
}

// over is when an operation has ended for sure: one of unknown outcome may take effect at any later time.
func (a *attempt) over() int64 {
	if a.status == record.Unknown {
		return math.MaxInt64
	}
	return a.end
}

// parse tells of what a text consists: texts that were appended, the first of which may have been put; in how
// many ways, up to 2; and the parts if that is one. It adds the bytes compared to work.
func (k *stringKey) parse(text string, work *int) (parts []string, ways int) {
	count := make([]uint8, len(text)+1) // ways to put together text[:i], up to 2
	last := make([]int32, len(text)+1)  // where the last part of text[:i] begins
	count[0] = 1
	for i := range len(text) {
		if count[i] == 0 {
			continue
		}
		lengths, isPart := k.appendLengths, func(part string) bool { return len(k.appends[part]) > 0 }
		if i == 0 {
			lengths, isPart = k.firstLengths, func(part string) bool { return len(k.appends[part]) > 0 || len(k.puts[part]) > 0 }
		}
		for _, n := range lengths {
			if i+n > len(text) {
				break
			}
			if *work += n; *work > stringWorkMax {
				return nil, 0
			}
			if isPart(text[i : i+n]) {
				count[i+n], last[i+n] = min(2, count[i+n]+count[i]), int32(i)
			}
		}
	}
	if ways = int(count[len(text)]); ways != 1 {
		return nil, ways
	}
	for end := len(text); end > 0; end = int(last[end]) {
		parts = append(parts, text[last[end]:end])
	}
	slices.Reverse(parts)
	return parts, 1
}

// stringOp encodes a get, a put or an append.
func (e *encoder) stringOp(a *attempt) error {
	text, err := e.textOf(a)
	if err != nil {
		return err
	}
	if a.key == "" {
		return e.in.at(reject.In(":key", reject.MissingField,
			"a %s needs the :key of a string that it is on, which is a string and not empty", a.f), a.line, a.offset)
	}
	k := e.strings[a.key]
	switch {
	case a.f == "get" && !a.says():
		e.left++
	case a.f == "get":
		e.add(record.Read, a.key, k.gets[a.end])
	case text == "" && a.f == "append": // changes nothing and shows nothing
	case text == "":
		e.add(record.Write, a.key, record.Null)
	default:
		if found, shown := k.found[a]; shown && a.status != record.Aborted {
			e.add(record.Read, a.key, found)
		}
		state := put(text)
		if a.f == "append" {
			state = k.appendedBy(a, text)
		}
		e.add(record.Write, a.key, state)
	}
	return nil
}
