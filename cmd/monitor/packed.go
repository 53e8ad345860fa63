package main

import (
	"bufio"
	"io"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// packedFile is a file that is written compressed as its name says. It gets the name when
// it is complete: there is never half a one. A pipe or a device can't be replaced, and
// is written into.
type packedFile struct {
	io.WriteCloser // what compresses, or nothing
	buffer         *bufio.Writer
	file           *os.File
	name           string
	inPlace        bool
}

func createFile(name string) (_ *packedFile, err error) {
	p := &packedFile{name: name}
	if info, bad := os.Stat(name); bad == nil && !info.Mode().IsRegular() {
		p.inPlace = true
		p.file, err = os.OpenFile(name, os.O_WRONLY, 0)
	} else {
		p.file, err = os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	}
	if err != nil {
		return nil, err
	}
	p.buffer = bufio.NewWriterSize(p.file, 1<<16)
	switch filepath.Ext(name) {
	case ".gz", ".tgz":
		p.WriteCloser = gzip.NewWriter(p.buffer)
	case ".zst":
		if p.WriteCloser, err = zstd.NewWriter(p.buffer, zstd.WithEncoderConcurrency(1)); err != nil {
			p.discard()
			return nil, err
		}
	default:
		p.WriteCloser = plain{p.buffer}
	}
	return p, nil
}

// plain compresses nothing.
type plain struct{ io.Writer }

func (plain) Close() error { return nil }

// finish gives the file its name.
func (p *packedFile) finish() error {
	steps := []func() error{p.Close, p.buffer.Flush, p.file.Close}
	if !p.inPlace {
		steps = append(steps, func() error { return os.Chmod(p.file.Name(), 0o644) },
			func() error { return os.Rename(p.file.Name(), p.name) })
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// discard takes away what did not become complete.
func (p *packedFile) discard() {
	_ = p.file.Close() // nothing that is wanted is left in it
	if !p.inPlace {
		_ = os.Remove(p.file.Name()) // nothing, if it has its name
	}
}
