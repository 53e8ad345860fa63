// Is the database keeping its promise?
import { h, s, badge, bytes, clock, count, duration, figure, plural, safe, time, title } from './dom.js';
import { get } from './api.js';
import { adopt, state } from './app.js';
import { Chart } from './chart.js';

let root, charts, groups, timer;

const view = {
  name: 'overview',
  async show(into, params, signal) {
    const [status, g] = await Promise.all([get('status', signal), get('groups', signal)]);
    adopt(status, true);
    groups = g.groups;
    root = into;
    charts?.forEach(c => c.destroy());
    charts = null;
    draw();
    signal.addEventListener('abort', () => { clearTimeout(timer); timer = 0; charts?.forEach(c => c.destroy()); charts = null; });
  },
  shown() { charts.forEach(c => c.fit()); },
  event(type) {
    if (!charts) return;
    if (type === 'theme') return charts.forEach(c => c.redraw());
    if (type === 'alert') return refresh();
    if (type === 'status') update();
  },
  resume() { refresh(); update(); },
};

export default view;

// refresh reads the groups again, at most every two seconds.
function refresh() {
  timer ||= setTimeout(async () => {
    timer = 0;
    try { groups = (await get('groups')).groups; } catch { return; }
    if (charts) keep(root.querySelector('#groups'), drawGroups());
  }, 2000);
}

// The parts that change are put in anew where they differ; a part in which somebody
// has the focus, or has opened something, waits.
function update() {
  const st = state.status;
  keep(root.querySelector('#verdict'), verdict(st));
  keep(root.querySelector('#conditions'), conditions(st));
  keep(root.querySelector('#histories'), histories(st));
  keep(root.querySelector('#machine'), machine(st));
  charts.forEach(c => c.set(st.series));
}

function keep(old, fresh) {
  if (!old || old.isEqualNode(fresh)) return;
  if (old.contains(document.activeElement) && document.activeElement !== document.body) {
    const i = focusable(old).indexOf(document.activeElement);
    reopen(old, fresh);
    old.replaceWith(fresh);
    focusable(fresh)[i]?.focus({ preventScroll: true });
    return;
  }
  reopen(old, fresh);
  old.replaceWith(fresh);
}

const focusable = el => [...el.querySelectorAll('a, button, summary, [tabindex]')];

function reopen(old, fresh) {
  for (const d of old.querySelectorAll('details[open][data-key]')) {
    const same = fresh.querySelector(`details[data-key="${CSS.escape(d.dataset.key)}"]`);
    if (same) same.open = true;
  }
}

function draw() {
  const st = state.status;
  const c = [
    new Chart('Throughput', 'transactions a second, judged', st.series, [{ of: 'transactions', label: 'judged', color: 'one' }, { of: 'records', label: 'read', color: 'two' }], v => `${figure(v)}/s`),
    new Chart('Lag', 'until what comes is judged', st.series, [{ of: 'lag', label: 'lag', color: 'one' }], v => duration(v)),
    new Chart('Window', 'held until it can be judged', st.series, [{ of: 'window', label: 'held', color: 'one' }], v => figure(v)),
    new Chart('Solver', 'orders left to the search', st.series, [{ of: 'open', label: 'open orders', color: 'one' }, { of: 'conflicts', label: 'conflicts a second', color: 'two' }], v => figure(v)),
    new Chart('Work', 'share of a core', st.series, [{ of: 'judging', label: 'judging', color: 'one' }, { of: 'proving', label: 'proving alerts', color: 'two' }], v => `${figure(v * 100)} %`),
    new Chart('Alerts', 'found a second', st.series, [{ of: 'alerts', label: 'found', color: 'one' }], v => `${figure(v)}/s`),
  ];
  charts = c;
  root.append(
    verdict(st),
    conditions(st),
    drawGroups(),
    histories(st),
    h('section', { 'aria-labelledby': 'charts-h' }, h('h2', { id: 'charts-h' }, 'The last minutes'), h('div', { class: 'charts' }, c.map(x => x.element))),
    machine(st));
}

