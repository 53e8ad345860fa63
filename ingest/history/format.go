package history

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"slices"
	"sync"

	"github.com/dustin/go-humanize/english"

	"github.com/isowatch/isowatch/ingest/reject"
)

// format is one way to write a history in a file. (Cobra's many files are
// found by their names first, see cobra.go.)
type format struct {
	name string
	// recognise tells from the first bytes, at most headMax, whether an
	// input is of this format. It need not be sure that it can be read.
	recognise func(head []byte) bool
	read      func(in *input) ([]History, error)
	spec      // what it can say, and how it is written; without write it is only read
}

// formats in the order of recognition. The names are part of the command line.
var formats = []format{
	{dbcopJSONFormat, looksDbcopJSON, readDbcopJSON, spec{write: writeDbcopJSON, aborted: true, scalars: true,
		numbers: true, valueMax: math.MaxUint64, initial: initialMark}},
	{isowatchFormat, looksIsowatch, readIsowatch,
		spec{write: writeIsowatch, aborted: true, unknown: true, scalars: true, lists: true,
			times: timesMaybe, initial: initialNull, overwrites: true}},
	{polysiFormat, looksPolysi, readPolysi, spec{write: writePolysi, aborted: true, scalars: true,
		numbers: true, valueMax: math.MaxInt64, initial: initialCode, overwrites: true}},
	{threeTSFormat, looksThreeTS, readThreeTS, spec{}},
	{hermitageFormat, looksHermitage, readHermitage, spec{}},
	{awditFormat, looksAwdit, readAwdit, spec{write: writeAwdit, scalars: true, numbers: true, valueMax: math.MaxUint64}},
	{histFormat, looksHist, readHist, spec{write: writeHist, aborted: true, scalars: true,
		numbers: true, valueMax: math.MaxUint64, initial: initialMark}},
	{dbcopYAMLFormat, looksDbcopYAML, readDbcopYAML, spec{write: writeDbcopYAML, aborted: true, scalars: true,
		numbers: true, valueMax: math.MaxUint64, initial: initialCode, overwrites: true}},
	{timekillerKV, looksTimekiller, readTimekillerKV, spec{write: writeTimekiller, scalars: true, times: timesAlways,
		numbers: true, signed: true, valueMax: math.MaxInt64, initial: initialMark, overwrites: true}},
	{timekillerList, looksTimekiller, readTimekillerList, spec{write: writeTimekiller, lists: true, times: timesAlways,
		numbers: true, signed: true, valueMax: math.MaxInt64, initial: initialNull}},
	{cobraFormat, looksCobra, readCobraLog, spec{write: writeCobra, unknown: true, scalars: true, initial: initialNull}},
	{porcupineLog, looksEtcdLog, readEtcdLog, spec{write: writeEtcdLog, aborted: true, unknown: true, scalars: true,
		times: timesMaybe, initial: initialNull, overwrites: true}},
	{porcupineKV, looksPorcupineKV, readPorcupineKV,
		spec{write: writePorcupineKV, aborted: true, unknown: true, scalars: true,
			times: timesMaybe, initial: initialNull, overwrites: true}},
	{jepsenEDN, looksJepsenEDN, readJepsenEDN,
		spec{write: writeJepsen, aborted: true, unknown: true, scalars: true, lists: true,
			times: timesMaybe, initial: initialNull, overwrites: true}},
	{jepsenJSON, looksJepsenJSON, readJepsenJSON,
		spec{write: writeJepsen, aborted: true, unknown: true, scalars: true, lists: true,
			times: timesMaybe, initial: initialNull, overwrites: true}},
	{dbcopFormat, looksDbcop, readDbcop, spec{write: writeDbcop, aborted: true, scalars: true,
		numbers: true, valueMax: math.MaxUint64, initial: initialCode, overwrites: true}},
}

// begins recognises first bytes by expressions, all of which they have to match.
func begins(patterns ...string) func(head []byte) bool {
	all := sync.OnceValue(func() (out []*regexp.Regexp) {
		for _, p := range patterns {
			out = append(out, regexp.MustCompile(p))
		}
		return out
	})
	return func(head []byte) bool {
		head = bytes.TrimPrefix(head, byteOrderMark)
		return !slices.ContainsFunc(all(), func(r *regexp.Regexp) bool { return !r.Match(head) })
	}
}

// headMax is how much of an input recognition may look at.
const headMax = 4 << 10

// Formats lists the names of the formats that can be read.
func Formats() []string {
	names := make([]string, len(formats))
	for i := range formats {
		names[i] = formats[i].name
	}
	return names
}

func find(name string) *format {
	for i := range formats {
		if formats[i].name == name {
			return &formats[i]
		}
	}
	return nil
}

// recognise returns the format of an input that begins with head; nil if it is
// none of the table's.
func recognise(head []byte) *format {
	for i := range formats {
		if formats[i].recognise(head) {
			return &formats[i]
		}
	}
	return nil
}

// choose returns the format that was asked for, or recognised.
func (in *input) choose() (*format, error) {
	head, err := in.r.Peek(headMax)
	if len(head) == 0 {
		if isReadError(err) {
			return nil, err
		}
		return nil, in.reject(reject.EmptyInput, "the file is empty")
	}
	if in.opt.Format != Auto {
		return find(in.opt.Format), nil
	}
	if f := recognise(head); f != nil {
		return f, nil
	}
	if isReadError(err) {
		return nil, err
	}
	return nil, in.reject(reject.ForeignBytes, "the bytes, beginning with %s, are of no format that is recognised: %s",
		excerpt(head), english.WordSeries(Formats(), "and"))
}

// excerpt shows the beginning of foreign bytes.
func excerpt(head []byte) string {
	line, _, _ := bytes.Cut(bytes.TrimSpace(head), []byte("\n"))
	return fmt.Sprintf("%.40q", line)
}

// firstLine is the first line of head that is not blank, without what surrounds it.
func firstLine(head []byte) []byte {
	head = bytes.TrimLeft(bytes.TrimPrefix(head, byteOrderMark), " \t\r\n")
	line, _, _ := bytes.Cut(head, []byte("\n"))
	return bytes.TrimRight(line, " \t\r")
}

// byteOrderMark opens text files of some editors, and means nothing in UTF-8.
var byteOrderMark = []byte("\xef\xbb\xbf")
