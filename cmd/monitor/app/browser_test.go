package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/isowatch/isowatch/cmd/monitor/judge"
	"github.com/isowatch/isowatch/cmd/monitor/report"
	"github.com/isowatch/isowatch/config"
	"github.com/isowatch/isowatch/incremental/verdict"
	histories "github.com/isowatch/isowatch/ingest/history"
	"github.com/isowatch/isowatch/ingest/record"
)

// chromium finds a browser. Under CI there has to be one.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("CI") != "" {
		t.Fatal("there is no Chromium: apt-get install chromium")
	}
	t.Skip("THE PAGE IS NOT TESTED IN A BROWSER: there is no Chromium; apt-get install chromium")
	return ""
}

// tab is a browser in which one page is open, and what it complained of.
type tab struct {
	ctx       context.Context
	downloads string

	mu       sync.Mutex
	messages []string // on the console: errors, warnings, violations of the policy
	foreign  []string // requests to other hosts
}

func openTab(t *testing.T, host string) *tab {
	t.Helper()
	downloads := t.TempDir() // first, so that it is removed when the browser has ended
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.ExecPath(chromium(t)), chromedp.WSURLReadTimeout(patience))
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 3*patience)
	t.Cleanup(cancel)
	b := &tab{ctx: ctx, downloads: downloads}
	note := func(to *[]string, what string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		*to = append(*to, what)
	}
	messages := chromedp.Console(ctx)
	go func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			note(&b.messages, fmt.Sprintf("%s: %s (%s)", m.Type, m.Text, m.URL))
		}
	}()
	if err := chromedp.Listen(ctx, func(ev any) {
		if e, ok := ev.(*network.EventRequestWillBeSent); ok {
			if u, err := url.Parse(e.Request.URL); err != nil || u.Host != host && u.Scheme != "data" && u.Scheme != "blob" {
				note(&b.foreign, e.Request.URL)
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.CallBrowser(ctx, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{Behavior: browser.SetDownloadBehaviorBehaviorAllow, DownloadPath: b.downloads}); err != nil {
		t.Fatal(err)
	}
	return b
}

// do runs steps.
func (b *tab) do(t *testing.T, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		t.Fatalf("%v; the page says: %s", err, b.text("body"))
	}
}

// await waits until an expression is true on the page.
func (b *tab) await(t *testing.T, what, expression string) {
	t.Helper()
	if _, err := chromedp.Run(b.ctx, chromedp.Poll[bool](expression, chromedp.WithPollingTimeout(patience), chromedp.WithPollingInterval(20*time.Millisecond))); err != nil {
		t.Fatalf("in vain waited for %s: %v; the page says: %s\nand its console: %v", what, err, b.text("body"), b.messages)
	}
}

// text is what an element says.
func (b *tab) text(selector string) string {
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](fmt.Sprintf("document.querySelector(%q)?.innerText ?? ''", selector)))
	if err != nil {
		return err.Error()
	}
	return text
}

// clean fails if the page complained of anything, or asked anybody else.
func (b *tab) clean(t *testing.T) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.messages) > 0 {
		t.Errorf("on the console: %s", strings.Join(b.messages, "\n"))
	}
	if len(b.foreign) > 0 {
		t.Errorf("requests to others: %s", strings.Join(b.foreign, "\n"))
	}
}

// accessible asks axe-core what it finds on what is shown. The page's own policy
// lets nobody put a script in; the debugger may.
func (b *tab) accessible(t *testing.T, where string) {
	t.Helper()
	axe, err := os.ReadFile("testdata/axe/axe.min.js")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Run(b.ctx, chromedp.Evaluate[any](string(axe)+";0")); err != nil {
		t.Fatal(err)
	}
	found, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]string](`axe.run(document, {resultTypes: ['violations']}).then(r => r.violations.flatMap(v => v.nodes.map(n => v.id + ': ' + v.help + ': ' + n.target + ' ' + n.html.slice(0, 200) + ' ' + (n.any[0]?.message ?? ''))))`, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		t.Errorf("%s: %s", where, f)
	}
}

// evil is a key as an attacker would choose it, through the application's own forms.
const evil = "acct:<img src=x onerror=document.title='owned'>\u202e\x1b[31m"

// bankConfig is a configuration of a monitor with a page and a store, which watches bank.
func bankConfig(t *testing.T) *config.Config {
	t.Helper()
	c := testConfig(nil)
	c.Source = config.Source{File: &config.File{Path: bank(t), Follow: true}}
	c.Coverage = record.CoveragePartial
	c.Store.Path = filepath.Join(t.TempDir(), "store")
	c.HTTP.Listen = "127.0.0.1:0"
	return c
}

