package bench

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/isowatch/isowatch/alerts"
	"github.com/isowatch/isowatch/internal/lab/rig"
)

// looks are samples of a monitor that judges 100 a second from second 2 on, whose memory is its
// seconds and whose CPU is the square of them.
func looks() []sample {
	var out []sample
	for i := range 24 {
		at := float64(i) / 2
		out = append(out, sample{at: at, read: max(0, at-1) * 100, judged: max(0, at-2) * 100, memory: at, cpu: at * at})
	}
	return out
}

// What lies between two samples is on a line between them, and reading begins with the last
// sample in which nothing was read.
func TestSamples(t *testing.T) {
	s := looks()
	if got := beginning(s); got != 1 {
		t.Errorf("reading begins at %v", got)
	}
	for judged, want := range map[float64]float64{50: 2.5, 75: 2.75, 100: 3, 5000: 11.5} {
		if got := crossing(s, judged).at; math.Abs(got-want) > 1e-9 {
			t.Errorf("%v are judged at %v, want %v", judged, got, want)
		}
	}
	var st Streamed
	st.tenths(s, 900) // from second 2 to 11: a tenth is 0.9 s
	// (3.8² - 2.9²) / 90 for the second; sampled every half second, squares are a little off.
	if d := math.Abs(st.CPU.Second - (3.8*3.8-2.9*2.9)/90); d > 0.002 {
		t.Errorf("the second tenth costs %v", st.CPU.Second)
	}
	if d := math.Abs(st.CPU.Last - (11*11-10.1*10.1)/90); d > 0.002 {
		t.Errorf("the last tenth costs %v", st.CPU.Last)
	}
	if d := math.Abs(st.Memory.Second-3.35) + math.Abs(st.Memory.Last-10.55); d > 0.2 {
		t.Errorf("memory is %v", *st.Memory)
	}
}

// Streams are compared with their targets, and what was invented or missed is worse than any
// figure.
func TestStreamStatus(t *testing.T) {
	good := func() *Streamed {
		return &Streamed{Memory: &Tenths{100, 104}, CPU: &Tenths{10, 10.9}, Latency: &Latency{P99: 2.4}, Planted: 5, Found: 5}
	}
	target := Target{PerSecond: 100, MB: 300, Flat: 1.05, Even: 1.1, Latency: 2.5}
	for _, tc := range []struct {
		name string
		set  func(*Measured)
		want Status
	}{
		{"within", func(*Measured) {}, OK},
		{"growing memory", func(m *Measured) { m.Stream.Memory.Last = 106 }, Over},
		{"growing cost", func(m *Measured) { m.Stream.CPU.Last = 11.1 }, Over},
		{"late alerts", func(m *Measured) { m.Stream.Latency.P99 = 2.6 }, Over},
		{"too slow", func(m *Measured) { m.PerSecond = 99 }, Over},
		{"missed", func(m *Measured) { m.Stream.Found = 4 }, Wrong},
		{"invented", func(m *Measured) { m.Stream.Invented = 1 }, Wrong},
	} {
		m := Measured{PerSecond: 100, PeakBytes: 300_000_000, Stream: good()}
		tc.set(&m)
		row := Row{Target: target}
		if got, why := row.compare(&m, 1); got != tc.want || (why != "") != (tc.want == Wrong) {
			t.Errorf("%s: %s, %q", tc.name, got, why)
		}
	}
}

// Alerts are told apart by the transactions that they name; what comes twice counts when it
// came first, and what was planted too near to the end does not count.
func TestAlertTimes(t *testing.T) {
	began := time.Unix(1000, 0)
	p := &played{of: map[string]int{}, timed: 100}
	for i := range 103 {
		p.sent = append(p.sent, began)
		p.of[fmt.Sprintf("a#%d", i)] = i
	}
	var got []rig.Receipt
	add := func(id string, after time.Duration) {
		got = append(got, rig.Receipt{At: began.Add(after), Alert: alerts.Alert{Transactions: []string{"other#1", id}}})
	}
	for i := range 99 {
		add(fmt.Sprintf("a#%d", i), time.Duration(i+1)*time.Second)
		add(fmt.Sprintf("a#%d", i), time.Hour)
	}
	add("a#102", time.Hour)
	add("none", time.Hour)
	var st Streamed
	l := p.judge(&st, got)
	if d := cmp.Diff(&Latency{P50: 50, P99: 99, Max: 99}, l); d != "" {
		t.Error(d)
	}
	if st.Planted != 100 || st.Found != 99 || st.Invented != 1 {
		t.Errorf("%+v", st)
	}
	if l := p.judge(&Streamed{}, nil); l != nil {
		t.Errorf("%v of no alert", l)
	}
}

