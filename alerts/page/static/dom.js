// Making elements, and showing what came from a database. Strings become text nodes
// and nothing else: nothing here, or anywhere in the page, parses markup.

const SVG = 'http://www.w3.org/2000/svg';

// h makes an element: h('a', {href: '#/', class: 'x', onclick: f}, 'text', child, …).
// Attributes that are null, undefined or false are left out.
export function h(tag, attrs, ...children) {
  return fill(document.createElement(tag), attrs, children);
}

// s is h for SVG.
export function s(tag, attrs, ...children) {
  return fill(document.createElementNS(SVG, tag), attrs, children);
}

function fill(el, attrs, children) {
  for (const [name, value] of Object.entries(attrs ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) el.addEventListener(name.slice(2), value);
    else if (name === 'value') el.value = value;
    else if (name === 'style') Object.assign(el.style, value);
    else el.setAttribute(name, value === true ? '' : value);
  }
  el.append(...children.flat(Infinity).filter(c => c !== null && c !== undefined && c !== false));
  return el;
}

// What can't be seen, or turns the reading direction round: control characters,
// format characters, lone surrogates, line and paragraph separators.
const unseen = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\u2028\u2029]/gu;

// safe replaces such characters by escapes.
export function safe(text) {
  return text.replace(unseen, c => {
    const n = c.codePointAt(0);
    if (c === '\n') return '\\n';
    if (c === '\t') return '\\t';
    return n < 0x100 ? '\\x' + n.toString(16).padStart(2, '0') : '\\u{' + n.toString(16) + '}';
  });
}

// lines is safe but for line ends, for text of several lines.
export const lines = text => text.split('\n').map(safe).join('\n');

const cutMax = 160;

// long shows a string whole if it is short; otherwise its beginning, and a button for
// the rest. An untrusted string has its own reading direction.
export function long(text, max = cutMax, clean = safe) {
  if (text.length <= max) return h('bdi', null, clean(text));
  const head = text.slice(0, max).replace(/[\ud800-\udbff]$/, '');
  const shown = h('bdi', null, clean(head) + '…');
  const button = h('button', {
    type: 'button', class: 'more', 'aria-expanded': 'false',
    onclick: () => {
      const open = button.getAttribute('aria-expanded') === 'true';
      button.setAttribute('aria-expanded', String(!open));
      shown.textContent = open ? clean(head) + '…' : clean(text);
      button.textContent = open ? all : 'show less';
    },
  });
  const all = `show all ${count(text.length)} characters`;
  button.textContent = all;
  return h('span', { class: 'long' }, shown, ' ', button);
}

// cut is the beginning of a string, for places that have no room for a button.
export function cut(text, max) {
  const clean = safe(text.slice(0, max + 1));
  return clean.length > max ? clean.slice(0, max - 1) + '…' : clean;
}

const numbers = new Intl.NumberFormat('en');
export const count = n => numbers.format(n);
export const plural = (n, one, many = one + 's') => `${count(n)} ${n === 1 ? one : many}`;

// figure is a number in four characters or so.
export function figure(n) {
  if (!Number.isFinite(n)) return '–';
  if (n !== 0 && Math.abs(n) < 10) return String(Math.round(n * 100) / 100);
  if (n < 10000) return count(Math.round(n));
  return n < 1e6 ? `${count(Math.round(n / 100) / 10)}k` : `${count(Math.round(n / 1e5) / 10)}M`;
}

export function bytes(n) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let i = 0;
  for (; n >= 1024 && i < units.length - 1; i++) n /= 1024;
  return `${i ? n.toFixed(1) : n} ${units[i]}`;
}

// The monitor's clock is what times are compared with, not the reader's.
let offset = 0;
export const setNow = ns => { offset = ns / 1e6 - Date.now(); };
export const now = () => Date.now() + offset;

// duration is a number of seconds in words, in the two largest units that matter.
export function duration(seconds) {
  if (seconds < 0.0995) return `${Math.round(Math.max(0, seconds) * 1000)} ms`;
  if (seconds < 9.95) return `${Math.round(seconds * 10) / 10} s`;
  const t = Math.round(seconds);
  const parts = [[Math.floor(t / 86400), 'd'], [Math.floor(t / 3600) % 24, 'h'], [Math.floor(t / 60) % 60, 'min'], [t % 60, 's']];
  const first = parts.findIndex(p => p[0] > 0);
  return parts.slice(first, first + 2).filter(p => p[0] > 0).map(p => p.join(' ')).join(' ');
}