// bank are records of a lost update on an evil key, among others that are fine.
func bank(t *testing.T) string {
	t.Helper()
	var out bytes.Buffer
	at := time.Now().Add(-time.Minute).UnixNano()
	seq := map[string]int{}
	add := func(session string, ops ...any) {
		r := map[string]any{"db": "bank", "session": session, "seq": seq[session], "id": fmt.Sprintf("%s#%d", session, seq[session]), "start": at, "end": at + 900_000, "status": "committed", "ops": ops}
		seq[session]++
		at += 1_000_000
		line, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(append(line, '\n'))
	}
	add("s0", []any{"w", evil, 9007199254740993})
	at -= 500_000
	began := at + 500_000
	add("s1", []any{"r", evil, 9007199254740993}, []any{"w", evil, "<script>alert(1)</script>"})
	at = began // at the same time
	add("s2", []any{"r", evil, 9007199254740993}, []any{"w", evil, strings.Repeat("long ", 40_000)})
	for i := range 2000 { // the watermark passes them
		add("s3", []any{"w", "other", i})
	}
	path := filepath.Join(t.TempDir(), "bank.jsonl")
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestBrowser goes the way of somebody who is called at night: the page says that a
// promise is broken, shows which alert, draws it, and hands out evidence, which is
// judged violated by itself.
func TestBrowser(t *testing.T) {
	t.Parallel()
	c := bankConfig(t)
	r := start(t, c, nil, false)
	b := openTab(t, r.Addr())
	b.do(t, chromedp.EmulateViewport(1280, 900), chromedp.Navigate("http://"+r.Addr()+"/"))
	b.await(t, "the answer", `/^bank br(eaks|oke) its promise$/.test(document.querySelector('#verdict[data-health^="broken"] h1')?.textContent)`)
	b.await(t, "the connection", `document.getElementById('live').dataset.state === 'live'`)
	b.do(t, chromedp.Click(chromedp.CSS("#engine > summary"))) // the engine's insides are one click away
	b.await(t, "charts", `document.querySelectorAll('.plot canvas').length === 6`)
	b.accessible(t, "overview")

	b.do(t, chromedp.Click(chromedp.CSS(`[data-nav="alerts"]`)))
	b.await(t, "the list", `document.querySelectorAll('.groups > li').length === 1`)
	b.do(t, chromedp.Click(chromedp.CSS(".groups summary")))
	b.await(t, "the group's alerts", `document.querySelectorAll('.groups .alerts li').length === 1`)
	b.accessible(t, "alerts")
	b.do(t, chromedp.SendKeys(chromedp.CSS("#f-q"), "nothing like it"))
	b.await(t, "that nothing fits", `document.querySelector('#list .empty')?.textContent === 'No alert fits this filter.' && location.hash.includes('q=nothing')`)
	b.do(t, chromedp.Navigate("http://"+r.Addr()+"/#/alerts?name=G-single&level=ser"))
	b.await(t, "the list, filtered", `document.querySelector('.alerts li') !== null && document.querySelector('#f-level').value === 'ser'`)
	// Who goes on before the address says what was typed stays where that leads to.
	b.do(t, chromedp.Evaluate[chromedp.Void](`{
		const text = document.getElementById('f-q');
		text.value = 'lost';
		text.dispatchEvent(new Event('input'));
		setTimeout(() => { window.typed = true; }, 300); // as long as the page waits for more, so right after it
		location.hash = document.querySelector('.alerts a').hash;
	}`))
	b.await(t, "the end of what was typed", `window.typed === true && document.querySelector('h1')?.textContent === 'Lost update in bank'`)
	if at, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](`location.hash`)); err != nil || !strings.HasPrefix(at, "#/alerts/") {
		t.Errorf("the address of the alert is %q, %v", at, err)
	}
	b.do(t, chromedp.Navigate("http://"+r.Addr()+"/#/alerts?name=G-single&level=ser"))
	b.await(t, "the list again", `document.querySelector('.alerts li') !== null`)
	// By the keyboard alone.
	b.do(t, chromedp.Focus(chromedp.CSS(".alerts a")), chromedp.KeyEvent("\r"))
	b.await(t, "the alert", `document.querySelector('h1')?.textContent === 'Lost update in bank' && document.activeElement === document.querySelector('h1')`)
	b.await(t, "its graph", `document.querySelectorAll('.graph .node').length === 2 && document.querySelectorAll('.graph .arrow').length === 2`)
	b.accessible(t, "alert")
	text := b.text("main")
	for _, want := range []string{"acct:<img src=x onerror=document.title='owned'>", `\u{202e}`, `\x1b`, "<script>alert(1)</script>", "9007199254740993", "show all", "monitor check --level si evidence-"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q:\n%s", want, text)
		}
	}
	if len(text) > 20_000 {
		t.Errorf("the page says %d characters", len(text))
	}
	for _, bad := range []string{"main img[src=x]", "main script"} {
		if n, err := chromedp.Run(b.ctx, chromedp.Evaluate[int](fmt.Sprintf("document.querySelectorAll(%q).length", bad))); err != nil || n > 0 {
			t.Errorf("%d of %s, %v", n, bad, err)
		}
	}
	b.do(t, chromedp.Focus(chromedp.CSS("#tab-0")), chromedp.KeyEvent(kb.ArrowRight))
	b.await(t, "the timeline", `document.querySelector('img.picture')?.naturalWidth > 100`)
	b.do(t, chromedp.Click(chromedp.CSS(".raw summary")))
	b.await(t, "the JSON", `document.querySelector('.raw pre').textContent.startsWith('{"version":1')`)

	b.do(t, chromedp.Click(chromedp.CSS("#evidence")))
	evidence := ""
	eventually(t, "the evidence is downloaded", func() bool {
		files, _ := filepath.Glob(filepath.Join(b.downloads, "evidence-*.jsonl"))
		if len(files) == 1 { // its name is taken first; the browser puts the whole there when it has it
			if info, err := os.Stat(files[0]); err == nil && info.Size() > 0 {
				evidence = files[0]
			}
		}
		return evidence != ""
	})
	recheck(t, evidence)

	// A phone, in the dark.
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}}); err != nil {
		t.Fatal(err)
	}
	b.do(t, chromedp.EmulateViewport(390, 844))
	alert, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](`location.hash`))
	if err != nil || !strings.HasPrefix(alert, "#/alerts/") {
		t.Fatalf("the alert is at %q, %v", alert, err)
	}
	for _, at := range []string{"", "#/alerts", "#/alerts?q=nothing", alert, "#/alerts/nobody", "#/silences", "#/nowhere"} {
		b.do(t, chromedp.Navigate("about:blank"), chromedp.Navigate("http://"+r.Addr()+"/"+at))
		b.await(t, "the page on a phone", `document.querySelector('h1') !== null && !document.getElementById('main').hasAttribute('aria-busy')`)
		if wide, err := chromedp.Run(b.ctx, chromedp.Evaluate[int](`document.documentElement.scrollWidth`)); err != nil || wide > 390 {
			t.Errorf("%q is %d pixels wide on a phone, %v", at, wide, err)
		}
		small, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]string](`[...document.querySelectorAll('button, .button, input, select')].filter(e => e.offsetParent && !e.classList.contains('more') && e.getBoundingClientRect().height < 44).map(e => e.outerHTML.slice(0, 80))`))
		if err != nil || len(small) > 0 {
			t.Errorf("%q has what no finger hits: %v, %v", at, small, err)
		}
		b.accessible(t, "on a phone "+at)
	}
	// A page that was left, and that the browser keeps, does not listen; who comes back to it
	// hears of what is new again.
	b.do(t, chromedp.Evaluate[chromedp.Void](`dispatchEvent(new PageTransitionEvent('pagehide', {persisted: true})); document.getElementById('live').dataset.state = 'left'`))
	b.do(t, chromedp.Evaluate[chromedp.Void](`dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))`))
	b.await(t, "the connection again", `document.getElementById('live').dataset.state === 'live'`)
	// What is not there is said by the browser too, and by nobody else.
	b.mu.Lock()
	b.messages = slices.DeleteFunc(b.messages, func(m string) bool { return strings.Contains(m, "404") && strings.Contains(m, "/api/v1/alerts/nobody") })
	b.mu.Unlock()
	b.clean(t)

	// A monitor that is gone is said to be gone.
	r.stop(t)
	b.await(t, "the bad news", `document.getElementById('banner').textContent.includes('can’t be reached')`)
}