// verdict is the answer in one sentence, and what it rests on.
function verdict(st) {
  const levels = st.histories.flatMap(x => x.levels.map(l => ({ ...l, db: x.db })));
  const broken = levels.filter(l => l.health === 'broken');
  const dbs = new Set(broken.map(l => l.db));
  // While the state of the last run is being restored, what is not judged yet may be broken.
  const health = st.health === 'kept' && st.waits.length ? 'waiting' : st.health;
  let heading, text;
  if (st.health === 'broken') {
    const first = Math.min(...broken.map(l => l.since));
    heading = dbs.size === 1 ? `${safe(broken[0].db)} breaks its promise` : `${dbs.size} databases break their promises`;
    text = [`${plural(broken.length, 'level')} of ${levels.length} broken, since `, time(first), '. ',
      h('a', { href: '#/alerts' }, `${plural(st.alerts.total, 'alert')} stored`), st.alerts.groups ? `, ${plural(st.alerts.groups, 'group')} open.` : '.'];
  } else if (st.health === 'kept' && health === 'waiting') {
    heading = 'Not everything is judged yet';
    text = ['Nothing has been found so far in what is. The monitor waits:'];
  } else if (health === 'kept') {
    const since = Math.max(...st.histories.map(x => Math.min(...x.levels.map(l => l.since || st.started))));
    const partial = levels.some(l => l.complete === 'partial');
    heading = partial ? 'No violation in what was seen' : 'The promise is kept';
    text = ['Nothing has been found that breaks ', st.settings.levels.join(', '), ' since ', time(since), '. ',
      partial ? 'Not all could be checked: see below what was missed, and when. ' : levels.some(l => l.complete === 'complete-assuming-real-time') ? 'All was checked, assuming that the database keeps real time. ' : 'All was checked. ',
      st.alerts.total > 0 && h('a', { href: '#/alerts' }, `${plural(st.alerts.total, 'older alert')} stored`)];
  } else {
    heading = 'Nothing has been judged yet';
    text = [st.waits.length ? 'The monitor waits:' : 'The monitor reads; the first records are judged once the watermark has passed them.'];
  }
  const late = Math.max(0, ...st.histories.map(x => x.behind_seconds));
  return h('section', { id: 'verdict', class: 'verdict', 'data-health': health, 'aria-labelledby': 'verdict-h' },
    h('div', { class: 'sign', 'aria-hidden': 'true' }, st.health === 'broken' ? '✕' : health === 'kept' ? '✓' : '…'),
    h('div', null,
      h('h1', { id: 'verdict-h', tabindex: '-1' }, heading),
      h('p', null, text),
      late > 5 && h('p', null, h('strong', null, `This is ${duration(late)} old: `), 'records come faster than they are judged, and what they show is not in it yet.'),
      st.waits.length > 0 && h('ul', { class: 'waits' }, st.waits.map(w => h('li', null, safe(w))))));
}

function conditions(st) {
  if (!st.operational.length) return h('section', { id: 'conditions', hidden: true });
  return h('section', { id: 'conditions', 'aria-labelledby': 'conditions-h' },
    h('h2', { id: 'conditions-h' }, 'The monitor itself'),
    h('ul', { class: 'rows' }, st.operational.map(c => h('li', { class: 'row' },
      badge(c.severity), h('span', { class: 'grow' }, h('strong', null, title(c.kind)), c.db && [' in ', h('bdi', null, safe(c.db))], ': ', safe(c.text)), h('span', { class: 'when' }, time(c.since))))));
}

