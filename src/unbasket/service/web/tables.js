// Tables that scroll by themselves when they are wider than the screen.

import {h} from './dom.js';

/** A table; a heading that starts with # is of a column of figures. */
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
