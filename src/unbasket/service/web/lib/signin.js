// Signing in: asks for a key when the service does, and shows the identity of the key.

import * as api from './api.js';
import {announce, busy, button, field, h, show} from './dom.js';
import {formatId} from './ids.js';
import {empty, fault} from './notices.js';
import {signIn, signOut, token, who} from './session.js';

const ENDED = 'Your key is no longer valid. Please sign in again.';
const WRONG =
  'This key is not valid. Check that all of it was copied. If it was removed or has expired, ask for a new one.';

/** Put the sign-in control into the frame. */
export function install(place) {
  const refresh = () => show(place, who() ? identity(who()) : button('Sign in', () => ask(), {class: 'plain'}));
  document.addEventListener('signin-needed', () => {
    const ended = who() !== null;
    leave();
    ask(ended ? ENDED : undefined);
  });
  for (const name of ['signed-in', 'signed-out']) document.addEventListener(name, refresh);
  refresh();
}

/** Identify the caller; false if the service wants a key first. An expired key is dropped. */
export async function identify() {
  const key = token();
  try {
    enter(await api.me(key), key);
    return true;
  } catch (error) {
    if (error.status !== 401) throw error;
  }
  leave();
  return key ? identify() : false;
}

/** Return the notice that views show before sign-in. */
export function signedOut() {
  const place = empty('You are not signed in', 'This shop asks for a key before it shows anything.');
  place.append(button('Sign in', () => ask(), {class: 'main'}));
  return place;
}

function identity(answer) {
  if (answer.key === null && answer.shopper === null)
    return h(
      'span',
      {class: 'keyless', title: 'To ask for keys, make one: unbasket keys add NAME --role admin'},
      'No keys: anyone on this machine may do everything',
    );
  const [name, role] = described(answer);
  return [
    h('span', {class: 'identity'}, h('strong', {}, name), ' ', h('span', {class: 'muted'}, role)),
    button('Sign out', leave, {class: 'plain'}),
  ];
}

/** Return the name and role of the signed-in caller. */
function described({key, shopper, roles}) {
  return shopper === null ? [key, inWords(roles)] : [`Customer ${formatId(shopper)}`, 'own data only'];
}

/** Describe roles in words. */
function inWords(roles) {
  if (roles.includes('admin')) return 'administrator';
  if (roles.includes('privacy')) return 'privacy officer';
  return `may ${roles.join(' and ')}`;
}

function enter(answer, key) {
  signIn(answer, key);
  document.dispatchEvent(new CustomEvent('signed-in'));
}

function leave() {
  signOut();
  document.dispatchEvent(new CustomEvent('signed-out'));
}

let dialog = null;

/** Open the dialog that asks for a key. */
export function ask(reason) {
  if (dialog?.open) return;
  const input = h('input', {type: 'password', autocomplete: 'off', required: true, spellcheck: 'false'});
  const problem = h('div', {});
  const confirm = h('button', {class: 'main'}, 'Sign in');
  const submit = (event) => {
    event.preventDefault();
    busy(confirm, () => attempt(input, problem));
  };
  const form = h(
    'form',
    {onsubmit: submit},
    h('h2', {id: 'signin-title'}, 'Sign in'),
    reason && h('p', {class: 'notice'}, reason),
    field('Your key', input, 'Paste the key that you were given. It stays in this tab and is gone when you close it.'),
    problem,
    h(
      'div',
      {class: 'actions'},
      button('Cancel', () => dialog.close()),
      confirm,
    ),
  );
  dialog = h(
    'dialog',
    {class: 'small', 'aria-labelledby': 'signin-title', onclose: (event) => event.target.remove()},
    form,
  );
  document.body.append(dialog);
  dialog.showModal();
  input.focus();
}

/** Ask the service for the identity of a key, then sign in. */
async function attempt(input, problem) {
  const key = input.value.trim();
  try {
    const answer = await api.me(key);
    dialog.close();
    enter(answer, key);
    announce(`Signed in as ${described(answer).join(', ')}`);
  } catch (error) {
    show(problem, error.status === 401 ? h('p', {class: 'notice bad', role: 'alert'}, WRONG) : fault(error));
    input.select();
  }
}
