// Who is signed in. The key lives in this tab only and is gone when it is closed; the service says whose it is.

const NAME = 'unbasket-key';

let known = null;

/** The key, or null. */
export function token() {
  return sessionStorage.getItem(NAME);
}

/** Whom the service takes us for: {key, shopper, roles}; null before it has said so. */
export function who() {
  return known;
}

/** The shopper who is signed in, or undefined if it is anybody else. */
export function shopper() {
  return known?.shopper ?? undefined;
}

/** Whether one of these roles is ours. */
export function may(...roles) {
  return roles.some((role) => known?.roles.includes(role));
}

/** Keep the service's answer to who we are, and the key that it was given for, if one was needed. */
export function signIn(answer, key) {
  known = answer;
  if (key) sessionStorage.setItem(NAME, key);
}

export function signOut() {
  known = null;
  sessionStorage.removeItem(NAME);
}
