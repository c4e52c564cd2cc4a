// "Why am I seeing this?": the shares of one's own baskets and of similar shoppers, as bars and in words.

import * as api from './api.js';
import {h, s} from './dom.js';
import {date, number, percent, plural} from './format.js';

const SHOWN = 4;

/** The explanation of an item for a user, as DOM. */
export async function why(user, item) {
  const found = await api.explanation(user, item);
  const own = found.baskets.reduce((sum, basket) => sum + basket.share, 0);
  const whole = own + found.neighbors_share;
  if (!(whole > 0))
    return h('p', {}, 'Nothing in your baskets, or in those of similar shoppers, speaks for it any more.');
  return h('div', {}, split(own / whole), h('p', {}, sentence(found, own / whole)), baskets(found.baskets, whole));
}

function split(own) {
  return h(
    'div',
    {
      class: 'split',
      role: 'img',
      'aria-label': `${percent(own)} your own baskets, ${percent(1 - own)} similar shoppers`,
    },
    bar(own),
    h(
      'div',
      {class: 'ends'},
      h('span', {}, `your baskets ${percent(own)}`),
      h('span', {}, `similar shoppers ${percent(1 - own)}`),
    ),
  );
}

/** A bar that is filled up to a share; the rest is hatched, so that both ends can be told apart without colour. */
export function bar(share) {
  const width = Math.max(0, Math.min(1, share)) * 100;
  return s(
    'svg',
    {class: 'meter', viewBox: '0 0 100 6', preserveAspectRatio: 'none', 'aria-hidden': 'true'},
    s('rect', {class: 'rest', width: 100, height: 6}),
    s('rect', {class: 'part', width, height: 6}),
  );
}

function sentence(found, own) {
  const {baskets: mine, neighbors, neighbors_with_item: having} = found;
  const first = mine.length
    ? `You bought it in ${plural(mine.length, 'basket')}, which makes ${percent(own)} of its score. `
    : 'You have not bought it. ';
  const rest = mine.length ? `: the other ${percent(1 - own)}` : '';
  const second = having
    ? `Of the ${number(neighbors)} shoppers most like you, ${number(having)} buy it${rest}.`
    : `None of the ${number(neighbors)} shoppers most like you buys it.`;
  return first + second;
}

function baskets(shares, whole) {
  if (!shares.length) return null;
  const sorted = [...shares].sort((one, other) => other.share - one.share);
  const rest = sorted.slice(SHOWN).reduce((sum, basket) => sum + basket.share, 0);
  const rows = sorted.slice(0, SHOWN).map((basket) => row(date(basket.time), basket.share / whole));
  if (sorted.length > SHOWN) rows.push(row(`${sorted.length - SHOWN} more`, rest / whole));
  return h('ul', {class: 'shares'}, rows);
}

function row(label, share) {
  return h('li', {}, h('span', {}, label), bar(share), h('span', {class: 'score'}, percent(share)));
}
