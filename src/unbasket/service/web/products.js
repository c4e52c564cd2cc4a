// How a product is written: a tile, its name, and its category in words.

import {h} from './dom.js';
import {tile} from './icons.js';
import {isSensitive, mark} from './sensitive.js';

/** The name of an item, or its id if the shop has not named it. */
export function nameOf(entry) {
  return entry.name === undefined ? String(entry.item) : calm(entry.name);
}

/** A category as people read it: the part that says most comes first. */
export function categoryName(category) {
  return calm(category.split(' / ').reverse().join(', '));
}

/** The part of a category's name that says most. */
export function shortCategoryName(category) {
  return calm(category.split(' / ').at(-1));
}

/** Tills write in capitals; people read better without. */
function calm(text) {
  const shouted = text === text.toUpperCase() && text !== text.toLowerCase();
  return shouted ? text[0] + text.slice(1).toLowerCase() : text;
}

export function product(entry) {
  return h(
    'span',
    {class: 'product'},
    tile(entry.category, nameOf(entry)),
    h(
      'span',
      {class: 'names'},
      h('span', {class: 'name'}, nameOf(entry)),
      entry.category &&
        h('span', {class: 'category'}, categoryName(entry.category), isSensitive(entry.category) && [' ', mark()]),
    ),
  );
}
