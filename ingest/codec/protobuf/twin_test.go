package protobuf

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/isowatch/isowatch/ingest/assemble"
	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
)

// The twin: the schema by a compiler of protobuf, messages by the library's
// reflection, and not a line in common with the decoder.

const schemaFile = "isowatch.proto" // in docs

var messageType = sync.OnceValue(func() protoreflect.MessageDescriptor {
	source, err := os.ReadFile("../../../docs/" + schemaFile)
	if err != nil {
		panic(err)
	}
	compiler := protocompile.Compiler{Resolver: &protocompile.SourceResolver{Accessor: protocompile.SourceAccessorFromMap(map[string]string{schemaFile: string(source)})}}
	files, err := compiler.Compile(context.Background(), schemaFile)
	if err != nil {
		panic(err)
	}
	return files[0].Messages().ByName("Message")
})

var errTwin = errors.New("refused")

// twin decodes a message: exactly one of the results is not nil unless there is an
// error.
func twin(b []byte) (*record.Transaction, *assemble.Event, error) {
	m := dynamicpb.NewMessage(messageType())
	if err := proto.Unmarshal(b, m); err != nil {
		return nil, nil, err
	}
	if err := once(b, m.Descriptor()); err != nil {
		return nil, nil, err
	}
	field := m.WhichOneof(m.Descriptor().Oneofs().Get(0))
	if field == nil {
		return nil, nil, errTwin
	}
	in := view{m.Get(field).Message()}
	if field.Name() == "transaction" {
		t, err := in.transaction()
		return t, nil, err
	}
	e, err := in.event(string(field.Name()))
	return nil, e, err
}

// once refuses unknown fields, and a field or a oneof twice.
func once(b []byte, in protoreflect.MessageDescriptor) error {
	seen := map[any]bool{}
	for len(b) > 0 {
		number, wire, n := protowire.ConsumeTag(b)
		if n < 0 {
			return errTwin
		}
		size := protowire.ConsumeFieldValue(number, wire, b[n:])
		if size < 0 {
			return errTwin
		}
		value := b[n : n+size]
		b = b[n+size:]
		f := in.Fields().ByNumber(number)
		if f == nil || !wireOf(f, wire) {
			return errTwin
		}
		var key any = number
		if one := f.ContainingOneof(); one != nil && !one.IsSynthetic() {
			key = one.Name()
		}
		if seen[key] && !f.IsList() {
			return errTwin
		}
		seen[key] = true
		if f.Kind() == protoreflect.MessageKind {
			inner, _ := protowire.ConsumeBytes(value)
			if err := once(inner, f.Message()); err != nil {
				return err
			}
		}
	}
	return nil
}

func wireOf(f protoreflect.FieldDescriptor, wire protowire.Type) bool {
	switch f.Kind() {
	case protoreflect.StringKind, protoreflect.MessageKind:
		return wire == protowire.BytesType
	case protoreflect.Sfixed64Kind, protoreflect.DoubleKind:
		return wire == protowire.Fixed64Type
	}
	return wire == protowire.VarintType || f.IsList() && wire == protowire.BytesType
}

// view reads a message's fields by name, all of which it must have if they are
// asked for.
type view struct{ m protoreflect.Message }

func (v view) get(name string) (protoreflect.Value, bool) {
	f := v.m.Descriptor().Fields().ByName(protoreflect.Name(name))
	return v.m.Get(f), v.m.Has(f)
}

// name is a string that is not empty, or was not given. That of a session or history, and statements, have no
// U+0000.
func (v view) name(field string, needed bool) (string, error) {
	s, has := v.get(field)
	if has && s.String() == "" || needed && !has || (field == "session" || field == "db" || field == "statements") && strings.ContainsRune(s.String(), 0) {
		return "", errTwin
	}
	return s.String(), nil
}

func (v view) integer(field string) (int64, bool, error) {
	n, has := v.get(field)
	if n.Int() < 0 {
		return 0, false, errTwin
	}
	return n.Int(), has, nil
}

func (v view) status() (record.Status, error) {
	s, _ := v.get("status")
	switch s.Enum() {
	case 1:
		return record.Committed, nil
	case 2:
		return record.Aborted, nil
	case 3:
		return record.Unknown, nil
	}
	return 0, errTwin
}

func (v view) transaction() (_ *record.Transaction, err error) {
	var errs [11]error
	var t record.Transaction
	var hasStart, hasEnd bool
	t.Session, errs[0] = v.name("session", true)
	t.DB, errs[1] = v.name("db", false)
	t.ID, errs[2] = v.name("id", false)
	t.Seq, t.HasSeq, errs[3] = v.integer("seq")
	t.Start, hasStart, errs[4] = v.integer("start")
	t.End, hasEnd, errs[5] = v.integer("end")
	t.Status, errs[6] = v.status()
	t.Node, errs[7] = v.name("node", false)
	t.Statements, errs[8] = v.name("statements", false)
	t.XID, errs[9] = v.name("xid", false)
	var logged bool
	if t.LSN, logged, errs[10] = v.integer("lsn"); logged && t.LSN <= 0 {
		return nil, errTwin
	}
	t.HasTimes = hasStart && hasEnd
	if errors.Join(errs[:]...) != nil || hasStart != hasEnd || t.End < t.Start {
		return nil, errTwin
	}
	if t.DB == "" {
		t.DB = "default"
	}
	if t.ID == "" && t.HasSeq {
		t.ID = t.Session + "#" + strconv.FormatInt(t.Seq, 10)
	}
	ops, _ := v.get("ops")
	for i := range ops.List().Len() {
		op, err := view{ops.List().Get(i).Message()}.operation()
		if err != nil {
			return nil, err
		}
		t.Ops = append(t.Ops, op)
	}
	return &t, nil
}

