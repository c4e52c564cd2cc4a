// Forgetting, in steps: choose how much, see what will change, confirm, see what changed, keep the receipt.

import * as api from './api.js';
import {open} from './dialog.js';
import {identical, inWords, sideBySide} from './diff.js';
import {announce, button, fresh, h, show} from './dom.js';
import {milliseconds, removed} from './format.js';
import {CHECK, WARNING, drawing} from './icons.js';
import {same} from './ids.js';
import {fault, waiting} from './notices.js';
import {nameOf} from './products.js';
import {card, saveButton} from './receipts.js';

/** Open the window. A choice is {label, scope}; the first is taken unless another is picked. `done` is called after
    something was forgotten and the window is closed. */
export function forgetting(user, title, choices, done) {
  const state = {user, choice: choices[0], expected: null, forgotten: false};
  const dialog = open(title, () => state.forgotten && done());
  const outlook = h('div', {class: 'outlook', role: 'status', 'aria-live': 'polite'});
  const look = () => foresee(state, outlook);
  show(
    dialog.body,
    choices.length > 1 ? picker(state, choices, look) : h('p', {}, choices[0].label),
    outlook,
    h(
      'div',
      {class: 'actions'},
      button('Keep it', dialog.close),
      button('Forget for good', () => carryOut(state, dialog), {class: 'danger'}),
    ),
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

/** Show how the recommendations will change. Nothing is stored. */
async function foresee(state, place) {
  const {choice} = state;
  state.expected = null;
  show(place, waiting('Looking ahead'));
  try {
    const seen = await api.preview(state.user, {forget: choice.scope});
    if (choice !== state.choice) return;
    state.expected = seen.after;
    show(
      place,
      h('h3', {}, 'What this will change'),
      h('p', {}, forecast(seen, choice.scope), ' Nothing is forgotten yet.'),
      sideBySide(seen.before, seen.after, ['Now', 'Afterwards'], seen.popular_after),
    );
  } catch (error) {
    if (choice === state.choice) show(place, fault(error));
  }
}

/** What is forgotten may still be recommended: not because of this person any more. */
function lingering({basket, item, category}, after) {
  const concerned = (entry) => (item === undefined ? entry.category === category : same(entry.item, item));
  if (basket !== undefined || (item === undefined && category === undefined)) return '';
  const names = after.filter(concerned).map(nameOf);
  return names.length ? ` ${names.join(', ')}: still there, only because similar shoppers buy it.` : '';
}

function forecast({before, after, popular_after: popular}, scope) {
  if (popular) return 'Nothing remains; the recommendations will be what most shoppers buy.';
  return inWords(before, after) + lingering(scope, after);
}

async function carryOut(state, dialog) {
  const {user, choice} = state;
  try {
    const before = await api.recommendations(user);
    const answer = await api.forget(user, choice.scope);
    state.forgotten = true;
    const [after, check] = await Promise.all([api.recommendations(user), api.verify(user)]);
    outcome(state, dialog, {before: before.recommendations, after, answer, check});
  } catch (error) {
    show(dialog.body, fault(error), h('div', {class: 'actions'}, button('Close', dialog.close)));
  }
}

function outcome(state, dialog, {before, after, answer, check}) {
  const receipts = answer.receipts ?? [answer.receipt];
  const clean = check.ok && receipts.every((receipt) => receipt.verified);
  dialog.heading.textContent = 'Forgotten';
  show(
    dialog.body,
    facts(answer, clean),
    changes(state, before, after),
    receipts.length === 1 ? card(receipts[0]) : null,
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
    ? 'Verified: identical to a model that never saw it'
    : 'Not verified: the model differs from a retrained one';
}

function changes(state, before, {popular, recommendations: after}) {
  const kept = state.expected && identical(state.expected, after);
  const words = popular
    ? 'Nothing is held any more, not even the id. These are what most shoppers buy.'
    : inWords(before, after) + lingering(state.choice.scope, after);
  return h(
    'section',
    {class: 'changes'},
    h('h3', {}, 'What changed'),
    h('p', {}, words, kept && ' Exactly as foreseen.'),
    sideBySide(before, after, ['Before', 'After'], popular),
  );
}