// TestBrowserKeyboard goes the way from the overview to a silence without a mouse: Tab until
// the right thing has the focus, then Enter.
func TestBrowserKeyboard(t *testing.T) {
	t.Parallel()
	c := bankConfig(t)
	r := start(t, c, nil, false)
	b := openTab(t, r.Addr())
	b.do(t, chromedp.EmulateViewport(1280, 900), chromedp.Navigate("http://"+r.Addr()+"/"))
	b.await(t, "an open alert", `document.querySelector('#groups a.row') !== null`)
	tabTo := func(what, expression string) {
		t.Helper()
		for range 60 {
			b.do(t, chromedp.KeyEvent(kb.Tab))
			at, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](`document.activeElement.matches(`+expression+`)`))
			if err != nil {
				t.Fatal(err)
			}
			seen, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](`document.activeElement === document.body || getComputedStyle(document.activeElement).outlineStyle !== 'none'`))
			if err != nil || !seen {
				t.Errorf("on the way to %s the focus can't be seen, %v", what, err)
			}
			if at {
				return
			}
		}
		t.Fatalf("Tab does not lead to %s; the page says: %s", what, b.text("body"))
	}
	enter := chromedp.KeyEvent("\r")
	tabTo("the skip link", `'#skip'`)
	b.do(t, enter)
	b.await(t, "the heading", `document.activeElement.id === 'verdict-h'`)
	tabTo("the group", `'#groups a.row'`)
	b.do(t, enter)
	b.await(t, "the group's alerts", `document.querySelector('.alerts a.row') !== null && location.hash.includes('group=')`)
	tabTo("its alert", `'.alerts a.row'`)
	b.do(t, enter)
	b.await(t, "the alert", `document.querySelector('h1')?.textContent === 'Lost update in bank'`)
	tabTo("the way to a silence", `'a[href^="#/silences"]'`)
	b.do(t, enter)
	b.await(t, "the form, filled in", `document.getElementById('s-db')?.value === 'bank' && document.getElementById('s-key').value === '' && document.getElementById('s-level').value === 'si' && document.getElementById('s-name').value === 'lost-update'`)
	tabTo("the reason", `'#s-comment'`)
	b.do(t, chromedp.KeyEvent("known"), enter)
	b.await(t, "the silence", `document.querySelector('#list .row .note')?.textContent === 'known' && document.activeElement.matches('#list button')`)
	b.accessible(t, "a silence")
	b.do(t, enter)
	b.await(t, "no silence", `document.querySelector('#list .empty') !== null`)
	b.clean(t)
}

