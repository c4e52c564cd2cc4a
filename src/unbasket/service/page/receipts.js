// Receipts: shown in short, downloaded whole.

import {button, download, h} from './dom.js';
import {moment} from './format.js';
import {SAVE, drawing} from './icons.js';
import {stringify} from './ids.js';

/** What a receipt says, as a list of terms. */
export function card(receipt) {
  const facts = [
    ['Receipt', `${receipt.number}, ${moment(receipt.time)} UTC`],
    ['Forgotten', receipt.scope],
    ['Request', short(receipt.request, 36)],
    ['Model before', short(receipt.before)],
    ['Model after', short(receipt.after)],
    ['Signature', short(receipt.signature)],
  ];
  return h(
    'dl',
    {class: 'receipt'},
    facts.map(([term, text]) => [h('dt', {}, term), h('dd', {}, text)]),
  );
}

function short(text, length = 20) {
  return h('code', {title: text}, text.length > length ? `${text.slice(0, length)}…` : text);
}

/** One receipt is a JSON object; several are lines of JSON, as `unbasket receipts verify` reads them. */
export function save(receipts) {
  if (receipts.length === 1) return download(`receipt-${receipts[0].number}.json`, stringify(receipts[0], 2));
  const lines = receipts.map((receipt) => `${stringify(receipt)}\n`).join('');
  return download(`receipts-${receipts[0].number}-${receipts.at(-1).number}.ndjson`, lines, 'application/x-ndjson');
}

export function saveButton(receipts) {
  const label = receipts.length === 1 ? 'Download receipt' : `Download ${receipts.length} receipts`;
  return button([drawing(SAVE), label], () => save(receipts), {class: 'save'});
}
