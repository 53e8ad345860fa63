// All alerts, newest first, as far as a filter lets them through.
import { h, badge, count, cut, clock, plural, safe, time, title } from './dom.js';
import { get } from './api.js';
import { adopt, state } from './app.js';

const pageSize = 50;
const fields = ['q', 'db', 'level', 'name', 'state', 'severity', 'group'];
export const names = ['thin-air-read', 'aborted-read', 'future-read', 'not-my-last-write', 'not-my-own-write', 'intermediate-read', 'non-repeatable-reads', 'session-guarantee-violation',
  'non-monotonic-read', 'fractured-read', 'causality-violation', 'long-fork', 'lost-update', 'write-skew'];

let query, list, form, news, fresh, stop, typing;

const view = {
  name: 'alerts',
  async show(root, params, signal) {
    query = params.query;
    stop = signal;
    signal.addEventListener('abort', () => clearTimeout(typing)); // the address is another page's then
    fresh = new Set();
    adopt(await get('status', signal), true);
    news = h('div', { class: 'news', role: 'status' });
    list = h('div', { id: 'list' });
    form = filters();
    root.append(h('h1', { tabindex: '-1' }, 'Alerts'), form, news, list);
    await load(signal);
  },
  event(type, data) {
    if (type !== 'alert' || query.get('after')) return;
    fresh.add(data.id);
    const empty = !list.querySelector('li');
    if (empty) { fresh.clear(); load(stop); return; }
    news.replaceChildren(h('button', { type: 'button', class: 'primary small', onclick: () => { again(); } }, `${plural(fresh.size, 'alert')} came in: show`));
  },
  resume() { if (!query.get('after')) load(stop); },
};

export default view;

function again() {
  fresh.clear();
  news.replaceChildren();
  load(stop).then(() => list.querySelector('a')?.focus());
}

function filters() {
  const st = state.status;
  const option = (value, text, chosen) => h('option', { value, selected: value === chosen }, text);
  const select = (name, label, values, words = safe) => {
    const chosen = query.get(name) ?? '';
    const all = chosen && !values.includes(chosen) ? [...values, chosen] : values;
    return h('div', { class: 'field' }, h('label', { for: `f-${name}` }, label),
      h('select', { id: `f-${name}`, name, onchange: changed }, option('', 'all', chosen), all.map(v => option(v, words(v), chosen))));
  };
  return h('form', { class: 'filters', role: 'search', 'aria-label': 'Filter alerts', onsubmit: e => { e.preventDefault(); changed(); } },
    h('div', { class: 'field wide' }, h('label', { for: 'f-q' }, 'Text'), h('input', { id: 'f-q', name: 'q', type: 'search', maxlength: 128, placeholder: 'key, transaction, word, id', value: query.get('q') ?? '', oninput: () => { clearTimeout(typing); typing = setTimeout(changed, 300); } })),
    select('db', 'Database', st.histories.map(x => x.db)),
    select('level', 'Level', st.settings.levels),
    select('name', 'Anomaly', names, title),
    select('state', 'State', ['new', 'ongoing', 'resolved']),
    select('severity', 'Severity', ['critical', 'error', 'warning', 'info']),
    query.get('group') && h('input', { type: 'hidden', name: 'group', value: query.get('group') }));
}

// changed takes the form's values into the address, and lists anew.
function changed() {
  clearTimeout(typing);
  const next = new URLSearchParams();
  const values = new FormData(form);
  for (const f of fields) if (values.get(f)) next.set(f, values.get(f));
  query = next;
  history.replaceState(null, '', address(next));
  fresh.clear();
  news.replaceChildren();
  load(stop).catch(e => list.replaceChildren(h('p', { class: 'error', role: 'alert' }, e.message, ' ', e.hint)));
}

const address = q => `#/alerts${q.size ? '?' + q : ''}`;

let loading = new AbortController();

