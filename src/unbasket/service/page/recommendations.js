// A shopper's recommendations, each with its reasons.

import * as api from './api.js';
import {strength} from './diff.js';
import {button, fresh, h, show} from './dom.js';
import {empty, into} from './notices.js';
import {nameOf, product} from './products.js';
import {why} from './why.js';

/** A panel with the recommendations for a user. `remove(entry)` offers to forget an item everywhere; it is left out for
    somebody about whom nothing is held. */
export function recommendations(user, remove) {
  const list = h('div', {'aria-live': 'polite'});
  const fresh = h('input', {type: 'checkbox'});
  const load = () =>
    into(list, async () => ranking(user, await api.recommendations(user, {only_new: fresh.checked}), remove));
  fresh.addEventListener('change', load);
  load();
  return h(
    'section',
    {class: 'panel recommendations', 'aria-labelledby': 'next'},
    h(
      'header',
      {},
      h('h2', {id: 'next'}, remove ? 'For your next basket' : 'What most shoppers buy'),
      remove && h('label', {class: 'check'}, fresh, h('span', {}, 'only what I have not bought before')),
    ),
    list,
  );
}

function ranking(user, {popular, recommendations: entries}, remove) {
  if (!entries.length) return empty('No recommendations', 'There are no baskets to learn from.');
  return h(
    'ol',
    {class: 'ranks'},
    entries.map((entry) => (popular ? h('li', {}, product(entry)) : rank(user, entry, entries[0].score, remove))),
  );
}

function rank(user, entry, best, remove) {
  const reasons = h('div', {class: 'reasons', id: fresh('why'), hidden: true});
  const toggle = button('Why?', () => explain(user, entry, toggle, reasons, remove), {
    class: 'plain',
    'aria-expanded': 'false',
    'aria-controls': reasons.id,
    'aria-label': `Why am I seeing ${nameOf(entry)}?`,
  });
  return h('li', {}, product(entry), strength(entry, best), toggle, reasons);
}

async function explain(user, entry, toggle, reasons, remove) {
  const opening = reasons.hidden;
  reasons.hidden = !opening;
  toggle.setAttribute('aria-expanded', String(opening));
  if (!opening) return show(reasons);
  reasons.setAttribute('role', 'status');
  return into(
    reasons,
    async () => [
      await why(user, entry.item),
      button('Remove it from my history …', () => remove(entry), {class: 'plain danger'}),
    ],
    'Finding out why',
  );
}
