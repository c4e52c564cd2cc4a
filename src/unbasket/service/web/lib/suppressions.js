// "Don't recommend this again": suppressing an item for a shopper, and allowing it again.

import * as api from './api.js';
import {announce, button, h, show} from './dom.js';
import {fault} from './notices.js';
import {nameOf, product} from './products.js';

/** Return a button that suppresses an item; afterwards it allows the item again. */
export function offer(user, entry) {
  const place = h('p', {class: 'suppressing', role: 'status'});
  const name = nameOf(entry);
  const act = async (call, then) => {
    try {
      await call(user, entry.item);
      then();
    } catch (error) {
      show(
        place,
        fault(error, () => act(call, then)),
      );
    }
  };
  const ask = () =>
    show(
      place,
      `Similar shoppers may still bring ${name} back. `,
      button('Don’t recommend this again', () => act(api.suppress, settle)),
    );
  const settle = () => {
    show(
      place,
      `${name} will not be recommended again. `,
      button('Undo', () => act(api.allow, ask), {class: 'plain'}),
    );
    announce(`${name} will not be recommended again.`);
  };
  ask();
  return place;
}

/** Return a panel of a shopper's suppressions, or nothing if there are none. `done` is called after a change. */
export function suppressed(user, entries, done) {
  if (!entries.length) return null;
  const place = h('div');
  const again = async (entry) => {
    try {
      await api.allow(user, entry.item);
      done();
    } catch (error) {
      show(
        place,
        fault(error, () => again(entry)),
      );
    }
  };
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
