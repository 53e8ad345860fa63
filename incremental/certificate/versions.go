package certificate

import (
	"cmp"
	"slices"
	"strings"

	"github.com/isowatch/isowatch/ingest/record"
)

// listVersions are what a list was, as it only grows: each version is the first so
// many bytes of the last. They come in the order of commits, but for g1, which asks
// for no more than some order: there it is the one that the longest list shows.
//
//	elements  1,2,7,9
//	versions  A 3, B 5, C 7      A appended 1 and 2, B 7, C 9
//
// A reader of the second reads from A and B: of 1, 2 and 7 it knows who wrote
// them, whatever version they were written to.
type listVersions struct {
	elements []byte // between commas
	versions []listVersion
	shown    bool // by a read; else they grow with the commits
}

type listVersion struct {
	txn int32
	end int // of elements, in bytes
}

// mix notes the keys that are both appended to and written. Of those no read can be
// checked.
func (c *commitOrder) mix() {
	if !c.anyLists() {
		return
	}
	for _, e := range c.order {
		n := int(e.Txn)
		for j := range c.txns[n].Ops {
			if k := c.keys[c.first[n]+j]; c.txns[n].Ops[j].Kind == record.Write && c.objects[k].isList {
				if c.mixed == nil {
					c.mixed = map[int32]bool{}
				}
				c.mixed[k] = true
			}
		}
	}
}

func (c *commitOrder) anyLists() bool {
	return slices.ContainsFunc(c.objects, func(o object) bool { return o.isList })
}

// append lengthens a list by what transaction n, which commits, appends.
func (c *commitOrder) append(n, key int32, v record.Value) {
	l := c.lists[key]
	if l == nil {
		l = &listVersions{}
		c.lists[key] = l
	}
	if l.shown {
		return
	}
	l.elements = appendElement(l.elements, v)
	if last := len(l.versions) - 1; last >= 0 && l.versions[last].txn == n {
		l.versions[last].end = len(l.elements)
		return
	}
	l.versions = append(l.versions, listVersion{n, len(l.elements)})
}

// find is the place of the version that a list shows.
func (l *listVersions) find(elements string) (int, bool) {
	at, ok := slices.BinarySearchFunc(l.versions, len(elements),
		func(v listVersion, n int) int { return cmp.Compare(v.end, n) })
	return at, ok && string(l.elements[:len(elements)]) == elements
}

// begins tells whether the list begins with some elements, and how many
// transactions appended them, the last perhaps not only them.
func (l *listVersions) begins(elements string) (int, bool) {
	n := len(elements)
	if n > len(l.elements) || !startsWith(string(l.elements[:min(n+1, len(l.elements))]), elements) {
		return 0, false
	}
	at, ok := slices.BinarySearchFunc(l.versions, n, func(v listVersion, n int) int { return cmp.Compare(v.end, n) })
	if ok || n > 0 {
		at++
	}
	return at, true
}

// readList finds who appended what operation j of transaction n read of a list.
func (c *commitOrder) readList(i int32, n, j int, key int32) *Error {
	v, mine := c.txns[n].Ops[j].Value, &c.overlays[key]
	if mine.replaced {
		if has := c.objects[key].holding(mine.value).plus(mine.list); !has.is(v) {
			return c.differs(i, n, j, has, "reads %s from %q, its own write left %s")
		}
		return nil
	}
	base := elements(v)
	if len(mine.list) > 0 {
		var ok bool
		if base, ok = cutOwn(base, mine.list); !ok {
			return c.differs(i, n, j, content{isList: true, own: mine.list},
				"reads %s from %q, which should end with its own %s")
		}
		v = record.Value{Kind: record.KindList, Text: "[" + base + "]"}
	}
	if has := c.objects[key].holding(mine.seen); c.repeat && mine.read && !has.is(v) {
		return c.differs(i, n, j, has.plus(mine.list), "reads %s from %q, after %s before")
	}
	mine.read, mine.seen = true, v
	switch partial, plain := c.objects[key].unseen, v.Kind != record.KindList; {
	case plain && partial && (!v.IsNull() || c.mixed[key]): // of somebody unseen
		c.presume(i, n, j, key, v, "")
		return nil
	case c.mixed[key]:
		return c.fail(i, n, j, "reads %q, which is both appended to and written: an order of commits can't be checked for "+
			"that; prove pc or a stronger level instead", c.txns[n].Ops[j].Key)
	case plain && !v.IsNull():
		return c.notShown(i, n, j, key)
	case partial:
		return c.readSeen(i, n, j, key, base)
	}
	if base == "" {
		c.readFrom(j, key, none)
		return nil
	}
	return c.readVersion(i, n, j, key, base)
}

// readVersion is the end of readList: the version has these elements.
func (c *commitOrder) readVersion(i int32, n, j int, key int32, elements string) *Error {
	at, ok := 0, false
	if l := c.lists[key]; l != nil {
		at, ok = l.find(elements)
	}
	if !ok {
		return c.notShown(i, n, j, key)
	}
	if err := c.readParts(i, n, j, key, at); err != nil {
		return err
	}
	return c.readPart(i, n, j, resolved{op: int32(j), key: key, writer: c.lists[key].versions[at].txn})
}

