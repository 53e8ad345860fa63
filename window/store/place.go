package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// placeFile says which directory a store was opened in. A copy of the directory has it
// too, and is another one.
const placeFile = "PLACE"

// placed is what the file holds: the place, which is a line, and a checksum of it.
func placed(here string) string {
	here = strings.TrimSuffix(here, "\n")
	return fmt.Sprintf("%s sum %016x\n", here, checksum([]byte(here)))
}

// placedBefore is what earlier versions wrote.
var placedBefore = regexp.MustCompile(`^device \d+ inode \d+\n$`)

// settle writes it. That it can't be written is no reason not to open a store: Verify then
// takes it for a copy if it was killed.
func settle(path string) {
	here := place(path)
	if was, err := readPlace(path); here != "" && (err != nil || was != placed(here)) {
		_ = os.WriteFile(filepath.Join(path, placeFile), []byte(placed(here)), 0o600)
	}
}

func readPlace(path string) (string, error) {
	b, err := os.ReadFile(filepath.Join(path, placeFile))
	return string(b), err
}

// settled tells whether a directory is known to be the one that the store was opened in
// last.
func settled(path string) bool {
	here := place(path)
	was, err := readPlace(path)
	return err == nil && here != "" && (was == placed(here) || was == here)
}

// placeOf looks at the file. It may be missing, or empty: then it was being written when the
// process was killed.
func placeOf(path string) (*Damage, error) {
	was, err := readPlace(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && (was == "" || placedBefore.MatchString(was)) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if here, _, ok := strings.Cut(was, " sum "); ok && was == placed(here) {
		return nil, nil
	}
	return &Damage{Kind: "place", Key: "which folder this is", File: placeFile, Why: "its checksum is wrong"}, nil
}
