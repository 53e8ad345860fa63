// One alert: what broke, a picture, the sentences, the operations, and how to check
// it again.
import { h, badge, clock, copy, count, cut, lines, long, pattern, plural, safe, time, title } from './dom.js';
import { Exact, address, get, getExact } from './api.js';
import { graph } from './graph.js';

let id, root, signalOf;

export default {
  name: 'alerts',
  async show(into, params, signal) {
    id = params.id;
    root = into;
    signalOf = signal;
    const path = `alerts/${encodeURIComponent(id)}`;
    const [found, { next }] = await Promise.all([getExact(path, signal), get(`${path}/next`, signal)]);
    draw(found, next);
  },
  event(type, data) {
    if (type === 'alert' && data.id === id) {
      root.querySelector('#count')?.replaceChildren(...found(data));
    }
  },
  async resume() {
    const [a] = await getExact(`alerts/${encodeURIComponent(id)}`, signalOf);
    root.querySelector('#count')?.replaceChildren(...found(a));
  },
};

const found = a => (Number(a.count) === 1 ? ['once, ', time(Number(a.first_seen))] : [`${plural(Number(a.count), 'time')}, first `, time(Number(a.first_seen)), ', last ', time(Number(a.last_seen))]);

const kinds = {
  so: 'session order: the same client did one after the other',
  rt: 'real time: one had ended before the other began',
  wr: 'read: the second read what the first wrote',
  ww: 'overwrite: the second wrote a later version than the first',
  rw: 'missed write: the first read a version that the second overwrote',
};

function draw([a, text], next) {
  const records = a.evidence.filter(r => !('history' in r));
  const header = a.evidence.find(r => 'history' in r)?.history;
  const cycles = a.cases?.length ? a.cases : a.cycle?.length ? [a.cycle] : [];
  root.replaceChildren(
    h('nav', { class: 'crumbs', 'aria-label': 'Where this is' }, h('a', { href: '#/alerts' }, 'Alerts'), ' / ', h('span', { class: 'mono', 'aria-current': 'page' }, safe(a.id))),
    h('header', { class: 'alert-head', 'data-kind': a.severity },
      h('p', { class: 'badges' }, badge(a.severity), badge(a.state), a.clock_dependent && badge('warning', 'depends on clocks')),
      h('h1', { tabindex: '-1' }, title(a.name), ' in ', h('bdi', null, cut(a.db, 80))),
      h('p', { class: 'lead' }, long(a.summary, 600))),
    facts(a),
    pictures(a, records, cycles),
    explanation(a),
    cycles.length > 0 && steps(a, cycles),
    operations(a, records),
    h('section', { 'aria-labelledby': 'next-h' }, h('h2', { id: 'next-h' }, 'What to look at next'), h('ul', { class: 'card plain next' }, next.map(x => h('li', null, safe(x))))),
    recheck(a, header),
    raw(text));
}

function facts(a) {
  const item = (name, ...value) => h('div', null, h('dt', null, name), h('dd', null, value));
  const list = values => values.map((v, i) => [i ? ', ' : '', h('bdi', { class: 'mono' }, cut(v, 80))]);
  const others = [...new Set([a.adya, ...(a.aliases ?? [])].filter(x => x && x !== a.name))];
  return h('dl', { class: 'facts card' },
    item('Breaks', list(a.breaks)),
    item('Still holds', a.holds?.length ? list(a.holds) : 'none of the levels'),
    a.weakest && item('Weakest level broken', h('code', null, a.weakest)),
    others.length > 0 && item('Also called', list(others)),
    a.guarantee && item('Session guarantee', safe(a.guarantee)),
    a.keys?.length > 0 && item('Keys', list(a.keys)),
    a.events?.length > 0 && h('div', { class: 'all' }, h('dt', null, 'Around it'), h('dd', null, h('ul', null, a.events.map(e => h('li', null, clock(Number(e.at)), ': it ', long(e.told, 400)))))),
    h('div', { class: 'two' }, h('dt', null, 'Found'), h('dd', null, h('span', { id: 'count' }, found(a)))),
    a.group && item('Others like it', h('a', { href: `#/alerts?${new URLSearchParams({ group: a.group })}` }, 'The whole group')),
    h('div', { class: 'act' }, h('dt', null, 'Notifications'), h('dd', null, h('a', { href: `#/silences?${new URLSearchParams({ db: pattern(a.db), level: a.level, name: a.name, comment: '' })}` }, 'Silence all like it'))));
}

