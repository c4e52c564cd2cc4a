// Choosing a person: by typing the id, or from a list.

import * as api from './api.js';
import {field, h} from './dom.js';
import {spell} from './ids.js';
import {empty} from './notices.js';

const SUGGESTED = 8;

/** A form that leads to `address` + the id, with a few ids to pick from if the one who asks may see them. */
export async function chooser(label, address) {
  const known = await suggestions();
  if (known?.length === 0) return emptyShop();
  const input = h('input', {type: 'text', autocomplete: 'off', required: true, spellcheck: 'false', size: 18});
  const go = (event) => {
    event.preventDefault();
    location.hash = address + encodeURIComponent(input.value.trim());
  };
  return h(
    'form',
    {class: 'chooser panel', onsubmit: go},
    h('div', {class: 'row'}, field(label, input), h('button', {class: 'main'}, 'Open')),
    known &&
      h(
        'p',
        {class: 'picks'},
        h('span', {class: 'muted'}, 'Or one of '),
        known.map((user) => [h('a', {href: address + encodeURIComponent(spell(user))}, spell(user)), ' ']),
      ),
  );
}

/** Some users; null if that is not for everybody's eyes. */
async function suggestions() {
  try {
    return (await api.users({limit: SUGGESTED})).users;
  } catch (error) {
    if (error.status === 403) return null;
    throw error;
  }
}

/** What to do in a shop without data. */
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
