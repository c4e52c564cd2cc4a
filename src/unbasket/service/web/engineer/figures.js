// Live figures, polled every two seconds while the tab is visible. The service counts in buckets of two seconds: charts
// are there at once, and fall when the load does.

import * as api from '../lib/api.js';
import {lines} from './chart.js';
import {h, show} from '../lib/dom.js';
import {bytes, milliseconds, number} from '../lib/format.js';
import {fault} from '../lib/notices.js';
import {table} from '../lib/widgets.js';

const PAUSE = 2000;

/** Return the dashboard. */
export async function live(_, signal) {
  const problem = h('div', {role: 'status'});
  const board = h('div', {class: 'dashboard'});
  show(board, figures(await api.stats()));
  follow(board, problem, signal);
  return [problem, board];
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
