// Products: their names, categories and tiles, whether a category is sensitive, and a list of picked ones.

import {button, h, show} from './dom.js';
import {CROSS, SHIELD, drawing, tile} from './icons.js';
import {same} from './ids.js';

// Categories that say more about a person than most, told by the words in their names.
const SENSITIVE = [
  /alcohol|\b(wines?|beers?|ales?|ciders?|spirits?|liquors?|whisk(e)?y|vodka|cocktails?|coolers)\b/i,
  /tobacco|cigar|\bvap(e|ing)/i,
  /\b(baby|infants?|diapers?|newborn)\b|pregnan|maternity/i,
  /\bhealth|medic|pharm|remed(y|ies)|analgesic|antacid|laxative|first aid|cold and flu/i,
  /vitamin|diet(ary)? (aid|control)|diabet|incontinen/i,
  /intimate|contracept|condom|feminine|family planning|\bsex|\badult\b/i,
  /religio|kosher|halal|politic/i,
];

/** Return whether a category's name sounds sensitive. */
export function isSensitive(category) {
  return category !== undefined && SENSITIVE.some((words) => words.test(category));
}

/** Return a badge that says so, by a picture and a word. */
export function sensitiveBadge() {
  return h(
    'span',
    {class: 'sensitive', title: 'A category that says more about a person than most'},
    drawing(SHIELD),
    'sensitive',
  );
}

/** Return the name of an item, or its id if the shop has not named it. */
export function nameOf(entry) {
  return entry.name === undefined ? String(entry.item) : calm(entry.name);
}

/** Return a category as people read it, the most specific part first. */
export function categoryName(category) {
  return calm(category.split(' / ').reverse().join(', '));
}

/** Return the most specific part of a category's name. */
export function shortCategoryName(category) {
  return calm(category.split(' / ').at(-1));
}

/** Lower the case of names that tills write in capitals. */
function calm(text) {
  const shouted = text === text.toUpperCase() && text !== text.toLowerCase();
  return shouted ? text[0] + text.slice(1).toLowerCase() : text;
}

/** Return an item: its tile, its name, its category and, if given, a line below. */
export function product(entry, below) {
  return h(
    'span',
    {class: 'product'},
    tile(entry.category, nameOf(entry)),
    h(
      'span',
      {class: 'names'},
      h('span', {class: 'name'}, nameOf(entry)),
      entry.category &&
        h('span', {class: 'category'}, categoryName(entry.category), isSensitive(entry.category) && [' ', sensitiveBadge()]),
      below,
    ),
  );
}

/** A list of items picked one by one, which can be taken out again: a cart, or a basket made by hand. */
export class Picked {
  /** `changed` is called after every change. */
  constructor(label, changed = () => {}) {
    this.entries = [];
    this.changed = changed;
    this.list = h('ul', {class: 'picked', 'aria-label': label});
  }

  items() {
    return this.entries.map((entry) => entry.item);
  }

  put(entry) {
    if (!this.entries.some((other) => same(other.item, entry.item))) this.update([...this.entries, entry]);
  }

  take(entry) {
    this.update(this.entries.filter((other) => other !== entry));
  }

  clear() {
    this.update([]);
  }

  update(entries) {
    this.fill(entries);
    this.changed();
  }

  /** Show these entries, as at the start: that is not a change. */
  fill(entries) {
    this.entries = entries;
    show(
      this.list,
      entries.map((entry) => this.line(entry)),
    );
  }

  line(entry) {
    return h(
      'li',
      {},
      product(entry),
      button(drawing(CROSS), () => this.take(entry), {class: 'cross', 'aria-label': `Take ${nameOf(entry)} out`}),
    );
  }
}
