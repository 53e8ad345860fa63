package history

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Changes stand anywhere among the records that they are of, also in other chunks of the file.
func TestChangesAmongRecords(t *testing.T) {
	far := strings.Repeat(`{"session":"x","status":"aborted","ops":[["w","k","`+strings.Repeat("v", 1000)+`"]]}`+"\n", 1200)
	in := `{"logged":{"xid":"1","lsn":40}}
{"session":"a","seq":1,"status":"committed","xid":"4294967297","ops":[["w","k",1]]}
{"session":"b","seq":1,"status":"committed","xid":"2","ops":[["w","k",2]]}
{"session":"c","seq":1,"status":"committed","xid":"3","ops":[["w","k",3]]}
` + far + `{"before":null,"source":{"connector":"postgresql","name":"shop","txId":2,"sequence":"[\"50\",\"60\"]"},"op":"u"}
{"session":"d","seq":1,"status":"committed","xid":"2","lsn":7,"ops":[["w","k",4]]}
`
	hs, err := readText(t, in)
	if err == nil || !strings.Contains(err.Error(), "come from the log") {
		t.Fatalf("two logs: %v, %v", hs, err)
	}
	hs, err = readText(t, strings.Replace(in, `"lsn":40`, `"lsn":40,"log":"shop"`, 1))
	if err != nil || len(hs) != 1 {
		t.Fatalf("%d histories, %v", len(hs), err)
	}
	got := map[string]int64{}
	for _, x := range hs[0].Transactions {
		if x.Session != "x" {
			got[x.Session] = x.LSN
		}
	}
	if got["a"] != 40 || got["b"] != 50 || got["c"] != 0 || got["d"] != 7 {
		t.Errorf("LSNs %v", got)
	}
	if _, err := readText(t, `{"logged":{"xid":"1"}}`); err == nil || !strings.Contains(err.Error(), "h:1: field logged.lsn") {
		t.Errorf("a change without LSN: %v", err)
	}
}

func readText(t *testing.T, text string) ([]History, error) {
	path := filepath.Join(t.TempDir(), "h")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return Open(path, Options{})
}