// TestBrowserSilencesFocus: who is on a silence stays on it while others make and end
// silences, also such as look alike; if it ends itself, the focus stays in the list, and on
// the page when that is empty.
func TestBrowserSilencesFocus(t *testing.T) {
	t.Parallel()
	r := start(t, bankConfig(t), nil, false)
	ask := func(method, path, body string, status int) (answer struct{ ID string }) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+r.Addr()+"/api/v1/silences"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != status {
			t.Fatalf("%s %s: %d %s, %v", method, path, resp.StatusCode, text, err)
		}
		if len(text) > 0 {
			if err := json.Unmarshal(text, &answer); err != nil {
				t.Fatal(err)
			}
		}
		return answer
	}
	silence := func(comment string) string {
		t.Helper()
		body := fmt.Sprintf(`{"db":"bank","name":"lost-update","until":%d,"comment":%q}`, time.Now().Add(time.Hour).UnixNano(), comment)
		return ask(http.MethodPost, "", body, http.StatusCreated).ID
	}
	end := func(id string) {
		t.Helper()
		ask(http.MethodDelete, "/"+id, "", http.StatusNoContent)
	}
	eventually(t, "the monitor is ready", func() bool { return get(t, r.Addr(), "/readyz") == "ready\n" })
	ids := map[string]string{}
	for _, comment := range []string{"first", "second", "third"} {
		ids[comment] = silence(comment)
	}
	b := openTab(t, r.Addr())
	b.do(t, chromedp.EmulateViewport(1280, 900), chromedp.Navigate("http://"+r.Addr()+"/#/silences"))
	rows := func(n int, and string) string {
		return fmt.Sprintf(`document.querySelectorAll('#list li').length === %d && %s`, n, and)
	}
	on := func(comment string) string {
		return fmt.Sprintf(`document.activeElement.closest('#list li')?.querySelector('.note').textContent === %q`, comment)
	}
	b.await(t, "the list, live", rows(3, `document.getElementById('live').dataset.state === 'live'`))
	for _, comment := range []string{"second", "third", "first"} { // one of them is not the first in the list
		b.do(t, chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`[...document.querySelectorAll('#list li')].find(e => e.querySelector('.note').textContent === %q).querySelector('button').focus()`, comment)))
		other := silence("another")
		b.await(t, "one more, and the focus where it was", rows(4, on(comment)))
		end(other)
		b.await(t, "one less, and the focus where it was", rows(3, on(comment)))
	}
	// An answer that another one has overtaken does not bring back what was before.
	b.do(t, chromedp.Evaluate[chromedp.Void](`{
		const ask = window.fetch;
		window.fetch = async (...of) => {
			const answer = await ask(...of);
			if (!of[0].endsWith('/silences') || window.release) return answer;
			await new Promise(free => { window.release = free; });
			const text = await answer.text();
			return { ok: true, text: async () => { setTimeout(() => { window.late = true; }, 0); return text; } };
		};
	}`))
	late := silence("late")
	b.await(t, "an answer that is held", `window.release !== undefined`)
	after := silence("after it")
	b.await(t, "two more", rows(5, on("first")))
	b.do(t, chromedp.Evaluate[chromedp.Void](`window.release()`))
	b.await(t, "the late answer", `window.late === true`)
	if n, err := chromedp.Run(b.ctx, chromedp.Evaluate[int](`document.querySelectorAll('#list li').length`)); err != nil || n != 5 {
		t.Errorf("an old answer is shown: %d silences, want 5, %v", n, err)
	}
	end(late)
	end(after)
	b.await(t, "two less", rows(3, on("first")))
	end(ids["first"])
	b.await(t, "the focus in the list", rows(2, `document.activeElement.matches('#list button')`))
	end(ids["second"])
	b.await(t, "the focus on the last one", rows(1, on("third")))
	end(ids["third"])
	b.await(t, "the focus on the page", `document.querySelector('#list .empty') !== null && document.activeElement === document.querySelector('h1')`)
	b.clean(t)
}

