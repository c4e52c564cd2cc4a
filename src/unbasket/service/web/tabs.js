// The parts of a view, each with an address of its own.

import {h} from './dom.js';

/** Links to the parts: [[name, label], ...]. */
export function tabs(view, parts, current) {
  const link = ([name, label]) =>
    h('a', {href: `#/${view}/${name}`, 'aria-current': name === current ? 'page' : 'false'}, label);
  return h('nav', {class: 'tabs', 'aria-label': 'Parts of this view'}, parts.map(link));
}
