// Finding a person, and the file of one: all that is held, to see, export and forget.

import * as api from './api.js';
import {Record, history, summary} from './baskets.js';
import {announce, button, download, field, h, show} from './dom.js';
import {SAVE, drawing} from './icons.js';
import {read, spell, stringify} from './ids.js';
import {into} from './notices.js';
import {emptyShop} from './people.js';

const PAGE = 24;

/** A search by the beginning of an id, a page at a time. */
export async function people() {
  const first = await api.users({limit: PAGE});
  if (!first.users.length) return emptyShop();
  const input = h('input', {type: 'search', autocomplete: 'off', spellcheck: 'false'});
  const list = h('div', {role: 'status', 'aria-live': 'polite'});
  input.addEventListener(
    'input',
    later(() => find(list, input.value.trim())),
  );
  paged(list, '', first);
  return h('section', {class: 'panel'}, field('Find a person by the beginning of the id', input), list);
}

function later(action, pause = 150) {
  let timer;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(action, pause);
  };
}

async function find(list, prefix) {
  await into(list, async () => paged(h('div'), prefix, await api.users({prefix, limit: PAGE})), 'Searching');
}

function paged(place, prefix, answer) {
  const links = answer.users.map((user) =>
    h('li', {}, h('a', {href: `#/officer/people/${encodeURIComponent(spell(user))}`}, spell(user))),
  );
  if (!links.length) return show(place, h('p', {class: 'muted'}, 'Nobody has such an id.'));
  const list = h('ul', {class: 'people'}, links);
  return show(place, list, answer.next !== null && answer.next !== undefined && nextPage(list, prefix, answer.next));
}

function nextPage(list, prefix, after) {
  const more = button(
    'Show more',
    async () => {
      const holder = h('div');
      paged(holder, prefix, await api.users({prefix, after, limit: PAGE}));
      const added = [...holder.querySelectorAll('li')];
      list.append(...added);
      more.replaceWith(...[holder.querySelector('button')].filter(Boolean));
      added[0]?.querySelector('a').focus();
    },
    {class: 'more'},
  );
  return more;
}

/** The file of one person. */
export async function person(text) {
  const place = h('div');
  await open(place, read(text, []));
  return place;
}

async function open(place, user) {
  const held = await api.held(user);
  if (!held) return show(place, heading(user), nothing());
  const record = new Record(held, "the person's", () => again(place, held.user));
  const receipt = h('div', {role: 'status', 'aria-live': 'polite'});
  show(
    place,
    heading(held.user),
    h(
      'div',
      {class: 'actions start'},
      button([drawing(SAVE), 'Export as JSON'], () => save(held)),
      button('Verify against a retrain', () => into(receipt, () => verification(held.user), 'Retraining')),
      button('Token for this shopper', () => into(receipt, () => token(held.user))),
    ),
    receipt,
    summary(record),
    history(record, 'Baskets'),
  );
}

function heading(user) {
  return h(
    'header',
    {class: 'title'},
    h('h2', {tabindex: '-1'}, `All that is held of ${spell(user)}`),
    h('a', {href: '#/officer/people'}, 'Another person'),
  );
}

function nothing() {
  return h('p', {class: 'notice good'}, 'Nothing: no basket, and not even the id.');
}

async function again(place, user) {
  await into(place, async () => {
    const holder = h('div');
    await open(holder, user);
    return [...holder.childNodes];
  });
  place.querySelector('h2')?.focus();
  announce('The file is up to date.');
}

function save(held) {
  download(`held-of-${String(held.user).replace(/[^\w-]+/g, '_')}.json`, stringify(held, 2));
}

async function verification(user) {
  const {ok, mismatches} = await api.verify(user);
  return h(
    'p',
    {class: ok ? 'notice good' : 'notice bad'},
    ok
      ? 'Verified: bit for bit what a model trained from these baskets alone would hold.'
      : `The model differs from a retrained one: ${mismatches.join('; ')}`,
  );
}

async function token(user) {
  const answer = await api.shopperToken(user, 600);
  return h(
    'div',
    {class: 'notice'},
    h('p', {}, 'For ten minutes, who has this token can see and forget the data of this shopper, and of nobody else:'),
    h('code', {class: 'token'}, answer.token),
  );
}
