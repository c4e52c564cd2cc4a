// The engineer's view: live figures, a basket to try, similar shoppers.

import * as api from '../lib/api.js';
import {field, h, show as fill} from '../lib/dom.js';
import {parseId, formatId} from '../lib/ids.js';
import {into} from '../lib/notices.js';
import {personInput, suggest} from '../lib/people.js';
import {table, tabs} from '../lib/widgets.js';
import {live} from './figures.js';
import {trial} from './trial.js';

const NEIGHBORS = 20;
const PARTS = [
  ['live', 'Live figures'],
  ['try', 'Try a basket'],
  ['similar', 'Similar shoppers'],
];
const VIEWS = {live, try: trial, similar};

/** Show a tab; returns a function that stops it. */
export async function show(place, [part = 'live', text]) {
  const current = part in VIEWS ? part : 'live';
  const content = h('div', {class: 'part'});
  const ending = new AbortController();
  fill(place, h('h1', {}, 'Engineer'), tabs('engineer', PARTS, current), content);
  await into(content, () => VIEWS[current](text, ending.signal));
  return () => ending.abort();
}

/** Return the form, and the result if the address names a shopper. */
async function similar(text) {
  const input = personInput(text);
  const result = h('div', {class: 'result', role: 'status', 'aria-live': 'polite'});
  const go = (event) => {
    event.preventDefault();
    location.hash = `#/engineer/similar/${encodeURIComponent(input.value.trim())}`;
  };
  if (text) into(result, () => nearest(parseId(text)), 'Searching');
  return [
    h(
      'form',
      {class: 'panel', onsubmit: go},
      h('h2', {}, 'Similar shoppers'),
      h('p', {}, 'The nearest other shoppers by Euclidean distance: exact, and as of now.'),
      h('div', {class: 'row'}, field('Shopper', input), suggest(input), h('button', {class: 'main'}, 'Find')),
    ),
    result,
  ];
}

async function nearest(user) {
  const {similar: users} = await api.similar(user, NEIGHBORS);
  if (!users.length) return h('p', {class: 'muted'}, 'There are no other shoppers.');
  const rows = users.map((entry, place) => [
    String(place + 1),
    h('a', {href: `#/engineer/similar/${encodeURIComponent(formatId(entry.user))}`}, formatId(entry.user)),
    entry.distance.toFixed(4),
  ]);
  return h(
    'section',
    {class: 'panel'},
    h('h2', {}, `Most similar to shopper ${formatId(user)}`),
    table(['#', 'Shopper', '#Distance'], rows, 'Similar shoppers'),
  );
}
