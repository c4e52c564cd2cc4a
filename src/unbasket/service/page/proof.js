// Verifying a file of receipts: dropped onto the page or picked, checked by the service, and told in words.

import * as api from './api.js';
import {field, h, show} from './dom.js';
import {number} from './format.js';
import {CHECK, CROSS, EQUAL, drawing} from './icons.js';
import {fault, sentence, waiting} from './notices.js';
import {receiptsIn} from './receipts.js';

/** A place to drop a file, with the verdict below. */
export function dropZone() {
  const verdict = h('div', {role: 'status', 'aria-live': 'polite'});
  const input = h('input', {type: 'file', accept: '.json,.ndjson,application/json'});
  const take = (file) => file && verify(file, verdict);
  const zone = h(
    'section',
    {class: 'panel drop'},
    h('h2', {}, 'Verify a file'),
    field('Drop a file of receipts here, or choose one', input),
    verdict,
  );
  input.addEventListener('change', async () => {
    await take(input.files[0]);
    input.value = '';
  });
  for (const [event, over] of [['dragover', true], ['dragleave', false], ['drop', false]])
    zone.addEventListener(event, (happening) => {
      happening.preventDefault();
      zone.classList.toggle('over', over);
    });
  zone.addEventListener('drop', (event) => take(event.dataTransfer.files[0]));
  return zone;
}

async function verify(file, place) {
  show(place, waiting(`Verifying ${file.name}`));
  try {
    const receipts = receiptsIn(await file.text());
    if (!receipts.length) throw new Error('There are no receipts in this file.');
    show(place, told(file.name, receipts, await api.verifyReceipts(receipts)));
  } catch (error) {
    const again = () => verify(file, place);
    show(place, error.code ? fault(error, again) : h('p', {class: 'notice bad', role: 'alert'}, error.message));
  }
}

/** What was proved of these receipts, and what was not. */
function told(name, receipts, {ok, faults}) {
  const numbers = [...new Set(receipts.map((receipt) => receipt.number))].sort((one, other) => one - other);
  return h(
    'div',
    {class: ok ? 'notice good' : 'notice bad'},
    h('strong', {}, ok ? `${name} is genuine` : `${name} is not what it should be`),
    h('ul', {class: 'proved'}, ok ? proved(numbers) : faults.map((text) => point(CROSS, sentence(text)))),
  );
}

function proved(numbers) {
  const there = runs(numbers);
  const chained = there.filter(([first, last]) => first < last);
  const missing = gaps(there);
  return [
    point(CHECK, `${numbers.length > 1 ? 'Signatures' : 'Signature'} valid: nothing was changed since it was signed.`),
    point(CHECK, `${spoken(there)} ${numbers.length > 1 ? 'are' : 'is'} exactly as the shop holds ${numbers.length > 1 ? 'them' : 'it'}.`),
    chained.length > 0 && point(CHECK, `${spoken(chained)} are chained: none between them was taken out.`),
    missing.length > 0 && point(EQUAL, `${spoken(missing)} ${isOne(missing) ? 'is' : 'are'} not in this file, which proves nothing about ${isOne(missing) ? 'it' : 'them'}.`),
  ];
}

function point(strokes, text) {
  return h('li', {}, drawing(strokes), h('span', {}, text));
}

/** Sorted numbers as runs without a gap: [[4, 9], [12, 12]]. */
function runs(numbers) {
  const found = [];
  for (const each of numbers) {
    if (found.length && found.at(-1)[1] === each - 1) found.at(-1)[1] = each;
    else found.push([each, each]);
  }
  return found;
}

/** What lies before and between runs; the first receipt of a shop is number 1. */
function gaps(there) {
  const before = (place) => (place ? there[place - 1][1] : 0);
  return there.map(([first], place) => [before(place) + 1, first - 1]).filter(([first, last]) => first <= last);
}

const isOne = (parts) => parts.length === 1 && parts[0][0] === parts[0][1];

/** "Receipts 4 to 9 and 12". */
function spoken(parts) {
  const words = parts.map(([first, last]) => (first === last ? number(first) : `${number(first)} to ${number(last)}`));
  const list = words.length > 1 ? `${words.slice(0, -1).join(', ')} and ${words.at(-1)}` : words[0];
  return `${isOne(parts) ? 'Receipt' : 'Receipts'} ${list}`;
}
