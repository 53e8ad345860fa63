package history

import (
	"bytes"
	"fmt"
	"strings"

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
}

// formats in the order of recognition. The names are part of the command line.
var formats = []format{
	{"dbcop-json", looksDbcopJSON, readDbcopJSON},
	{"isowatch", looksIsowatch, readIsowatch},
	{"polysi-text", looksPolysi, readPolysi},
	{"awdit-test", looksAwdit, readAwdit},
	{"dbcop-hist", looksHist, readHist},
	{"dbcop-yaml", looksDbcopYAML, readDbcopYAML},
	{"timekiller-kv-json", looksTimekillerKV, readTimekillerKV},
	{"timekiller-list-json", looksTimekillerList, readTimekillerList},
	{"cobra-logs", looksCobra, readCobraLog},
	{porcupineLog, looksEtcdLog, readEtcdLog},
	{porcupineKV, looksPorcupineKV, readPorcupineKV},
	{jepsenEDN, looksJepsenEDN, readJepsenEDN},
	{jepsenJSON, looksJepsenJSON, readJepsenJSON},
	{"dbcop-bincode", looksDbcop, readDbcop},
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
	return nil, in.reject(reject.ForeignBytes, "the bytes, beginning with %s, are of no format that is recognised: %s", excerpt(head), list(Formats()))
}

// excerpt shows the beginning of foreign bytes.
func excerpt(head []byte) string {
	line, _, _ := bytes.Cut(bytes.TrimSpace(head), []byte("\n"))
	return fmt.Sprintf("%.40q", line)
}

// list is "a, b and c".
func list(names []string) string {
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// firstLine is the first line of head that is not blank, without what surrounds it.
func firstLine(head []byte) []byte {
	head = bytes.TrimLeft(bytes.TrimPrefix(head, byteOrderMark), " \t\r\n")
	line, _, _ := bytes.Cut(head, []byte("\n"))
	return bytes.TrimRight(line, " \t\r")
}

// byteOrderMark opens text files of some editors, and means nothing in UTF-8.
var byteOrderMark = []byte("\xef\xbb\xbf")
