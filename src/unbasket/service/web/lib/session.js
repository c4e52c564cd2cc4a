// The session: the caller's key and cart, kept in this browser tab only, and the identity that the service gave.

import {formatId, parse, stringify} from './ids.js';

const NAME = 'unbasket-key';
const CART = 'unbasket-cart';

let known = null;

/** Return the key, or null. */
export function token() {
  return sessionStorage.getItem(NAME);
}

/** Return the caller's identity, {key, shopper, roles}, or null before the service has said it. */
export function who() {
  return known;
}

/** Return the signed-in shopper, or undefined for any other caller. */
export function shopper() {
  return known?.shopper ?? undefined;
}

/** Return whether the caller has one of these roles. */
export function may(...roles) {
  return roles.some((role) => known?.roles.includes(role));
}

/** Store the caller's identity, and the key if one was needed. */
export function signIn(answer, key) {
  known = answer;
  if (key) sessionStorage.setItem(NAME, key);
}

export function signOut() {
  known = null;
  sessionStorage.removeItem(NAME);
  sessionStorage.removeItem(CART);
}

/** Return the entries of a shopper's cart, which this tab keeps over a reload and the service never stores. */
export function savedCart(user) {
  try {
    const {owner, entries} = parse(sessionStorage.getItem(CART));
    return owner === formatId(user) ? entries : [];
  } catch {
    return []; // there is none
  }
}

export function saveCart(user, entries) {
  sessionStorage.setItem(CART, stringify({owner: formatId(user), entries}));
}
