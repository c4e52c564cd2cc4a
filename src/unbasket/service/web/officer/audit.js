// All receipts, the file of them for an auditor, and the verification of the stored ones or of a file.

import * as api from '../lib/api.js';
import {button, download, field, h, show} from '../lib/dom.js';
import {milliseconds, moment, number, plural} from '../lib/format.js';
import {CHECK, CROSS, DASH, SAVE, drawing} from '../lib/icons.js';
import {parse, stringify} from '../lib/ids.js';
import {empty, fault, into, sentence, waiting} from '../lib/notices.js';
import {receiptsIn, save} from '../lib/receipts.js';
import {table} from '../lib/widgets.js';

const PAGE = 25;
const LIMIT = 1000;
const LARGEST = 8 * 2 ** 20 - 1024; // bytes; the service takes no more unless it is told to
const MOST = 10000; // receipts
const TOO_LARGE = 'This file is too large for the page. Verify it on your own machine: unbasket receipts verify FILE';

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
      'Each receipt is signed and carries the hash of the one before it. A changed or missing receipt is noticed; ' +
        'to notice that the newest are missing, or that all were rewritten, keep a checkpoint elsewhere. Receipts name no person.',
    ),
    h(
      'div',
      {class: 'actions start'},
      some && button('Verify all', () => into(result, verdict, 'Checking every signature'), {class: 'main'}),
      some && button([drawing(SAVE), 'Download all'], () => all(result)),
      button([drawing(SAVE), 'Download checkpoint'], () => into(result, checkpoint, 'Signing')),
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
  const notice = h('div', {role: 'status', 'aria-live': 'polite'});
  const rows = answer.receipts.map((receipt, i) => [
    String(receipt.number),
    h('span', {class: 'figure'}, moment(receipt.time)),
    receipt.scope,
    number(receipt.purchases),
    number(receipt.baskets),
    number(receipt.users),
    verified(receipt),
    answer.seconds[i] === null ? '–' : milliseconds(answer.seconds[i]),
    button(drawing(SAVE), () => save([receipt]), {class: 'cross', 'aria-label': `Download receipt ${receipt.number}`}),
    button(drawing(CHECK), () => into(notice, () => proof(receipt.number), 'Proving'), {
      class: 'cross',
      'aria-label': `Download the proof of receipt ${receipt.number}`,
    }),
  ]);
  const turn = (from, path) => async () =>
    page(place, await api.receipts({order: 'newest', limit: PAGE, after: from}), from, path);
  const back = earlier.length > 0 && button('Newer', turn(earlier.at(-1), earlier.slice(0, -1)));
  const more = answer.next !== null && answer.next !== undefined;
  const next = more && button('Older', turn(answer.next, [...earlier, after]));
  show(
    place,
    table(
      ['#No', 'Time (UTC)', 'Forgotten', '#Purchases', '#Baskets', '#Customers', 'Verified', '#Erased in', '', ''],
      rows,
      'Receipts',
    ),
    notice,
    (back || next) && h('div', {class: 'actions'}, back, next),
  );
}

/** Save the proof that a receipt is in the log. */
async function proof(wanted) {
  download(`proof-receipt-${wanted}.json`, stringify(await api.receiptProof(wanted), 2));
}

/** Save a checkpoint. */
async function checkpoint() {
  download('checkpoint.txt', await api.checkpoint(), 'text/plain');
}