function histories(st) {
  return h('section', { id: 'histories', 'aria-labelledby': 'histories-h' },
    h('h2', { id: 'histories-h' }, st.histories.length === 1 ? 'Database' : 'Databases'),
    st.histories.length ? [...st.histories].sort((a, b) => (b.health === 'broken') - (a.health === 'broken')).map(history)
      : h('p', { class: 'empty' }, 'No database has sent a record yet. The monitor reads ', h('code', null, safe(`${st.source.kind} ${st.source.name}`.trim())), '; each database appears here with its first record.'));
}

const completeness = { complete: 'checked completely', 'complete-assuming-real-time': 'complete, assuming real time', partial: 'checked in part' };

function history(x) {
  return h('article', { class: 'card history', 'data-health': x.health },
    h('header', null, h('h3', null, h('bdi', null, safe(x.db))),
      h('span', { class: 'faint' }, `${count(x.transactions)} transactions judged`, x.until ? [', up to ', clock(x.until)] : '')),
    h('ul', { class: 'levels' }, x.levels.map(l => level(x, l))),
    strip(x),
    h('dl', { class: 'facts' },
      fact('Writes seen', x.coverage === 'complete' ? 'all of them' : 'perhaps not all'),
      fact('Lag', duration(x.lag_seconds + x.behind_seconds)),
      fact('Last record judged', time(x.last_record, { absolute: false })),
      fact('Held in the window', count(x.waiting)),
      fact('Queued before it', count(x.queued)),
      fact('Segments closed', count(x.segments)),
      fact('Keys remembered', count(x.frontier_keys)),
      x.sampled_one_in > 1 && fact('Sampled', `1 session in ${x.sampled_one_in}`)));
}

const fact = (name, value) => h('div', null, h('dt', null, name), h('dd', null, value));

function level(x, l) {
  const query = new URLSearchParams({ db: x.db, level: l.level });
  return h('li', { class: 'level', 'data-health': l.health },
    badge(l.health),
    h('span', { class: 'grow' }, h('strong', null, l.title), ' ', h('code', null, l.level), ' ',
      h('span', { class: 'faint how', title: l.why }, l.health === 'waiting' ? 'nothing judged yet' : completeness[l.complete] ?? l.complete)),
    h('span', { class: 'when' },
      l.health === 'broken' ? ['since ', time(l.since), l.last ? ['; last ', time(l.last, { absolute: false })] : ''] : l.health === 'kept' ? ['since ', time(l.since)] : ''),
    l.violations > 0 && h('a', { href: `#/alerts?${query}`, 'aria-label': `${plural(l.violations, 'alert')} of ${l.level} in ${safe(x.db)}` }, plural(l.violations, 'alert')));
}

// strip shows which stretches of the stream were checked completely.
function strip(x) {
  const span = x.until - x.since;
  if (!x.stretches.length || span <= 0) return null;
  const whole = x.stretches.filter(p => p.complete).reduce((n, p) => n + p.to - p.from, 0);
  const partial = x.stretches.filter(p => !p.complete);
  const share = partial.length ? Math.min(99.9, Math.floor(1000 * whole / span) / 10) : 100;
  const words = partial.length ? `${share} % complete, ${plural(partial.length, 'stretch', 'stretches')} in part` : 'all of it complete';
  return h('div', { class: 'strip' },
    s('svg', { viewBox: '0 0 1000 12', preserveAspectRatio: 'none', role: 'img', 'aria-label': `What was checked from ${clock(x.since)} to ${clock(x.until)}: ${words}` },
      x.stretches.map(p => s('rect', { x: 1000 * (p.from - x.since) / span, width: Math.max(p.complete ? 0 : 3, 1000 * (p.to - p.from) / span), y: 0, height: 12, class: p.complete ? 'whole' : 'part' }))),
    h('div', { class: 'ends', 'aria-hidden': 'true' }, h('span', null, clock(x.since)), h('span', null, words), h('span', null, clock(x.until))),
    (partial.length > 0 || x.losses.length > 0) && h('details', { 'data-key': `strip ${x.db}` },
      h('summary', null, 'What was missed, and when'),
      partial.length > 0 && h('ul', { class: 'plain' }, partial.slice(-20).reverse().map(p => h('li', null, `${clock(p.from)} to ${clock(p.to)}: `, reasons(p.why ?? [])))),
      partial.length > 20 && h('p', { class: 'faint' }, `and ${partial.length - 20} before these`),
      x.losses.length > 0 && h('p', null, 'In all: ', reasons(x.losses), '.'),
      h('p', { class: 'faint' }, 'What is missed can hide a violation; it never makes one up.')));
}

