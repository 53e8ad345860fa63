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
	"path/filepath"
)

// The lengths of salts, in bytes: the least that is taken, and what is made.
const (
	SaltMin  = 16
	saltMade = 32
	saltMax  = 4096
)

// Trim is a salt as it stands in a file, without the end of line.
func Trim(text []byte) []byte { return bytes.TrimRight(text, "\r\n") }

// Check tells whether a salt is long enough.
func Check(salt []byte) error {
	if len(salt) < SaltMin {
		return fmt.Errorf("holds %d bytes, and a salt has %d at least: make one with `openssl rand -hex 32`", len(salt),
			SaltMin)
	}
	return nil
}

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
	if err := writeSalt(file, []byte(hex.EncodeToString(made)+"\n")); err != nil {
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
	salt := Trim(text)
	if err := Check(salt); err != nil {
		return nil, fmt.Errorf("%s: %w; or remove it, and hashes will be others", file, err)
	}
	return salt, nil
}

// writeSalt writes a file that is there whole, also after a loss of power, or not at
// all.
func writeSalt(file string, text []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}
