// Messages: errors, empty lists, waiting.

import {announce, button, h} from './dom.js';
import {WARNING, drawing} from './icons.js';

const TITLES = {
  0: 'Connection lost',
  401: 'Please sign in',
  403: 'Not allowed',
  404: 'Not found',
  429: 'Too many requests',
  503: 'Not ready',
  504: 'This took too long',
};

/** Return an error in the service's own words. `retry`, if given, is offered where trying again may help. */
export function fault(error, retry) {
  if (!error.code) throw error;
  const message = sentence(error.message);
  announce(message);
  const mayPass = error.status === 0 || error.status >= 429;
  return h(
    'div',
    {class: 'notice bad', role: 'alert'},
    drawing(WARNING),
    h(
      'div',
      {},
      h('strong', {}, TITLES[error.status] ?? 'This did not work'),
      h('p', {}, message),
      retry && mayPass && button('Try again', retry),
    ),
  );
}

/** Turn a message of the service, which has no capital and no period, into a sentence. */
export function sentence(text) {
  return `${text[0].toUpperCase()}${text.slice(1)}${/[.?!]$/.test(text) ? '' : '.'}`;
}

/** Return a notice for an empty list, with what to do about it. */
export function empty(title, ...text) {
  return h('div', {class: 'empty'}, h('h3', {}, title), h('p', {}, ...text));
}

export function waiting(text = 'Loading') {
  return h('p', {class: 'waiting'}, `${text} …`);
}

/** Fill an element with the result of an action, or with its error. */
export async function into(place, action, text) {
  place.replaceChildren(waiting(text));
  place.setAttribute('aria-busy', 'true');
  try {
    place.replaceChildren(...[await action()].flat(Infinity).filter(Boolean));
  } catch (error) {
    place.replaceChildren(fault(error, () => into(place, action, text)));
  } finally {
    place.removeAttribute('aria-busy');
  }
}
