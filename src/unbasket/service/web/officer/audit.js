// All receipts, their verification, and the file for an auditor.

import * as api from '../lib/api.js';
import {button, h, show} from '../lib/dom.js';
import {milliseconds, moment, number, plural} from '../lib/format.js';
import {SAVE, drawing} from '../lib/icons.js';
import {empty, into, sentence} from '../lib/notices.js';
import {verifier} from './proof.js';
import {save} from '../lib/receipts.js';
import {table} from '../lib/widgets.js';

const PAGE = 25;
const LIMIT = 1000;

/** Return the list of receipts with its actions. */
export async function audit() {
  const first = await api.receipts({order: 'newest', limit: PAGE});
  const area = h('div');
  return show(area, actions(area, first.receipts.length > 0), first.receipts.length ? list(first) : none());
}

function none() {
  return empty(
    'No receipts yet',
    'Every time something is forgotten, a receipt says when and how much, with fingerprints of the model before and ' +
      'after. It is signed, and chained to the one before.',
  );
}

function actions(area, some) {
  const result = h('div', {role: 'status', 'aria-live': 'polite'});
  return h(
    'section',
    {class: 'panel'},
    h('h2', {}, 'Receipts'),
    h(
      'p',
      {},
      'Each receipt is signed and carries the hash of the one before it: none can be changed or taken out unnoticed. ' +
        'They name nobody.',
    ),
    some &&
      h(
        'div',
        {class: 'actions start'},
        button('Verify all', () => into(result, verdict, 'Checking every signature'), {class: 'main'}),
        button([drawing(SAVE), 'Download all'], () => all(result)),
      ),
    result,
    verifier(area),
  );
}

function list(first) {
  const rows = h('section', {class: 'panel'});
  page(rows, first, undefined, []);
  return rows;
}

/** Show the page after receipt `after`; `earlier` holds the starts of the pages before it. */
function page(place, answer, after, earlier) {
  const rows = answer.receipts.map((receipt, i) => [
    String(receipt.number),
    h('span', {class: 'figure'}, moment(receipt.time)),
    receipt.scope,
    number(receipt.purchases),
    number(receipt.baskets),
    number(receipt.users),
    receipt.verified ? 'yes' : 'no',
    answer.seconds[i] === null ? '–' : milliseconds(answer.seconds[i]),
    button(drawing(SAVE), () => save([receipt]), {class: 'cross', 'aria-label': `Download receipt ${receipt.number}`}),
  ]);
  const turn = (from, path) => async () =>
    page(place, await api.receipts({order: 'newest', limit: PAGE, after: from}), from, path);
  const back = earlier.length > 0 && button('Newer', turn(earlier.at(-1), earlier.slice(0, -1)));
  const more = answer.next !== null && answer.next !== undefined;
  const next = more && button('Older', turn(answer.next, [...earlier, after]));
  show(
    place,
    table(
      ['#No', 'Time (UTC)', 'Forgotten', '#Purchases', '#Baskets', '#Customers', 'Verified', '#Erased in', ''],
      rows,
      'Receipts',
    ),
    (back || next) && h('div', {class: 'actions'}, back, next),
  );
}

async function verdict() {
  const answer = await api.verifyReceipts();
  if (!answer.ok) {
    return h(
      'div',
      {class: 'notice bad'},
      h('strong', {}, `${plural(answer.faults.length, 'fault')} in the chain of receipts`),
      h(
        'ul',
        {},
        answer.faults.map((text) => h('li', {}, sentence(text))),
      ),
    );
  }
  return h(
    'div',
    {class: 'notice good'},
    h('p', {}, `${plural(answer.receipts, 'receipt')}: every signature is valid, and the chain is complete.`),
    h(
      'p',
      {},
      'Signed with ',
      answer.keys.map((name) => h('code', {class: 'token'}, name)),
    ),
  );
}

/** Save all receipts as a file, or show the error. */
function all(place) {
  const load = () => api.pages((after) => api.receipts({limit: LIMIT, after}), 'receipts', Infinity);
  return into(place, async () => void save(await load()), 'Collecting the receipts');
}
