// "Why am I seeing this?": the shares of one's own baskets and of similar shoppers, as bars and in words.

import * as api from '../lib/api.js';
import {bar} from '../lib/widgets.js';
import {h} from '../lib/dom.js';
import {basketName, number, percent, plural} from '../lib/format.js';

const SHOWN = 4;

/** Return the explanation of an item for a user, as DOM. */
export async function why(user, item) {
  const found = await api.explanation(user, item);
  const own = found.baskets.reduce((sum, basket) => sum + basket.share, 0);
  const whole = own + found.neighbors_share;
  if (!(whole > 0)) return h('p', {}, 'Your baskets and those of similar shoppers no longer give a reason for it.');
  return h('div', {}, split(own / whole), h('p', {}, sentence(found, own / whole)), baskets(found.baskets, whole));
}

function split(own) {
  return h(
    'div',
    {class: 'split'},
    bar(own, `${percent(own)} from your own baskets, ${percent(1 - own)} from similar shoppers`),
    h(
      'div',
      {class: 'ends', 'aria-hidden': 'true'},
      h('span', {}, `your baskets ${percent(own)}`),
      h('span', {}, `similar shoppers ${percent(1 - own)}`),
    ),
  );
}

function sentence({baskets: mine, neighbors, neighbors_with_item: having}, own) {
  const first = mine.length
    ? `You bought it in ${plural(mine.length, 'basket')}: that is ${percent(own)} of the reason. `
    : 'You have not bought it. ';
  if (!having) return `${first}None of the ${number(neighbors)} most similar shoppers buys it.`;
  const adds = mine.length ? `; that adds ${percent(1 - own)}` : '';
  const verb = having === 1 ? 'buys' : 'buy';
  return `${first}${number(having)} of the ${number(neighbors)} most similar shoppers ${verb} it${adds}.`;
}

function baskets(shares, whole) {
  if (!shares.length) return null;
  const sorted = [...shares].sort((one, other) => other.share - one.share);
  const rest = sorted.slice(SHOWN).reduce((sum, basket) => sum + basket.share, 0);
  const rows = sorted.slice(0, SHOWN).map((basket) => row(basketName(basket), basket.share / whole));
  if (sorted.length > SHOWN) rows.push(row(`${sorted.length - SHOWN} more`, rest / whole));
  return h('ul', {class: 'shares'}, rows);
}

function row(label, share) {
  return h('li', {}, h('span', {}, label), bar(share), h('span', {class: 'score'}, percent(share)));
}
