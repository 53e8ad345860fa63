package oracle

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/isowatch/isowatch/ingest/record"
)

// origin says where the value that a key holds comes from.
type origin uint8

const (
	// known: a seen transaction wrote it, or it is a stated initial value.
	known origin = iota
	// open: an initial value that nobody has read yet; the first read tells.
	open
	// foreign: an unstated initial value, or one of a transaction not seen.
	foreign
)

// cell is what one key holds.
type cell struct {
	value record.Value
	from  origin
}

// state is what the imaginary database holds, by key.
type state []cell

func (h *history) initial() state {
	s := make(state, len(h.keys))
	for key, k := range h.keys {
		switch initial := h.initialOf(key); {
		case h.appended.has(k):
			s[k] = cell{record.Null, known}
		case initial == record.InitialAny:
			s[k] = cell{record.Null, open}
		case initial == record.InitialZero:
			s[k] = cell{record.Int(0), known}
		}
	}
	return s
}

func (s state) clone() state { return append(state(nil), s...) }

// text identifies a state.
func (s state) text(b []byte) []byte {
	for _, c := range s {
		b = append(b, '0'+byte(c.from))
		b = c.value.AppendJSON(b)
		b = append(b, ' ')
	}
	return b
}

// answers tells whether the database, holding s, would have answered each read
// of transaction t as recorded. Reading an open cell settles it, in s.
func (h *history) answers(t int, s state) bool {
	own := make(state, len(s)) // what t itself made of the keys it wrote
	var wrote set
	for _, op := range h.txns[t].Ops {
		k := h.keys[op.Key]
		switch op.Kind {
		case record.PredicateRead, record.PredicateWrite:
			for _, key := range h.rows(&op) {
				row := s[h.keys[key]].value
				if wrote.has(h.keys[key]) {
					row = own[h.keys[key]].value
				}
				if !fits(&op, key, row) {
					return false
				}
			}
			for _, key := range written(&op) {
				own[h.keys[key]] = cell{gave(&op), known}
				wrote = wrote.with(h.keys[key])
			}
		case record.Write:
			own[k] = cell{op.Value, known}
			wrote = wrote.with(k)
		case record.Append:
			if !wrote.has(k) {
				own[k] = s[k]
			}
			own[k] = cell{appended(own[k].value, op.Value), known}
			wrote = wrote.with(k)
		case record.Read:
			if wrote.has(k) {
				if h.normal(k, own[k].value) != h.normal(k, op.Value) {
					return false
				}
				continue
			}
			if s[k].from == foreign && !h.mayBeUnseen(op.Key, op.Value) {
				return false
			}
			if s[k].from == open {
				if Made(h.txns, op.Key, op.Value) {
					return false
				}
				s[k] = cell{op.Value, foreign}
			}
			if h.normal(k, s[k].value) != h.normal(k, op.Value) {
				return false
			}
		}
	}
	return true
}

// commit makes transaction t's writes part of s. Only the last write of a key
// remains.
func (h *history) commit(t int, s state) {
	for _, op := range h.txns[t].Ops {
		k := h.keys[op.Key]
		switch op.Kind {
		case record.PredicateWrite:
			for _, key := range written(&op) {
				s[h.keys[key]] = cell{gave(&op), known}
			}
		case record.Write:
			s[k] = cell{op.Value, known}
		case record.Append:
			s[k] = cell{appended(s[k].value, op.Value), known}
		}
	}
}

// normal makes the two ways of writing an empty list the same.
func (h *history) normal(k int, v record.Value) record.Value {
	if h.appended.has(k) && v.Kind == record.KindList && v.Text == "[]" {
		return record.Null
	}
	return v
}

// appended is the list with one element more; what is no list counts as empty.
func appended(list, element record.Value) record.Value {
	text := []byte("[")
	if list.Kind == record.KindList && list.Text != "[]" {
		text = append(text[:0], list.Text[:len(list.Text)-1]...)
		text = append(text, ',')
	}
	text = element.AppendJSON(text)
	return record.Value{Kind: record.KindList, Text: string(append(text, ']'))}
}

// foreignCommits are the states that s may have become, itself included, by
// commits of unseen transactions just before transaction t starts. Only keys
// that t touches matter: what happens to another key may as well happen later.
// The keys in busy have a running writer that such a commit would collide with.
func (h *history) foreignCommits(t int, s state, busy set) []state {
	out := []state{s}
	for k := range s {
		if !h.touches[t].has(k) || busy.has(k) {
			continue
		}
		if h.appended.has(k) {
			out = h.longer(out, k)
			continue
		}
		for _, base := range out { // those made so far; range sees no later ones
			for _, v := range h.unseen[k] {
				if base[k] == (cell{v, foreign}) || !h.mayFind(t, k, v) {
					continue
				}
				n := base.clone()
				n[k] = cell{v, foreign}
				out = append(out, n)
			}
		}
	}
	return out
}

// foreignAppends are the states that s may have become, itself included, by
// unseen appends just before transaction t commits to the same lists.
func (h *history) foreignAppends(t int, s state, firstCommitterWins bool) []state {
	out := []state{s}
	for k := range s {
		if !firstCommitterWins && h.appended.has(k) && h.writes[t].has(k) {
			out = h.longer(out, k)
		}
	}
	return out
}

// longer adds to some states those in which unseen appends made list k longer.
func (h *history) longer(states []state, k int) []state {
	for i := 0; i < len(states); i++ { // states grows meanwhile: one append after the other
		for _, g := range h.grown[k] {
			if h.normal(k, states[i][k].value) == g.from {
				n := states[i].clone()
				n[k] = cell{g.to, known}
				states = append(states, n)
			}
		}
	}
	return states
}

// elements are those of a list; what is no list has none.
func elements(list record.Value) []record.Value {
	if list.Kind != record.KindList {
		return nil
	}
	var raw []json.RawMessage
	if err := json.Unmarshal([]byte(list.Text), &raw); err != nil {
		panic(fmt.Sprintf("oracle: list %s: %v", list.Text, err))
	}
	out := make([]record.Value, len(raw))
	for i, text := range raw {
		out[i] = element(text)
	}
	return out
}

func element(text json.RawMessage) record.Value {
	var v any
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		panic(fmt.Sprintf("oracle: element %s: %v", text, err))
	}
	switch v := v.(type) {
	case nil:
		return record.Null
	case string:
		return record.String(v)
	case bool:
		return record.Value{Kind: record.KindBool, Text: string(text)}
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return record.Int(n)
		}
		return record.Value{Kind: record.KindNumber, Text: string(text)}
	case []any:
		return record.Value{Kind: record.KindList, Text: string(text)}
	}
	return record.Value{Kind: record.KindObject, Text: string(text)}
}
