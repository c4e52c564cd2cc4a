// Live figures: asked for every two seconds while somebody looks.

import * as api from './api.js';
import {lines} from './chart.js';
import {h, show} from './dom.js';
import {bytes, milliseconds, number} from './format.js';
import {fault} from './notices.js';
import {table} from './tables.js';

const PAUSE = 2000;
const POINTS = 60;
const LEAST = 15;
const RECOMMEND = 'GET /v1/users/{user}/recommendations';

/** The dashboard. */
export async function live(_, signal) {
  const past = [];
  const place = h('div', {class: 'dashboard'});
  past.push(await api.stats());
  show(place, board(past));
  follow(place, past, signal);
  return place;
}

async function follow(place, past, signal) {
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
    if (signal.aborted) return;
    if (document.hidden) continue;
    try {
      past.push(await api.stats());
    } catch (error) {
      show(place, fault(error));
      continue;
    }
    if (past.length > POINTS) past.shift();
    if (signal.aborted) return;
    show(place, board(past));
  }
}

function board(past) {
  const now = past.at(-1);
  return [
    h(
      'ul',
      {class: 'figures'},
      tile('users', number(now.users)),
      tile('baskets', number(now.baskets)),
      tile('items', number(now.items)),
      tile('memory', bytes(now.memory)),
      tile('events per second', rate(now.events_per_second)),
      tile('recommendations per second', rate(now.recommendations_per_second)),
    ),
    h('div', {class: 'charts'}, latency(past), rates(past)),
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

/** How a chart of what was asked so far is laid out: it widens until it shows two minutes. */
function layout(past) {
  const length = Math.max(LEAST, past.length);
  return {length, span: `${Math.round(((length - 1) * PAUSE) / 1000)} s ago`, write: plain};
}

function latency(past) {
  const of = (name) => ({name, values: past.map((figures) => inMilliseconds(figures.calls[RECOMMEND]?.[name]))});
  return h(
    'section',
    {class: 'panel'},
    h('h2', {}, 'Time to recommend'),
    lines([of('p99'), of('p90'), of('p50')], {
      ...layout(past),
      label: 'Percentiles of the last minute',
      unit: 'milliseconds',
    }),
  );
}

function rates(past) {
  return h(
    'section',
    {class: 'panel'},
    h('h2', {}, 'Throughput'),
    lines(
      [
        {name: 'reads', values: past.map((figures) => figures.recommendations_per_second)},
        {name: 'events', values: past.map((figures) => figures.events_per_second)},
      ],
      {...layout(past), label: 'Recommendations and events per second'},
    ),
  );
}

const inMilliseconds = (seconds) => (seconds === undefined || seconds === null ? null : seconds * 1000);
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
    h('h2', {}, 'Calls of the last minute'),
    rows.length
      ? table(['Call', '#Count', '#Per second', '#p50', '#p90', '#p99'], rows, 'Calls of the last minute')
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
  };
  const entries = Object.entries(given).filter(([name]) => name in names);
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
