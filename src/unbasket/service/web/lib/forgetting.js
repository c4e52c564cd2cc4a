// Forgetting, in steps: choose how much, see what will change, confirm, see what changed, keep the receipt.

import * as api from './api.js';
import {openDialog} from './widgets.js';
import {identical, inWords, sideBySide} from './diff.js';
import {announce, button, fresh, h, show} from './dom.js';
import {milliseconds, removed, toBeErased} from './format.js';
import {CHECK, WARNING, drawing} from './icons.js';
import {same} from './ids.js';
import {fault, waiting} from './notices.js';
import {nameOf} from './products.js';
import {card, saveButton, secretList} from './receipts.js';
import {shopper} from './session.js';
import {offer} from './suppressions.js';

/** Open the dialog. A choice is {label, scope, erased}, with the counts of what it will erase and the `entry` of a single
    item; the first is the default. `done` is called after a forget, when the dialog has closed. */
export function forgetting(user, title, choices, done) {
  const state = {user, choice: choices[0], expected: null, answer: null};
  const dialog = openDialog(title, () => state.answer && done());
  const outlook = h('div', {class: 'outlook', role: 'status', 'aria-live': 'polite'});
  const confirm = button('Forget for good', () => carryOut(state, dialog), {class: 'danger'});
  const look = () => foresee(state, outlook, confirm);
  show(
    dialog.body,
    choices.length > 1 ? picker(state, choices, look) : h('p', {}, choices[0].label),
    outlook,
    h('div', {class: 'actions'}, button('Keep it', dialog.close), confirm),
  );
  look();
}

function picker(state, choices, look) {
  const name = fresh('scope');
  const option = (choice) => {
    const radio = h('input', {type: 'radio', name, checked: choice === state.choice});
    radio.addEventListener('change', () => {
      state.choice = choice;
      look();
    });
    return h('label', {class: 'option'}, radio, h('span', {}, choice.label));
  };
  return h('fieldset', {class: 'options'}, h('legend', {}, 'How much?'), choices.map(option));
}

/** Show how the recommendations will change; only then can it be confirmed. Nothing is stored. */
async function foresee(state, place, confirm) {
  const {choice} = state;
  confirm.disabled = true;
  show(place, waiting('Working out what will change'));
  try {
    const seen = await api.preview(state.user, {forget: choice.scope});
    if (choice !== state.choice) return;
    state.expected = seen.after;
    show(
      place,
      h('h3', {}, toBeErased(choice.erased)),
      h('p', {}, forecast(seen, choice.scope), ' Nothing has been forgotten yet.'),
      sideBySide(seen.before, seen.after, {titles: ['Now', 'Afterwards'], popular: seen.popular_after}),
    );
    confirm.disabled = false;
  } catch (error) {
    if (choice === state.choice)
      show(
        place,
        fault(error, () => foresee(state, place, confirm)),
      );
  }
}

/** Explain that a forgotten item may still be recommended, no longer because of this person. */
function lingering({basket, item, category}, after) {
  const concerned = (entry) => (item === undefined ? entry.category === category : same(entry.item, item));
  if (basket !== undefined || (item === undefined && category === undefined)) return '';
  const names = after.filter(concerned).map(nameOf);
  if (!names.length) return '';
  const them = names.length > 1 ? 'them' : 'it';
  return ` Still recommended, but only because similar shoppers buy ${them}: ${names.join(', ')}.`;
}

function forecast({before, after, popular_after: popular}, scope) {
  if (popular) return 'No purchase will remain. The recommendations will be what most shoppers buy.';
  return inWords(before, after) + lingering(scope, after);
}

/** Forget, and show the change. After an error it can be tried again; completed forgets are not repeated. */
async function carryOut(state, dialog) {
  const {user, choice} = state;
  dialog.body.querySelector('fieldset')?.setAttribute('disabled', '');
  try {
    state.before ??= (await api.recommendations(user)).recommendations;
    state.answer ??= await api.forget(user, choice.scope);
    const hasEnded = shopper() !== undefined && state.answer.removed.users > 0;
    const [after, check] = hasEnded ? [null, {ok: true}] : await Promise.all([api.recommendations(user), api.verify(user)]);
    outcome(state, dialog, after, check);
  } catch (error) {
    show(
      dialog.body,
      fault(error, () => carryOut(state, dialog)),
      h('p', {}, known(state, error)),
      state.answer && kept(state.answer),
      h('div', {class: 'actions'}, state.answer && saveButton(receiptsOf(state.answer)), button('Close', dialog.close)),
    );
  }
}

/** Report the state of an interrupted forget. */
function known(state, error) {
  if (state.answer) return 'It has been forgotten. Only the comparison of before and after is missing.';
  return error.status === 0 || error.status >= 500
    ? 'It may or may not have been forgotten. Trying again is safe.'
    : 'Nothing has been forgotten.';
}

function receiptsOf(answer) {
  return answer.receipts ?? [answer.receipt];
}

/** Return what to keep of the receipts: a secret is in this one response only. */
function kept(answer) {
  const receipts = receiptsOf(answer);
  if (receipts.length === 1) return card(receipts[0], answer.secret ?? answer.secrets[0]);
  return receipts.length > 1 && secretList(receipts, answer.secrets);
}

function outcome(state, dialog, after, check) {
  const {answer, choice} = state;
  const receipts = receiptsOf(answer);
  const clean = check.ok && receipts.every((receipt) => receipt.verified);
  dialog.heading.textContent = 'Forgotten';
  show(
    dialog.body,
    facts(answer, clean),
    choice.entry && after && !after.popular && offer(state.user, choice.entry),
    after ? changes(state, after) : h('p', {}, 'Nothing about you remains, so your key has ended too.'),
    kept(answer),
    h(
      'div',
      {class: 'actions'},
      receipts.length > 0 && saveButton(receipts),
      button('Done', dialog.close, {class: 'main'}),
    ),
  );
  dialog.heading.focus();
  announce(`Forgotten: ${removed(answer.removed)}, erased in ${milliseconds(answer.seconds)}. ${verdict(clean)}`);
}

function facts(answer, clean) {
  return h(
    'ul',
    {class: 'facts'},
    h('li', {}, h('strong', {}, removed(answer.removed)), ' removed'),
    h('li', {}, 'erased from disk in ', h('strong', {class: 'erasure'}, milliseconds(answer.seconds))),
    h('li', {class: clean ? 'good' : 'bad'}, drawing(clean ? CHECK : WARNING), verdict(clean)),
  );
}

function verdict(clean) {
  return clean
    ? 'Verified: this person’s model equals one that never saw it'
    : 'Not verified: the model differs from a retrained one';
}

function changes({before, expected, choice}, {popular, recommendations: after}) {
  const kept = identical(expected, after);
  const words = popular
    ? 'Unbasket’s database holds nothing about this person any more; invoices and other systems are separate. ' +
      'These are what most shoppers buy.'
    : inWords(before, after) + lingering(choice.scope, after);
  return h(
    'section',
    {class: 'changes'},
    h('h3', {}, 'What changed'),
    h('p', {}, words, kept && ' Exactly as previewed.'),
    sideBySide(before, after, {popular}),
  );
}