const reasons = why => why.map(r => `${safe(r.text)} (${count(r.count)})`).join(', ') || 'not known why';

function drawGroups() {
  const open = groups.filter(g => g.state !== 'resolved');
  const shown = open.slice(0, 6);
  if (!shown.length) return h('section', { id: 'groups', hidden: true }); // the answer above says so
  return h('section', { id: 'groups', 'aria-labelledby': 'groups-h' },
    h('h2', { id: 'groups-h' }, 'Open alerts'),
    h('ul', { class: 'rows' }, shown.map(group)),
    open.length > shown.length && h('p', null, h('a', { href: '#/alerts' }, `${plural(open.length - shown.length, 'more group')}: see all alerts`)));
}

function group(g) {
  return h('li', null, h('a', { class: 'row', href: `#/alerts?${new URLSearchParams({ group: g.id })}` },
    badge(g.severity),
    h('span', { class: 'grow' }, h('strong', null, title(g.name)), ' breaks ', h('code', null, g.level), ' in ', h('bdi', null, safe(g.db)),
      g.keys.length > 0 && h('span', { class: 'note' }, 'on ', g.keys.slice(0, 4).map((k, i) => [i ? ', ' : '', h('bdi', { class: 'mono' }, safe(k.length > 40 ? k.slice(0, 40) + '…' : k))]), g.keys.length > 4 && ` and ${g.keys.length - 4} more`)),
    h('span', { class: 'when' }, `${plural(g.alerts, 'alert')}${g.count > g.alerts ? `, found ${count(g.count)} times` : ''}; last `, time(g.last, { absolute: false })),
    g.silenced && badge('silenced'), badge(g.state)));
}

function machine(st) {
  const receiver = r => [h('bdi', { class: 'mono' }, safe(r.name)), ' ', r.failed ? [badge('warning', 'failing'), ` ${plural(r.failed, 'attempt')}`, r.error && [': ', safe(r.error)]] : h('span', { class: 'faint' }, r.delivered ? [`${count(r.delivered)} delivered, last `, time(r.last, { absolute: false })] : 'nothing to deliver yet')];
  return h('section', { id: 'machine', 'aria-labelledby': 'machine-h' },
    h('h2', { id: 'machine-h' }, 'Input and delivery'),
    h('dl', { class: 'facts card' },
      fact('Source', h('bdi', { class: 'mono' }, safe(`${st.source.kind} ${st.source.name}`.trim()))),
      fact('Records read', count(st.source.records)),
      fact('Not read yet', st.source.behind < 0 ? 'not known' : count(st.source.behind)),
      fact('Set aside', st.source.rejected ? [count(st.source.rejected), ' ', h('span', { class: 'faint' }, '(monitor dead-letters)')] : '0'),
      fact('Store', [bytes(st.store.bytes), st.store.full && [' ', badge('error', 'full')]]),
      fact('Started', time(st.started, { absolute: false })),
      fact('Values', st.settings.values === 'full' ? 'shown as they are' : st.settings.values === 'hash' ? 'hashed' : 'left out'),
      h('div', { class: 'all' }, h('dt', null, st.receivers.length === 1 ? 'Receiver' : 'Receivers'), h('dd', null, st.receivers.length ? h('ul', null, st.receivers.map(r => h('li', null, receiver(r)))) : 'none: nobody is told'))));
}
