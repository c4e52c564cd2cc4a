// "Don't recommend this again": suppressing an item for a shopper, and allowing it again.

import * as api from './api.js';
import {announce, button, h, show} from './dom.js';
import {fault} from './notices.js';
import {nameOf, product} from './products.js';

export const STORES = 'This stores that wish, until you undo it.';

/** Return a button that suppresses an item. `place` then says so, until an Undo there calls `ask`. */
export function suppressButton(user, entry, place, ask, label = 'Don’t recommend this again', attributes = {}) {
  const settle = () => {
    const text = `${nameOf(entry)} will not be recommended again. This wish is stored until you undo it.`;
    show(
      place,
      h('span', {class: 'names'}, text),
      button('Undo', () => attempt(place, () => api.allow(user, entry.item), ask), {class: 'plain'}),
    );
    announce(text);
  };
  return button(label, () => attempt(place, () => api.suppress(user, entry.item), settle), attributes);
}

async function attempt(place, call, then) {
  try {
    await call();
    then();
  } catch (error) {
    show(
      place,
      fault(error, () => attempt(place, call, then)),
    );
  }
}

/** Offer to suppress an item that was removed. */
export function offer(user, entry) {
  const place = h('div', {class: 'suppressing', role: 'status'});
  const ask = () =>
    show(
      place,
      h('span', {}, `Similar shoppers may still bring ${nameOf(entry)} back.`),
      suppressButton(user, entry, place, ask),
      h('small', {}, STORES),
    );
  ask();
  return place;
}

/** Return a panel of a shopper's suppressions, or nothing if there are none. `done` is called after a change. */
export function suppressed(user, entries, done) {
  if (!entries.length) return null;
  const place = h('div');
  const again = (entry) => attempt(place, () => api.allow(user, entry.item), done);
  const label = (entry) => ({class: 'plain', 'aria-label': `Recommend ${nameOf(entry)} again`});
  return h(
    'section',
    {class: 'panel suppressed', 'aria-labelledby': 'suppressed'},
    h('header', {}, h('h2', {id: 'suppressed'}, 'Never recommended to you')),
    h(
      'ul',
      {class: 'ranks'},
      entries.map((entry) =>
        h(
          'li',
          {},
          product(entry),
          button('Recommend again', () => again(entry), label(entry)),
        ),
      ),
    ),
    place,
  );
}
