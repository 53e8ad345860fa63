package postgres

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/isowatch/isowatch/internal/sql"
)

// messageMax is how long a message may be that is looked into. What is longer passes: of a row nothing is recorded, a
// statement may write anything, and one whose parameters are longer its table. beginning is how much of that is kept: the
// names in Bind.
const (
	messageMax = 1 << 20
	beginning  = 200
)

// framer cuts a stream into messages.
type framer struct {
	isUntyped bool   // the first message has no type
	held      []byte // the beginning of a message that is not complete
	skip      int    // bytes of a long message that are still to come
	skipped   byte   // its type
	begun     []byte // its beginning
}

// feed calls f for every message that is complete with these bytes; body is nil of one that is too long, and valid only
// during the call. It is false if the stream is none of messages, or f says so.
func (m *framer) feed(b []byte, f func(kind byte, body []byte) bool) bool {
	for {
		if m.skip > 0 {
			n := min(m.skip, len(b))
			m.skip, b = m.skip-n, b[n:]
			if m.skip > 0 {
				return true
			}
			if !f(m.skipped, nil) {
				return false
			}
			continue
		}
		whole := b
		if len(m.held) > 0 {
			m.held = append(m.held, b...)
			whole = m.held
		}
		head := 5
		if m.isUntyped {
			head = 4
		}
		if len(whole) < head {
			m.hold(whole)
			return true
		}
		length := int(int32(binary.BigEndian.Uint32(whole[head-4:])))
		if length < 4 {
			return false
		}
		size := head + length - 4
		kind := byte(0)
		if !m.isUntyped {
			kind = whole[0]
		}
		if length > messageMax {
			if m.isUntyped {
				return false
			}
			if len(whole) < head+beginning {
				m.hold(whole)
				return true
			}
			m.begun = append(m.begun[:0], whole[head:head+beginning]...)
			m.skip, m.skipped, b = size, kind, whole
			m.held = nil
			continue
		}
		if len(whole) < size {
			m.hold(whole)
			return true
		}
		m.isUntyped = false
		rest := whole[size:]
		if !f(kind, whole[head:size]) {
			return false
		}
		if len(m.held) > 0 { // it was joined there
			rest = slices.Clone(rest)
			m.held = m.held[:0]
		}
		if len(rest) == 0 {
			return true
		}
		b = rest
	}
}

func (m *framer) hold(b []byte) {
	if len(m.held) == 0 {
		m.held = append(m.held[:0], b...)
	}
}

// statement is a prepared statement.
type statement struct {
	plan     *sql.Plan
	literals []sql.Token
	oids     []uint32 // of the parameters; 0: the server chooses
	about    *rows    // nil: not known
}

// portal is a statement with its parameters.
type portal struct {
	statement *statement
	text      []byte // of the message, of which are
	params    [][]byte
	formats   []byte // of the parameters, two bytes each
	results   []byte // of the columns, likewise
	isUnnamed bool
	isLong    bool // its parameters are not known
	run       *run // under way: some of its rows were fetched
	sent      int  // how many statements had been sent when it was last used
}

// rows is what the rows of a statement have, as the server described them.
type rows struct {
	text   []byte // the description
	fields []pgproto3.FieldDescription
	xid    int // the field of the transaction's number; -1: none

	catalog *Catalog // for which maps was made, and a run
	table   *table
	isLoose bool
	maps    []rowMap
}

// answer is what the server has still to answer.
type answer struct {
	kind      byte // of the client's message
	sent      int64
	run       *run       // of Q the next one, and the one of E
	statement *statement // that P makes, D describes, or C closes
	before    any        // what the name of the statement or portal meant before
	name      string
	isBegun   bool // some of it is answered
}

// FromClient takes what the client sends, before it is sent on.
func (c *Connection) FromClient(b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.status == 'I' || len(c.queue) > 0 { // else it may go on with a transaction alone
		c.heard = c.capture.rec.Now()
	}
	c.hear(&c.client, b, c.clientMessage, "what the client sends is not understood")
}

// FromServer takes what the server sends, before the client gets it.
func (c *Connection) FromServer(b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hear(&c.server, b, c.serverMessage, "what the server sends is not understood")
}

// hear takes a part of one side's stream. Whatever is wrong with it, or with what becomes of it here, the connection
// goes on.
func (c *Connection) hear(from *framer, b []byte, message func(byte, []byte) bool, why string) {
	if c.ignored {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			c.ignored = true
			c.capture.anything(&sql.Plan{Text: "(a mistake of the recorder's)"})
			c.capture.options.Failed(fmt.Errorf("can't happen, and nothing is recorded any more: %v\n%s", p, debug.Stack()))
			if c.session != nil {
				c.session.Lose()
			}
			if c.entry != nil {
				c.capture.order.End(c.entry, nil, func() {})
			}
		}
	}()
	if !from.feed(b, message) {
		c.giveUp(why)
	}
}

