// Live figures and their charts, polled every two seconds while the tab is visible. The service counts in buckets of two
// seconds: charts are there at once, and fall when the load does.

import * as api from '../lib/api.js';
import {h, s, show} from '../lib/dom.js';
import {bytes, milliseconds, number, plural} from '../lib/format.js';
import {fault} from '../lib/notices.js';
import {nameOf} from '../lib/products.js';
import {table} from '../lib/widgets.js';

const PAUSE = 2000;

// The measures of a chart.
const WIDTH = 640;
const HEIGHT = 220;
const LEFT = 52;
const RIGHT = 10;
const TOP = 12;
const BOTTOM = 26;

/** Return the dashboard. */
export async function live(_, signal) {
  const problem = h('div', {role: 'status'});
  const board = h('div', {class: 'dashboard'});
  const [now, learned] = await Promise.all([api.stats(), api.learned()]);
  show(board, figures(now));
  follow(board, problem, signal);
  return [problem, board, weights(learned)];
}

/** Poll the service. The last figures stay visible while it does not answer. */
async function follow(board, problem, signal) {
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
    if (signal.aborted) return;
    if (document.hidden) continue;
    try {
      const now = await api.stats();
      if (signal.aborted) return;
      show(problem);
      show(board, figures(now));
    } catch (error) {
      if (!problem.childNodes.length) show(problem, fault(error), h('p', {class: 'muted'}, 'Trying again …'));
    }
  }
}

function figures(now) {
  const last = now.buckets.at(-1);
  return [
    h(
      'ul',
      {class: 'figures'},
      tile('customers', number(now.users)),
      tile('baskets', number(now.baskets)),
      tile('items', number(now.items)),
      tile('memory', bytes(now.memory)),
      tile('recommendations per second', rate(last.recommendations_per_second)),
      tile('events per second', rate(last.events_per_second)),
    ),
    h('div', {class: 'charts'}, throughput(now.buckets), latency(now.buckets)),
    parameters(now.params),
    calls(now.calls),
  ];
}

function tile(label, text) {
  return h('li', {}, h('strong', {}, text), h('span', {}, label));
}

function rate(value) {
  return value >= 100 ? number(Math.round(value)) : value.toFixed(1);
}

function latency(buckets) {
  const of = (name) => ({name, values: buckets.map((bucket) => inMilliseconds(bucket[name]))});
  return chart('Time to recommend', [of('p99'), of('p90'), of('p50')], 'Milliseconds, in steps of two seconds');
}

function throughput(buckets) {
  const of = (name, field) => ({name, values: buckets.map((bucket) => bucket[field])});
  return chart(
    'Throughput',
    [of('recommendations', 'recommendations_per_second'), of('events', 'events_per_second')],
    'Per second, in steps of two seconds',
  );
}

function chart(title, series, label) {
  return h('section', {class: 'panel'}, h('h2', {}, title), lines(series, {label, write: plain, span: 'a minute ago'}));
}

const inMilliseconds = (seconds) => (seconds === null ? null : seconds * 1000);
const plain = (value) => (value >= 100 ? number(Math.round(value)) : String(Number(value.toPrecision(2))));

function calls(figures) {
  const time = (seconds) => (seconds === null ? '–' : milliseconds(seconds));
  const rows = Object.entries(figures)
    .filter(([, call]) => call.count)
    .sort(([, one], [, other]) => other.count - one.count)
    .map(([name, call]) => [
      h('code', {}, name),
      number(call.count),
      rate(call.rate),
      time(call.p50),
      time(call.p90),
      time(call.p99),
    ]);
  return h(
    'section',
    {class: 'panel'},
    h('h2', {}, 'Calls in the last minute'),
    rows.length
      ? table(['Call', '#Count', '#Per second', '#p50', '#p90', '#p99'], rows, 'Calls in the last minute')
      : h('p', {class: 'muted'}, 'None.'),
  );
}

function parameters(given) {
  const names = {
    group_size: 'group size m',
    basket_decay: 'basket decay r_b',
    group_decay: 'group decay r_g',
    neighbors: 'neighbors k',
    alpha: 'alpha',
    repurchase: 'evidence for a factor κ',
    grouping: 'grouping',
    pool: 'pool of neighbors',
    pool_seed: 'seed of the pool',
  };
  const entries = Object.entries(given).filter(([name, value]) => name in names && value !== null);
  return h(
    'section',
    {class: 'panel parameters'},
    h('h2', {}, 'Parameters'),
    h(
      'dl',
      {class: 'pairs'},
      entries.map(([name, value]) => h('div', {}, h('dt', {}, names[name]), h('dd', {}, String(value)))),
    ),
  );
}

