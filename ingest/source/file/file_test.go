package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/isowatch/isowatch/ingest/source"
	"github.com/isowatch/isowatch/internal/lab/leak"
)

// patience is how long a test waits for what must happen.
const patience = 10 * time.Minute

func TestMain(m *testing.M) { leak.Main(m) }

// log is a file that a test writes as an application would.
type log struct {
	t    *testing.T
	path string
	f    *os.File
}

func newLog(t *testing.T, text string) *log {
	l := &log{t: t, path: filepath.Join(t.TempDir(), "app.log")}
	t.Cleanup(func() { l.close() })
	if text != "" {
		l.create(text)
	}
	return l
}

func (l *log) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *log) close() {
	if l.f != nil {
		l.f.Close()
	}
}

// create makes the file and goes on writing there.
func (l *log) create(text string) {
	l.t.Helper()
	l.close()
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	l.must(err)
	l.f = f
	l.write(text)
}

func (l *log) write(text string) {
	l.t.Helper()
	_, err := l.f.WriteString(text)
	l.must(err)
}

func (l *log) open(follow bool, offsets map[int]int64) *Source {
	l.t.Helper()
	s, err := Open(Options{Path: l.path, Follow: follow, Offsets: offsets, Poll: time.Millisecond,
		OnRetry: func(err error) { l.t.Log(err) }})
	l.must(err)
	l.t.Cleanup(func() { s.Close() })
	return s
}

// take reads until the texts "offset:line" (or "gap from-to") are n, or to the
// end if n is negative, and keeps the last offsets.
func take(t *testing.T, s source.Source, n int, offsets map[int]int64) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var out []string
	for n < 0 || len(out) < n {
		b, err := s.Read(ctx)
		if n < 0 && errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v after %q", err, out)
		}
		for _, g := range b.Gaps {
			if g.Why == "" || g.Source == "" {
				t.Errorf("gap %+v names no cause", g)
			}
			out = append(out, fmt.Sprintf("gap %d-%d", g.From, g.To))
		}
		for _, m := range b.Messages {
			out = append(out, fmt.Sprintf("%d:%s", m.Pos.Offset, m.Value))
		}
		if offsets != nil {
			offsets[b.Partition], offsets[source.IdentityKey(b.Partition)] = b.Next, b.Identity
		}
	}
	return out
}