// protocolMajor is the version of the protocol, whatever the minor one.
const protocolMajor = 3

// startup reads the client's first message. Of a connection to another database, or one for replication, nothing is
// recorded.
func (c *Connection) startup(body []byte) bool {
	if len(body) < 4 || binary.BigEndian.Uint16(body) != protocolMajor {
		return false
	}
	fields := strings.Split(string(body[4:]), "\x00")
	var user, database string
	for i := 0; i+1 < len(fields) && fields[i] != ""; i += 2 {
		switch fields[i] {
		case "user":
			user = fields[i+1]
		case "database":
			database = fields[i+1]
		case "replication":
			c.ignored = c.ignored || fields[i+1] != "false" && fields[i+1] != "off" && fields[i+1] != "no" && fields[i+1] != "0"
		case "application_name":
			c.application = fields[i+1]
		}
	}
	if cmp.Or(database, user) != c.capture.catalog.Load().database {
		c.ignored = true
	}
	c.begin()
	return true
}

var tooLong = &sql.Plan{Verb: sql.Anything, Text: "(a statement of more than 1 MiB)"}

func (c *Connection) clientMessage(kind byte, body []byte) bool {
	if c.starting {
		c.starting = false
		return c.startup(body)
	}
	if len(c.queue) == 0 {
		c.inBlock, c.batch = c.status != 'I', 0
		c.queue = c.room[:0]
	}
	a := answer{kind: kind, sent: c.heard}
	switch kind {
	case 'Q':
		plans, literals := []*sql.Plan{tooLong}, []sql.Token(nil)
		if body != nil {
			var m pgproto3.Query
			if m.Decode(body) != nil {
				return false
			}
			plans, literals = c.plan(m.String)
		}
		last := &a.run
		for _, p := range plans {
			r := c.newRun()
			r.plan, r.literals = p, literals
			*last, last = c.start(r), &r.next
		}
		c.sync()
	case 'P':
		var m pgproto3.Parse
		s := &statement{plan: tooLong}
		if body != nil {
			if m.Decode(body) != nil {
				return false
			}
			plans, literals := c.plan(m.Query)
			s.oids, s.literals, s.plan = m.ParameterOIDs, literals, &sql.Plan{Verb: sql.Quiet}
			if len(plans) > 0 {
				s.plan = plans[0]
			}
			if len(plans) > 1 {
				s.plan = &sql.Plan{Verb: sql.Anything, Text: plans[0].Text}
			}
		}
		a.name = m.Name
		a.before = c.statements[a.name]
		if len(c.statements) >= preparedMax && a.name != "" {
			return false
		}
		c.statements[a.name] = s
	case 'B':
		p, called := c.newPortal(), []byte(nil)
		if body != nil {
			portal, statement, ok := p.bind(body)
			if !ok {
				return false
			}
			p.statement, called = c.statements[string(statement)], portal
		} else {
			portal, rest, _ := bytes.Cut(c.client.begun, []byte{0})
			statement, _, _ := bytes.Cut(rest, []byte{0})
			p.statement, called, p.isLong = c.statements[string(statement)], portal, true
		}
		if p.statement == nil {
			p.statement = &statement{plan: &sql.Plan{Verb: sql.Anything, Text: "(a statement that was prepared out of sight)"}}
		}
		if p.sent = c.sent; len(called) == 0 {
			p.isUnnamed, c.unnamed = true, p
			break
		}
		a.name = string(called)
		a.before = c.portals[a.name]
		if len(c.portals) >= preparedMax {
			return false
		}
		c.portals[a.name] = p
	case 'D':
		kind, name, ok := named(body)
		switch {
		case !ok:
			return false
		case kind == 'S':
			a.statement = c.statements[string(name)]
		case kind == 'P':
			if p := c.portal(name); p != nil {
				a.statement = p.statement
			}
		}
	case 'E':
		name, _, ok := bytes.Cut(body, []byte{0})
		if !ok {
			return false
		}
		p := c.portal(name)
		switch {
		case p == nil: // a cursor that SQL declared, and that writes nothing, or none
			a.run = c.start(&run{plan: &sql.Plan{Verb: sql.Quiet}})
		default:
			isOld := p.sent != c.sent
			if p.run != nil {
				p.run.isShared = true
				c.sent++
			} else {
				p.run = c.newRun()
				p.run.plan, p.run.literals, p.run.statement, p.run.portal = p.statement.plan, p.statement.literals, p.statement, p
				c.start(p.run)
			}
			a.run, p.sent = p.run, c.sent
			a.run.isOld = a.run.isOld || isOld
		}
	case 'C':
		kind, name, ok := named(body)
		switch {
		case !ok:
			return false
		case kind == 'S':
			a.name, a.statement = string(name), c.statements[string(name)]
			delete(c.statements, a.name)
		case len(name) == 0:
			c.unnamed = nil
		default:
			delete(c.portals, string(name))
		}
	case 'S':
		c.sync()
	case 'F':
		a.run = c.start(&run{plan: &sql.Plan{Verb: sql.Anything, Text: "(a function call of the protocol)"}})
		c.sync()
	default: // passwords, COPY's data, Flush, Terminate
		return true
	}
	if len(c.queue) >= queueMax {
		return false
	}
	c.queue = append(c.queue, a)
	return true
}