const sameDay = (a, b) => a.toDateString() === b.toDateString();
const two = n => String(n).padStart(2, '0');

// clock is a time of day, with the date if it is not today's.
export function clock(ns) {
  const d = new Date(ns / 1e6);
  const time = `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
  if (sameDay(d, new Date(now()))) return time;
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${time}`;
}

const ago = ns => {
  const seconds = (now() - ns / 1e6) / 1000;
  if (seconds > 1e7) return `${count(Math.floor(seconds / 86400))} d ago`;
  return seconds < 1 ? 'just now' : `${duration(Math.round(seconds))} ago`;
};

const valid = ns => Math.abs(ns / 1e6) <= 8.64e15;

// time shows a moment: its time of day, and how long ago that is.
export function time(ns, { relative = true, absolute = true } = {}) {
  if (!ns || !valid(ns)) return h('span', { class: 'faint' }, '–');
  const iso = new Date(ns / 1e6).toISOString();
  return h('time', { datetime: iso, title: iso },
    absolute && clock(ns),
    relative && h('span', { class: absolute ? 'faint' : null, 'data-ago': ns, 'data-in': absolute ? '' : null }, absolute ? ` (${ago(ns)})` : ago(ns)));
}

// tick brings every "… ago" up to date.
export function tick() {
  for (const el of document.querySelectorAll('[data-ago]')) {
    const text = ago(Number(el.dataset.ago));
    el.textContent = 'in' in el.dataset ? ` (${text})` : text;
  }
}

const icons = { holds: '✓', 'holds-in-part': '◐', broken: '✕', 'broken-earlier': '✕', 'not-judged': '…', critical: '▲', error: '▲', warning: '△', info: 'i', new: '●', ongoing: '◐', resolved: '○', suspected: '?', complete: '✓', partial: '◐', 'complete-assuming-real-time': '✓' };

// badge is a word that has a colour, and a sign for those who do not see it.
export function badge(kind, text = kind) {
  return h('span', { class: 'badge', 'data-kind': kind }, h('span', { 'aria-hidden': 'true' }, icons[kind] ?? '•'), ' ', text);
}

// healths are the words for how a promise stands.
export const healths = { holds: 'holds', 'holds-in-part': 'holds in part', broken: 'broken', 'broken-earlier': 'broken earlier', 'not-judged': 'not judged' };

// sentence is a message of the monitor as a sentence of its own.
export const sentence = text => { const t = safe(text); return t && t.charAt(0).toUpperCase() + t.slice(1) + (/[.!?]$/.test(t) ? '' : '.'); };

// pattern is a glob that nothing but the text matches.
export const pattern = text => text.replace(/[\\*?[\]]/g, '\\$&');

// title is a kebab-case name as a heading.
export const title = name => { const t = safe(name).replaceAll('-', ' '); return t.charAt(0).toUpperCase() + t.slice(1); };

// copy is a button that copies text.
export function copy(text, what) {
  const button = h('button', {
    type: 'button', class: 'small', 'aria-label': `Copy ${what}`,
    onclick: async () => {
      try { await navigator.clipboard.writeText(text); button.textContent = 'Copied'; } catch { button.textContent = 'Select and copy'; }
      setTimeout(() => { button.textContent = 'Copy'; }, 2000);
    },
  }, 'Copy');
  return button;
}

let pending = [], saying = 0;

// announce tells those who listen, at most once in four seconds.
export function announce(text) {
  pending.push(text);
  if (saying) return;
  const say = () => {
    saying = 0;
    const el = document.getElementById('announce');
    if (!pending.length) return;
    el.replaceChildren(h('p', null, pending.length > 2 ? `${pending.length} news; the latest: ${pending.at(-1)}` : pending.join('. ')));
    pending = [];
    saying = setTimeout(say, 4000);
  };
  saying = setTimeout(say, 300);
}
