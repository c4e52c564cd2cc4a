// Verifying a file of receipts: dropped onto the page or picked, checked by the service, and told in words.

import * as api from '../lib/api.js';
import {field, h, show} from '../lib/dom.js';
import {number} from '../lib/format.js';
import {CHECK, CROSS, DASH, drawing} from '../lib/icons.js';
import {fault, sentence, waiting} from '../lib/notices.js';
import {receiptsIn} from '../lib/receipts.js';

const LARGEST = 8 * 2 ** 20 - 1024; // bytes; the service takes no more unless it is told to
const MOST = 10000; // receipts
const TOO_LARGE = 'This file is too large for the page. Verify it on your own machine: unbasket receipts verify FILE';

/** Return a field for a file of receipts, with the verdict below. A file may also be dropped anywhere in `area`. */
export function verifier(area) {
  const verdict = h('div', {role: 'status', 'aria-live': 'polite'});
  const input = h('input', {type: 'file', accept: '.json,.ndjson,application/json'});
  const take = async (file) => {
    if (file) await verify(file, verdict);
    input.value = '';
  };
  input.addEventListener('change', () => take(input.files[0]));
  area.addEventListener('dragover', (event) => event.preventDefault());
  area.addEventListener('drop', (event) => {
    event.preventDefault();
    take(event.dataTransfer.files[0]);
  });
  return [field('To verify a file of receipts, drop it onto this page or choose it', input), verdict];
}

async function verify(file, place) {
  show(place, waiting(`Verifying ${file.name}`));
  try {
    if (file.size > LARGEST) throw new Error(TOO_LARGE);
    const receipts = receiptsIn(await file.text());
    if (receipts.length > MOST) throw new Error(TOO_LARGE);
    if (!receipts.length) throw new Error('There are no receipts in this file.');
    show(place, told(file.name, await api.verifyReceipts(receipts)));
  } catch (error) {
    const again = () => verify(file, place);
    show(place, error.code ? fault(error, again) : h('p', {class: 'notice bad', role: 'alert'}, error.message));
  }
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
  const list = words.length > 1 ? `${words.slice(0, -1).join(', ')} and ${words.at(-1)}` : words[0];
  return `${isOne(parts) ? 'Receipt' : 'Receipts'} ${list}`;
}
