package history

import (
	"bufio"
	"cmp"
	"io"
	"os"

	"github.com/dustin/go-humanize/english"

	"github.com/isowatch/isowatch/ingest/codec"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/record/packed"
	"github.com/isowatch/isowatch/ingest/reject"
)

// History is one history, read whole.
type History struct {
	File   string // as it was named; a part of a tar is NAME!ENTRY
	Format string // one of Formats
	DB     string
	// Header is what the input says, or what its format implies, on how it is to
	// be judged.
	Header record.Header
	// Transactions stand as they stood in the input, but those of one session
	// in session order. No two have the same ID. None if Options.Packed.
	Transactions []record.Transaction
	// Records are the transactions, packed, if Options.Packed; else nil.
	Records *packed.Records
	// Events are what happened around it, in the order of the input.
	Events     []record.Event
	Duplicates int // records dropped because they had come before
	FailedOps  int // operations left out because they had no effect
}

// Auto is the format that is recognised by content.
const Auto = "auto"

// SizeDefault is the largest input, in bytes after decompression, unless
// Options say otherwise.
const SizeDefault = 16 << 30

// Options say how to read. The zero Options are the defaults.
type Options struct {
	Format    string // one of Formats, or Auto, which "" means too
	SizeMax   int64  // bytes of an input, unpacked; 0 means SizeDefault
	RecordMax int    // bytes of one line; 0 means codec.SizeDefault
	// Packed asks for History.Records instead of Transactions, which takes a
	// seventh of the memory and half of the time.
	Packed bool
}

// deliver gives the histories the form that is asked for.
func (o Options) deliver(hs []History, err error) ([]History, error) {
	for i := range hs {
		h := &hs[i]
		switch {
		case o.Packed && h.Records == nil:
			var b packed.Builder
			for j := range h.Transactions {
				b.Add(&h.Transactions[j])
				h.Transactions[j] = record.Transaction{} // its memory is free
			}
			h.Records, h.Transactions = b.Records(), nil
		case !o.Packed && h.Records != nil:
			h.Transactions = h.Records.Transactions()
			h.Records = nil
		}
	}
	return hs, err
}

func (o Options) withDefaults() (Options, error) {
	o.Format = cmp.Or(o.Format, Auto)
	if o.SizeMax <= 0 {
		o.SizeMax = SizeDefault
	}
	if o.RecordMax <= 0 {
		o.RecordMax = codec.SizeDefault
	}
	if o.Format != Auto && find(o.Format) == nil {
		return o, reject.New(reject.Unsupported, "no format is called %q: want auto, %s", o.Format, english.WordSeries(Formats(), "and"))
	}
	return o, nil
}

// Open reads the histories in a file, or in a directory that is one history
// (Cobra's); "-" is standard input. There is at least one if there is no error.
// For directories of histories, see Walk.
func Open(path string, opt Options) ([]History, error) {
	if path == "-" {
		return Read(path, os.Stdin, opt)
	}
	opt, err := opt.withDefaults()
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return opt.deliver(openDir(path, opt))
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Read(path, f, opt)
}

// Read reads the histories in r, which messages call name.
func Read(name string, r io.Reader, opt Options) ([]History, error) {
	opt, err := opt.withDefaults()
	if err != nil {
		return nil, err
	}
	return opt.deliver(readUnpacked(&input{name: name, opt: opt}, r, 0))
}

// input is what a format's reader reads.
type input struct {
	name string
	opt  Options
	r    *bufio.Reader // unpacked
}

// at puts an error of one record at a line.
func (in *input) at(e *reject.Error, line, offset int64) *reject.Error {
	return e.At(record.Position{Source: in.name, Line: line, Offset: offset})
}

// reject makes an error about the input as a whole.
func (in *input) reject(r reject.Reason, format string, args ...any) *reject.Error {
	return reject.New(r, format, args...).At(record.Position{Source: in.name})
}
