package certificate

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/isowatch/isowatch/ingest/record"
)

// listVersions are what a list was in an order of commits: it only grows, so each
// version is the first so many bytes of the last.
//
//	elements  1,2,7,9
//	versions  A 3, B 5, C 7      A appended 1 and 2, B 7, C 9
//
// A reader of the second reads from A and B: of 1, 2 and 7 it knows who wrote
// them, whatever version they were written to.
type listVersions struct {
	elements []byte // between commas
	versions []listVersion
}

type listVersion struct {
	txn int32
	end int // of elements, in bytes
}

// append lengthens a list by what transaction n, which commits, appends.
func (c *commitOrder) append(n, key int32, v record.Value) {
	l := c.lists[key]
	if l == nil {
		l = &listVersions{}
		c.lists[key] = l
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
	at, ok := slices.BinarySearchFunc(l.versions, len(elements), func(v listVersion, n int) int { return cmp.Compare(v.end, n) })
	return at, ok && string(l.elements[:len(elements)]) == elements
}

// begins tells whether the list begins with some elements, and how many
// transactions appended them, the last perhaps not only them.
func (l *listVersions) begins(elements string) (int, bool) {
	n := len(elements)
	if !bytes.HasPrefix(l.elements, []byte(elements)) || n > 0 && n < len(l.elements) && l.elements[n] != ',' {
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
	base := elements(v)
	if len(mine.list) > 0 {
		var ok bool
		if base, ok = cutOwn(base, mine.list); !ok {
			return c.differs(i, n, j, content{isList: true, own: mine.list}, "reads %s from %q, which should end with its own %s")
		}
		v = record.Value{Kind: record.KindList, Text: "[" + base + "]"}
	}
	if has := c.objects[key].holding(mine.seen); c.repeat && mine.read && !has.is(v) {
		return c.differs(i, n, j, has.plus(mine.list), "reads %s from %q, after %s before")
	}
	mine.read, mine.seen = true, v
	if v.Kind != record.KindList && !v.IsNull() {
		if c.opt.Coverage == record.CoveragePartial {
			c.presume(i, n, j, key, v, "")
			return nil
		}
		return c.notShown(i, n, j, key)
	}
	if c.opt.Coverage == record.CoveragePartial {
		return c.readSeen(i, n, j, key, base)
	}
	if base == "" {
		c.readFrom(j, key, none)
		return nil
	}
	at, ok := 0, false
	if l := c.lists[key]; l != nil {
		at, ok = l.find(base)
	}
	if !ok {
		return c.notShown(i, n, j, key)
	}
	c.readParts(j, key, at)
	c.readFrom(j, key, c.lists[key].versions[at].txn)
	return nil
}

// readSeen is the end of readList with partial coverage: elements that nobody is
// recorded to have appended are passed over, and if the last is one the list may
// have been read at any time.
func (c *commitOrder) readSeen(i int32, n, j int, key int32, base string) *Error {
	var seen strings.Builder
	known := false
	for rest := base; len(rest) > 0; {
		var e string
		e, rest = cutElement(rest)
		if _, known = c.appended[element{key, e}]; known {
			if seen.Len() > 0 {
				seen.WriteByte(',')
			}
			seen.WriteString(e)
		}
	}
	l := c.lists[key]
	switch {
	case seen.Len() == 0: // an unseen transaction's, or there may have been one that deleted it
		return nil
	case l == nil:
		return c.notShown(i, n, j, key)
	case !known:
		parts, ok := l.begins(seen.String())
		if !ok {
			return c.notShown(i, n, j, key)
		}
		c.readParts(j, key, parts)
		return nil
	}
	at, ok := l.find(seen.String())
	if !ok {
		return c.notShown(i, n, j, key)
	}
	c.readParts(j, key, at)
	c.readFrom(j, key, l.versions[at].txn)
	return nil
}

// readParts notes a read from those who appended to a list first.
func (c *commitOrder) readParts(j int, key int32, first int) {
	if first == 0 {
		return
	}
	for _, v := range c.lists[key].versions[:first] {
		c.reads = append(c.reads, resolved{op: int32(j), key: key, writer: v.txn, part: true})
	}
}

// notShown is the Error of a list that is no version of those so far.
func (c *commitOrder) notShown(i int32, n, j int, key int32) *Error {
	has := content{isList: true}
	if l := c.lists[key]; l != nil {
		has.base = l.elements
	}
	return c.differs(i, n, j, has, "reads %s from %q, which those who commit before made %s, one after the other")
}
