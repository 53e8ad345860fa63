package app

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/isowatch/isowatch/alerts/present"
)

// TestBrowserReport opens the page that check --output html writes, on a screen and on a
// phone: a verdict is never broken inside a word, and nothing has to be scrolled sideways.
func TestBrowserReport(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	opt := present.PageOptions{Title: "report"}
	for i := range 3 {
		opt.Histories = append(opt.Histories, present.PageHistory{File: fmt.Sprintf("/%s/%d.jsonl", strings.Repeat("folder/of/histories/", 12), i), Facts: "3 transactions, 3 operations, 2 sessions, 1 key",
			Levels: []present.PageLevel{{Level: "sser", Verdict: "violated", Also: []string{"ser", "strong-si", "si", "pc", "cc", "ra", "rc"}}, {Level: "g1", Verdict: "satisfied"},
				{Level: "lin", Verdict: "not-applicable", Notes: []string{"it is about transactions of one object each, and one here has several"}}}})
	}
	if err := present.HTML(&b, nil, opt); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "a.html")
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	tab := openTab(t, "")
	for _, width := range []int64{1280, 375, 320} {
		tab.do(t, chromedp.EmulateViewport(width, 900), chromedp.Navigate("file://"+file))
		broken, err := chromedp.Run(tab.ctx, chromedp.Evaluate[[]string](`[...document.querySelectorAll('th, td:last-child > span:first-child')].filter(e => {
			const range = document.createRange(); range.selectNodeContents(e); return range.getClientRects().length > 1}).map(e => e.innerText)`))
		if err != nil || len(broken) > 0 {
			t.Errorf("%d pixels wide: broken are %q, %v", width, broken, err)
		}
		verdicts, err := chromedp.Run(tab.ctx, chromedp.Evaluate[int](`document.querySelectorAll('td:last-child > span:first-child').length`))
		if err != nil || verdicts != 9 {
			t.Errorf("%d verdicts, %v", verdicts, err)
		}
		if wide, err := chromedp.Run(tab.ctx, chromedp.Evaluate[int64](`document.documentElement.scrollWidth`)); err != nil || wide > width {
			t.Errorf("%d pixels wide: the page has %d, %v", width, wide, err)
		}
	}
}
