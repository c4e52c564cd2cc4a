// A batch of erasure requests from a CSV file: read here, looked up, shown, and only then sent, all or nothing.

import * as api from './api.js';
import {records} from './csv.js';
import {announce, button, field, h, show} from './dom.js';
import {milliseconds, number, plural, removed} from './format.js';
import {key, read, spell} from './ids.js';
import {fault, waiting} from './notices.js';
import {nameOf} from './products.js';
import {saveButton} from './receipts.js';
import {table} from './tables.js';

const EXAMPLE = 'user,basket,item\n17,,\n18,4711,\n18,4712,25\n19,,25\n';
const AT_ONCE = 4;

/** The form. */
export async function batch() {
  const text = h('textarea', {rows: 6, spellcheck: 'false', placeholder: EXAMPLE});
  const file = h('input', {type: 'file', accept: '.csv,text/csv'});
  const result = h('div', {class: 'result', 'aria-live': 'polite'});
  file.addEventListener('change', async () => {
    if (file.files[0]) text.value = await file.files[0].text();
    file.value = '';
  });
  return [
    h(
      'section',
      {class: 'panel'},
      h('h2', {}, 'Requests from a CSV file'),
      h(
        'p',
        {},
        'Columns ',
        h('code', {}, 'user'),
        ', and if you like ',
        h('code', {}, 'basket'),
        ' and ',
        h('code', {}, 'item'),
        '. An empty basket and item means the whole person; an item alone means that item in every basket.',
      ),
      field('Choose a file', file),
      field('or paste its lines', text),
      h(
        'div',
        {class: 'actions start'},
        button('Check', () => check(text.value, result), {class: 'main'}),
      ),
    ),
    result,
  ];
}

async function check(text, place) {
  show(place, waiting('Looking up'));
  try {
    const lines = records(text, ['user', 'basket', 'item'], 'user');
    if (!lines.length) throw new Error('There is no request below the headings.');
    const missing = lines.findIndex((line) => !line.user);
    if (missing >= 0) throw new Error(`Line ${missing + 2} names no user.`);
    show(place, plan(await lookUp(lines), place));
  } catch (error) {
    show(place, error.code ? fault(error) : h('div', {class: 'notice bad', role: 'alert'}, error.message));
  }
}

/** Each line as an event, with what it concerns today. */
async function lookUp(lines) {
  const wanted = [...new Set(lines.map((line) => line.user))];
  const files = new Map();
  const worker = async () => {
    while (wanted.length) {
      const text = wanted.pop();
      files.set(text, await fileOf(text));
    }
  };
  await Promise.all(Array.from({length: AT_ONCE}, worker));
  return lines.map((line) => request(line, files.get(line.user)));
}

async function fileOf(text) {
  const user = read(text, []);
  return (await api.held(user)) ?? {user, baskets: []};
}

function request(line, file) {
  const event = {event: 'forget', user: file.user};
  if (line.basket)
    event.basket = read(
      line.basket,
      file.baskets.map((basket) => basket.basket),
    );
  if (line.item)
    event.item = read(
      line.item,
      file.baskets.flatMap((basket) => basket.items.map((entry) => entry.item)),
    );
  const baskets = file.baskets.filter(
    (basket) => event.basket === undefined || key(basket.basket) === key(event.basket),
  );
  const found = baskets
    .flatMap((basket) => basket.items)
    .filter((entry) => event.item === undefined || key(entry.item) === key(event.item));
  return {event, purchases: found.length, name: event.item === undefined ? null : found[0] && nameOf(found[0])};
}

function plan(requests, place) {
  const lost = requests.filter((request) => !request.purchases).length;
  const send = button(`Forget ${plural(requests.length, 'request')} for good`, () => carryOut(requests, place), {
    class: 'danger',
  });
  return h(
    'section',
    {class: 'panel'},
    h('h2', {tabindex: '-1'}, 'To be forgotten'),
    lost > 0 &&
      h(
        'p',
        {class: 'notice'},
        `${plural(lost, 'request')} of ${requests.length} will find nothing. They get a receipt all the same.`,
      ),
    requestTable(requests, ['#Purchases'], (request) => [number(request.purchases)]),
    h('p', {class: 'muted'}, 'Nothing is forgotten yet. All of it happens, or nothing.'),
    h(
      'div',
      {class: 'actions'},
      button('Discard', () => show(place)),
      send,
    ),
  );
}

function requestTable(requests, headings, cells) {
  const rows = requests.map((request, place) => {
    const {user, basket, item} = request.event;
    return [
      number(place + 1),
      spell(user),
      basket === undefined ? 'all' : spell(basket),
      item === undefined ? 'all' : (request.name ?? spell(item)),
      ...cells(request, place),
    ];
  });
  return table(['#', 'Person', 'Basket', 'Item', ...headings], rows, 'Requests');
}

async function carryOut(requests, place) {
  try {
    const {results, seconds} = await api.events(requests.map((request) => request.event));
    const receipts = results.map((result) => result.receipt);
    const clean = receipts.every((receipt) => receipt.verified);
    show(
      place,
      h(
        'section',
        {class: 'panel'},
        h('h2', {tabindex: '-1'}, 'Forgotten'),
        h(
          'ul',
          {class: 'facts'},
          h('li', {}, plural(results.length, 'request')),
          h('li', {}, 'erased from disk in ', h('strong', {class: 'erasure'}, milliseconds(seconds))),
          h(
            'li',
            {class: clean ? 'good' : 'bad'},
            clean ? 'All verified: identical to a model that never saw it' : 'Not all verified',
          ),
        ),
        requestTable(requests, ['#Receipt', 'Removed', 'Verified', '#Erased after'], (_, number) => {
          const receipt = receipts[number];
          return [String(receipt.number), removed(receipt), receipt.verified ? 'yes' : 'no', milliseconds(seconds)];
        }),
        h('div', {class: 'actions'}, saveButton(receipts)),
      ),
    );
    place.querySelector('h2').focus();
    announce(`${plural(results.length, 'request')} forgotten in ${milliseconds(seconds)}.`);
  } catch (error) {
    show(place, fault(error));
  }
}
