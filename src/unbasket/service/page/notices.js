// Messages: faults, empty places, waiting.

import {announce, h} from './dom.js';
import {WARNING, drawing} from './icons.js';

/** A fault in the service's own words. */
export function fault(error) {
  if (!error.code) throw error;
  announce(error.message);
  const title = {
    401: 'Sign in first',
    403: 'Not allowed',
    404: 'Not found',
    429: 'Too many requests',
    503: 'Not ready',
  };
  return h(
    'div',
    {class: 'notice bad', role: 'alert'},
    drawing(WARNING),
    h('div', {}, h('strong', {}, title[error.status] ?? 'This did not work'), h('p', {}, error.message)),
  );
}

/** A place where there is nothing yet, and what to do about it. */
export function empty(title, ...text) {
  return h('div', {class: 'empty'}, h('h3', {}, title), h('p', {}, ...text));
}

export function waiting(text = 'Loading') {
  return h('p', {class: 'waiting'}, `${text} …`);
}

/** Fill a place with what an action makes, and with the fault if it fails. */
export async function into(place, action, text) {
  place.replaceChildren(waiting(text));
  place.setAttribute('aria-busy', 'true');
  try {
    place.replaceChildren(...[await action()].flat(Infinity).filter(Boolean));
  } catch (error) {
    place.replaceChildren(fault(error));
  } finally {
    place.removeAttribute('aria-busy');
  }
}