// zoomable is a picture at its own size, which scrolls, with buttons to see more of it or
// more closely.
function zoomable(scroll) {
  const img = scroll.querySelector('img');
  let scale = 1;
  const zoom = to => {
    const middle = (scroll.scrollLeft + scroll.clientWidth / 2) / scale;
    scale = Math.min(4, Math.max(0.05, to));
    img.style.width = `${Math.round(img.naturalWidth * scale)}px`;
    scroll.scrollLeft = middle * scale - scroll.clientWidth / 2;
    shown.textContent = `${Math.round(scale * 100)} %`;
  };
  const shown = h('span', { class: 'faint', role: 'status' });
  const button = (label, text, to) => h('button', { type: 'button', class: 'small', 'aria-label': label, onclick: () => zoom(to()) }, text);
  const fit = () => Math.min(1, scroll.clientWidth / img.naturalWidth);
  const bar = h('p', { class: 'ways', role: 'group', 'aria-label': 'Size of the picture' }, button('Smaller', '−', () => scale / 1.25), button('Larger', '+', () => scale * 1.25), button('All of it', 'All of it', fit), button('100 %: its own size', '100 %', () => 1), shown);
  img.classList.add('own-size');
  img.addEventListener('load', () => { bar.hidden = img.naturalWidth <= scroll.clientWidth && img.naturalHeight <= scroll.clientHeight; zoom(1); });
  return h('div', { class: 'zoom' }, bar, scroll);
}

// pictures are two views of the same, as tabs.
function pictures(a, records, cycles) {
  const image = (which, words) => h('div', { class: 'scroll', tabindex: '0', role: 'group', 'aria-label': words }, h('img', { class: 'picture', src: address(`alerts/${encodeURIComponent(a.id)}/picture.svg?view=${which}`), alt: `${words} The steps below say the same in words.` }));
  const views = [
    ['Graph', () => (cycles.length ? h('div', null, cycles.slice(0, 6).map((c, i) => h('div', { class: 'scroll', tabindex: '0', role: 'group', 'aria-label': cycles.length > 1 ? `Graph of case ${i + 1}` : 'Graph of the cycle' }, cycles.length > 1 && h('p', { class: 'faint' }, `Case ${i + 1} of ${cycles.length}`), graph(c, records, i, point)))) : image('cycle', 'Who wrote and who read.'))],
    ['Timeline', () => zoomable(image('timeline', 'The sessions in time.'))],
  ];
  const panel = h('div', { id: 'picture-panel', role: 'tabpanel', class: 'card panel' });
  const tabs = views.map(([name], i) => h('button', { type: 'button', role: 'tab', id: `tab-${i}`, 'aria-controls': 'picture-panel', onclick: () => choose(i) }, name));
  const choose = i => {
    tabs.forEach((t, j) => { t.setAttribute('aria-selected', String(i === j)); t.tabIndex = i === j ? 0 : -1; });
    panel.setAttribute('aria-labelledby', `tab-${i}`);
    panel.replaceChildren(views[i][1]());
  };
  choose(0);
  const bar = h('div', { class: 'tabs', role: 'tablist', 'aria-label': 'Pictures', onkeydown: e => {
    const at = tabs.indexOf(document.activeElement);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[e.key];
    if (to === undefined || at < 0) return;
    e.preventDefault();
    const i = (to + tabs.length) % tabs.length;
    choose(i);
    tabs[i].focus();
  } }, tabs);
  return h('section', { 'aria-labelledby': 'picture-h' }, h('h2', { id: 'picture-h' }, 'Picture'), bar, panel,
    h('p', { class: 'faint small-print' }, 'As a file: ', h('a', { href: address(`alerts/${encodeURIComponent(a.id)}/picture.svg?view=cycle`), download: `cycle-${safeName(a.id)}.svg` }, 'cycle.svg'), ' ', h('a', { href: address(`alerts/${encodeURIComponent(a.id)}/picture.svg?view=timeline`), download: `timeline-${safeName(a.id)}.svg` }, 'timeline.svg')));
}

const safeName = text => text.replace(/[^0-9a-zA-Z-]/g, '_');

function explanation(a) {
  return h('section', { 'aria-labelledby': 'why-h' }, h('h2', { id: 'why-h' }, 'Why it can’t be'),
    h('div', { class: 'card prose' }, long(a.explanation, 6000, lines)));
}

const stepId = (c, i) => `step-${c}-${i}`;

// point opens the reason of an edge.
function point(c, i) {
  const el = document.getElementById(stepId(c, i));
  if (!el) return;
  el.open = true;
  el.querySelector('summary').focus();
  el.scrollIntoView({ block: 'nearest', behavior: matchMedia('(prefers-reduced-motion: reduce)').matches ? 'auto' : 'smooth' });
}

