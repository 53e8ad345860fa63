package store

import (
	"os"
	"path/filepath"
)

// placeFile says which directory a store was opened in. A copy of the directory has it
// too, and is another one.
const placeFile = "PLACE"

// settle writes it. That it can't be written is no reason not to open a store: Verify then
// takes it for a copy if it was killed.
func settle(path string) {
	if here := place(path); here != "" && !settled(path) {
		_ = os.WriteFile(filepath.Join(path, placeFile), []byte(here), 0o600)
	}
}

// settled tells whether a directory is known to be the one that the store was opened in
// last.
func settled(path string) bool {
	here := place(path)
	was, err := os.ReadFile(filepath.Join(path, placeFile))
	return err == nil && here != "" && string(was) == here
}
