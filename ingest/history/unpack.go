package history

import (
	"archive/tar"
	"bufio"
	"bytes"
	"errors"
	"io"
	"path"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/isowatch/isowatch/ingest/reject"
)

const (
	// packingMax bounds how often an input may be packed (tar in gzip is twice).
	packingMax = 4
	readBuffer = 256 << 10
)

// readUnpacked unpacks r until it is no longer packed, and reads what is in it.
func readUnpacked(in *input, r io.Reader, depth int) ([]History, error) {
	r, closer, err := unpack(in, r, depth)
	if err != nil {
		return nil, err
	}
	defer closer()
	in.r = bufio.NewReaderSize(&limited{in: in, r: r, left: in.opt.SizeMax}, readBuffer)
	if isTar(in.r) {
		if depth >= packingMax {
			return nil, tooPacked(in)
		}
		return readTar(in, depth+1)
	}
	f, err := in.choose()
	if err != nil {
		return nil, err
	}
	return f.read(in)
}

// Unpacked is what r holds, with compression taken off if there is any, and what frees what that needed. Messages call
// it name.
func Unpacked(name string, r io.Reader) (io.Reader, func(), error) {
	return unpack(&input{name: name}, r, 0)
}

// unpack takes off compression, whatever is there. closer frees what it needed.
func unpack(in *input, r io.Reader, depth int) (out io.Reader, closer func(), err error) {
	closer = func() {}
	for ; ; depth++ {
		b := bufio.NewReaderSize(r, readBuffer)
		magic, err := b.Peek(4)
		isGzip := bytes.HasPrefix(magic, []byte("\x1f\x8b"))
		isZstd := bytes.HasPrefix(magic, []byte("\x28\xb5\x2f\xfd"))
		if !isGzip && !isZstd {
			if isReadError(err) {
				closer()
				return nil, nil, err
			}
			return b, closer, nil
		}
		if depth >= packingMax {
			closer()
			return nil, nil, tooPacked(in)
		}
		src, before := &source{r: b}, closer
		if isGzip {
			var z *gzip.Reader
			if z, err = gzip.NewReader(bufio.NewReaderSize(src, readBuffer)); err == nil {
				closer = func() { z.Close(); before() }
				r = &unpacked{in: in, kind: "gzip", src: src, r: z}
			}
		} else {
			var z *zstd.Decoder
			if z, err = zstd.NewReader(src, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(1<<30)); err == nil {
				closer = func() { z.Close(); before() }
				r = &unpacked{in: in, kind: "zstd", src: src, r: z}
			}
		}
		if err != nil {
			closer()
			return nil, nil, (&unpacked{in: in, kind: "compressed", src: src}).explain(err)
		}
	}
}

func tooPacked(in *input) error {
	return in.reject(reject.Unsupported, "the input is packed more than %d times, one inside the other", packingMax)
}

// source remembers how reading ended, to tell a failing disk from damaged data.
type source struct {
	r   io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil {
		s.err = err
	}
	return n, err
}

// unpacked gives a decompressor's errors a reason.
type unpacked struct {
	in   *input
	kind string
	src  *source
	r    io.Reader
}

func (u *unpacked) Read(p []byte) (int, error) {
	n, err := u.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = u.explain(err)
	}
	return n, err
}

func (u *unpacked) explain(err error) error {
	switch {
	case u.src.err != nil && !errors.Is(u.src.err, io.EOF):
		return u.src.err
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return u.in.reject(reject.Truncated, "the %s data ends in the middle", u.kind)
	}
	return u.in.reject(reject.BadCompression, "the %s data is damaged: %v", u.kind, err)
}

// limited refuses more than a number of bytes.
type limited struct {
	in   *input
	r    io.Reader
	left int64
}

func (l *limited) Read(p []byte) (n int, err error) {
	if l.left >= 0 {
		p = p[:min(int64(len(p)), l.left+1)] // one byte too many tells that there are more
		n, err = l.r.Read(p)
		l.left -= int64(n)
	}
	if l.left < 0 {
		return max(0, n-1), l.in.reject(reject.TooLarge, "the input has more than %d bytes when unpacked, the limit",
			l.in.opt.SizeMax)
	}
	return n, err
}

// isReadError tells errors of reading from the end of the input.
func isReadError(err error) bool {
	return err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull)
}

const tarMagicAt = 257

func isTar(r *bufio.Reader) bool {
	block, _ := r.Peek(512)
	return len(block) == 512 && string(block[tarMagicAt:tarMagicAt+5]) == "ustar"
}

// readTar reads every file of a tar: logs of Cobra's, which are one history per
// folder, or histories that are a file each.
func readTar(in *input, depth int) ([]History, error) {
	var out []History
	folders := map[string]*cobra{}
	var order []string
	files := tar.NewReader(in.r)
	content := &tarContent{in, files}
	for {
		h, name, err := nextFile(files)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, in.tarError(err)
		}
		part := &input{name: in.name + "!" + h.Name, opt: in.opt}
		if number, ok := cobraLogName(name); ok && (in.opt.Format == Auto || in.opt.Format == cobraFormat) {
			folder := path.Dir(h.Name)
			if folders[folder] == nil {
				folders[folder] = newCobra(in.name)
				order = append(order, folder)
			}
			b, err := io.ReadAll(content)
			if err != nil {
				return nil, err
			}
			if err := folders[folder].log(part, number, b); err != nil {
				return nil, err
			}
			continue
		}
		hs, err := readUnpacked(part, content, depth)
		if err != nil {
			return nil, err
		}
		out = append(out, hs...)
	}
	for _, folder := range order {
		h, err := folders[folder].history()
		if err != nil {
			return nil, err
		}
		if len(order) > 1 || len(out) > 0 {
			h.File += "!" + folder
		}
		out = append(out, h)
	}
	if len(out) == 0 {
		return nil, in.reject(reject.EmptyInput, "the tar has no history in it")
	}
	return out, nil
}

// nextFile is the next file of a tar that may be a history, and its name without the folders.
func nextFile(files *tar.Reader) (h *tar.Header, name string, err error) {
	for {
		if h, err = files.Next(); err != nil {
			return nil, "", err
		}
		name = path.Base(h.Name)
		if h.Typeflag == tar.TypeReg && !strings.HasPrefix(name, ".") && !isCobraExtra(name) {
			return h, name, nil
		}
	}
}

// tarContent reads a file of a tar, and gives errors their reason.
type tarContent struct {
	in *input
	r  *tar.Reader
}

func (t *tarContent) Read(p []byte) (int, error) {
	n, err := t.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = t.in.tarError(err)
	}
	return n, err
}

func (in *input) tarError(err error) error {
	switch {
	case reject.From(err) != nil:
		return err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return in.reject(reject.Truncated, "the tar ends in the middle")
	case errors.Is(err, tar.ErrHeader):
		return in.reject(reject.BadCompression, "the tar is damaged: %v", err)
	}
	return err
}
