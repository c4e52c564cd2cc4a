// The shopper's view: my recommendations, my baskets, and removing any of it.

import * as api from '../lib/api.js';
import {Record, history, summary} from '../lib/baskets.js';
import {announce, button, h, show as fill} from '../lib/dom.js';
import {finder} from '../lib/people.js';
import {parseId, formatId} from '../lib/ids.js';
import {fault, waiting} from '../lib/notices.js';
import {categoriesFor, recommendations} from './recommendations.js';
import {shopper as tokenOwner} from '../lib/session.js';
import {suppressed} from '../lib/suppressions.js';

const PHONE = '(max-width: 600px)'; // as in style.css

export async function show(place, [text]) {
  const owner = tokenOwner();
  if (owner === undefined && !text) return void fill(place, await welcome());
  await open(place, owner ?? parseId(text), owner === undefined);
}

async function welcome() {
  return [
    h('h1', {}, 'Your baskets, your recommendations, your decision'),
    h(
      'p',
      {class: 'lead'},
      'See the purchases that your recommendations come from, and why you see each of them. Remove a product, a ' +
        'basket, a category or everything. You see what will change first; then it is erased from Unbasket’s ' +
        'database for good, with a signed receipt.',
    ),
    await finder('Find a shopper', '#/shopper/'),
  ];
}

async function open(place, user, mayChange) {
  fill(place, waiting());
  const held = await api.held(user);
  const title = h('h1', {tabindex: '-1'}, `Shopper ${formatId(held?.user ?? user)}`);
  const top = h('header', {class: 'title'}, title, mayChange && h('a', {href: '#/shopper'}, 'Another shopper'));
  if (!held) return fill(place, top, nothing(), recommendations(user, await categoriesFor()));
  const record = new Record(held, 'What your recommendations come from', () => again(place, held.user, mayChange));
  const kinds = summary(record);
  const next = recommendations(held.user, await categoriesFor(record), record);
  const baskets = history(record, 'My baskets');
  const wishes = suppressed(held.user, held.suppressed, () => again(place, held.user, mayChange));
  if (!matchMedia(PHONE).matches) return fill(place, top, kinds, h('div', {class: 'columns'}, next, baskets), wishes);
  const jump = button('My purchases, and removing them', () => kinds.scrollIntoView(), {class: 'plain jump'});
  return fill(place, top, jump, next, kinds, baskets, wishes);
}

async function again(place, user, mayChange) {
  try {
    await open(place, user, mayChange);
  } catch (error) {
    return void fill(
      place,
      fault(error, () => again(place, user, mayChange)),
    );
  }
  place.querySelector('h1').focus();
  announce('Your baskets and recommendations are up to date.');
}

function nothing() {
  return h(
    'p',
    {class: 'notice'},
    'Unbasket’s database holds nothing about this shopper; invoices and other systems are separate.',
  );
}