// named is what Describe and Close are about: S a statement, P a portal.
func named(body []byte) (kind byte, name []byte, ok bool) {
	if len(body) == 0 {
		return 0, nil, false
	}
	name, _, ok = bytes.Cut(body[1:], []byte{0})
	return body[0], name, ok
}

// Bounds of what a client may leave open.
const (
	preparedMax = 10_000
	queueMax    = 100_000
)

// portal is the one of a name.
func (c *Connection) portal(name []byte) *portal {
	if len(name) == 0 {
		return c.unnamed
	}
	return c.portals[string(name)]
}

// newPortal is one that has nothing, but perhaps room: that of the one without a name, where nothing that is not answered
// uses it, or of one that had none.
func (c *Connection) newPortal() *portal {
	p := c.unnamed
	if p == nil || p.run != nil || len(c.queue) > 1 || len(c.queue) == 1 && c.queue[0].kind != 'P' {
		n := len(c.portalsLeft)
		if n == 0 {
			return &portal{}
		}
		p, c.portalsLeft = c.portalsLeft[n-1], c.portalsLeft[:n-1]
	} else {
		c.unnamed = nil
	}
	*p = portal{text: p.text[:0], params: p.params[:0]}
	return p
}

// bind reads Bind, and gives the names in it.
func (p *portal) bind(body []byte) (portal, statement []byte, ok bool) {
	p.text = append(p.text, body...)
	portal, rest, named := bytes.Cut(p.text, []byte{0})
	statement, rest, ok = bytes.Cut(rest, []byte{0})
	if !named || !ok {
		return nil, nil, false
	}
	take := func(n int) (b []byte) {
		if ok = ok && n >= 0 && n <= len(rest); ok {
			b, rest = rest[:n:n], rest[n:]
		}
		return b
	}
	number := func() (n int) {
		if b := take(2); ok {
			n = int(binary.BigEndian.Uint16(b))
		}
		return n
	}
	p.formats = take(2 * number())
	for range number() {
		length := take(4)
		if !ok {
			break
		}
		var v []byte // NULL
		if n := int32(binary.BigEndian.Uint32(length)); n != -1 {
			v = take(int(n))
		}
		p.params = append(p.params, v)
	}
	p.results = take(2 * number())
	return portal, statement, ok
}

// newRun is one that has nothing, but perhaps room.
func (c *Connection) newRun() *run {
	n := len(c.runsLeft)
	if n == 0 {
		return &run{}
	}
	r := c.runsLeft[n-1]
	c.runsLeft = c.runsLeft[:n-1]
	*r = run{rows: r.rows[:0], effects: r.effects[:0], returned: r.returned[:0]}
	return r
}

// leftMax is how many runs and portals are kept for their room.
const leftMax = 16

// leaves lets the room of a run that is over, and of its portal if there is another one since, be used again.
func (c *Connection) leaves(r *run) {
	if r.isShared || len(c.runsLeft) >= leftMax {
		return
	}
	if p := r.portal; p != nil && p.isUnnamed && p != c.unnamed && len(c.portalsLeft) < leftMax {
		c.portalsLeft = append(c.portalsLeft, p)
	}
	c.runsLeft = append(c.runsLeft, r)
}

// head is what the next answer is to.
func (c *Connection) head() *answer {
	if len(c.queue) == 0 {
		return nil
	}
	if c.started == 0 {
		c.started = c.queue[0].sent
	}
	return &c.queue[0]
}

func (c *Connection) pop() {
	c.queue[0] = answer{}
	c.queue = c.queue[1:]
}

