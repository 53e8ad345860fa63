package recorder_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/recorder"
)

// An application records a withdrawal that committed and one that its database refused, into a file that
// monitor check reads.
func Example() {
	ctx := context.Background()
	file, err := os.CreateTemp("", "records-*.jsonl")
	if err != nil {
		panic(err)
	}
	defer os.Remove(file.Name())
	rec := recorder.New(recorder.Lines(file), recorder.Options{DB: "shop"})
	session := rec.Session("api-3/7") // one for each connection

	t := session.Begin() // before BEGIN is sent
	t.Read("acct:1", record.Int(100))
	t.Write("acct:1", record.Int(90))
	t.End(record.Committed) // when COMMIT was answered

	t = session.Begin()
	t.Read("acct:1", record.Int(90))
	t.End(record.Aborted) // could not serialize access

	if err := rec.Close(ctx); err != nil { // hands on what is buffered
		panic(err)
	}
	text, err := os.ReadFile(file.Name())
	if err != nil {
		panic(err)
	}
	for line := range strings.Lines(string(text)) {
		_, ops, _ := strings.Cut(line, `"status"`)
		fmt.Print(ops)
	}
	// Output:
	// :"committed","ops":[["r","acct:1",100],["w","acct:1",90]]}
	// :"aborted","ops":[["r","acct:1",90]]}
}