func want(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// settle reads until the source has nothing more for now.
func settle(t *testing.T, s *Source, offsets map[int]int64) []string {
	t.Helper()
	var out []string
	for {
		b, err := s.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range b.Messages {
			out = append(out, fmt.Sprintf("%d:%s", m.Pos.Offset, m.Value))
		}
		offsets[b.Partition], offsets[source.IdentityKey(b.Partition)] = b.Next, b.Identity
		if b.CaughtUp {
			return out
		}
	}
}

func TestReadToTheEnd(t *testing.T) {
	for text, lines := range map[string][]string{
		"":                    nil,
		"a\nbb\n":             {"0:a", "2:bb"},
		"a\nbb":               {"0:a", "2:bb"}, // the last line of a file that is over
		"\n\na\r\n \n\r\nb\n": {"2:a", "9:b"},
		"\n":                  nil,
	} {
		l := newLog(t, "")
		l.create(text)
		want(t, take(t, l.open(false, nil), -1, nil), lines...)
		want(t, take(t, NewStream(Stdin, strings.NewReader(text), 0), -1, nil), lines...)
	}
}

func TestPositions(t *testing.T) {
	l := newLog(t, "a\n\nb\nc\n")
	offsets := map[int]int64{}
	take(t, l.open(false, nil), -1, offsets)
	if offsets[0] != 7 {
		t.Errorf("next offset %d, want 7", offsets[0])
	}
	l.write("d\n")
	b, err := l.open(false, offsets).Read(t.Context())
	l.must(err)
	if got, want := b.Messages[0].Pos.String(), l.path+":5"; got != want {
		t.Errorf("a line after resuming is at %s, want %s", got, want)
	}
}

func TestFollowGrows(t *testing.T) {
	l := newLog(t, "a\nb")
	s := l.open(true, nil)
	offsets := map[int]int64{}
	want(t, settle(t, s, offsets), "0:a")
	if offsets[0] != 2 {
		t.Errorf("an unfinished line was passed: next offset %d", offsets[0])
	}
	l.write("b")
	l.write("b\nc\n")
	want(t, take(t, s, 2, offsets), "2:bbb", "6:c")
}

func TestFollowWaitsForTheFile(t *testing.T) {
	l := newLog(t, "")
	s := l.open(true, nil)
	l.create("a\n")
	want(t, take(t, s, 1, nil), "0:a")
}

// As logrotate does it: the writer goes on in the renamed file for a while.
func TestFollowRotation(t *testing.T) {
	l := newLog(t, "a\n")
	s := l.open(true, nil)
	offsets := map[int]int64{}
	want(t, settle(t, s, offsets), "0:a")
	l.must(os.Rename(l.path, l.path+".1"))
	l.write("b\n")
	want(t, take(t, s, 1, offsets), "2:b")
	empty, err := os.Create(l.path) // made by logrotate, not yet written
	l.must(err)
	empty.Close()
	l.write("c\nunfinished")
	want(t, take(t, s, 1, offsets), "4:c")
	l.create("d\n")
	want(t, take(t, s, 2, offsets), "6:unfinished", "0:d")

	// What was stored is about the new file.
	l.write("e\n")
	want(t, take(t, l.open(true, offsets), 1, nil), "2:e")
}

func TestFollowDeletedAndMadeAnew(t *testing.T) {
	l := newLog(t, "a\n")
	s := l.open(true, nil)
	want(t, take(t, s, 1, nil), "0:a")
	l.must(os.Remove(l.path))
	l.create("b\n")
	want(t, take(t, s, 1, nil), "0:b")
}

func TestFollowTruncation(t *testing.T) {
	l := newLog(t, "aaaa\nbbbb\n")
	s := l.open(true, nil)
	offsets := map[int]int64{}
	want(t, settle(t, s, offsets), "0:aaaa", "5:bbbb")
	l.must(l.f.Truncate(0))
	want(t, take(t, s, 1, offsets), "gap 10-10")
	l.write("c\n")
	want(t, take(t, s, 1, offsets), "0:c")
	if offsets[0] != 2 {
		t.Errorf("next offset %d", offsets[0])
	}
	// Emptied and written past where we were before we could look.
	l.must(os.WriteFile(l.path, []byte("dddd\nee\n"), 0o644))
	want(t, take(t, s, 3, offsets), "gap 2-2", "0:dddd", "5:ee")
}

func TestResume(t *testing.T) {
	first := strings.Repeat("x", 2000) // longer than the head that identifies it
	l := newLog(t, "a\n"+first+"\nb\n")
	for n := 1; n <= 3; n++ {
		s := l.open(true, nil)
		var all []string
		offsets := map[int]int64{}
		s.buf = s.buf[:1] // so that lines come one by one
		all = append(all, take(t, s, n, offsets)...)
		all = append(all, take(t, l.open(false, offsets), -1, nil)...)
		want(t, all, "0:a", "2:"+first, "2003:b")
	}
}

func TestResumeInAnotherFile(t *testing.T) {
	offsets := map[int]int64{}
	l := newLog(t, "aaaa\nbbbb\n")
	take(t, l.open(false, nil), -1, offsets)
	for _, text := range []string{"cccc\ndddd\neeee\n", "c\n"} {
		l.must(os.Remove(l.path))
		l.create(text)
		var lines []string
		at := 0
		for _, line := range strings.Fields(text) {
			lines = append(lines, fmt.Sprintf("%d:%s", at, line))
			at += len(line) + 1
		}
		want(t, take(t, l.open(false, offsets), -1, nil), append([]string{"gap 10-10"}, lines...)...)
	}
	// An offset before the one that the identity was stored with is as good.
	l.must(os.Remove(l.path))
	l.create("aaaa\nbbbb\nffff\n")
	want(t, take(t, l.open(false, map[int]int64{0: 5, source.IdentityKey(0): offsets[source.IdentityKey(0)]}), -1, nil), "5:bbbb", "10:ffff")
	again := map[int]int64{}
	take(t, l.open(false, map[int]int64{0: 5, source.IdentityKey(0): offsets[source.IdentityKey(0)]}), -1, again)
	whole := map[int]int64{}
	take(t, l.open(false, nil), -1, whole)
	if again[source.IdentityKey(0)] != whole[source.IdentityKey(0)] {
		t.Error("the identity depends on where reading began")
	}
	// The same file under another inode is the same file.
	l.must(os.Remove(l.path))
	l.create("aaaa\nbbbb\nffff\n")
	want(t, take(t, l.open(false, offsets), -1, nil), "10:ffff")
}

func TestOversize(t *testing.T) {
	const limit = 100
	text := strings.Repeat("a", limit) + "\n" + strings.Repeat("b", limit+1) + "\n" + strings.Repeat("c", 1<<20) + "\nd\n" + strings.Repeat("e", 2*limit)
	l := newLog(t, text)
	file, err := Open(Options{Path: l.path, MessageMax: limit})
	l.must(err)
	defer file.Close()
	for _, s := range []source.Source{file, NewStream(Stdin, strings.NewReader(text), limit),
		NewStream(Stdin, iotest.OneByteReader(strings.NewReader(text)), limit)} {
		var got []string
		for {
			b, err := s.Read(t.Context())
			if errors.Is(err, io.EOF) {
				break
			}
			l.must(err)
			for _, m := range b.Messages {
				got = append(got, fmt.Sprintf("%d %c %d %d", m.Pos.Line, m.Value[0], len(m.Value), m.Oversize))
			}
		}
		want(t, got, "1 a 100 0", "2 b 100 101", "3 c 100 1048576", "4 d 1 0", "5 e 100 200")
	}
}

func TestUnreadable(t *testing.T) {
	dir := t.TempDir()
	for name, opts := range map[string]Options{
		"missing":              {Path: filepath.Join(dir, "none")},
		"directory":            {Path: dir},
		"directory, followed":  {Path: dir, Follow: true},
		"not even a directory": {Path: filepath.Join(dir, "none", "none")},
	} {
		_, err := Open(opts)
		var se *source.StartupError
		if !errors.As(err, &se) || se.Do == "" || !strings.Contains(err.Error(), opts.Path) {
			t.Errorf("%s: got %v, want a start-up error that names the path", name, err)
		}
	}
}

func TestReadEndsWithItsContextAndClose(t *testing.T) {
	l := newLog(t, "a\n")
	r, w := io.Pipe()
	defer w.Close()
	for _, s := range []source.Source{l.open(true, nil), NewStream(Stdin, r, 0)} {
		if f, ok := s.(*Source); ok {
			settle(t, f, map[int]int64{})
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { _, err := s.Read(ctx); done <- err }()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		go func() { _, err := s.Read(t.Context()); done <- err }()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, ErrClosed) {
			t.Errorf("got %v", err)
		}
		if s.Partitions() != 1 {
			t.Error("more than one partition")
		}
	}
}

// While a pipe is silent, of the system or of this process, the stream says again and again that there is nothing more,
// as a source has to; and nothing else than what came is told.
func TestSilentPipeIsReadToItsEnd(t *testing.T) {
	file, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	readsSilentPipe(t, file, to)
	r, w := io.Pipe()
	readsSilentPipe(t, r, w)
}

func readsSilentPipe(t *testing.T, r io.Reader, w io.WriteCloser) {
	t.Helper()
	s := NewStream(Stdin, r, 0)
	defer s.Close()
	for i, line := range []string{"a\n", "bb\n", "half"} {
		if _, err := io.WriteString(w, line); err != nil {
			t.Fatal(err)
		}
		var got []string
		for silent := 0; silent < 2; {
			b, err := s.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range b.Messages {
				got = append(got, string(m.Value)+"\n")
			}
			if b.CaughtUp {
				silent++
			}
			if whole := []int64{2, 5, 5}[i]; b.CaughtUp && b.Next != whole {
				t.Errorf("after %q it is said to be read to %d, not %d", line, b.Next, whole)
			}
		}
		if want := slices.DeleteFunc([]string{line}, func(s string) bool { return s == "half" }); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	w.Close()
	want(t, take(t, s, -1, nil), "5:half")
}

func TestStreamTellsItsError(t *testing.T) {
	broken := errors.New("broken")
	s := NewStream(Stdin, io.MultiReader(strings.NewReader("a\n"), iotest.ErrReader(broken)), 0)
	want(t, take(t, s, 1, nil), "0:a")
	if _, err := s.Read(t.Context()); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

// However the bytes are cut into reads, the lines are the same, and what lies
// before the next offset is what was handed out.
func FuzzLines(f *testing.F) {
	f.Add([]byte("a\nbb\r\n\nccc"), uint8(1), uint8(5))
	f.Add([]byte(strings.Repeat("x", 300)+"\ny"), uint8(7), uint8(10))
	f.Fuzz(func(t *testing.T, text []byte, step, limit uint8) {
		if step == 0 || limit == 0 {
			return
		}
		show := func(step int) (out []string) {
			l := lines{max: int(limit)}
			at := int64(0)
			add := func(ms []source.Message) {
				for _, m := range ms {
					if m.Pos.Offset < at || len(m.Value) > int(limit) {
						t.Errorf("line of %d bytes at %d, after %d", len(m.Value), m.Pos.Offset, at)
					}
					at = m.Pos.Offset + 1
					if m.Oversize == 0 && !bytes.HasPrefix(text[m.Pos.Offset:], m.Value) {
						t.Errorf("%q is not what is at %d", m.Value, m.Pos.Offset)
					}
					out = append(out, fmt.Sprintf("%d %d %d %q", m.Pos.Offset, m.Pos.Line, m.Oversize, m.Value))
				}
			}
			for rest := text; len(rest) > 0; {
				n := min(step, len(rest))
				add(l.feed(slices.Clone(rest[:n])))
				rest = rest[n:]
			}
			add(l.rest())
			if l.next() != int64(len(text)) {
				t.Errorf("next offset %d of %d", l.next(), len(text))
			}
			return out
		}
		if a, b := show(int(step)), show(len(text)+1); !slices.Equal(a, b) {
			t.Errorf("in steps of %d: %q\nat once: %q", step, a, b)
		}
	})
}
