// Who is signed in. The key or token lives in this tab only and is gone when it is closed.

import {parse} from './ids.js';

const NAME = 'unbasket-token';

/** The key or token, or null. */
export function token() {
  return sessionStorage.getItem(NAME);
}

export function signIn(text) {
  sessionStorage.setItem(NAME, text.trim());
}

export function signOut() {
  sessionStorage.removeItem(NAME);
}

/** The shopper whose token this is, or undefined if it is a key. The page only reads it; the service checks it. */
export function shopper() {
  const parts = token()?.split('.') ?? [];
  if (parts.length !== 3 || parts[0] !== 'v1') return undefined;
  try {
    const letters = atob(parts[1].replaceAll('-', '+').replaceAll('_', '/'));
    const text = new TextDecoder().decode(Uint8Array.from(letters, (letter) => letter.charCodeAt(0)));
    return parse(text).user;
  } catch {
    return undefined;
  }
}
