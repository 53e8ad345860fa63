package history

import (
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/reject"
)

// Operations other than :txn, and what is written for them. A record knows reads
// with their values, writes and appends; what an operation does must follow from these
// alone, so that a history and its records are valid at the same levels.
//
//	register   read v · write v · cas [old new]     r v · w v · r old, w new
//	mutex      acquire · release                    r nil, w held · r held, w nil
//	set        add v · read #{…}                    w v/true · r of every element, true or nil
//	bank       read {account balance}               r of every account
//	counter, bank's transfer                        only if nobody read: see below
//
// A register with a key (jepsen.independent) has [key value] for each value.
//
// A set is the vector of its elements' presence: each element that the
// history mentions is a key, and reading the set reads them all. This is the
// set, as nothing else can be observed of it.
//
// add n and transfer change what they did not read by amounts that others add to:
// no record says that. Where no committed operation read, they can't be told from
// appends of elements that nobody reads, and are these; else they are refused.
//
// A cas that failed did not apply. Jepsen's :fail means no more than that, and is an
// aborted write; for Porcupine's see porcupine.go.

type workload uint8

const (
	workRegister workload = iota
	workKeyedRegister
	workSet
	workBank
	workBlind   // increments that nobody reads
	workStrings // Porcupine's store
)

const (
	registerKey = "register"
	mutexKey    = "mutex"
	setPrefix   = "set/"
	blindKey    = "total"
	heldValue   = "held"

	// encodedMax bounds the operations of encodings that are larger than their input.
	encodedMax = 1 << 22
)

// traits are what tells what a history is of: which functions it has, and what their
// values look like. Of transactions nothing is noted.
type traits struct {
	adds, transfers, reads, writes bool // functions; cas is a write here, and reads are those that say something
	lists, maps, listWrites        bool // lists or maps were read, lists written
	keyed, unkeyed                 bool // some values of reads, writes and cas are [key value], some are not
}

// note takes in one attempt.
func (s *traits) note(a *attempt) {
	switch a.f {
	case "add":
		s.adds = true
	case "transfer":
		s.transfers = true
	case "read":
		if a.value != nil {
			_, isList := elements(a.value)
			s.lists = s.lists || isList
			_, isMap := untagged(a.value).(mapping)
			s.maps = s.maps || isMap
			s.noteKey(a)
		}
		s.reads = s.reads || a.says()
	case "write":
		_, isList := elements(a.value)
		s.listWrites = s.listWrites || isList
		s.noteKey(a)
		s.writes = true
	case "cas":
		s.noteKey(a)
		s.writes = true
	}
}

func (s *traits) noteKey(a *attempt) {
	if isPair(a.value, a.f == "cas") {
		s.keyed = true
	} else {
		s.unkeyed = true
	}
}

// workload tells by its operations what a history is of.
func (all attempts) workload() workload {
	var s traits
	for i := range all.list {
		if a := &all.list[i]; !a.isTxn {
			s.note(a)
		}
	}
	switch {
	case (s.adds || s.transfers) && !s.reads:
		return workBlind
	case s.transfers || s.maps && !s.writes:
		return workBank
	case s.lists && (s.adds || !s.keyed || s.unkeyed) && !s.listWrites:
		return workSet
	case s.keyed && !s.unkeyed:
		return workKeyedRegister
	}
	return workRegister
}

// isPair recognises [key value], for a cas [key [old new]].
func isPair(v any, cas bool) bool {
	list, isList := untagged(v).([]any)
	if !isList || len(list) != 2 {
		return false
	}
	_, isList = untagged(list[1]).([]any)
	return isList || !cas
}

// encoder makes operations of records.
type encoder struct {
	in       *input
	workload workload
	initial  record.Initial
	gathered // left are nil reads that say nothing

	elements []string // of a set: its keys, in order of appearance
	known    map[string]bool
	// Values that a failed cas compared with, by register; Porcupine's only.
	refused map[string][]record.Value
	strings map[string]*stringKey // of Porcupine's store
	byTime  bool                  // times tell which of several appends of a text a get shows
}

// prepare looks at all operations for what the encoding of each depends on.
func (e *encoder) prepare(list []attempt, timed bool) error {
	e.initial = record.InitialAbsent
	switch e.workload {
	case workStrings:
		return e.prepareStrings(list, timed)
	case workBank:
		e.initial = record.InitialAny // accounts are opened before the history begins
	case workSet:
		e.known = map[string]bool{}
		for i := range list {
			e.mention(&list[i])
		}
	}
	return e.prepareRefusals(list)
}

// mention collects the elements of a set.
func (e *encoder) mention(a *attempt) {
	if a.isTxn {
		return
	}
	add := func(v any) {
		if key := setPrefix + nameOf(v); !e.known[key] {
			e.known[key] = true
			e.elements = append(e.elements, key)
		}
	}
	switch a.f {
	case "add", "write":
		add(a.value)
	case "read":
		list, _ := elements(a.value)
		for _, v := range list {
			add(v)
		}
	}
}

// encode adds what a did to the transaction at hand.
func (e *encoder) encode(a *attempt) error {
	if a.void {
		return nil
	}
	if a.isTxn {
		for _, m := range a.micros {
			if m.kind == record.Read && m.value.IsNull() && !a.says() {
				e.left++
				continue
			}
			e.add(m.kind, m.key, m.value)
		}
		return nil
	}
	switch a.f {
	case "acquire", "release":
		e.mutex(a)
		return nil
	case "get", "put", "append":
		if e.workload == workStrings {
			return e.stringOp(a)
		}
		return e.cannot(a)
	case "read", "write", "add", "cas", "transfer":
	default:
		return e.cannot(a)
	}
	switch e.workload {
	case workSet:
		return e.set(a)
	case workBank:
		return e.bank(a)
	case workBlind:
		return e.blind(a)
	case workStrings:
		return e.cannot(a)
	}
	return e.register(a)
}

