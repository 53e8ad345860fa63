package bench

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
)

// recording says which recorded histories a row is about.
type recording struct {
	glob string // below the corpus
	// violated: instead of glob, all histories whose recorded expectation is that
	// they violate this level, by the corpus's manifest.
	violated string
	from     string // where they come from, for who has not got them
}

// expectation is a line of a corpus's manifest.jsonl, as far as it is needed.
type expectation struct {
	File    string            `json:"file"`
	Format  string            `json:"format"`
	Expect  map[string]string `json:"expect"`
	Implied map[string]string `json:"implied"`
	// Disputed says why the expectation is doubtful, if it is.
	Disputed string `json:"disputed"`
	Defs     string `json:"defs"` // "adya": session order is not part of the level
}

// notHistories are formats of the corpus that are transcripts for people.
var notHistories = []string{"3ts-log", "hermitage-sql"}

// recorded lists the files of a recording, fewer at a smaller scale. The error is
// a skip if there are none.
func (e *Env) recorded(r recording) ([]string, error) {
	if e.opt.Corpus == "" {
		return nil, skipf("needs recorded histories: give --corpus DIR with %s", r)
	}
	files, err := e.find(r)
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, skipf("not in %s: %s", e.opt.Corpus, r)
	}
	if e.opt.Scale < 1 {
		files = files[:max(1, int(math.Ceil(float64(len(files))*e.opt.Scale)))]
	}
	return files, nil
}

func (r recording) String() string {
	if r.violated != "" {
		return fmt.Sprintf("a manifest.jsonl in it that has a line {\"file\":…,\"expect\":{\"%s\":\"violation\"}} for each "+
			"history: %s", r.violated, r.from)
	}
	return fmt.Sprintf("%s, from %s", r.glob, r.from)
}

func (e *Env) find(r recording) ([]string, error) {
	if r.violated == "" {
		files, err := filepath.Glob(filepath.Join(e.opt.Corpus, filepath.FromSlash(r.glob)))
		slices.Sort(files)
		return files, err
	}
	f, err := os.Open(filepath.Join(e.opt.Corpus, "manifest.jsonl"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the corpus: %w", err)
	}
	defer f.Close()
	var files []string
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for n := 1; lines.Scan(); n++ {
		var x expectation
		if err := json.Unmarshal(lines.Bytes(), &x); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", f.Name(), n, err)
		}
		if x.Defs == "adya" || slices.Contains(notHistories, x.Format) {
			continue
		}
		if x.Disputed == "" && (x.Expect[r.violated] == "violation" || x.Implied[r.violated] == "violation") {
			files = append(files, filepath.Join(e.opt.Corpus, filepath.FromSlash(x.File)))
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	return files, nil
}
