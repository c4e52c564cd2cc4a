// Signing in with a key or a shopper's token. Asked for when the service answers 401.

import {announce, button, field, h, show} from './dom.js';
import {spell} from './ids.js';
import {shopper, signIn, signOut, token} from './session.js';

/** Put the sign-in control into the frame. */
export function install(place) {
  const refresh = () => show(place, token() ? signedIn() : openButton());
  document.addEventListener('signin-needed', (event) => ask(event.detail));
  for (const name of ['signed-in', 'signed-out']) document.addEventListener(name, refresh);
  refresh();
}

function signedIn() {
  const owner = shopper();
  return [
    h('span', {class: 'muted'}, owner === undefined ? 'Signed in' : `Shopper ${spell(owner)}`),
    button('Sign out', leave, {class: 'plain'}),
  ];
}

function openButton() {
  return button('Sign in', () => ask(), {class: 'plain'});
}

function leave() {
  signOut();
  document.dispatchEvent(new CustomEvent('signed-out'));
}

let dialog = null;

function ask(message) {
  if (dialog?.open) return;
  const input = h('input', {type: 'password', autocomplete: 'off', required: true, spellcheck: 'false'});
  const form = h(
    'form',
    {method: 'dialog', onsubmit: () => enter(input.value)},
    h('h2', {id: 'signin-title'}, 'Sign in'),
    h('p', {}, message ?? 'The service asks for keys unless it is bound to this machine only.'),
    field('Key or token', input, 'Kept in this tab only, and gone when you close it.'),
    h(
      'div',
      {class: 'actions'},
      button('Cancel', () => dialog.close()),
      h('button', {class: 'main'}, 'Sign in'),
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

function enter(text) {
  signIn(text);
  announce('Signed in');
  document.dispatchEvent(new CustomEvent('signed-in'));
}
