// The shoppers most similar to one.

import * as api from './api.js';
import {field, h} from './dom.js';
import {read, spell} from './ids.js';
import {into} from './notices.js';
import {personInput, suggest} from './people.js';
import {table} from './tables.js';

const COUNT = 20;

/** The form, and the answer if a user is named in the address. */
export async function neighbors(text) {
  const input = personInput(text);
  const result = h('div', {class: 'result', role: 'status', 'aria-live': 'polite'});
  const go = (event) => {
    event.preventDefault();
    location.hash = `#/engineer/similar/${encodeURIComponent(input.value.trim())}`;
  };
  if (text) into(result, () => nearest(read(text, [])), 'Searching');
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
  const {similar: users} = await api.similar(user, COUNT);
  if (!users.length) return h('p', {class: 'muted'}, 'There are no other shoppers.');
  const rows = users.map((entry, place) => [
    String(place + 1),
    h('a', {href: `#/engineer/similar/${encodeURIComponent(spell(entry.user))}`}, spell(entry.user)),
    entry.distance.toFixed(4),
  ]);
  return h(
    'section',
    {class: 'panel'},
    h('h2', {}, `Most similar to shopper ${spell(user)}`),
    table(['#', 'Shopper', '#Distance'], rows, 'Similar shoppers'),
  );
}
