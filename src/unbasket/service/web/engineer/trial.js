// A basket made by hand: a preview of its effect, and the effect once it is learned.

import * as api from '../lib/api.js';
import {figure, identical, inWords, sideBySide} from '../lib/diff.js';
import {announce, button, field, fresh, h, show} from '../lib/dom.js';
import {parseId, formatId} from '../lib/ids.js';
import {fault} from '../lib/notices.js';
import {personInput, suggest} from '../lib/people.js';
import {Picked, nameOf} from '../lib/products.js';

const SUGGESTED = 20;

/** Return the form. */
export async function trial(text) {
  const basket = new Picked('Items of the basket');
  const user = personInput(text);
  const offers = h('datalist', {id: fresh('items')});
  const item = h('input', {type: 'text', autocomplete: 'off', list: offers.id, size: 28});
  const result = h('div', {class: 'result', role: 'status', 'aria-live': 'polite'});
  const add = (event) => {
    event.preventDefault();
    if (item.value.trim()) pick(basket, item.value.trim());
    item.value = '';
    item.focus();
  };
  item.addEventListener('input', () => offer(offers, item.value.trim()));
  await offer(offers, '');
  const act = (action) => () => action(parseId(user.value.trim()), basket, result);
  return [
    h(
      'section',
      {class: 'panel'},
      h('h2', {}, 'Add a basket by hand'),
      h(
        'form',
        {onsubmit: add},
        h(
          'div',
          {class: 'row'},
          field('Shopper', user, 'A new id makes a new shopper.'),
          suggest(user),
          field('Item', item, 'Pick a name, or type an id.'),
          offers,
          h('button', {}, 'Add to the basket'),
        ),
      ),
      basket.list,
      h(
        'div',
        {class: 'actions start'},
        button('Preview', act(preview)),
        button('Learn it', act(learn), {class: 'main'}),
      ),
    ),
    result,
  ];
}

/** Offer items whose name or id fits. */
async function offer(list, query) {
  const {items} = await api.items({query, limit: SUGGESTED});
  show(
    list,
    items.map((entry) => h('option', {value: nameOf(entry)}, formatId(entry.item))),
  );
}

/** Return the item that a typed text names: by its name, by its id, or else an item that is new to the shop. */
async function meant(text) {
  const {items} = await api.items({query: text, limit: SUGGESTED});
  const known =
    items.find((entry) => nameOf(entry) === text || entry.name === text) ??
    items.find((entry) => formatId(entry.item) === text);
  return known ?? {item: parseId(text), category: 'new to the shop'};
}

async function pick(basket, text) {
  const entry = await meant(text);
  basket.put(entry);
  announce(`${nameOf(entry)} is in the basket.`);
}

async function attempt(basket, result, action) {
  if (!basket.entries.length) return show(result, h('p', {class: 'notice'}, 'Add an item to the basket first.'));
  try {
    return show(result, await action(basket.items()));
  } catch (error) {
    return show(
      result,
      fault(error, () => attempt(basket, result, action)),
    );
  }
}

function preview(user, basket, result) {
  return attempt(basket, result, async (items) => {
    const seen = await api.preview(user, {learn: {items}});
    return change('If it is learned', seen.popular_before ? [] : seen.before, seen.after);
  });
}

function learn(user, basket, result) {
  return attempt(basket, result, async (items) => {
    const expected = await api.preview(user, {learn: {items}});
    const before = await api.recommendations(user);
    const learned = await api.addBasket(user, items);
    const after = (await api.recommendations(user)).recommendations;
    basket.clear();
    const kept = identical(expected.after, after) ? ' Exactly as previewed.' : '';
    return change(
      `Learned as basket ${formatId(learned.basket)}`,
      before.popular ? [] : before.recommendations,
      after,
      kept,
    );
  });
}

function change(title, before, after, note = '') {
  return h(
    'section',
    {class: 'panel'},
    h('h2', {}, title),
    h('p', {}, inWords(before, after), note),
    sideBySide(before, after, {write: figure}),
  );
}