function steps(a, cycles) {
  const opened = cycles.length === 1 && cycles[0].length <= 4;
  const toggle = h('button', { type: 'button', class: 'small', onclick: () => {
    const all = [...section.querySelectorAll('details.step')], open = !all.every(d => d.open);
    all.forEach(d => { d.open = open; });
    toggle.textContent = open ? 'Close all' : 'Open all';
  } }, opened ? 'Close all' : 'Open all');
  const section = h('section', { 'aria-labelledby': 'steps-h' },
    h('div', { class: 'with-button' }, h('h2', { id: 'steps-h' }, cycles.length > 1 ? `${cycles.length} cases, each of which ends in a circle` : 'The circle, step by step'), toggle),
    cycles.map((cycle, c) => [
      cycles.length > 1 && h('h3', null, c === 0 ? 'Either' : 'Or'),
      h('ol', { class: 'steps card' }, cycle.map((e, i) => h('li', null, h('details', { class: 'step', id: stepId(c, i), open: opened },
        h('summary', null, h('bdi', { class: 'mono' }, cut(e.from, 60)), h('span', { class: 'edge', 'data-type': e.type }, e.type), h('span', { class: 'hear' }, ' before '), h('bdi', { class: 'mono' }, cut(e.to, 60)), e.key && h('span', { class: 'faint' }, ' on ', h('bdi', { class: 'mono' }, cut(e.key, 60)))),
        h('p', null, long(e.why, 600)), h('p', { class: 'faint' }, kinds[e.type] ?? '')))))]));
  return section;
}

const verbs = { r: 'read', w: 'write', append: 'append', rp: 'read where', wp: 'write where' };

const json = v => {
  if (v instanceof Exact) return v.text;
  if (Array.isArray(v)) return `[${v.map(json).join(',')}]`;
  if (v && typeof v === 'object') return `{${Object.entries(v).map(([k, x]) => `${JSON.stringify(k)}:${json(x)}`).join(',')}}`;
  return JSON.stringify(v);
};

function operation([kind, key, value]) {
  const name = typeof key === 'string' ? key : json(key);
  return h('li', { 'data-op': kind }, h('span', { class: 'verb' }, verbs[kind] ?? safe(String(kind))), ' ', h('span', { class: 'mono' }, long(name, 80)), value !== undefined && [h('span', { class: 'faint' }, kind === 'r' ? ' → ' : ' '), h('span', { class: 'mono' }, long(json(value), 120))]);
}

const shownMax = 50;

function operations(a, records) {
  const part = new Set(a.transactions);
  const all = records.map(r => h('li', { class: 'txn card' },
    h('div', { class: 'txn-head' }, h('strong', { class: 'mono' }, long(r.id ?? '', 80)), !part.has(r.id) && h('span', { class: 'faint' }, 'only for the proof'),
      h('span', { class: 'faint' }, 'session ', h('bdi', { class: 'mono' }, cut(r.session ?? '', 60)), r.node && [' at ', h('bdi', { class: 'mono' }, cut(r.node, 60))], r.status !== 'committed' && [' · ', badge('warning', r.status)], r.start !== undefined && ` · ${span(r)}`)),
    r.statements && h('p', { class: 'faint mono' }, long(r.statements, 400)),
    h('ol', { class: 'ops' }, (r.ops ?? []).slice(0, 200).map(operation)), (r.ops ?? []).length > 200 && h('p', { class: 'faint' }, `and ${r.ops.length - 200} more: see the evidence`)));
  const list = h('ul', { class: 'txns' }, all.slice(0, shownMax));
  return h('section', { 'aria-labelledby': 'ops-h' }, h('h2', { id: 'ops-h' }, 'What the clients saw'), list,
    all.length > shownMax && h('button', { type: 'button', onclick: e => { list.append(...all.slice(shownMax)); e.target.remove(); } }, `Show all ${count(all.length)}`));
}

// span is a transaction's time, to the microsecond: what overlaps matters.
function span(r) {
  const micro = v => String((BigInt(String(v)) / 1000n) % 1000000n).padStart(6, '0');
  try {
    const took = Number(BigInt(String(r.end)) - BigInt(String(r.start))) / 1e6;
    return `${clock(Number(r.start))}.${micro(r.start)}, ${took >= 10 ? Math.round(took) : took.toFixed(2)} ms`;
  } catch { return ''; }
}

function recheck(a, header) {
  const file = `evidence-${safeName(a.id)}.jsonl`;
  const command = `monitor check --level ${safeName(a.level)} ${file}`;
  return h('section', { 'aria-labelledby': 'check-h' }, h('h2', { id: 'check-h' }, 'Check it yourself'),
    h('div', { class: 'card' },
      h('p', null, 'The evidence is a history by itself. The same command finds the violation in it, without this monitor: it ends with status 1.'),
      h('p', null, h('a', { class: 'button primary', id: 'evidence', href: address(`alerts/${encodeURIComponent(a.id)}/evidence`), download: file }, 'Download the evidence')),
      h('div', { class: 'command' }, h('code', { id: 'command' }, command), copy(command, 'the command')),
      header && h('p', { class: 'faint' }, `It assumes: ${Object.entries(header).map(([k, v]) => `${k.replaceAll('_', ' ')} ${typeof v === 'object' ? json(v) : safe(String(v))}`).join(', ')}.`)));
}

function raw(text) {
  const pre = h('pre', { tabindex: '0', 'aria-label': 'The alert as JSON' });
  const el = h('details', { class: 'raw', ontoggle: () => { if (el.open && !pre.firstChild) pre.append(long(text.trim(), 20000)); } }, h('summary', null, 'As JSON'), pre);
  return h('section', null, h('h2', { class: 'hear' }, 'Raw'), el);
}