// TestBrowserToken: nothing is shown before the token is.
func TestBrowserToken(t *testing.T) {
	t.Parallel()
	c := testConfig(nil)
	c.Source = config.Source{File: &config.File{Path: bank(t), Follow: true}}
	c.Store.Path = filepath.Join(t.TempDir(), "store")
	c.HTTP.Listen = "127.0.0.1:0"
	c.HTTP.TokenFile, c.HTTP.Token = "given", "a token that nobody knows"
	r := start(t, c, nil, false)
	b := openTab(t, r.Addr())
	b.do(t, chromedp.Navigate("http://"+r.Addr()+"/"))
	b.await(t, "the form", `document.activeElement?.id === 'token'`)
	b.accessible(t, "the form")
	if text := b.text("body"); strings.Contains(text, "bank") {
		t.Errorf("the page says to a stranger: %s", text)
	}
	b.do(t, chromedp.SendKeys(chromedp.CSS("#token"), "a guess\r"))
	b.await(t, "that it is wrong", `document.getElementById('token-error').textContent === 'That is not the token.'`)
	b.do(t, chromedp.Evaluate[chromedp.Void](`document.getElementById('token').value = ''`), chromedp.SendKeys(chromedp.CSS("#token"), "a token that nobody knows\r"))
	b.await(t, "the answer", `document.querySelector('#verdict h1') !== null`)
	if cookie, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](`document.cookie`)); err != nil || cookie != "" {
		t.Errorf("scripts see the cookie %q, %v", cookie, err)
	}
	b.do(t, chromedp.Click(chromedp.CSS("#logout")))
	b.await(t, "the form again", `document.activeElement?.id === 'token'`)
	b.do(t, chromedp.Reload())
	b.await(t, "the form after all", `document.activeElement?.id === 'token'`)
}

// recheck has the batch judge look at downloaded evidence.
func recheck(t *testing.T, path string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	hs, err := histories.Read("evidence", f, histories.Options{})
	if err != nil || len(hs) != 1 {
		t.Fatalf("%d histories, %v", len(hs), err)
	}
	h := hs[0]
	assume := record.Assumptions{}.Override(h.Header)
	out := report.History{}
	if err := judge.Check(judge.Question{DB: "bank", Txns: h.Transactions, Levels: []verdict.Level{verdict.SI}, Assume: assume}, &out); err != nil {
		t.Fatal(err)
	}
	if len(out.Results) != 1 || out.Results[0].Verdict != "violated" {
		t.Errorf("the evidence by itself: %+v", out.Results)
	}
}
