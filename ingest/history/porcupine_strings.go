package history

import (
	"slices"
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
// a text that can be read in two ways, or shows an append of which there are two, is
// refused. A text that can't be put together at all, or shows an append in
// another place than an earlier one did, is a read of something that nobody wrote,
// as it is.
//
// A state is named by the last text in it, behind … if that was appended, which says
// the rest: each append that was shown has one place. The empty string is the
// absent key.

// stringKey is what is known of a key.
type stringKey struct {
	appends map[string]int  // how often a text was appended
	puts    map[string]bool // texts that were put
	// Their lengths, each once, ascending.
	appendLengths, putLengths []int
	// found is, by an append's text, the state in which it was made.
	found map[string]record.Value
	// gets are the states that gets show, by the place of their completion.
	gets map[int64]record.Value
}

// put names the state behind a put; appended that behind an append, and
// contradiction one that nobody can have written. No two have the same name.
func put(text string) record.Value {
	if strings.HasPrefix(text, more) || strings.HasPrefix(text, `\`) {
		text = `\` + text
	}
	return record.String(text)
}

func appended(text string) record.Value      { return record.String(more + text) }
func contradiction(text string) record.Value { return record.String(`\!` + text) }

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
		return "", e.in.at(reject.In(":value", reject.WrongType, "want a string, not %.60s", appendText(nil, a.value)), a.line, a.offset)
	}
	return s, nil
}

func (e *encoder) prepareStrings(list []attempt) error {
	e.strings = map[string]*stringKey{}
	for i := range list {
		a := &list[i]
		if a.isTxn {
			return e.in.at(reject.In(":value", reject.WrongType, "want a string or nil, not micro-operations"), a.line, a.offset)
		}
		k := e.strings[a.key]
		if k == nil {
			k = &stringKey{appends: map[string]int{}, puts: map[string]bool{}, found: map[string]record.Value{}, gets: map[int64]record.Value{}}
			e.strings[a.key] = k
		}
		text, err := e.textOf(a)
		switch {
		case err != nil:
			return err
		case text == "":
		case a.f == "append":
			k.appends[text]++
		case a.f == "put":
			k.puts[text] = true
		}
	}
	for _, k := range e.strings {
		for text := range k.appends {
			k.appendLengths = append(k.appendLengths, len(text))
		}
		for text := range k.puts {
			k.putLengths = append(k.putLengths, len(text))
		}
		for _, lengths := range []*[]int{&k.appendLengths, &k.putLengths} {
			slices.Sort(*lengths)
			*lengths = slices.Compact(*lengths)
		}
	}
	work := 0
	for i := range list {
		if a := &list[i]; a.f == "get" && a.says() {
			if err := e.show(a, &work); err != nil {
				return err
			}
		}
	}
	return nil
}

// show takes the text of a get apart.
func (e *encoder) show(a *attempt, work *int) error {
	text, err := e.textOf(a)
	if err != nil {
		return err
	}
	k := e.strings[a.key]
	parts, isPut, ways := k.parse(text, work)
	switch {
	case *work > stringWorkMax:
		return a.bad(e.in, reject.TooLarge, "the texts of the gets are too long to be taken apart: over %d comparisons", stringWorkMax)
	case ways > 1:
		return a.bad(e.in, reject.Unsupported, "the text %.60q can be put together from what was put and appended in more than one way: give each operation a text that shows where it ends", text)
	case ways == 0: // thin air
		k.gets[a.end] = put(text)
		return nil
	}
	state := record.Null
	for i, part := range parts {
		if i == 0 && isPut {
			state = put(part)
			continue
		}
		if k.appends[part] > 1 {
			return a.bad(e.in, reject.Unsupported, "the text shows an append of %.60q, of which the key has %d: give each append a text of its own", part, k.appends[part])
		}
		if found, known := k.found[part]; known && found != state {
			k.gets[a.end] = contradiction(text)
			return nil
		}
		k.found[part] = state
		state = appended(part)
	}
	k.gets[a.end] = state
	return nil
}

// parse tells of what a text consists: perhaps a put, then appends; in how many
// ways, up to 2; and the parts if that is one. It adds the bytes compared to work.
func (k *stringKey) parse(text string, work *int) (parts []string, isPut bool, ways int) {
	count := make([]uint8, len(text)+1) // ways to put together text[:i], up to 2
	last := make([]int32, len(text)+1)  // where the last part of text[:i] begins; -1 for a put
	count[0] = 1
	for _, n := range k.putLengths {
		if *work += n; n <= len(text) && k.puts[text[:n]] {
			count[n], last[n] = count[n]+1, -1
		}
	}
	for i := range len(text) {
		if count[i] == 0 {
			continue
		}
		for _, n := range k.appendLengths {
			if i+n > len(text) {
				break
			}
			if *work += n; *work > stringWorkMax {
				return nil, false, 0
			}
			if k.appends[text[i:i+n]] > 0 {
				count[i+n], last[i+n] = min(2, count[i+n]+count[i]), int32(i)
			}
		}
	}
	if ways = int(count[len(text)]); ways != 1 {
		return nil, false, ways
	}
	for end := len(text); end > 0; end = int(last[end]) {
		if last[end] < 0 {
			parts, isPut = append(parts, text[:end]), true
			break
		}
		parts = append(parts, text[last[end]:end])
	}
	slices.Reverse(parts)
	return parts, isPut, 1
}

// stringOp encodes a get, a put or an append.
func (e *encoder) stringOp(a *attempt) error {
	text, err := e.textOf(a)
	if err != nil {
		return err
	}
	if a.key == "" {
		return e.in.at(reject.In(":key", reject.MissingField, "a %s needs the :key of a string that it is on, which is a string and not empty", a.f), a.line, a.offset)
	}
	k := e.strings[a.key]
	switch {
	case a.f == "get" && !a.says():
		e.left++
	case a.f == "get":
		e.op(record.Read, a.key, k.gets[a.end])
	case text == "" && a.f == "append": // changes nothing and shows nothing
	case text == "":
		e.op(record.Write, a.key, record.Null)
	default:
		if found, shown := k.found[text]; shown && a.f == "append" && a.status != record.Aborted {
			e.op(record.Read, a.key, found)
		}
		state := put(text)
		if a.f == "append" {
			state = appended(text)
		}
		e.op(record.Write, a.key, state)
	}
	return nil
}
