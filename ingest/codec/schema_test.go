package codec

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/isowatch/isowatch/incremental/verdict"
	"github.com/isowatch/isowatch/ingest/generate"
	"github.com/isowatch/isowatch/ingest/record"
	"github.com/isowatch/isowatch/ingest/reject"
	"github.com/isowatch/isowatch/internal/lab/race"
	drawn "github.com/isowatch/isowatch/internal/lab/seeds"
)

// schema is docs/record.schema.json.
func schema(t testing.TB) func(line []byte) error {
	t.Helper()
	s, err := jsonschema.NewCompiler().Compile("../../docs/record.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return func(line []byte) error {
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(line))
		if err != nil {
			return err
		}
		return s.Validate(v)
	}
}

// inexpressible are reasons that no schema has words for.
var inexpressible = []reject.Reason{reject.TimeBackwards, reject.DuplicateField, reject.TooDeep, reject.TooLarge}

// agree says where schema and decoder differ.
func agree(t *testing.T, valid func([]byte) error, line []byte) (accepted bool) {
	t.Helper()
	var r record.Transaction
	err := Decode(line, &r)
	switch e := reject.From(err); {
	case e != nil && slices.Contains(inexpressible, e.Reason):
	case (err == nil) != (valid(line) == nil):
		t.Errorf("%.300s\nthe decoder says %v, the schema %v", line, err, valid(line))
	}
	return err == nil
}

// What is published as the record's schema accepts what the decoder accepts, and refuses what that refuses: recorded
// histories, generated ones, and those with something in them made wrong.
func TestSchema(t *testing.T) {
	valid := schema(t)
	files, err := filepath.Glob("../../testdata/*/*.jsonl")
	if err != nil || len(files) < 20 {
		t.Fatalf("%v: %q", err, files)
	}
	if corpus := os.Getenv("ISOWATCH_CORPUS"); corpus != "" {
		more, err := filepath.Glob(filepath.Join(corpus, "recorded", "*50.jsonl.gz"))
		if err != nil || len(more) == 0 {
			t.Fatalf("%v: %q", err, more)
		}
		files = append(files, more...)
	}
	var lines [][]byte
	for _, file := range files {
		if filepath.Base(file) == "found.jsonl" {
			continue // it is no history
		}
		lines = append(lines, linesOf(t, file)...)
	}
	for _, w := range []generate.Workload{generate.General, generate.Mix, generate.Predicates} {
		g, err := generate.New(generate.Config{Level: verdict.SI, Workload: w, Transactions: 50, Seed: *drawn.First})
		if err != nil {
			t.Fatal(err)
		}
		for r := range g.Transactions() {
			lines = append(lines, AppendJSON(nil, &r))
		}
	}
	for _, line := range lines {
		if !agree(t, valid, line) {
			t.Errorf("%s is refused", line)
		}
	}
	var fields struct{ Properties map[string]any }
	text, err := os.ReadFile("../../docs/record.schema.json")
	if err != nil || json.Unmarshal(text, &fields) != nil {
		t.Fatal(err)
	}
	if want, got := slices.Sorted(slices.Values(recordForm.fields)), slices.Sorted(maps.Keys(fields.Properties)); !slices.Equal(want, got) {
		t.Errorf("a record has %q, the schema %q", want, got)
	}
	names := slices.Concat(recordForm.fields, predicateForm.fields, []string{"x", "hit"})
	draw, refused := rand.New(rand.NewPCG(*drawn.First, 0)), 0
	for range race.Few(5_000, 100_000) {
		var v any
		d := json.NewDecoder(bytes.NewReader(lines[draw.IntN(len(lines))]))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		line, err := json.Marshal(mutated(draw, names, v))
		if err != nil {
			t.Fatal(err)
		}
		if !agree(t, valid, line) {
			refused++
		}
	}
	if refused < 1000 {
		t.Errorf("only %d were refused", refused)
	}
}

// linesOf are the records of a file, without its header.
func linesOf(t *testing.T, file string) (lines [][]byte) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(file, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	s := bufio.NewScanner(r)
	s.Buffer(nil, SizeDefault)
	for s.Scan() {
		if line := s.Bytes(); len(line) > 0 && !IsHeader(line) && !IsWorldEvent(line) {
			lines = append(lines, bytes.Clone(line))
		}
	}
	if s.Err() != nil {
		t.Fatal(s.Err())
	}
	return lines
}

// others are what something in a record is made.
var others = []any{nil, "", "r", "wp", "x\x00", "committed", json.Number("-1"), json.Number("7"), json.Number("9223372036854775808"), true,
	[]any{}, []any{"r", "k", nil}, []any{"wp", map[string]any{"table": "t", "where": "true"}, map[string]any{}, []any{"t:1"}},
	map[string]any{}, map[string]any{"table": "t", "where": "true"}, map[string]any{"hit": []any{}}}

// mutated is a value with something in it removed, replaced, or added by one of the names.
func mutated(draw *rand.Rand, fields []string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		names := slices.Sorted(func(yield func(string) bool) {
			for name := range v {
				if !yield(name) {
					return
				}
			}
		})
		switch n := draw.IntN(10); {
		case n == 0:
			v[fields[draw.IntN(len(fields))]] = others[draw.IntN(len(others))]
			return v
		case len(names) == 0 || n == 1:
		case n == 2:
			delete(v, names[draw.IntN(len(names))])
			return v
		default:
			name := names[draw.IntN(len(names))]
			v[name] = mutated(draw, fields, v[name])
			return v
		}
	case []any:
		switch n := draw.IntN(10); {
		case n == 0:
			return append(v, others[draw.IntN(len(others))])
		case len(v) == 0 || n == 1:
		case n == 2:
			return slices.Delete(v, 0, 1)
		default:
			i := draw.IntN(len(v))
			v[i] = mutated(draw, fields, v[i])
			return v
		}
	}
	return others[draw.IntN(len(others))]
}
