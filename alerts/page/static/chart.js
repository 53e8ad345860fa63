// Charts over the last minutes, by uPlot. The canvas is for eyes; what it says also
// stands beside it in words.
import uPlot from './vendor/uplot.js';
import { h } from './dom.js';

const probe = h('span', { hidden: true });

// css is a colour as it is now: a canvas knows neither variables nor light-dark().
function css(name) {
  if (!probe.isConnected) document.body.append(probe);
  probe.style.color = `var(${name})`;
  return getComputedStyle(probe).color;
}

export class Chart {
  // lines are {of, label, color}; show makes a value readable.
  constructor(name, what, series, lines, show) {
    Object.assign(this, { lines, show, series });
    this.now = h('strong');
    this.words = h('span', { class: 'note' });
    this.box = h('div', { class: 'plot', 'aria-hidden': 'true' });
    this.element = h('figure', { class: 'card chart' },
      h('figcaption', null, h('span', { class: 'grow' }, h('span', { class: 'label' }, name), h('span', { class: 'note' }, what)), this.now),
      this.box,
      h('div', { class: 'legend' }, lines.length > 1 && lines.map(l => h('span', { class: `key ${l.color}` }, l.label)), this.words));
    this.watch = new ResizeObserver(() => this.resize());
    this.tell();
  }

  data() {
    const { start, step } = this.series;
    const first = this.series[this.lines[0].of];
    return [first.map((_, i) => (start + i * step) / 1e9), ...this.lines.map(l => this.series[l.of])];
  }

  // fit draws it, now that it has a place and a width.
  fit() {
    this.watch.observe(this.box);
    this.redraw();
  }

  // redraw draws it anew, as in other colours.
  redraw() {
    this.plot?.destroy();
    const ink = css('--chart-ink'), grid = css('--chart-grid');
    const axis = { stroke: ink, grid: { stroke: grid, width: 1 }, ticks: { show: false }, font: '11px system-ui, sans-serif' };
    const pad = n => String(n).padStart(2, '0');
    this.plot = new uPlot({
      width: Math.max(120, this.box.clientWidth), height: 130,
      legend: { show: false }, cursor: { show: false, drag: { x: false, y: false } },
      scales: { x: { time: true }, y: { range: (_, _min, max) => [0, max > 0 ? max * 1.15 : 1] } },
      axes: [
        { ...axis, space: 70, size: 26, values: (_, ticks) => ticks.map(t => { const d = new Date(t * 1000); return `${pad(d.getHours())}:${pad(d.getMinutes())}${d.getSeconds() ? ':' + pad(d.getSeconds()) : ''}`; }) },
        { ...axis, space: 34, size: 58, values: (_, ticks) => ticks.map(v => this.show(v)) },
      ],
      series: [{}, ...this.lines.map((l, i) => ({ label: l.label, stroke: css(`--chart-${l.color}`), width: 1.75, fill: i === 0 ? css(`--chart-${l.color}-fill`) : undefined, dash: i ? [4, 3] : undefined, points: { show: false } }))],
    }, this.data(), this.box);
  }

  set(series) {
    this.series = series;
    this.plot?.setData(this.data());
    this.tell();
  }

  tell() {
    const values = this.series[this.lines[0].of];
    this.now.textContent = values.length ? this.show(values.at(-1)) : '–';
    const minutes = Math.max(1, Math.round(values.length * this.series.step / 6e10));
    this.words.textContent = values.length > 1 ? `at most ${this.show(Math.max(...values))} in ${minutes} min` : 'no values yet';
  }

  resize() {
    const width = this.box.clientWidth;
    if (this.plot && width && width !== this.plot.width) this.plot.setSize({ width, height: 130 });
  }

  destroy() {
    this.watch.disconnect();
    this.plot?.destroy();
    this.plot = null;
  }
}
