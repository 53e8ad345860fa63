// The graph of a cycle: transactions as boxes with the operations that matter, laid
// out by dagre, drawn as SVG.
import * as dagre from './vendor/dagre.js';
import { s, cut } from './dom.js';
import { Exact } from './api.js';

const char = 7.25, row = 17, pad = 10; // of the monospaced font, in px
const rowsMax = 7;
let textMax = 34; // characters in a row of a box; less where there is no room

const short = v => {
  if (v instanceof Exact) return v.text;
  const t = JSON.stringify(v, (_, x) => (x instanceof Exact ? x.text : typeof x === 'string' && x.length > textMax ? x.slice(0, textMax) + '…' : Array.isArray(x) && x.length > 12 ? [...x.slice(0, 12), '…'] : x));
  return t ?? '';
};

const verbs = { r: 'r', w: 'w', append: 'append', rp: 'r where', wp: 'w where' };

function content(id, record, keys) {
  const ops = record?.ops ?? [];
  const about = ops.filter(o => keys.has(o[1]));
  const shown = (about.length ? about : ops).slice(0, rowsMax);
  const rows = shown.map(([kind, key, value]) => cut(`${verbs[kind] ?? kind}(${cut(typeof key === 'string' ? key : short(key), textMax < 30 ? 10 : 16)}${value === undefined ? '' : ', ' + short(value)})`, textMax));
  if (ops.length > shown.length) rows.push(`… ${ops.length - shown.length} more`);
  return { name: cut(id, textMax), session: cut(record?.session ? `session ${record.session}` : '', textMax), rows, status: record?.status };
}

// graph draws one cycle. point(number, i) is called when its i-th edge is chosen.
export function graph(cycle, records, number, point) {
  textMax = innerWidth < 640 ? 22 : 34;
  const by = new Map(records.map(r => [r.id, r]));
  const keys = new Set(cycle.map(e => e.key).filter(Boolean));
  const g = new dagre.graphlib.Graph({ multigraph: true });
  const narrow = innerWidth < 640;
  g.setGraph({ rankdir: narrow || cycle.length > 4 ? 'TB' : 'LR', nodesep: narrow ? 30 : 56, ranksep: narrow ? 56 : 90, edgesep: 26, marginx: 14, marginy: 14 });
  const nodes = new Map();
  for (const id of new Set(cycle.flatMap(e => [e.from, e.to]))) {
    const c = content(id, by.get(id), keys);
    const widest = Math.max(c.name.length, c.session.length * 0.88, ...c.rows.map(r => r.length));
    nodes.set(id, c);
    g.setNode(id, { width: Math.max(110, widest * char + 2 * pad), height: (c.rows.length + (c.session ? 2 : 1)) * row + 2 * pad });
  }
  cycle.forEach((e, i) => {
    const label = `${i + 1}. ${e.type}${e.key ? ' ' + cut(e.key, narrow ? 10 : 18) : ''}`;
    g.setEdge(e.from, e.to, { width: label.length * char + 8, height: 20, labelpos: 'c', label, type: e.type, i }, String(i));
  });
  dagre.layout(g);
  const { width, height } = g.graph();
  const svg = s('svg', { class: 'graph', viewBox: `0 0 ${Math.ceil(width)} ${Math.ceil(height)}`, width: Math.ceil(width), height: Math.ceil(height), role: 'img', 'aria-label': `A circle of ${cycle.length} steps: ${cycle.map(e => `${cut(e.from, 60)} before ${cut(e.to, 60)}`).join(', ')}` });
  for (const id of g.nodes()) svg.append(box(g.node(id), nodes.get(id)));
  for (const e of g.edges()) svg.append(arrow(g.edge(e), number, point));
  return svg;
}

function box({ x, y, width, height }, c) {
  const left = x - width / 2, top = y - height / 2;
  let at = top + pad + 12;
  const text = (cls, words) => { const t = s('text', { class: cls, x: left + pad, y: at }, words); at += row; return t; };
  return s('g', { class: `node${c.status && c.status !== 'committed' ? ' odd' : ''}` },
    s('rect', { x: left, y: top, width, height, rx: 7 }),
    text('name', c.name), c.session && text('session', c.session), c.rows.map(r => text('op', r)));
}

function arrow({ points, label, type, i, x, y, width }, number, point) {
  const end = points.at(-1), before = points.at(-2);
  const angle = Math.atan2(end.y - before.y, end.x - before.x);
  const wing = a => `${end.x - 9 * Math.cos(angle + a)},${end.y - 9 * Math.sin(angle + a)}`;
  return s('g', { class: 'arrow', 'data-type': type, onclick: () => point(number, i) },
    s('title', null, label),
    s('path', { class: 'hit', d: curve(points) }),
    s('path', { class: 'line', d: curve(points) }),
    s('polygon', { points: `${end.x},${end.y} ${wing(0.42)} ${wing(-0.42)}` }),
    s('rect', { class: 'plate', x: x - width / 2, y: y - 10, width, height: 20, rx: 10 }),
    s('text', { x, y: y + 4, 'text-anchor': 'middle' }, label));
}

// curve goes through the middle of each pair of dagre's points.
function curve(p) {
  let d = `M${p[0].x},${p[0].y}`;
  for (let i = 1; i < p.length - 1; i++) {
    const last = i === p.length - 2;
    const x = last ? p[i + 1].x : (p[i].x + p[i + 1].x) / 2, y = last ? p[i + 1].y : (p[i].y + p[i + 1].y) / 2;
    d += `Q${p[i].x},${p[i].y} ${x},${y}`;
  }
  if (p.length === 2) d += `L${p[1].x},${p[1].y}`;
  return d;
}
