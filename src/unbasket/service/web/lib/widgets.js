// Building blocks of the views: bars, dialogs, tables, tabs.

import {fresh, h, s} from './dom.js';

/** Return a bar filled to a share of 1. Screen readers read the `label`, if there is one. */
export function bar(share, label) {
  const width = Math.max(0, Math.min(1, share)) * 100;
  const meaning = label ? {role: 'img', 'aria-label': label} : {'aria-hidden': 'true'};
  return s(
    'svg',
    {class: 'meter', viewBox: '0 0 100 6', preserveAspectRatio: 'none', ...meaning},
    s('rect', {class: 'rest', width: 100, height: 6}),
    s('rect', {class: 'part', width, height: 6}),
  );
}

/**
 * Open a modal dialog with a heading; returns {body, heading, close}. `closed` is called after it has closed. The
 * browser keeps the focus inside and returns it at the end. The dialog stays open while an action is under way.
 */
export function openDialog(title, closed = () => {}) {
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

/** Return a table that scrolls by itself on a narrow screen. A heading with # is that of a column of figures. */
export function table(headings, rows, caption) {
  const figures = headings.map((heading) => heading.startsWith('#'));
  const head = headings.map((heading, column) =>
    h('th', {scope: 'col', class: figures[column] && 'figure'}, heading.replace(/^#/, '')),
  );
  const body = rows.map((row) =>
    h(
      'tr',
      {},
      row.map((cell, column) => h('td', {class: figures[column] && 'figure'}, cell)),
    ),
  );
  return h(
    'div',
    {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': caption},
    h('table', {}, h('caption', {class: 'unseen'}, caption), h('thead', {}, h('tr', {}, head)), h('tbody', {}, body)),
  );
}

/** Return links to the tabs of a view, [[name, label], ...], each with an address of its own. */
export function tabs(view, names, current) {
  const link = ([name, label]) =>
    h('a', {href: `#/${view}/${name}`, 'aria-current': name === current ? 'page' : 'false'}, label);
  return h('nav', {class: 'tabs', 'aria-label': 'Parts of this view'}, names.map(link));
}
