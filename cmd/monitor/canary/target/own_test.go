package target

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dgraph-io/badger/v4"
)

// What somebody else has put where a canary is to write is neither emptied nor removed: a folder with other files, a
// store with other keys, a file with other tables, also where they are named as the canary's.
func TestOthersDataIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	folder, store := filepath.Join(dir, "canary-islands"), filepath.Join(dir, "canary-store")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	photo := filepath.Join(folder, "photo.jpg")
	if err := os.WriteFile(photo, []byte("photo"), 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := badger.Open(badger.DefaultOptions(store).WithLogger(nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(func(txn *badger.Txn) error { return txn.Set([]byte("orders/1"), nil) }); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	targets := map[string]string{"badger://" + folder: photo, "badger://" + store: filepath.Join(store, badger.ManifestFilename)}
	for name, tables := range map[string]string{
		"canary-a.db": "create table orders (id integer)", "canary-b.db": "create table items (name text, mine text)",
		"canary-c.db": "create view totals as select 1 as n",
	} {
		file := filepath.Join(dir, name)
		db, err := sql.Open("sqlite", "file:"+file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.ExecContext(t.Context(), tables); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		targets["sqlite://"+file] = file
	}
	for address, kept := range targets {
		refused := func(what string, err error) {
			if err == nil || !strings.Contains(err.Error(), "the canary's own") {
				t.Errorf("%s of %s: %v", what, address, err)
			}
		}
		db, err := Open(t.Context(), Options{Targets: []string{address}})
		if err != nil {
			refused("opening", err)
		} else {
			refused("preparing", db.Prepare(t.Context()))
			refused("cleaning up", db.Cleanup(t.Context()))
			db.Close()
		}
		if _, err := os.Stat(kept); err != nil {
			t.Error(err)
		}
	}
}
