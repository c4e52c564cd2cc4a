// All receipts, their verification, and the file for an auditor.

import * as api from './api.js';
import {button, h, show} from './dom.js';
import {milliseconds, moment, number, plural} from './format.js';
import {SAVE, drawing} from './icons.js';
import {empty, into} from './notices.js';
import {save} from './receipts.js';
import {table} from './tables.js';

const PAGE = 25;
const LIMIT = 100;

/** The list, with what can be done with it. */
export async function audit() {
  const first = await api.receipts({order: 'newest', limit: PAGE});
  if (!first.receipts.length)
    return empty(
      'No receipts yet',
      'Every forget writes one: when, how much, and fingerprints of the model before and after, signed and chained.',
    );
  const result = h('div', {role: 'status', 'aria-live': 'polite'});
  const list = h('div');
  page(list, first, undefined, []);
  return h(
    'section',
    {class: 'panel'},
    h('h2', {}, 'Receipts'),
    h(
      'p',
      {},
      'Each receipt is signed and carries the hash of the one before: none can be changed or taken out unnoticed. ' +
        'They name no person.',
    ),
    h(
      'div',
      {class: 'actions start'},
      button('Verify the chain', () => into(result, verdict, 'Checking every signature'), {class: 'main'}),
      button([drawing(SAVE), 'Download all'], all),
    ),
    result,
    list,
  );
}

/** Show a page, the one after receipt `after`; `earlier` holds where the pages before it began. */
function page(place, answer, after, earlier) {
  const rows = answer.receipts.map((receipt, i) => [
    String(receipt.number),
    moment(receipt.time),
    receipt.scope,
    number(receipt.purchases),
    number(receipt.baskets),
    number(receipt.users),
    receipt.verified ? 'yes' : 'no',
    answer.seconds[i] === null ? '–' : milliseconds(answer.seconds[i]),
    button(drawing(SAVE), () => save([receipt]), {class: 'cross', 'aria-label': `Download receipt ${receipt.number}`}),
  ]);
  const turn = (from, path) => async () => page(place, await api.receipts({order: 'newest', limit: PAGE, after: from}), from, path);
  const back = earlier.length > 0 && button('Newer', turn(earlier.at(-1), earlier.slice(0, -1)));
  const more = answer.next !== null && answer.next !== undefined;
  const next = more && button('Older', turn(answer.next, [...earlier, after]));
  show(
    place,
    table(['#No', 'Time (UTC)', 'Forgotten', '#Purchases', '#Baskets', '#People', 'Verified', '#Erased in', ''], rows, 'Receipts'),
    (back || next) && h('div', {class: 'actions'}, back, next),
  );
}

async function verdict() {
  const answer = await api.verifyReceipts();
  if (answer.ok) {
    return h(
      'div',
      {class: 'notice good'},
      h('p', {}, `${plural(answer.receipts, 'receipt')}, every signature and link of the chain is right.`),
      h(
        'p',
        {},
        'Signed with ',
        answer.keys.map((name) => h('code', {class: 'token'}, name)),
      ),
    );
  }
  return h(
    'div',
    {class: 'notice bad'},
    h('p', {}, plural(answer.faults.length, 'fault')),
    h(
      'ul',
      {},
      answer.faults.map((text) => h('li', {}, text)),
    ),
  );
}

async function all() {
  save(await api.pages((after) => api.receipts({limit: LIMIT, after}), 'receipts', Infinity));
}