// A row reads for so long, and longer only if nothing is judged by then.
func TestEnough(t *testing.T) {
	e := Env{opt: Options{Reading: 5 * time.Second}}
	for _, tc := range []struct {
		s    sample
		want bool
	}{{sample{at: 4.9, judged: 7}, false}, {sample{at: 5, judged: 7}, true}, {sample{at: 6}, false}} {
		if got := e.enough(tc.s); got != tc.want {
			t.Errorf("%+v is enough: %v", tc.s, got)
		}
	}
	e.opt.Reading = 0
	if e.enough(sample{at: 1e6, judged: 7}) {
		t.Error("the end is not waited for")
	}
}

// The head of the table names what figures depend on; what is set comes after the default, and so over it.
func TestStreamHead(t *testing.T) {
	e, err := newEnv(t.Context(), Options{Monitor: "monitor", Set: []string{"window.max_skew=1ms"}, Reading: ReadingDefault})
	if err != nil {
		t.Fatal(err)
	}
	defer e.close()
	if got, want := e.head(), ". Records in protobuf, window.max_skew=0s, window.max_skew=1ms; each row reads for 20s at most"; !strings.HasPrefix(got, want) {
		t.Errorf("%q", got)
	}
}

// A monitor that was started again goes on when it has read something, or when no partition has
// anything more: as long as that is not known of each it is waited for.
func TestGoesOn(t *testing.T) {
	behind := func(records ...int) string {
		text := "# TYPE isowatch_source_lag_records gauge\n"
		for p, n := range records {
			text += fmt.Sprintf("isowatch_source_lag_records{partition=\"%d\"} %d\n", p, n)
		}
		return text
	}
	read := func(n int) string {
		return fmt.Sprintf("# TYPE isowatch_records_total counter\nisowatch_records_total %d\n", n)
	}
	for text, want := range map[string]bool{
		read(0):                      false,
		read(0) + behind(0, 0, 0):    false,
		read(0) + behind(0, 0, 7, 0): false,
		read(0) + behind(0, 0, 0, 0): true,
		read(1) + behind(0, 5):       true,
	} {
		parser := expfmt.NewTextParser(model.UTF8Validation)
		m, err := parser.TextToMetricFamilies(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := goesOn(m); got != want {
			t.Errorf("of %q: %v", text, got)
		}
	}
}

// A topic's end is not waited for.
func TestReachable(t *testing.T) {
	e := Env{opt: Options{Set: []string{"window.lateness=1s", "window.lateness=4s", "x=y"}}}
	if got := e.reachable(topic{transactions: 1000, rate: 100}); got != 500 {
		t.Errorf("%v of 1000 are reached with a lateness of %v", got, e.lateness())
	}
	e.opt.Set = nil
	if got := e.reachable(topic{transactions: 1000, rate: 100}); got != 750 {
		t.Errorf("%v of 1000 are reached with a lateness of %v", got, e.lateness())
	}
}

// The table shows figures where there are any.
func TestStreamText(t *testing.T) {
	var b bytes.Buffer
	streamed(&b, []Result{{Name: "skipped"},
		{Name: "r", Measured: &Measured{Stream: &Streamed{Broker: "kfake", Encoding: "json", Transactions: 10, Measured: 9, Waited: 0.25, RecordBytes: 250.4,
			Memory: &Tenths{1e8, 2e8}, CPU: &Tenths{1e-5, 1.5e-5}, BrokerCPU: 2e-6, Forgotten: map[string]float64{"window": 5, "age": 0}, Invented: 1}}},
		{Name: "l", Measured: &Measured{Stream: &Streamed{Broker: "Apache Kafka", Encoding: "json", Latency: &Latency{1, 2, 3}, Restart: &Restart{0.5, 1}, Planted: 4, Found: 3}}},
	})
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	for i, want := range []string{"", "r kfake 10 json 9 250 100 200 ×2.00 10.00 15.00 ×1.50 2.00 0.250 - - - - - - 1 window 5",
		"l Apache Kafka 0 json - 0 - - - - - - 1.000 2.000 3.000 0.500 1.000 3 of 4 0 -"} {
		if got := strings.Join(strings.Fields(lines[i]), " "); i > 0 && got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	b.Reset()
	if streamed(&b, []Result{{Measured: &Measured{}}}); b.Len() > 0 {
		t.Errorf("%q of no stream", &b)
	}
}
