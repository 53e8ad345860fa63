// Is the database keeping its promise?
import { h, s, badge, bytes, clock, copy, count, duration, figure, healths, now, plural, safe, time, title } from './dom.js';
import { get } from './api.js';
import { adopt, state } from './app.js';
import { Chart } from './chart.js';
import { foremost, group } from './alerts.js';

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
  keep(root.querySelector('#canary'), canary(st));
  keep(root.querySelector('#events'), events(st));
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
    canary(st),
    events(st),
    h('details', { id: 'engine', ontoggle: e => e.target.open && charts?.forEach(x => x.fit()) },
      h('summary', null, 'The engine: input, delivery, throughput, work'),
      machine(st),
      h('section', { 'aria-labelledby': 'charts-h' }, h('h2', { id: 'charts-h' }, 'The last minutes'), h('div', { class: 'charts' }, c.map(x => x.element)))));
}

// rank orders healths, the worst first.
const rank = ['broken', 'broken-earlier', 'not-judged', 'holds-in-part', 'holds'];

const quietAfter = 60; // seconds

// quiet is since when no record has come, if that is a while; else 0.
const quiet = last => (last && now() / 1000 - last / 1e9 > quietAfter ? last : 0);

// much is how much was judged, in words.
const much = (j, per) => [`${count(j.transactions)}${per ? ` of ${count(per.transactions)}` : ''} ${j.transactions === 1 && !per ? 'transaction' : 'transactions'}`,
  per ? ` and ${duration(j.time / 1e9)} of ${duration(per.time / 1e9)}` : ''];

// verdict is the answer in one sentence, and what it rests on.
function verdict(st) {
  const levels = st.histories.flatMap(x => x.levels.map(l => ({ ...l, db: x.db })));
  const worst = levels.filter(l => l.health === st.health);
  const dbs = new Set(worst.map(l => l.db));
  // While the state of the last run is being restored, what is not judged yet may be broken.
  const health = st.health.startsWith('holds') && st.waits.length ? 'not-judged' : st.health;
  const last = Math.max(0, ...levels.map(l => l.last ?? 0));
  const since = quiet(Math.max(0, ...st.histories.map(x => x.last_record)));
  const judged = st.histories.reduce((n, x) => n + x.transactions - x.undecided, 0);
  const open = st.histories.reduce((n, x) => n + x.undecided, 0);
  const until = Math.min(...st.histories.map(x => x.until).filter(x => x));
  const all = h('a', { href: '#/alerts' }, 'All alerts');
  let heading, text;
  if (st.health.startsWith('broken')) {
    const now = st.health === 'broken';
    const who = dbs.size === 1 ? safe(worst[0].db) : `${dbs.size} databases`;
    heading = `${who} ${now ? dbs.size === 1 ? 'breaks its promise' : 'break their promises' : dbs.size === 1 ? 'broke its promise' : 'broke their promises'}`;
    const least = worst.reduce((a, b) => (a.judged.transactions <= b.judged.transactions ? a : b));
    text = [`${plural(worst.length, 'level')} of ${levels.length} ${now ? 'broken' : 'broken earlier'}, since `, time(Math.min(...worst.map(l => l.since))), ', last found ', time(Math.max(...worst.map(l => l.last))), '. ',
      !now && ['Nothing was found since, but too little was judged to say that it is over: ', much(least.judged, least.enough), '. '], all, '.'];
  } else if (health === 'not-judged' && st.health !== 'not-judged') {
    heading = 'Not everything is judged yet';
    text = ['Nothing has been found so far in what is. The monitor waits:'];
  } else if (health.startsWith('holds')) {
    heading = health === 'holds' ? 'The promise holds' : 'The promise holds, in part';
    text = ['Nothing that breaks ', st.settings.levels.join(', '), ' was found since ', time(Math.max(...levels.map(l => l.since || st.started))), `: ${count(judged)} transactions are judged`, Number.isFinite(until) && [', up to ', time(until, { relative: false })], '. ',
      health === 'holds-in-part' ? 'Not all could be checked: see below what was missed, and when. ' : levels.some(l => l.complete === 'complete-assuming-real-time') ? 'All of it was checked, assuming that the database keeps real time. ' : 'All of it was checked. ',
      last > 0 && ['It was broken before, last ', time(last), '. '], st.alerts.total > 0 && [all, '.']];
  } else if (judged > 0 && !st.waits.length) {
    heading = 'Nothing is judged any more';
    text = [`Nothing was found in the ${plural(judged, 'transaction')} that are judged`, Number.isFinite(until) && [', up to ', time(until, { relative: false })], '; what clients see now is not checked.'];
  } else {
    heading = 'Nothing has been judged yet';
    text = [st.waits.length ? 'The monitor waits:' : ['The monitor reads since ', time(st.started), '; the first records are judged as soon as they are in order', open > 0 && [', and what they read can be of nobody who is still to come: ', waits(open)], '.']];
  }
  const late = Math.max(0, ...st.histories.map(x => x.behind_seconds));
  return h('section', { id: 'verdict', class: 'verdict', 'data-health': health, 'aria-labelledby': 'verdict-h' },
    h('div', { class: 'sign', 'aria-hidden': 'true' }, health.startsWith('broken') ? '✕' : health.startsWith('holds') ? '✓' : '…'),
    h('div', null,
      h('h1', { id: 'verdict-h', tabindex: '-1' }, heading),
      h('p', null, text),
      late > 5 && h('p', null, h('strong', null, `This is ${duration(late)} old: `), 'records come faster than they are judged, and what they show is not in it yet.'),
      since > 0 && (health !== 'not-judged' || judged > 0) && h('p', null, h('strong', null, 'No record has come since ', time(since)), '. What happens meanwhile is not judged', open > 0 && [', and until some come ', waits(open)], '.'),
      st.waits.length > 0 && h('ul', { class: 'waits' }, st.waits.map(w => h('li', null, safe(w))))));
}