/** Say whether a forget was verified; there is nothing to verify where nothing was found. */
export function verified(receipt) {
  const erases = ['user', 'basket', 'item', 'item of a basket'].includes(receipt.scope);
  if (erases && !receipt.purchases) return '–';
  return receipt.verified ? 'yes' : 'no';
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
    h('p', {}, `${plural(answer.receipts, 'receipt')}: every signature is valid, and none before the newest is missing.`),
    answer.warnings.map((text) => h('p', {}, sentence(text))),
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

/** Return a field for a file of receipts, with the verdict below. A file may also be dropped anywhere in `area`. */
function verifier(area) {
  const result = h('div', {role: 'status', 'aria-live': 'polite'});
  const input = h('input', {type: 'file', accept: '.json,.ndjson,.txt,application/json'});
  const take = async (file) => {
    if (file) await verify(file, result);
    input.value = '';
  };
  input.addEventListener('change', () => take(input.files[0]));
  area.addEventListener('dragover', (event) => event.preventDefault());
  area.addEventListener('drop', (event) => {
    event.preventDefault();
    take(event.dataTransfer.files[0]);
  });
  return [field('To verify a file of receipts, a proof or a checkpoint, drop it onto this page or choose it', input), result];
}

async function verify(file, place) {
  show(place, waiting(`Verifying ${file.name}`));
  try {
    if (file.size > LARGEST) throw new Error(TOO_LARGE);
    const text = await file.text();
    if (isProof(text)) return show(place, checked(file.name, await api.verifyProof(text)));
    const receipts = receiptsIn(text);
    if (receipts.length > MOST) throw new Error(TOO_LARGE);
    if (!receipts.length) throw new Error('There are no receipts in this file.');
    return show(place, told(file.name, await api.verifyReceipts(receipts)));
  } catch (error) {
    const again = () => verify(file, place);
    return show(place, error.code ? fault(error, again) : h('p', {class: 'notice bad', role: 'alert'}, error.message));
  }
}

/** Tell a proof or a checkpoint from receipts. */
function isProof(text) {
  if (text.includes('\n\n— ')) return true;
  try {
    return parse(text).format === 'unbasket proof';
  } catch {
    return false;
  }
}

/** Say what a proof shows, and who has checked it. */
function checked(name, {ok, summary}) {
  return h(
    'div',
    {class: ok ? 'notice good' : 'notice bad'},
    h('strong', {}, ok ? `${name} is genuine` : `${name} failed the verification`),
    h('p', {}, sentence(summary)),
    h(
      'p',
      {},
      'This service has checked it, with the key that the file names. To check it yourself, with the key that the shop ' +
        'has published: python -m unbasket.verifier FILE --key KEY',
    ),
  );
}

/** Say what these receipts prove, and what they don't. */
function told(name, answer) {
  return h(
    'div',
    {class: answer.ok ? 'notice good' : 'notice bad'},
    h('strong', {}, answer.ok ? `${name} is genuine` : `${name} failed the verification`),
    h('ul', {class: 'proved'}, answer.ok ? proved(answer) : answer.faults.map((text) => point(CROSS, sentence(text)))),
  );
}

/** Describe the chain: `chained` are runs of numbers without a gap, `missing` the gaps before and between them. */
function proved({chained, missing, receipts}) {
  const linked = chained.filter(([first, last]) => first < last);
  const [signatures, are, them] = receipts > 1 ? ['Signatures', 'are', 'them'] : ['Signature', 'is', 'it'];
  return [
    point(CHECK, `${signatures} valid: nothing was changed after signing.`),
    point(CHECK, `${spoken(chained)} ${are} exactly as the shop holds ${them}.`),
    linked.length > 0 && point(CHECK, `${spoken(linked)} are chained: none in between was taken out.`),
    missing.length > 0 && point(DASH, absent(missing)),
  ];
}

function absent(missing) {
  const [are, them] = isOne(missing) ? ['is', 'it'] : ['are', 'them'];
  return `${spoken(missing)} ${are} not in this file, which proves nothing about ${them}.`;
}

function point(strokes, text) {
  return h('li', {}, drawing(strokes), h('span', {}, text));
}

const isOne = (parts) => parts.length === 1 && parts[0][0] === parts[0][1];

/** Write numbers in words: "Receipts 4 to 9 and 12". */
function spoken(parts) {
  const words = parts.map(([first, last]) => (first === last ? number(first) : `${number(first)} to ${number(last)}`));
  const text = words.length > 1 ? `${words.slice(0, -1).join(', ')} and ${words.at(-1)}` : words[0];
  return `${isOne(parts) ? 'Receipt' : 'Receipts'} ${text}`;
}