// readSeen is the end of readList with partial coverage: elements that nobody is
// recorded to have appended are passed over, and if the last is one the list may
// have been read at any time.
func (c *commitOrder) readSeen(i int32, n, j int, key int32, base string) *Error {
	seen, known := c.recorded(key, base)
	switch l := c.lists[key]; {
	case seen == "": // an unseen transaction's, or there may have been one that deleted it
		return nil
	case known:
		return c.readVersion(i, n, j, key, seen)
	case l == nil:
		return c.notShown(i, n, j, key)
	default:
		parts, ok := l.begins(seen)
		if !ok {
			return c.notShown(i, n, j, key)
		}
		return c.readParts(i, n, j, key, parts)
	}
}

// recorded are those elements of a list that somebody is recorded to have appended,
// and whether the last is one.
func (c *commitOrder) recorded(key int32, list string) (seen string, last bool) {
	var b strings.Builder
	for len(list) > 0 {
		var e string
		e, list = cutElement(list)
		if _, last = c.appended[element{key, e}]; last {
			if b.Len() > 0 {
				b.WriteByte(',')
			}
			b.WriteString(e)
		}
	}
	return b.String(), last
}

// readParts notes a read from those who appended to a list first.
func (c *commitOrder) readParts(i int32, n, j int, key int32, first int) *Error {
	if first == 0 {
		return nil
	}
	for _, v := range c.lists[key].versions[:first] {
		if err := c.readPart(i, n, j, resolved{op: int32(j), key: key, writer: v.txn, part: true}); err != nil {
			return err
		}
	}
	return nil
}

// readPart notes a read from somebody who appended to a list.
func (c *commitOrder) readPart(i int32, n, j int, rd resolved) *Error {
	if c.commit[rd.writer] >= i {
		op := &c.txns[n].Ops[j]
		return c.fail(i, n, j, "reads %s from %q, whose writer %s has not committed yet", brief(op.Value.String()), op.Key,
			c.who(int(rd.writer)))
	}
	c.reads = append(c.reads, rd)
	return nil
}

// notShown is the Error of a list that is no version.
func (c *commitOrder) notShown(i int32, n, j int, key int32) *Error {
	has := content{isList: true}
	if l := c.lists[key]; l != nil {
		has.base = l.elements
		if l.shown {
			return c.differs(i, n, j, has, "reads %s from %q, which is no version of it: the longest that is read is %s")
		}
	}
	return c.differs(i, n, j, has, "reads %s from %q, which those who commit before made %s, one after the other")
}

// showLists takes the order of versions from the longest list that is read of each
// key, if the elements tell whose they are.
func (c *commitOrder) showLists() {
	longest := map[int32]string{}
	writers := map[element]int32{}
	blocks := map[place]string{} // by transaction and key, what it appended
	several := map[int32]bool{}  // keys of which an element was appended twice
	for _, e := range c.order {
		n := int32(e.Txn)
		keys := c.keys[c.first[n] : c.first[n]+len(c.txns[n].Ops)]
		for j, k := range keys {
			op, mine := &c.txns[n].Ops[j], &c.overlays[k]
			switch {
			case !c.objects[k].isList:
			case op.Kind == record.Append:
				mine.apply(op)
				at := element{k, op.Value.String()}
				if _, twice := writers[at]; twice {
					several[k] = true
				}
				writers[at] = n
			case op.Kind == record.Read:
				if list, ok := c.found(k, op.Value); ok && len(list) > len(longest[k]) {
					longest[k] = list
				}
			}
		}
		for _, k := range keys {
			if mine := &c.overlays[k]; len(mine.list) > 0 {
				blocks[place{n, k}] = string(mine.list)
			}
			c.overlays[k] = overlay{}
		}
	}
	for k, list := range longest {
		if l := listShown(k, list, writers, blocks); l != nil && !several[k] {
			c.lists[k] = l
		}
	}
}

// found are the recorded elements that a transaction found in a list, given what it
// read after appending to it.
func (c *commitOrder) found(key int32, read record.Value) (string, bool) {
	list, ok := elements(read), true
	if own := c.overlays[key].list; len(own) > 0 {
		list, ok = cutOwn(list, own)
	}
	if ok && c.objects[key].unseen {
		list, _ = c.recorded(key, list)
	}
	return list, ok
}

// listShown are the versions that a list shows, or nil if it can't be one: each
// transaction's block of elements has to stand there once, and all but the last's
// whole.
func listShown(key int32, list string, writers map[element]int32, blocks map[place]string) *listVersions {
	l := &listVersions{elements: []byte(list), shown: true}
	seen := map[int32]bool{}
	for at := 0; at < len(list); {
		e, _ := cutElement(list[at:])
		w, ok := writers[element{key, e}]
		block := blocks[place{w, key}]
		if !ok || seen[w] || !startsWith(list[at:], block) && !startsWith(block, list[at:]) {
			return nil
		}
		seen[w] = true
		at += len(block)
		l.versions = append(l.versions, listVersion{w, at})
		at++ // a comma
	}
	return l
}

// startsWith tells whether a list starts with the elements of another.
func startsWith(list, first string) bool {
	return strings.HasPrefix(list, first) && (len(list) == len(first) || first == "" || list[len(first)] == ',')
}