// waits says how many transactions more records decide.
const waits = n => `${plural(n, 'transaction')} ${n === 1 ? 'waits' : 'wait'} for later ones`;

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
    st.histories.length ? [...st.histories].sort((a, b) => rank.indexOf(a.health) - rank.indexOf(b.health)).map(history) : nobody(st.source));
}

const born = Date.now();
const example = `{"db":"orders","session":"api-1","seq":1,"start":${born}000000,"end":${born + 1}000000,"status":"committed","ops":[["r","acct:1",100],["w","acct:1",90]]}`;

// nobody says how the first record comes.
function nobody(source) {
  const file = source.name.replace(/'/g, `'\\''`);
  const [how, command] = {
    kafka: ['The topic gets a record, with its session as key, by', `echo 'api-1|${example}' | kcat -P -K '|' -b ${source.brokers?.[0] ?? 'BROKER:9092'} -t ${source.name}`],
    file: ['The file gets a record by', `echo '${example}' >> '${file}'`],
    http: ['Records are posted, one on each line, by', `echo '${example}' | curl --data-binary @- ${location.origin}/api/v1/records`],
    stdin: ['Records come on the standard input, one on each line:', `echo '${example}' | monitor run --config FILE`],
  }[source.kind];
  return h('div', { class: 'empty' },
    h('p', null, h('strong', null, 'No database has sent a record yet.'), ' The monitor reads ', h('code', null, safe(`${source.kind} ${source.name}`.trim())), '; each database appears here with its first record.'),
    h('p', null, how),
    h('div', { class: 'command' }, h('code', null, safe(command)), copy(command, 'the command')),
    h('p', null, 'It says: a client of the database ', h('code', null, 'orders'), ' has read 100 from ', h('code', null, 'acct:1'), ' and written 90, in one transaction that it began and saw committed at these times (nanoseconds since 1970).'));
}

const completeness = { complete: 'checked completely', 'complete-assuming-real-time': 'complete, assuming real time', partial: 'checked in part' };

function history(x) {
  const since = quiet(x.last_record);
  return h('article', { class: 'card history', 'data-health': x.health },
    h('header', null, h('h3', null, h('bdi', null, safe(x.db))),
      h('span', { class: 'faint' }, `${count(x.transactions - x.undecided)} transactions judged`, x.until && x.transactions > x.undecided ? [', up to ', clock(x.until)] : '',
        x.undecided > 0 && h('span', { title: 'They, or some before them, read what somebody may still have written whose record is to come. That is over when some records (eight) are from window.max_transaction later.' }, `; ${waits(x.undecided)}`), since > 0 && ['; the last record came ', time(since, { absolute: false })])),
    h('ul', { class: 'levels' }, x.levels.map(l => level(x, l))),
    strip(x),
    h('details', { 'data-key': `engine ${x.db}` }, h('summary', null, 'The engine’s insides'), h('dl', { class: 'facts' },
      fact('Writes seen', x.coverage === 'complete' ? 'all of them' : 'perhaps not all'),
      fact('Lag', duration(x.lag_seconds + x.behind_seconds)),
      fact('Last record', time(x.last_record, { absolute: false })),
      fact('Held in the window', count(x.waiting)),
      fact('Queued before it', count(x.queued)),
      fact('Segments closed', count(x.segments)),
      fact('Keys remembered', count(x.frontier_keys)),
      x.sampled_one_in > 1 && fact('Sampled', `1 session in ${x.sampled_one_in}`))));
}

const fact = (name, value) => h('div', null, h('dt', null, name), h('dd', null, value));

// level is a line for each level: how it stands, and since when.
function level(x, l) {
  const query = new URLSearchParams({ db: x.db, level: l.level });
  const when = {
    broken: () => ['since ', time(l.since), '; last ', time(l.last, { absolute: false })],
    'broken-earlier': () => ['last ', time(l.last), '; since then ', much(l.judged, l.enough), ' judged'],
    'not-judged': () => [],
  }[l.health] ?? (() => ['since ', time(l.since), ': ', much(l.judged), ' judged', l.last ? ['; broken before, last ', time(l.last, { absolute: false })] : '']);
  return h('li', { class: 'level', 'data-health': l.health },
    badge(l.health, healths[l.health]),
    h('span', { class: 'grow' }, h('strong', null, l.title), ' ', h('code', null, l.level), ' ',
      h('span', { class: 'faint how', title: l.why }, l.health === 'not-judged' && l.complete && 'until then ', completeness[l.complete] ?? 'nothing judged')),
    h('span', { class: 'when' }, when()),
    l.alerts > 0 && h('a', { href: `#/alerts?${query}`, 'aria-label': `${plural(l.alerts, 'alert')} of ${l.level} in ${safe(x.db)}` }, plural(l.alerts, 'alert')));
}

// strip shows which stretches of the stream were checked completely, and where there were
// anomalies.
function strip(x) {
  const span = x.until - x.since;
  if (!x.stretches.length || span <= 0) return null;
  const at = t => 1000 * (t - x.since) / span;
  const whole = x.stretches.filter(p => p.complete).reduce((n, p) => n + p.to - p.from, 0);
  const partial = x.stretches.filter(p => !p.complete);
  const broken = x.broken.filter(p => p.to >= x.since && p.from <= x.until);
  const share = partial.length ? Math.min(99.9, Math.floor(1000 * whole / span) / 10) : 100;
  const hits = broken.reduce((n, p) => n + p.alerts, 0);
  const words = `${partial.length ? `${share} % complete, ${plural(partial.length, 'stretch', 'stretches')} in part` : 'all of it complete'}${hits ? `; ${plural(hits, 'anomaly', 'anomalies')}` : ''}`;
  const bar = (from, to, least, kind) => { const width = Math.max(least, at(to) - at(from)); return s('rect', { x: Math.max(0, Math.min(at(from), 1000 - width)), width, y: 0, height: 12, class: kind }); };
  return h('div', { class: 'strip' },
    s('svg', { viewBox: '0 0 1000 12', preserveAspectRatio: 'none', role: 'img', 'aria-label': `What was checked from ${clock(x.since)} to ${clock(x.until)}: ${words}` },
      x.stretches.map(p => bar(p.from, p.to, p.complete ? 0 : 3, p.complete ? 'whole' : 'part')),
      broken.map(p => { const r = bar(p.from, p.to, 5, 'hit'); r.append(s('title', null, `${plural(p.alerts, 'anomaly', 'anomalies')}, ${clock(p.from)}${p.to > p.from ? ` to ${clock(p.to)}` : ''}`)); return r; })),
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
  const open = foremost(groups.filter(g => g.state !== 'resolved'));
  const shown = open.slice(0, 8);
  if (!shown.length) return h('section', { id: 'groups', hidden: true }); // the answer above says so
  return h('section', { id: 'groups', 'aria-labelledby': 'groups-h' },
    h('h2', { id: 'groups-h' }, 'What broke'),
    h('ul', { class: 'rows' }, shown.map(g => h('li', null, h('a', { class: 'row', href: `#/alerts?${new URLSearchParams({ group: g.id })}` }, group(g))))),
    open.length > shown.length && h('p', null, h('a', { href: '#/alerts' }, `${plural(open.length - shown.length, 'more group')}: see all alerts`)));
}

// canary is what works on a database in the monitor's process, a line for each node.
function canary({ canary: c }) {
  if (!c) return h('section', { id: 'canary', hidden: true });
  const why = n => Object.entries(n.reasons).sort((a, b) => b[1] - a[1]).map(([r, k]) => `${count(k)} ${title(r).toLowerCase()}`).join(', ');
  return h('section', { id: 'canary', 'aria-labelledby': 'canary-h' },
    h('h2', { id: 'canary-h' }, 'Canary'),
    h('p', null, `${safe(c.database)}, isolation ${safe(c.isolation)}: ${plural(c.sessions, 'session')}, ${c.rate ? `${plural(c.rate, 'transaction')} a second` : 'as many transactions as it takes'}.`),
    h('ul', { class: 'rows' }, c.nodes.map(n => h('li', { class: 'row' },
      n.state === 'unreachable' ? badge('error', 'not reached') : n.state === 'stalled' ? badge('error', 'nothing committed') : n.lag_seconds > c.lag_max_seconds && c.lag_max_seconds > 0 ? badge('warning', 'behind') : badge('holds', 'up'),
      h('span', { class: 'grow' }, h('strong', null, h('bdi', { class: 'mono' }, safe(n.name))), ' ', safe(n.role || (n.replica ? 'replica' : '')),
        `: ${count(n.committed)} committed, ${count(n.aborted)} aborted, ${count(n.unknown)} unknown`, why(n) && h('span', { class: 'faint' }, ` (${why(n)})`),
        n.state !== 'up' && n.why && [': ', safe(n.why)]),
      h('span', { class: 'when' }, n.state !== 'up' ? ['since ', time(n.since)] : n.lag_seconds >= 0 ? `${duration(n.lag_seconds)} behind` : plural(n.connections, 'connection'))))));
}

// events are what happened around the databases.
function events(st) {
  const { latest, kept, dropped } = st.events;
  if (!latest.length) return h('section', { id: 'events', hidden: true });
  return h('section', { id: 'events', 'aria-labelledby': 'events-h' },
    h('h2', { id: 'events-h' }, 'What happened around'),
    h('ul', { class: 'rows' }, latest.map(e => h('li', { class: 'row' },
      h('span', { class: 'grow' }, e.kind && [h('strong', null, h('bdi', null, safe(e.kind))), ' '], e.node && [h('bdi', { class: 'mono' }, safe(e.node)), ' '], e.db && ['in ', h('bdi', null, safe(e.db)), ' '], safe(e.text)), h('span', { class: 'when' }, time(e.at))))),
    (kept > latest.length || dropped > 0) && h('p', { class: 'faint' }, `The latest of ${count(kept)} that are kept`, dropped > 0 && `; ${count(dropped)} before these were dropped`, '.'));
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
