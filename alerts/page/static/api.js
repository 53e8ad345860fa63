// Asking the monitor.

const base = 'api/v1/';

// Problem is an answer that is no success. status 0: there was none.
export class Problem extends Error {
  constructor(status, code, message, hint) {
    super(message);
    Object.assign(this, { status, code, hint });
  }
}

export const address = path => base + path;

// request returns the answer's text.
async function request(path, options = {}) {
  let response;
  try {
    response = await fetch(base + path, { credentials: 'same-origin', cache: 'no-store', ...options });
  } catch (e) {
    if (e.name === 'AbortError') throw e;
    throw new Problem(0, 'unreachable', 'The monitor does not answer.', 'Is it running? See its log, or systemctl status.');
  }
  const text = await response.text();
  if (response.ok) return text;
  let body = {};
  try { body = JSON.parse(text).error ?? {}; } catch { /* something in front of the monitor answered */ }
  throw new Problem(response.status, body.code ?? 'http', body.message ?? `The answer was ${response.status}.`, body.hint ?? '');
}

export const get = async (path, signal) => JSON.parse(await request(path, { signal }));

const send = (method, path, body) => request(path, { method, headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body ?? {}) });
export const post = async (path, body) => { const text = await send('POST', path, body); return text ? JSON.parse(text) : null; };
export const remove = path => send('DELETE', path);

// Exact is a number that a double can't hold: what clients wrote must be shown as
// they wrote it.
export class Exact {
  constructor(text) { this.text = text; }
  toString() { return this.text; }
  valueOf() { return Number(this.text); }
}

const tokens = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g;

// exact parses JSON, with such numbers as Exact.
export function exact(text) {
  const mark = '\u0000n';
  const marked = text.replace(tokens, t => (t[0] === '"' || String(Number(t)) === t ? t : JSON.stringify({ [mark]: t })));
  return JSON.parse(marked, (_, v) => (v && typeof v === 'object' && !Array.isArray(v) && mark in v ? new Exact(v[mark]) : v));
}

// getExact returns the parsed answer and its text.
export async function getExact(path, signal) {
  const text = await request(path, { signal });
  return [exact(text), text];
}

// Live is the stream of events. It connects again for as long as it takes: the
// browser does after a broken connection, this does after a refusal.
export class Live {
  constructor(handlers) {
    this.handlers = handlers; // {open, closed(refused), event: {type: f(data)}}
    this.wait = 1000;
  }

  start() {
    this.stop();
    const source = new EventSource(base + 'events');
    this.source = source;
    source.onopen = () => { this.wait = 1000; this.handlers.open(); };
    source.onerror = () => {
      const refused = source.readyState === EventSource.CLOSED;
      this.handlers.closed(refused);
      if (!refused) return;
      this.timer = setTimeout(() => this.start(), this.wait);
      this.wait = Math.min(this.wait * 2, 30000);
    };
    for (const [type, f] of Object.entries(this.handlers.event)) {
      source.addEventListener(type, e => f(JSON.parse(e.data)));
    }
  }

  stop() {
    clearTimeout(this.timer);
    this.source?.close();
    this.source = null;
  }
}