// load reads one page. A request looks at a bounded number of alerts; where few fit
// the filter it takes several.
async function load(signal) {
  loading.abort();
  const mine = loading = new AbortController();
  signal.addEventListener('abort', () => mine.abort());
  const q = new URLSearchParams(query);
  q.set('limit', pageSize);
  const found = [];
  let page, scanned = 0;
  do {
    q.set('limit', pageSize - found.length);
    try {
      page = await get(`alerts?${q}`, mine.signal);
    } catch (e) {
      if (e.name === 'AbortError') return;
      throw e;
    }
    found.push(...page.alerts);
    scanned += page.scanned;
    if (page.next) q.set('after', page.next);
    if (page.next && found.length < pageSize && list.isConnected) list.replaceChildren(h('p', { class: 'empty', role: 'status' }, `Searching: ${count(scanned)} of ${count(page.total)} looked at…`));
  } while (page.next && found.length < pageSize);
  draw(found, page);
}

function draw(found, page) {
  const filtered = fields.some(f => query.get(f));
  const after = query.get('after');
  const parts = [];
  if (filtered || after) {
    parts.push(h('p', { class: 'bar' },
      query.get('group') && ['One group. '], h('span', { class: 'faint' }, `${plural(page.total, 'alert')} stored in all. `),
      filtered && h('a', { href: '#/alerts' }, 'Clear the filter')));
  } else if (page.total) {
    parts.push(h('p', { class: 'bar faint' }, `${plural(page.total, 'alert')}, newest first`));
  }
  if (found.length) parts.push(h('ul', { class: 'rows alerts' }, found.map(row)));
  else parts.push(nothing(filtered, page));
  if (after || page.next) {
    const older = new URLSearchParams(query), newest = new URLSearchParams(query);
    older.set('after', page.next);
    newest.delete('after');
    parts.push(h('nav', { class: 'pager', 'aria-label': 'Pages' },
      after ? h('a', { href: address(newest) }, '← Newest') : h('span'),
      page.next ? h('a', { href: address(older), rel: 'next' }, 'Older →') : h('span', { class: 'faint' }, 'No older ones')));
  }
  list.replaceChildren(...parts);
}

function row(a) {
  return h('li', null, h('a', { class: 'row', href: `#/alerts/${encodeURIComponent(a.id)}` },
    badge(a.severity),
    h('span', { class: 'grow' },
      h('span', { class: 'head' }, h('strong', null, title(a.name)), ' ', h('code', null, a.level), ' ', h('bdi', { class: 'faint' }, cut(a.db, 60))),
      h('bdi', { class: 'note' }, cut(a.summary, 220))),
    h('span', { class: 'when' }, time(a.last_seen, { absolute: false }), a.count > 1 && h('span', { class: 'times' }, `${count(a.count)}×`)),
    badge(a.state)));
}

// nothing says why the list is empty, which is good news only if somebody looked.
function nothing(filtered, page) {
  const st = state.status;
  if (page.total && filtered) return h('p', { class: 'empty' }, 'No alert fits this filter.');
  if (page.total) return h('p', { class: 'empty' }, 'No older alerts.');
  if (!st.histories.length) return h('div', { class: 'empty' }, h('p', null, h('strong', null, 'No alert, and nothing to judge yet.')), h('ul', null, st.waits.map(w => h('li', null, safe(w)))));
  return h('div', { class: 'empty' },
    h('p', null, h('strong', null, 'No violation has been found.')),
    h('ul', { class: 'plain' }, st.histories.map(x => h('li', null, h('bdi', null, safe(x.db)), `: ${plural(x.transactions, 'transaction')} judged at ${x.levels.map(l => l.level).join(', ')}`, x.since ? ` from ${clock(x.since)} to ${clock(x.until)}` : '',
      x.stretches.some(p => !p.complete) || x.levels.some(l => l.complete === 'partial') ? '; not all of it could be checked' : '; checked completely'))),
    h('p', null, h('a', { href: '#/' }, 'What was checked, and how completely')));
}
