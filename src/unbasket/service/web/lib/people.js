// Finding a person by the beginning of the id.

import * as api from './api.js';
import {field, fresh, h, show} from './dom.js';
import {formatId} from './ids.js';
import {empty, fault} from './notices.js';

const SHOWN = 8;
const EXAMPLES = 3;
const PAUSE = 150;

/** Return a search field whose results link to `address` + the id. Enter opens the typed id, known or not. */
export async function finder(label, address) {
  const {users: examples} = await api.users({limit: EXAMPLES});
  if (!examples.length) return emptyShop();
  const input = h('input', {type: 'search', autocomplete: 'off', spellcheck: 'false', required: true});
  const found = h('div', {class: 'found', role: 'status', 'aria-live': 'polite'});
  const one = (user) => h('li', {}, h('a', {href: address + encodeURIComponent(formatId(user))}, formatId(user)));
  const start = () =>
    show(found, h('p', {class: 'muted'}, 'For example:'), h('ul', {class: 'picks'}, examples.map(one)));
  const look = later(async () => {
    const prefix = input.value.trim();
    if (!prefix) return start();
    const answer = await attempt(() => api.users({prefix, limit: SHOWN}), found, look);
    return answer && prefix === input.value.trim() ? show(found, results(answer, prefix, one)) : null;
  });
  const go = (event) => {
    event.preventDefault();
    location.hash = address + encodeURIComponent(input.value.trim());
  };
  input.addEventListener('input', look);
  start();
  return h(
    'form',
    {class: 'finder panel', onsubmit: go},
    h(
      'div',
      {class: 'row'},
      field(label, input, 'Type an id, or the beginning of one.'),
      h('button', {class: 'main'}, 'Open'),
    ),
    found,
  );
}

function results({users, next}, prefix, one) {
  if (!users.length) return h('p', {class: 'muted'}, `No id begins with “${prefix}”.`);
  const more = next !== null && next !== undefined;
  return [
    h('ul', {class: 'picks'}, users.map(one)),
    more && h('p', {class: 'muted'}, `These are the first ${SHOWN}. Type more of the id to see others.`),
  ];
}

/** Return an input for a person's id, known or new. */
export function personInput(text) {
  return h('input', {
    type: 'text',
    required: true,
    autocomplete: 'off',
    spellcheck: 'false',
    value: text ?? '',
    size: 14,
  });
}

/** Offer known ids under an input. */
export function suggest(input) {
  const offers = h('datalist', {id: fresh('users')});
  const look = later(async () => {
    const {users} = await api.users({prefix: input.value.trim(), limit: SHOWN});
    show(
      offers,
      users.map((user) => h('option', {value: formatId(user)})),
    );
  });
  input.setAttribute('list', offers.id);
  input.addEventListener('input', look);
  return offers;
}

async function attempt(action, place, retry) {
  try {
    return await action();
  } catch (error) {
    show(place, fault(error, retry));
    return null;
  }
}

/** Debounce an action until typing pauses. */
function later(action) {
  let timer;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(action, PAUSE);
  };
}

/** Explain what to do in a shop without data. */
export function emptyShop() {
  return empty(
    'This shop has no baskets yet',
    'Import some with ',
    h('code', {}, 'unbasket import sales.csv --db shop.db'),
    ', or ',
    h('a', {href: '#/engineer/try'}, 'add one by hand'),
    '.',
  );
}
