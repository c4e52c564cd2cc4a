// A modal window: the browser keeps the focus inside, closes it with Escape, and gives the focus back. It stays open
// while an action is under way.

import {fresh, h} from './dom.js';

/** Open a window with a heading; returns {body, heading, close}. `closed` is called when it is gone. */
export function open(title, closed = () => {}) {
  const heading = h('h2', {id: fresh('title'), tabindex: '-1'}, title);
  const body = h('div', {class: 'body'});
  const dialog = h('dialog', {'aria-labelledby': heading.id}, heading, body);
  dialog.addEventListener('cancel', (event) => body.querySelector('[aria-busy="true"]') && event.preventDefault());
  dialog.addEventListener('close', () => {
    dialog.remove();
    closed();
  });
  document.body.append(dialog);
  dialog.showModal();
  heading.focus();
  return {body, heading, close: () => dialog.close()};
}