func (v view) operation() (op record.Op, err error) {
	oneofs := v.m.Descriptor().Oneofs()
	on, value := v.m.WhichOneof(oneofs.ByName("on")), v.m.WhichOneof(oneofs.ByName("value"))
	if on == nil || value == nil {
		return op, errTwin
	}
	op.Kind = map[protoreflect.Name]record.OpKind{"read": record.Read, "write": record.Write, "append": record.Append,
		"predicate_read": record.PredicateRead, "predicate_write": record.PredicateWrite}[on.Name()]
	if op.Kind == record.PredicateRead || op.Kind == record.PredicateWrite {
		p := view{v.m.Get(on).Message()}
		var tableErr, whereErr error
		op.Key, tableErr = p.name("table", true)
		op.Where, whereErr = p.name("where", true)
		err = errors.Join(tableErr, whereErr)
	} else {
		op.Key, err = v.name(string(on.Name()), true)
	}
	if err != nil {
		return op, err
	}
	got := v.m.Get(value)
	var text string // JSON
	switch value.Name() {
	case "integer":
		text = strconv.FormatInt(got.Int(), 10)
	case "text":
		op.Value = record.String(got.String())
		return op, refuseIf(op.Where != "")
	case "null":
		text = "null"
		if got.Enum() != 0 {
			return op, errTwin
		}
	case "boolean":
		text = strconv.FormatBool(got.Bool())
	case "number":
		if math.IsNaN(got.Float()) || math.IsInf(got.Float(), 0) {
			return op, errTwin
		}
		text = strconv.FormatFloat(got.Float(), 'e', -1, 64)
	case "integers":
		list, _ := view{got.Message()}.get("values")
		var all []string
		for i := range list.List().Len() {
			all = append(all, strconv.FormatInt(list.List().Get(i).Int(), 10))
		}
		text = "[" + strings.Join(all, ",") + "]"
	case "json":
		text = got.String()
	}
	op.Value, err = codec.ParseValue([]byte(text))
	return op, errors.Join(err, refuseIf(op.Where != "" && op.Value.Kind != record.KindObject))
}

func refuseIf(bad bool) error {
	if bad {
		return errTwin
	}
	return nil
}

func (v view) event(kind string) (_ *assemble.Event, err error) {
	var errs [6]error
	var e assemble.Event
	e.Session, errs[0] = v.name("session", true)
	e.Txn, errs[1] = v.name("txn", true)
	switch kind {
	case "begin":
		e.Kind = assemble.Begin
		e.DB, errs[2] = v.name("db", false)
		e.ID, errs[3] = v.name("id", false)
		e.Seq, e.HasSeq, errs[4] = v.integer("seq")
		e.Time, e.HasTime, errs[5] = v.integer("start")
		if e.DB == "" {
			e.DB = "default"
		}
	case "step":
		e.Kind = assemble.Step
		n, has := v.get("n")
		e.N = uint32(n.Uint())
		errs[2] = refuseIf(!has || n.Uint() >= 1<<24)
		op, has := v.get("op")
		if !has {
			return nil, errTwin
		}
		e.Op, errs[3] = view{op.Message()}.operation()
	case "end":
		e.Kind = assemble.End
		n, has := v.get("count")
		e.N = uint32(n.Uint())
		errs[2] = refuseIf(!has || n.Uint() > 1<<24)
		e.Status, errs[3] = v.status()
		e.Time, e.HasTime, errs[4] = v.integer("end")
	}
	return &e, errors.Join(errs[:]...)
}

// The schema's comments promise that numbers do not change: this is what they are.
func TestFieldNumbers(t *testing.T) {
	var got bytes.Buffer
	for _, name := range []protoreflect.Name{"Message", "Transaction", "Operation", "Predicate", "Integers", "Begin", "Step", "End"} {
		m := messageType().ParentFile().Messages().ByName(name)
		got.WriteString(string(name))
		for i := range m.Fields().Len() {
			f := m.Fields().Get(i)
			got.WriteString(" " + strconv.Itoa(int(f.Number())) + ":" + string(f.Name()))
		}
		got.WriteByte('\n')
	}
	const want = `Message 1:transaction 2:begin 3:step 4:end
Transaction 1:session 2:seq 3:start 4:end 5:status 6:db 7:id 8:ops 9:node 10:statements 11:xid 12:lsn
Operation 1:read 2:write 3:append 4:predicate_read 5:predicate_write 6:integer 7:text 8:null 9:boolean 10:number 11:integers 12:json
Predicate 1:table 2:where
Integers 1:values
Begin 1:session 2:txn 3:seq 4:start 5:db 6:id
Step 1:session 2:txn 3:n 4:op
End 1:session 2:txn 3:status 4:count 5:end
`
	if got.String() != want {
		t.Errorf("the schema has\n%s\nwant\n%s", got.String(), want)
	}
}