// cannot refuses an operation, unless it did nothing.
func (e *encoder) cannot(a *attempt) error {
	if a.status == record.Aborted {
		return nil
	}
	e2 := reject.In(":f", reject.Unsupported,
		"no record can say what :%.60s does: want :txn, or read, write and cas, acquire and release, add and read of a "+
			"set, or get, put and append", a.f)
	if a.f == "" {
		e2 = reject.In(":f", reject.MissingField,
			"an operation without :f must have micro-operations for its :value: [[:r k v] …]")
	}
	return e.in.at(e2, a.line, a.offset)
}

// mutex: an attempt to acquire that failed says nothing, as it may not have been made.
func (e *encoder) mutex(a *attempt) {
	if a.status == record.Aborted {
		return
	}
	from, to := record.Null, record.String(heldValue)
	if a.f == "release" {
		from, to = to, from
	}
	e.add(record.Read, mutexKey, from)
	e.add(record.Write, mutexKey, to)
}

func (e *encoder) set(a *attempt) error {
	switch {
	case a.f == "add" || a.f == "write":
		e.add(record.Write, setPrefix+nameOf(a.value), record.Value{Kind: record.KindBool, Text: "true"})
	case a.f != "read":
		return e.cannot(a)
	case !a.says() || a.value == nil:
		e.left++
	default:
		list, isSet := elements(a.value)
		if !isSet {
			return a.bad(e.in, reject.WrongType, "other reads return sets, and this one %.60s", appendText(nil, a.value))
		}
		has := make(map[string]bool, len(list))
		for _, v := range list {
			has[setPrefix+nameOf(v)] = true
		}
		if e.taken+len(e.elements) > encodedMax {
			return a.bad(e.in, reject.TooLarge, "the reads of the set say more than %d times whether an element is in it",
				encodedMax)
		}
		for _, key := range e.elements {
			v := record.Null
			if has[key] {
				v = record.Value{Kind: record.KindBool, Text: "true"}
			}
			e.add(record.Read, key, v)
		}
	}
	return nil
}

func (e *encoder) bank(a *attempt) error {
	switch {
	case a.status == record.Aborted && a.f == "transfer":
		return nil
	case a.f == "transfer":
		return a.bad(e.in, reject.Unsupported,
			"a transfer adds to balances without saying what they were, and others of this history read them: no record can "+
				"say that")
	case a.f != "read":
		return e.cannot(a)
	case !a.says() || a.value == nil:
		e.left++
		return nil
	}
	balances, isMap := entries(a.value)
	if !isMap {
		return a.bad(e.in, reject.WrongType, "want the map of accounts to balances, not %.60s", appendText(nil, a.value))
	}
	for _, b := range balances {
		e.add(record.Read, nameOf(b.key), valueOf(untagged(b.value)))
	}
	return nil
}

// blind: the element is the operation's place, so that no two are the same.
func (e *encoder) blind(a *attempt) error {
	switch {
	case a.f == "read":
		e.left++
	case a.f != "add" && a.f != "transfer":
		return e.cannot(a)
	case a.status != record.Aborted:
		e.add(record.Append, blindKey, record.Int(a.start))
	}
	return nil
}

func (e *encoder) register(a *attempt) error {
	key, v := registerKey, a.value
	if e.workload == workKeyedRegister {
		if v == nil {
			e.left++
			return nil
		}
		list, isList := untagged(v).([]any)
		if !isList || len(list) != 2 {
			return a.bad(e.in, reject.WrongType, "other values are [key value], and this one %.60s", appendText(nil, v))
		}
		key, v = nameOf(list[0]), untagged(list[1])
	}
	switch a.f {
	case "read":
		if v == nil && !a.says() {
			e.left++
			return nil
		}
		e.add(record.Read, key, valueOf(v))
	case "write":
		e.write(a, key, valueOf(v))
	case "cas":
		old, next, err := e.swap(a, v)
		switch {
		case err != nil:
			return err
		case a.refused:
			e.add(record.Read, comparison(key, old), compared(old, false))
			return nil
		case a.status != record.Aborted:
			e.add(record.Read, key, old)
		}
		e.write(a, key, next)
	case "add":
		if a.status != record.Aborted {
			return a.bad(e.in, reject.Unsupported,
				"a counter's add does not say what it added to, and others of this history read it: no record can say that")
		}
	default:
		return e.cannot(a)
	}
	return nil
}

// swap takes apart what a cas says.
func (e *encoder) swap(a *attempt, v any) (old, next record.Value, err error) {
	list, isList := untagged(v).([]any)
	if !isList || len(list) != 2 {
		return old, next, a.bad(e.in, reject.WrongType, "a cas has [old new] for its value, not %.60s", appendText(nil, v))
	}
	return valueOf(untagged(list[0])), valueOf(untagged(list[1])), nil
}

// write writes a register, and what failed swaps compared it with.
func (e *encoder) write(a *attempt, key string, v record.Value) {
	e.add(record.Write, key, v)
	if a.status == record.Aborted {
		return // was never there to be compared with
	}
	for _, old := range e.refused[key] {
		e.add(record.Write, comparison(key, old), compared(old, v == old))
	}
}