func (c *Connection) serverMessage(kind byte, body []byte) bool {
	switch kind {
	case 'S':
		var m pgproto3.ParameterStatus
		if body == nil || m.Decode(body) != nil {
			return false
		}
		switch m.Name {
		case "client_encoding":
			c.isUTF8 = m.Value == "UTF8"
		case "standard_conforming_strings":
			c.strange = m.Value != "on"
		}
		return true
	case 'N', 'A', 'R', 'K', 'd', 'c', 'V', 'v', 't':
		if kind != 't' {
			return true
		}
	case 'Z':
		return len(body) == 1 && c.ready(body[0])
	}
	a := c.head()
	if a == nil {
		return kind == 'E' // it ends the connection
	}
	r := a.run
	switch kind {
	case '1', '2', '3':
		if a.kind != "PBC"[kind-'1'] {
			return false
		}
		if kind != '3' {
			c.current() // the server has begun one
		}
		c.pop()
	case 't':
		var m pgproto3.ParameterDescription
		if body == nil || m.Decode(body) != nil || a.kind != 'D' {
			return false
		}
		if a.statement != nil {
			a.statement.oids = slices.Clone(m.ParameterOIDs)
		}
	case 'n':
		if a.kind != 'D' {
			return false
		}
		c.current()
		c.pop()
	case 'T':
		switch {
		case a.kind == 'D':
			if s := a.statement; s != nil {
				var ok bool
				if s.about, ok = described(s.about, body); !ok {
					return false
				}
			}
			c.current()
			c.pop()
		case a.kind == 'Q' && r != nil:
			about, ok := described(c.described[r.plan], body)
			if !ok {
				return false
			}
			if len(c.described) >= plansMax {
				clear(c.described)
			}
			r.about, c.described[r.plan] = about, about
		default:
			return false
		}
	case 'D':
		if r == nil {
			return false
		}
		if body == nil {
			r.hasUnseen, r.seen = true, r.seen+1
			return true
		}
		if c.values.Decode(body) != nil {
			return false
		}
		c.given(r, c.values.Values)
	case 'C', 'I':
		if r == nil {
			return a.kind == 'Q' && kind == 'I'
		}
		tag := []byte(nil)
		if kind == 'C' {
			if len(body) == 0 || body[len(body)-1] != 0 {
				return false
			}
			tag = body[:len(body)-1]
		}
		if r.portal != nil {
			r.portal.run = nil
		}
		if a.run, a.isBegun = r.next, true; a.kind == 'E' {
			c.pop()
		}
		if !c.complete(r, tag) {
			return false
		}
		c.leaves(r)
	case 's':
		if a.kind != 'E' || r == nil {
			return false
		}
		c.pop()
		c.suspended(r)
	case 'G', 'W', 'H':
		return a.kind == 'Q' || kind == 'H'
	case 'E':
		var m pgproto3.ErrorResponse
		if body != nil && m.Decode(body) != nil {
			return false
		}
		if m.SeverityUnlocalized == "FATAL" || m.SeverityUnlocalized == "PANIC" {
			return true // the connection ends with no answer to what it was asked
		}
		c.failed = true
		c.current()
		return c.skip()
	default:
		return false
	}
	return true
}

// skip passes over what the server does not answer after an error.
func (c *Connection) skip() bool {
	for len(c.queue) > 0 {
		a := &c.queue[0]
		for r := a.run; r != nil; r = r.next {
			c.abandon(r)
		}
		switch a.run = nil; a.kind {
		case 'Q', 'S', 'F':
			return true
		case 'P':
			restore(c.statements, a)
		case 'B':
			if a.name != "" {
				restore(c.portals, a)
			} else {
				c.unnamed = nil
			}
		case 'C':
			if a.statement != nil {
				c.statements[a.name] = a.statement
			}
		}
		c.pop()
	}
	return true
}

// restore undoes what a message that was not carried out said of a name.
func restore[V *statement | *portal](of map[string]V, a *answer) {
	if before, ok := a.before.(V); ok && before != nil {
		of[a.name] = before
	} else {
		delete(of, a.name)
	}
}

// described is what rows have; before is how they were described before, mostly alike. nil: it is not known.
func described(before *rows, text []byte) (*rows, bool) {
	if before != nil && text != nil && bytes.Equal(before.text, text) {
		return before, true
	}
	about := &rows{text: slices.Clone(text), xid: -1}
	if text != nil {
		var m pgproto3.RowDescription
		if m.Decode(about.text) != nil {
			return nil, false
		}
		about.fields = m.Fields
		for i := range about.fields {
			if f := &about.fields[i]; string(f.Name) == numbers && f.TableOID == 0 {
				about.xid = i
			}
		}
	}
	return about, true
}

// ready takes ReadyForQuery.
func (c *Connection) ready(status byte) bool {
	if len(c.queue) > 0 {
		a := c.head()
		if (a.kind != 'Q' && a.kind != 'S' && a.kind != 'F') || a.run != nil && a.kind == 'Q' {
			return false
		}
		if a.run != nil { // of F
			c.blinds(a.run)
		}
		c.pop()
	}
	c.settle(status)
	return true
}

// isBinary tells whether a value is so, by the formats in a message: of each, one of all, or none.
func isBinary(formats []byte, i int) bool {
	if len(formats) == 2 {
		i = 0
	}
	return 2*i+1 < len(formats) && binary.BigEndian.Uint16(formats[2*i:]) == pgtype.BinaryFormatCode
}
