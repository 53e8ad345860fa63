// Silences: what nobody wants to be notified of for a while.
import { h, cut, safe, sentence, time, clock, announce } from './dom.js';
import { names } from './alerts.js';
import { get, post, remove } from './api.js';
import { state, adopt } from './app.js';

const spans = [['1 hour', 1], ['4 hours', 4], ['12 hours', 12], ['1 day', 24], ['1 week', 168], ['30 days', 720]];

let list, stop, asked = 0, shown = 0;

export default {
  name: 'silences',
  async show(root, params, signal) {
    stop = signal;
    if (!state.status) adopt(await get('status', signal), true);
    list = h('div', { id: 'list' });
    root.append(h('h1', { tabindex: '-1' }, 'Silences'),
      h('p', null, 'A silence holds notifications back. What is found is stored, shown here and counted all the same.'), list, form(params.query));
    await load();
  },
  event(type) { if (type === 'silences') load(); },
  resume() { load(); },
};

// load shows the silences there are. Of several that are under way an older answer may come
// last, which is not shown.
async function load() {
  const turn = ++asked;
  const { silences } = await get('silences', stop);
  if (turn < shown) return;
  shown = turn;
  const at = list.contains(document.activeElement) && document.activeElement.dataset.id;
  list.replaceChildren(silences.length
    ? h('ul', { class: 'rows' }, silences.map(row))
    : h('p', { class: 'empty' }, 'Nothing is silenced.'));
  if (at) { // who was on a row stays on it, or in the list, or on the page
    const buttons = [...list.querySelectorAll('button')];
    (buttons.find(b => b.dataset.id === at) ?? buttons[0] ?? document.querySelector('h1'))?.focus();
  }
}

const matchers = [['db', 'database'], ['level', 'level'], ['name', 'anomaly'], ['key', 'key']];

function row(x) {
  const of = matchers.filter(([f]) => x[f]);
  const words = of.length ? of.map(([f, label], i) => [i ? ', ' : '', `${label} `, h('bdi', { class: 'mono' }, cut(x[f], 80))]) : 'everything';
  const error = h('span', { class: 'error', role: 'alert' });
  return h('li', { class: 'row' },
    h('span', { class: 'grow' }, h('strong', null, words), h('bdi', { class: 'note' }, safe(x.comment), x.by && ` – ${safe(x.by)}`)),
    h('span', { class: 'when' }, 'until ', time(x.until, { relative: false })),
    x.fixed ? h('span', { class: 'faint' }, 'in the configuration')
      : h('button', {
        type: 'button', class: 'small', 'data-id': x.id, 'aria-label': `End the silence of ${of.map(([f, label]) => `${label} ${safe(x[f])}`).join(', ') || 'everything'}`,
        onclick: async () => {
          try { await remove(`silences/${encodeURIComponent(x.id)}`); announce('The silence is over'); await load(); } catch (e) { error.textContent = `${sentence(e.message)} ${sentence(e.hint)}`; }
        },
      }, 'End'), error);
}

function form(query) {
  const input = (name, label, hint, more) => h('div', { class: more?.wide ? 'field two' : 'field' }, h('label', { for: `s-${name}` }, label),
    h('input', { id: `s-${name}`, name, maxlength: 200, value: query.get(name) ?? '', spellcheck: 'false', 'aria-describedby': hint && `s-${name}-hint`, required: more?.required, list: more?.among && `s-${name}-list` }), more?.among && h('datalist', { id: `s-${name}-list` }, more.among.map(value => h('option', { value }))), hint && h('span', { class: 'hint', id: `s-${name}-hint` }, hint));
  const st = state.status;
  const error = h('p', { class: 'error', role: 'alert' });
  const el = h('form', {
    class: 'card silence',
    onsubmit: async e => {
      e.preventDefault();
      error.textContent = '';
      const v = Object.fromEntries(new FormData(el));
      const hours = Number(v.hours);
      delete v.hours;
      for (const k of Object.keys(v)) if (!v[k]) delete v[k];
      try {
        const made = await post('silences', { comment: '', ...v, until: Math.round(Date.now() / 1000 + hours * 3600) * 1e9 });
        announce(`Silenced until ${clock(made.until)}`);
        el.reset();
        for (const i of el.querySelectorAll('input')) i.value = '';
        await load();
        list.querySelector('button')?.focus();
      } catch (problem) {
        error.textContent = `${sentence(problem.message)} ${sentence(problem.hint)}`;
      }
    },
  },
  h('h2', null, 'New silence'),
  h('p', { class: 'hint' }, 'What is left empty matches everything; * and ? stand for any characters.'),
  h('div', { class: 'fields' },
    input('db', 'Database', null, { among: st.histories.map(x => x.db) }), input('level', 'Level', null, { among: st.settings.levels }), input('name', 'Anomaly', null, { among: names }), input('key', 'Key'),
    h('div', { class: 'field' }, h('label', { for: 's-hours' }, 'For how long'), h('select', { id: 's-hours', name: 'hours' }, spans.map(([words, hours]) => h('option', { value: hours, selected: hours === 4 }, words)))),
    input('by', 'Who'), input('comment', 'Why', null, { required: true, wide: true })),
  error, h('button', { type: 'submit', class: 'primary' }, 'Silence'));
  return el;
}
