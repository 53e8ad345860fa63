package veil

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/google/renameio/v2/maybe"
)

// The lengths of salts, in bytes: the least that is taken, and what is made.
const (
	saltMin  = 16
	saltMade = 32
	saltMax  = 4096
)

// OwnSalt is the salt in a file, which is made, of chance and for its owner alone, if
// it is not there.
func OwnSalt(file string) ([]byte, error) {
	salt, err := readSalt(file)
	if !errors.Is(err, fs.ErrNotExist) {
		return salt, err
	}
	made := make([]byte, saltMade)
	if _, err := io.ReadFull(rand.Reader, made); err != nil {
		return nil, err
	}
	if err := maybe.WriteFile(file, []byte(hex.EncodeToString(made)+"\n"), 0o600); err != nil {
		return nil, err
	}
	return readSalt(file)
}

func readSalt(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, saltMax))
	if err != nil {
		return nil, err
	}
	salt := bytes.TrimRight(text, "\r\n")
	if len(salt) < saltMin {
		return nil, fmt.Errorf("%s: holds %d bytes, and a salt has %d at least: make one with `openssl rand -hex 32`; "+
			"or remove it, and hashes will be others", file, len(salt), saltMin)
	}
	return salt, nil
}
