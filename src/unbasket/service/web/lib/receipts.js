// Receipts: shown in short, downloaded whole, and read again from a file.

import {button, download, h} from './dom.js';
import {moment} from './format.js';
import {SAVE, drawing} from './icons.js';
import {parse, stringify} from './ids.js';

const KEEP = 'It proves whom this receipt is about, and is stored nowhere. Keep both.';

/** Return a receipt as a list of terms, with its secret if there is one. */
export function card(receipt, secret) {
  const facts = [
    ['Receipt', `${receipt.number}, ${moment(receipt.time)} UTC`],
    ['Forgotten', receipt.scope],
    ['Request', short(receipt.request, 36)],
    ['Model before', short(receipt.before)],
    ['Model after', short(receipt.after)],
    ['Signature', short(receipt.signature)],
    ...(secret ? [['Secret', [h('code', {class: 'token'}, secret), h('small', {}, KEEP)]]] : []),
  ];
  return h(
    'dl',
    {class: 'receipt'},
    facts.map(([term, text]) => [h('dt', {}, term), h('dd', {}, text)]),
  );
}

/** Return the secrets of several receipts as a list of terms. */
export function secretList(receipts, secrets) {
  return h(
    'dl',
    {class: 'receipt'},
    receipts.map(({number}, i) => [h('dt', {}, `Secret of ${number}`), h('dd', {}, h('code', {class: 'token'}, secrets[i]))]),
  );
}

function short(text, length = 20) {
  return h('code', {title: text}, text.length > length ? `${text.slice(0, length)}…` : text);
}

/** Return receipts as the service sent them, a line of JSON each: the format of `unbasket receipts verify`. */
export function save(receipts) {
  const lines = receipts.map((receipt) => `${stringify(receipt)}\n`).join('');
  const [first, last] = [receipts[0].number, receipts.at(-1).number];
  if (receipts.length === 1) return download(`receipt-${first}.json`, lines);
  return download(`receipts-${first}-${last}.ndjson`, lines, 'application/x-ndjson');
}

/** Parse the receipts in a file: a JSON object, a list of them, or a line for each. */
export function receiptsIn(text) {
  const whole = attempt(text);
  return whole === undefined ? lines(text) : [whole].flat();
}

function lines(text) {
  return text.split('\n').flatMap((line, place) => {
    if (!line.trim()) return [];
    const value = attempt(line);
    if (value === undefined) throw new Error(`Line ${place + 1} of this file is not JSON. Is it a file of receipts?`);
    return [value];
  });
}

function attempt(text) {
  try {
    return parse(text);
  } catch {
    return undefined;
  }
}

export function saveButton(receipts) {
  const label = receipts.length === 1 ? 'Download receipt' : `Download ${receipts.length} receipts`;
  return button([drawing(SAVE), label], () => save(receipts), {class: 'save'});
}
