// The page: what is shown where, and that it stays true while somebody looks.
import { h, announce, clock, duration, now, plural, sentence, setNow, tick, title } from './dom.js';
import { Live, Problem, get, remove } from './api.js';
import overview from './overview.js';
import alerts from './alerts.js';
import alert from './alert.js';
import silences from './silences.js';
import login from './login.js';

const main = document.getElementById('main');
const banner = document.getElementById('banner');

// state is what views read: the latest status, and since when the monitor is silent.
export const state = { status: null, lostAt: 0, fresh: 0 };

// A view is {name, heading, show(root, params, signal), event?(type, data), resume?()}.
const routes = [
  [/^\/?$/, overview],
  [/^\/alerts$/, alerts],
  [/^\/alerts\/([^/]+)$/, alert],
  [/^\/silences$/, silences],
];

let current = { view: null, stop: new AbortController() };

// parse takes an address of the page apart: #/alerts/ID?view=timeline.
function parse() {
  const hash = location.hash.replace(/^#/, '');
  const at = hash.indexOf('?');
  const path = at < 0 ? hash : hash.slice(0, at);
  const query = new URLSearchParams(at < 0 ? '' : hash.slice(at + 1));
  for (const [pattern, view] of routes) {
    const m = pattern.exec(path);
    if (m) {
      try { return { view, params: { id: m[1] && decodeURIComponent(m[1]), query } }; } catch { break; }
    }
  }
  return { view: null, params: { query } };
}

// route shows what the address says. Where the reader went there, the heading gets
// the focus, so that a screen reader reads it.
async function route({ focus = true } = {}) {
  current.stop.abort();
  const stop = new AbortController();
  const { view, params } = parse();
  current = { view, stop };
  for (const a of document.querySelectorAll('[data-nav]')) {
    if (a.dataset.nav === view?.name) a.setAttribute('aria-current', view === alert ? 'true' : 'page');
    else a.removeAttribute('aria-current');
  }
  main.setAttribute('aria-busy', 'true');
  try {
    if (!view) throw new Problem(404, 'not-found', 'There is no such page.', 'Go to the overview.');
    const root = h('div', { class: 'view' });
    await view.show(root, params, stop.signal);
    if (stop.signal.aborted) return;
    main.replaceChildren(root);
    view.shown?.();
  } catch (e) {
    if (stop.signal.aborted) return;
    if (e instanceof Problem && e.status === 401) return demandToken();
    main.replaceChildren(failure(e, () => route()));
    if (!(e instanceof Problem)) throw e;
  } finally {
    if (!stop.signal.aborted) main.removeAttribute('aria-busy');
  }
  rename();
  if (focus) {
    (main.querySelector('h1') ?? main).focus({ preventScroll: true });
    scrollTo(0, 0);
  }
}

function rename() {
  const heading = main.querySelector('h1')?.textContent;
  const sign = state.status?.health.startsWith('broken') ? '✕ ' : '';
  document.title = `${sign}${heading ? heading + ' – ' : ''}Isowatch`;
}

// failure is what stands in place of what could not be had.
function failure(e, again) {
  return h('div', { class: 'view empty', role: 'alert' },
    h('h1', { tabindex: '-1' }, e.status === 0 ? 'The monitor can’t be reached' : e.status === 404 ? 'Not there' : 'That did not work'),
    h('p', null, sentence(e.message)),
    e.hint && h('p', { class: 'faint' }, sentence(e.hint)),
    h('p', { class: 'ways' }, h('button', { type: 'button', onclick: again }, 'Try again'), h('a', { href: '#/alerts' }, 'All alerts'), h('a', { href: '#/' }, 'Overview')));
}

function demandToken() {
  live.stop();
  setLive('locked', 'locked');
  const root = h('div', { class: 'view' });
  login.show(root, async () => { document.getElementById('logout').hidden = false; await begin(); });
  main.replaceChildren(root);
  main.removeAttribute('aria-busy');
  rename();
  main.querySelector('input').focus();
}

// adopt takes in a status: a whole one, or one that has only the last steps of the
// series.
export function adopt(status, whole) {
  setNow(status.now);
  const before = state.status;
  if (!whole && before) status.series = join(before.series, status.series);
  state.status = status;
  document.getElementById('version').textContent = `Isowatch ${status.version}`;
  const n = document.getElementById('nav-count');
  n.hidden = !status.alerts.groups;
  n.textContent = status.alerts.groups > 999 ? '999+' : String(status.alerts.groups);
  n.setAttribute('aria-label', plural(status.alerts.groups, 'open group'));
  n.title = `${plural(status.alerts.groups, 'group')} of alerts that ${status.alerts.groups === 1 ? 'is' : 'are'} not over`;
  if (before && before.health !== status.health) announce({ broken: 'The promise is broken', 'broken-earlier': 'Nothing is found any more; too little has been judged to say that it is over', 'not-judged': 'The monitor waits' }[status.health] ?? 'Enough was judged: nothing is broken any more');
}

const seriesMax = 300;

// join puts the last steps behind those that are known, and forgets the oldest.
function join(old, add) {
  if (old.step !== add.step) return add;
  const known = old.start + old.transactions.length * old.step;
  const skip = Math.round((known - add.start) / add.step);
  if (skip < 0) { missing(); return add; }
  const out = { step: add.step };
  let length = 0;
  for (const [name, values] of Object.entries(add)) {
    if (!Array.isArray(values)) continue;
    const all = [...old[name], ...values.slice(skip)];
    out[name] = all.slice(-seriesMax);
    length = all.length;
  }
  out.start = old.start + Math.max(0, length - seriesMax) * old.step;
  return out;
}

// missing asks for what was not heard of.
async function missing() {
  try { adopt(await get('status'), true); current.view?.event?.('status', state.status); } catch { /* the connection says so */ }
}

function setLive(kind, text) {
  document.getElementById('live').dataset.state = kind;
  document.getElementById('live-text').textContent = text;
}

const live = new Live({
  async open() {
    setLive('live', 'live');
    if (!state.lostAt) return;
    state.lostAt = 0;
    banner.hidden = true;
    document.body.classList.remove('stale');
    announce('The monitor answers again');
    await missing();
    if (current.view?.resume) current.view.resume(); else route({ focus: false });
  },
  // Who is refused to listen, while all else is answered, asks each time it is tried again.
  async closed(refused) {
    if (!state.lostAt) {
      state.lostAt = now();
      setLive('lost', 'no connection');
    }
    try {
      const status = await get('status');
      if (!refused) return;
      setLive('lost', 'not live: too many listeners');
      banner.hidden = true;
      document.body.classList.remove('stale');
      adopt(status, true);
      current.view?.event?.('status', state.status);
      current.view?.resume?.();
    } catch (e) {
      if (e.status === 401) return demandToken();
      document.body.classList.add('stale');
      showLost();
    }
  },
  event: {
    status(data) {
      adopt(data, false);
      current.view?.event?.('status', state.status);
      rename();
    },
    alert(data) {
      announce(`Alert: ${title(data.name)} in ${data.db}`);
      current.view?.event?.('alert', data);
    },
    silences() { current.view?.event?.('silences'); },
  },
});

function showLost() {
  banner.hidden = false;
  banner.replaceChildren(h('strong', null, 'The monitor can’t be reached'), ` since ${clock(state.lostAt * 1e6)}, for ${duration((now() - state.lostAt) / 1000)}. What stands here is what it said before. It is tried again all the time.`);
}

// The colours: as the system has them, light, dark.
const themes = [['', '◐', 'as the system has them'], ['light', '☀', 'light'], ['dark', '☾', 'dark']];

function setTheme(i) {
  const [theme, icon, words] = themes[i];
  if (theme) document.documentElement.dataset.theme = theme; else delete document.documentElement.dataset.theme;
  document.getElementById('theme-icon').textContent = icon;
  document.getElementById('theme').setAttribute('aria-label', `Colours: ${words}`);
  document.getElementById('theme').title = `Colours: ${words}`;
  try { localStorage.setItem('theme', theme); } catch { /* it lasts as long as the page */ }
  current.view?.event?.('theme');
}

let theme = Math.max(0, themes.findIndex(t => t[0] === (document.documentElement.dataset.theme ?? '')));
setTheme(theme);
document.getElementById('theme').addEventListener('click', () => { theme = (theme + 1) % themes.length; setTheme(theme); });
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => current.view?.event?.('theme'));

document.getElementById('logout').addEventListener('click', async () => {
  try { await remove('session'); } catch { /* then the cookie is of no use anyway */ }
  document.getElementById('logout').hidden = true;
  demandToken();
});

document.getElementById('skip').addEventListener('click', e => {
  e.preventDefault();
  (main.querySelector('h1') ?? main).focus();
});

addEventListener('hashchange', () => route());
// A page that is left, which the browser keeps to come back to it, listens no more: the
// browser makes few connections to one host, and other pages would wait for this one's.
addEventListener('pagehide', () => live.stop());
addEventListener('pageshow', e => { if (e.persisted) begin(); });
setInterval(() => { tick(); if (state.lostAt && !banner.hidden) showLost(); }, 5000);

// begin shows the page and listens.
async function begin() {
  try {
    adopt(await get('status'), true);
  } catch (e) {
    if (e.status === 401) return demandToken();
    // The view says what is wrong.
  }
  live.start();
  await route({ focus: false });
}

begin();
