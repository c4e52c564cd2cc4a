// Finding a customer, and their record: all that the database holds about them, to see, export and forget.

import * as api from '../lib/api.js';
import {Record, history, summary} from '../lib/baskets.js';
import {announce, button, download, h, show} from '../lib/dom.js';
import {SAVE, drawing} from '../lib/icons.js';
import {parseId, formatId, stringify} from '../lib/ids.js';
import {into} from '../lib/notices.js';
import {finder} from '../lib/people.js';

const MINUTES = 10;

/** Return the search. */
export async function customers() {
  return finder('Find a customer', '#/officer/customers/');
}

/** Return the record of one customer. */
export async function customer(text) {
  const place = h('div');
  await open(place, parseId(text));
  return place;
}

async function open(place, user) {
  const held = await api.held(user);
  if (!held) return show(place, heading(user), nothing(user));
  const record = new Record(held, 'By category', () => again(place, held.user));
  const answer = h('div', {role: 'status', 'aria-live': 'polite'});
  return show(
    place,
    heading(held.user),
    h(
      'div',
      {class: 'actions start'},
      button([drawing(SAVE), 'Export as JSON'], () => save('customer', held.user, held)),
      button([drawing(SAVE), 'Download proof'], () => save('proof-access', held.user, held.proof)),
      button('Verify against a retrained model', () => into(answer, () => verification(held.user), 'Retraining')),
      button('Make a key for this customer', () => into(answer, () => temporaryKey(held.user))),
    ),
    answer,
    summary(record),
    history(record, 'Baskets'),
  );
}

function heading(user) {
  return h(
    'header',
    {class: 'title'},
    h('h2', {tabindex: '-1'}, `What Unbasket’s database holds about customer ${formatId(user)}`),
    h('a', {href: '#/officer/customers'}, 'Another customer'),
  );
}

function nothing(user) {
  const answer = h('div', {role: 'status', 'aria-live': 'polite'});
  const prove = async () => void save('proof-absence', user, await api.absence(user));
  return [
    h(
      'p',
      {class: 'notice good'},
      'Unbasket’s database holds nothing about this customer; invoices and other systems are separate.',
    ),
    h(
      'div',
      {class: 'actions start'},
      button([drawing(SAVE), 'Download proof of absence'], () => into(answer, prove, 'Proving')),
    ),
    answer,
  ];
}

async function again(place, user) {
  await into(place, async () => {
    const holder = h('div');
    await open(holder, user);
    return [...holder.childNodes];
  });
  place.querySelector('h2')?.focus();
  announce('This page is up to date.');
}

function save(kind, user, value) {
  download(`${kind}-${String(user).replace(/[^\w-]+/g, '_')}.json`, stringify(value, 2));
}

async function verification(user) {
  const {ok, mismatches} = await api.verify(user);
  return h(
    'p',
    {class: ok ? 'notice good' : 'notice bad'},
    ok
      ? 'Verified: bit for bit what a model retrained from these baskets holds of this customer.'
      : `The model differs from a retrained one: ${mismatches.join('; ')}`,
  );
}

async function temporaryKey(user) {
  const answer = await api.shopperToken(user, 60 * MINUTES);
  return h(
    'div',
    {class: 'notice'},
    h(
      'p',
      {},
      `For ${MINUTES} minutes, customer ${formatId(user)} can sign in with this key. ` +
        "It shows and forgets their own data, and no other customer's.",
    ),
    h('code', {class: 'token'}, answer.token),
  );
}