/** Return the weights that the model has learned, as of the time when the page was opened. */
function weights({learned, alpha, users, most, least}) {
  if (!learned) return null;
  const listed = (title, entries) =>
    table(
      ['Item', '#Factor', '#Buyers'],
      entries.map((entry) => [nameOf(entry), entry.factor.toFixed(2), number(entry.buyers)]),
      title,
    );
  return h(
    'section',
    {class: 'panel learned'},
    h('h2', {}, 'Learned weights'),
    h('p', {}, `alpha is ${alpha.toFixed(3)}, from ${plural(users, 'customer')} with two baskets or more.`),
    most.length > 0 && [h('h3', {}, 'Bought again most readily'), listed('Bought again most readily', most)],
    least.length > 0 && [h('h3', {}, 'Bought again least readily'), listed('Bought again least readily', least)],
  );
}

/**
 * Draw a line chart of series of one length, oldest value first: [{name, values: [number or null]}]. `span` says how
 * far they go. Lines differ by their dashes and are named in a legend: they can be read without color.
 */
function lines(series, {label, write, span}) {
  const length = series[0].values.length;
  const top = ceiling(Math.max(0, ...series.flatMap(({values}) => values.filter((value) => value !== null))));
  const x = (place) => LEFT + (WIDTH - LEFT - RIGHT) * (place / Math.max(1, length - 1));
  const y = (value) => HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value / top);
  return h(
    'figure',
    {class: 'chart'},
    s(
      'svg',
      {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img', 'aria-label': `${label}. Now: ${spoken(series, write)}`},
      grid(top, y, write),
      s('text', {class: 'tick', x: LEFT, y: HEIGHT - 6}, span),
      s('text', {class: 'tick', x: WIDTH - RIGHT, y: HEIGHT - 6, 'text-anchor': 'end'}, 'now'),
      series.map(({values}, index) => s('path', {class: `curve curve-${index}`, d: path(values, x, y)})),
      series.map(({values}, index) => dots(values, x, y, index)),
    ),
    legend(series, write),
    h('figcaption', {class: 'muted'}, label),
  );
}

/** Return the next round figure above a value. */
function ceiling(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 2.5, 5, 10].map((step) => step * power).find((step) => step >= value);
}

function grid(top, y, write) {
  return [0, 0.5, 1].map((part) =>
    s(
      'g',
      {class: 'grid'},
      s('line', {x1: LEFT, x2: WIDTH - RIGHT, y1: y(top * part), y2: y(top * part)}),
      s('text', {x: LEFT - 6, y: y(top * part) + 4, 'text-anchor': 'end'}, write(top * part)),
    ),
  );
}

const isKnown = (value) => value !== null && value !== undefined;

/** Draw a line through the values that exist. */
function path(values, x, y) {
  const point = (place) => `${x(place).toFixed(1)} ${y(values[place]).toFixed(1)}`;
  return values
    .map((value, place) => (isKnown(value) ? `${isKnown(values[place - 1]) ? 'L' : 'M'}${point(place)}` : ''))
    .join('');
}

/** Draw a dot for each value without a neighbor, which a line would not show. */
function dots(values, x, y, index) {
  const single = (value, place) => isKnown(value) && !isKnown(values[place - 1]) && !isKnown(values[place + 1]);
  return values.map(
    (value, place) => single(value, place) && s('circle', {class: `dot dot-${index}`, cx: x(place), cy: y(value), r: 4}),
  );
}

function legend(series, write) {
  return h(
    'ul',
    {class: 'legend', 'aria-hidden': 'true'},
    series.map(({name, values}, index) =>
      h(
        'li',
        {},
        s('svg', {viewBox: '0 0 28 8'}, s('path', {class: `curve curve-${index}`, d: 'M1 4h26'})),
        name,
        h('strong', {}, latest(values, write)),
      ),
    ),
  );
}

function latest(values, write) {
  return values.at(-1) === null ? '–' : write(values.at(-1));
}

function spoken(series, write) {
  return series.map(({name, values}) => `${name} ${latest(values, write)}`).join(', ');
}
