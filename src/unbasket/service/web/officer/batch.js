// A batch of erasure requests from a CSV file: read here, looked up, shown, and only then sent, all or nothing.

import * as api from '../lib/api.js';
import {verified} from './audit.js';
import {csv, records} from './csv.js';
import {announce, button, download, field, h, show} from '../lib/dom.js';
import {milliseconds, number, plural, removed} from '../lib/format.js';
import {SAVE, drawing} from '../lib/icons.js';
import {parseId, same, formatId} from '../lib/ids.js';
import {fault, waiting} from '../lib/notices.js';
import {nameOf} from '../lib/products.js';
import {saveButton} from '../lib/receipts.js';
import {table} from '../lib/widgets.js';

const EXAMPLE = 'user,basket,item\n17,,\n18,4711,\n18,4712,25\n19,,25\n';
const AT_ONCE = 4;
const MOST = 1000; // the service takes no more in one request

/** Return the form. */
export async function batch() {
  const text = h('textarea', {rows: 6, spellcheck: 'false', placeholder: EXAMPLE});
  const file = h('input', {type: 'file', accept: '.csv,text/csv'});
  const result = h('div', {class: 'result', 'aria-live': 'polite'});
  file.addEventListener('change', async () => {
    if (file.files[0]) text.value = await file.files[0].text();
    file.value = '';
  });
  text.addEventListener('input', () => show(result));
  return [
    h(
      'section',
      {class: 'panel'},
      h('h2', {}, 'A batch of requests from a CSV file'),
      h(
        'p',
        {},
        'The columns are ',
        h('code', {}, 'user'),
        ' and, if you need them, ',
        h('code', {}, 'basket'),
        ' and ',
        h('code', {}, 'item'),
        '. A user alone means the whole customer; a user and an item mean that item in every basket.',
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

/** Read the text and show what it will do, or what is wrong with it. */
async function check(text, place) {
  const report = (done, all) => show(place, waiting(`Looking up customers: ${number(done)} of ${number(all)}`));
  try {
    const {records: lines, blank} = records(text, ['user', 'basket', 'item'], 'user');
    if (!lines.length) throw new Error('There is no request below the headings.');
    if (lines.length > MOST)
      throw new Error(
        `These are ${number(lines.length)} requests. At most ${number(MOST)} can be carried out together: split the file.`,
      );
    const unnamed = lines.find((line) => !line.user);
    if (unnamed) throw new Error(`Line ${unnamed.line} names no user.`);
    const asked = await lookUp(lines, report);
    const {requests, repeated} = once(asked);
    const notes = [...blank.map((line) => `Line ${line} is empty and was skipped.`), ...repeated];
    show(place, plan(requests, asked, notes, place));
  } catch (error) {
    const again = () => check(text, place);
    show(place, error.code ? fault(error, again) : h('div', {class: 'notice bad', role: 'alert'}, error.message));
  }
}

/** Turn each line into an event with the data it concerns today. `report` gets the customers done, and all of them. */
async function lookUp(lines, report) {
  const users = [...new Set(lines.map((line) => line.user))];
  const wanted = [...users];
  const files = new Map();
  const worker = async () => {
    while (wanted.length) {
      report(files.size, users.length);
      const text = wanted.pop();
      files.set(text, await fileOf(text));
    }
  };
  await Promise.all(Array.from({length: AT_ONCE}, worker));
  return lines.map((line) => request(line, files.get(line.user)));
}

/** Drop requests that another one covers, with a note for each; of two that cover each other, the first stays. */
function once(requests) {
  const byUser = Map.groupBy(requests, (request) => String(request.event.user));
  const kept = [];
  const repeated = [];
  for (const request of requests) {
    const {line, event} = request;
    const other = byUser
      .get(String(event.user))
      .find(
        (each) => each.line !== line && covers(each.event, event) && (each.line < line || !covers(event, each.event)),
      );
    if (other) repeated.push(`Line ${line} is already covered by line ${other.line}: it is planned once.`);
    else kept.push(request);
  }
  return {requests: kept, repeated};
}

/** Return whether one event forgets all that another of the same user does. */
function covers(one, other) {
  const within = (part) => one[part] === undefined || (part in other && same(one[part], other[part]));
  return within('basket') && within('item');
}

async function fileOf(text) {
  const user = parseId(text);
  return (await api.held(user)) ?? {user, baskets: [], unknown: true};
}

function request(line, file) {
  const event = {event: 'forget', user: file.user};
  if (line.basket) event.basket = parseId(line.basket);
  if (line.item) event.item = parseId(line.item);
  const baskets = file.baskets.filter(
    (basket) => event.basket === undefined || same(basket.basket, event.basket),
  );
  const found = baskets
    .flatMap((basket) => basket.items)
    .filter((entry) => event.item === undefined || same(entry.item, event.item));
  return {
    line: line.line,
    event,
    unknown: file.unknown,
    purchases: found.length,
    name: event.item === undefined ? null : found[0] && nameOf(found[0]),
  };
}

function plan(requests, asked, notes, place) {
  const lost = requests.filter((request) => !request.purchases).length;
  const label = `Forget ${requests.length === 1 ? 'it' : `all ${number(requests.length)}`} for good`;
  return h(
    'section',
    {class: 'panel'},
    h('h2', {tabindex: '-1'}, `${plural(requests.length, 'request')}, not carried out yet`),
    notes.length > 0 &&
      h(
        'ul',
        {class: 'notice'},
        notes.map((note) => h('li', {}, note)),
      ),
    lost > 0 &&
      h(
        'p',
        {class: 'notice'},
        `${number(lost)} of ${plural(requests.length, 'request')} will find nothing. Each gets a receipt all the same.`,
      ),
    requestTable(requests, ['#Purchases'], (request) => [
      request.unknown ? 'not found' : number(request.purchases),
    ]),
    h('p', {class: 'muted'}, 'Nothing has been forgotten yet. All of these will be forgotten, or none.'),
    h(
      'div',
      {class: 'actions'},
      button('Discard', () => show(place)),
      button(label, () => carryOut(requests, asked, place), {class: 'danger'}),
    ),
  );
}

function requestTable(requests, headings, cells) {
  const rows = requests.map((request, place) => {
    const {user, basket, item} = request.event;
    return [
      String(request.line),
      formatId(user),
      ...cells(request, place),
      basket === undefined ? 'all' : formatId(basket),
      item === undefined ? 'all' : (request.name ?? formatId(item)),
    ];
  });
  return table(['#Line', 'Customer', ...headings, 'Basket', 'Item'], rows, 'Requests'); // a phone shows the first ones
}

async function carryOut(requests, asked, place) {
  try {
    const {results, seconds} = await api.events(requests.map((request) => request.event));
    show(
      place,
      outcome(requests, asked, results, seconds),
    );
    place.querySelector('h2').focus();
    announce(`${plural(results.length, 'request')} forgotten in ${milliseconds(seconds)}.`);
  } catch (error) {
    show(
      place,
      fault(error, () => carryOut(requests, asked, place)),
    );
  }
}

function outcome(requests, asked, results, seconds) {
  const receipts = results.map((result) => result.receipt);
  const erased = receipts.filter((receipt) => receipt.purchases > 0);
  const clean = erased.every((receipt) => receipt.verified);
  const missed = receipts.length - erased.length;
  return h(
    'section',
    {class: 'panel'},
    h('h2', {tabindex: '-1'}, 'Forgotten'),
    h(
      'ul',
      {class: 'facts'},
      h('li', {}, plural(erased.length, 'request')),
      missed > 0 && h('li', {class: 'bad'}, `${number(missed)} found nothing`),
      h('li', {}, 'erased from disk in ', h('strong', {class: 'erasure'}, milliseconds(seconds))),
      erased.length > 0 &&
        h(
          'li',
          {class: clean ? 'good' : 'bad'},
          clean ? 'All verified: each person’s model equals one that never saw it' : 'Not all verified',
        ),
    ),
    requestTable(requests, ['#Receipt', 'Removed', 'Verified'], (request, place) => {
      const receipt = receipts[place];
      const missing = request.unknown ? 'not found' : 'nothing found';
      return [String(receipt.number), receipt.purchases ? removed(receipt) : missing, verified(receipt)];
    }),
    h(
      'div',
      {class: 'actions'},
      button([drawing(SAVE), 'Lines and receipts as CSV'], () => saveLines(requests, asked, results)),
      saveButton(receipts),
    ),
  );
}

/** Save which receipt answers each line of the file; a line that another one covers has that one's. */
function saveLines(requests, asked, results) {
  const rows = asked.map(({line, event}) => {
    const place = requests.findIndex((each) => same(each.event.user, event.user) && covers(each.event, event));
    return [line, formatId(event.user), results[place].receipt.number, results[place].secret];
  });
  download('requests-and-receipts.csv', csv([['line', 'person', 'receipt', 'secret'], ...rows]), 'text/csv');
}
