// What was found: a row for each group, which opens; or each alert by itself, newest first,
// as far as a filter lets them through.
import { h, badge, count, cut, clock, pattern, plural, safe, time, title } from './dom.js';
import { get } from './api.js';
import { adopt, state } from './app.js';

const pageSize = 50;
const fields = ['q', 'db', 'level', 'name', 'state', 'severity', 'group'];
export const names = ['thin-air-read', 'aborted-read', 'future-read', 'not-my-last-write', 'not-my-own-write', 'intermediate-read', 'non-repeatable-reads', 'session-guarantee-violation',
  'non-monotonic-read', 'fractured-read', 'causality-violation', 'long-fork', 'lost-update', 'write-skew'];
// each: alerts are listed by themselves; so they are by a name that others have for them.
const each = () => ['q', 'group', 'after', 'each'].some(f => query.get(f)) || !['', ...names].includes(query.get('name') ?? '');

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
    select('state', 'State', ['new', 'ongoing', 'resolved', 'suspected']),
    select('severity', 'Severity', ['critical', 'error', 'warning', 'info']),
    ['group', 'each'].map(f => query.get(f) && h('input', { type: 'hidden', name: f, value: query.get(f) })));
}

// changed takes the form's values into the address, and lists anew.
function changed() {
  clearTimeout(typing);
  const next = new URLSearchParams();
  const values = new FormData(form);
  for (const f of [...fields, 'each']) if (values.get(f)) next.set(f, values.get(f));
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
  if (!each()) {
    const [{ groups }, { total }] = await Promise.all([get('groups', mine.signal), get('alerts?limit=1', mine.signal)]);
    return drawGroups(groups, total);
  }
  const q = new URLSearchParams(query);
  q.delete('each');
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

// foremost sorts groups: open ones, the worst, and of these the rarest come first, so that
// many of one kind do not bury another.
export function foremost(groups) {
  const severity = ['critical', 'error', 'warning', 'info'];
  const key = g => [g.state === 'resolved' ? 1 : 0, severity.indexOf(g.severity), g.alerts, -g.last];
  return [...groups].sort((a, b) => key(a).map((x, i) => x - key(b)[i]).find(x => x) ?? 0);
}

// group is a group on one line.
export function group(g) {
  return [badge(g.severity),
    h('span', { class: 'grow' }, h('strong', null, title(g.name)), ' breaks ', h('code', null, safe(g.level)), g.weakest !== g.level && [', and already ', h('code', null, safe(g.weakest)), ','], ' in ', h('bdi', null, cut(g.db, 60)),
      g.keys.length > 0 && h('span', { class: 'note' }, 'on ', g.keys.slice(0, 4).map((k, i) => [i ? ', ' : '', h('bdi', { class: 'mono' }, cut(k, 40))]), g.keys.length > 4 && ' and others')),
    h('span', { class: 'when' }, h('strong', null, plural(g.alerts, 'alert')), g.count > g.alerts && `, found ${count(g.count)} times`, h('br'), g.count > 1 ? [clock(g.since), ' – ', time(g.last)] : time(g.last)),
    g.silenced && badge('silenced'), badge(g.state)];
}

function drawGroups(groups, total) {
  const fits = g => ['db', 'name', 'state', 'severity'].every(f => !query.get(f) || g[f] === query.get(f)) && (!query.get('level') || g.breaks.includes(query.get('level')));
  const shown = foremost(groups.filter(fits));
  const alone = new URLSearchParams([...query, ['each', '1']]);
  const opened = new Set([...list.querySelectorAll('details[open]')].map(d => d.dataset.group));
  const filtered = fields.some(f => query.get(f));
  list.replaceChildren(...[
    total > 0 && h('p', { class: 'bar faint' }, `${plural(shown.length, 'group')}: open ones first, the worst, and the rarest of these. `, h('a', { href: address(alone) }, 'Each alert by itself'), filtered && [' · ', h('a', { href: '#/alerts' }, 'Clear the filter')]),
    shown.length ? h('ul', { class: 'rows groups' }, shown.map(g => h('li', null, expanding(g, opened.has(g.id))))) : nothing(filtered, { total })].filter(Boolean));
}

// expanding is a group that shows its latest alerts when it is opened.
function expanding(g, open) {
  const inside = h('div', { class: 'inside' });
  const load = async () => {
    if (inside.firstChild) return;
    inside.append(h('p', { class: 'faint', role: 'status' }, 'Reading…'));
    try {
      const found = [];
      const q = new URLSearchParams({ group: g.id, limit: 20 });
      for (let page = { next: 1 }; found.length < 20 && page.next;) {
        page = await get(`alerts?${q}`, stop);
        found.push(...page.alerts);
        q.set('after', page.next);
      }
      inside.replaceChildren(
        found.length ? h('ul', { class: 'alerts' }, found.slice(0, 20).map(row)) : h('p', { class: 'faint' }, 'None of them is in the store any more (alerts.retain).'),
        h('p', { class: 'ways' }, h('a', { href: `#/alerts?${new URLSearchParams({ group: g.id })}` }, 'All of this group, newest first'),
          h('a', { href: `#/silences?${new URLSearchParams({ db: pattern(g.db), level: g.level, name: g.name, comment: '' })}` }, 'Silence this group')));
    } catch (e) {
      if (e.name !== 'AbortError') inside.replaceChildren(h('p', { class: 'error', role: 'alert' }, e.message));
    }
  };
  const el = h('details', { 'data-group': g.id, open, ontoggle: () => { if (el.open) load(); } }, h('summary', { class: 'row' }, group(g)), inside);
  return el;
}

function draw(found, page) {
  const filtered = fields.some(f => query.get(f));
  const after = query.get('after');
  const parts = [];
  if (filtered || after) {
    parts.push(h('p', { class: 'bar' },
      query.get('group') && ['One group. '], h('a', { href: '#/alerts' }, 'All groups'), ' · ',
      filtered && h('a', { href: '#/alerts' }, 'Clear the filter')));
  } else if (page.total) {
    parts.push(h('p', { class: 'bar faint' }, 'Newest first. ', h('a', { href: '#/alerts' }, 'By group')));
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
      x.stretches.some(p => !p.complete) || x.levels.some(l => !l.complete || l.complete === 'partial') ? '; not all of it could be checked' : '; checked completely'))),
    h('p', null, h('a', { href: '#/' }, 'What was checked, and how completely')));
}
