// Messages: faults, empty places, waiting.

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

/** A fault in the service's own words. `retry`, if given, is offered where trying again may help. */
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

/** The service begins its messages in lower case and ends them without a period. */
export function sentence(text) {
  return `${text[0].toUpperCase()}${text.slice(1)}${/[.?!]$/.test(text) ? '' : '.'}`;
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
    place.replaceChildren(fault(error, () => into(place, action, text)));
  } finally {
    place.removeAttribute('aria-busy');
  }
}
