// The session: the caller's key, kept in this browser tab only, and the identity that the service gave for it.

const NAME = 'unbasket-key';

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
}
