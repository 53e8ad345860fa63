package history

import (
	"archive/tar"
	"bufio"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/reject"
)

// Entry is a file, or a folder that is one history, found by Walk.
type Entry struct {
	Path   string // for Open
	Format string // as recognised; "" if it was not: README.md and the like
}

// Walk lists what a path holds: itself if it is a file or one history, else
// everything in the directory and those below it, in lexical order. Hidden files and
// directories are passed over; symbolic links to directories are not followed. An
// empty directory is an error with the reason reject.EmptyInput.
func Walk(root string) ([]Entry, error) {
	info, err := os.Stat(root)
	if err != nil {
		return nil, err
	}
	var out []Entry
	add := func(p string) error {
		format, err := Recognise(p)
		if err == nil {
			out = append(out, Entry{p, format})
		}
		return err
	}
	if !info.IsDir() {
		err := add(root)
		return out, err
	}
	err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		hidden := p != root && strings.HasPrefix(d.Name(), ".")
		switch {
		case d.IsDir() && hidden:
			return fs.SkipDir
		case d.IsDir():
			format, err := Recognise(p)
			if err != nil || format == "" {
				return err
			}
			out = append(out, Entry{p, format})
			return fs.SkipDir
		case hidden:
			return nil
		}
		if target, err := os.Stat(p); err != nil || !target.Mode().IsRegular() {
			return err
		}
		return add(p)
	})
	if err != nil {
		return nil, err
	}
	if len(out) == 0 {
		return nil, reject.New(reject.EmptyInput, "the directory has no files in it").At(whole(root))
	}
	return out, nil
}

// Recognise tells the format of a file by its first bytes, unpacked if need be, or
// of a folder that is one history; "" if it is none of Formats. An error means
// that it could not be looked at: damaged packing is not recognised.
func Recognise(file string) (string, error) {
	info, err := os.Stat(file)
	if err != nil {
		return "", err
	}
	if info.IsDir() {
		logs, err := cobraLogs(file)
		if err != nil || len(logs) == 0 {
			return "", err
		}
		return cobraFormat, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	opt, err := Options{}.withDefaults()
	if err != nil {
		return "", err
	}
	format, err := recogniseIn(&input{name: file, opt: opt}, f, 0)
	if reject.From(err) != nil {
		return "", nil
	}
	return format, err
}

func recogniseIn(in *input, r io.Reader, depth int) (string, error) {
	r, closer, err := unpack(in, r, depth)
	if err != nil {
		return "", err
	}
	defer closer()
	in.r = bufio.NewReaderSize(r, readBuffer)
	if !isTar(in.r) {
		f, err := in.choose()
		if err != nil {
			return "", err
		}
		return f.name, nil
	}
	if depth >= packingMax {
		return "", nil
	}
	files := tar.NewReader(in.r)
	_, name, err := nextFile(files)
	if err != nil {
		return "", nil // its end, or damage
	}
	if _, ok := cobraLogName(name); ok {
		return cobraFormat, nil
	}
	return recogniseIn(&input{name: in.name, opt: in.opt}, files, depth+1)
}

// cobraLogs lists the names of the logs in a directory, sorted.
func cobraLogs(dir string) ([]string, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var logs []string
	for _, f := range files {
		if _, ok := cobraLogName(f.Name()); ok && !f.IsDir() {
			logs = append(logs, f.Name())
		}
	}
	return logs, nil
}

// openDir reads a directory that is one history.
func openDir(dir string, opt Options) ([]History, error) {
	logs, err := cobraLogs(dir)
	if err != nil {
		return nil, err
	}
	if len(logs) == 0 || opt.Format != Auto && opt.Format != cobraFormat {
		return nil, reject.New(reject.ForeignBytes,
			"the directory is not one history (Cobra's are, with logs T0.log, T1.log, …): name the files in it").At(whole(dir))
	}
	c := newCobra(dir)
	left := opt.SizeMax
	for _, log := range logs {
		n, _ := cobraLogName(log)
		name := filepath.Join(dir, log)
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if left -= int64(len(b)); left < 0 {
			return nil, reject.New(reject.TooLarge, "the logs have more than %d bytes, the limit", opt.SizeMax).At(whole(dir))
		}
		if err := c.log(&input{name: name, opt: opt}, n, b); err != nil {
			return nil, err
		}
	}
	return one(c.history())
}

// whole is the position of an input.
func whole(name string) record.Position { return record.Position{Source: name} }
