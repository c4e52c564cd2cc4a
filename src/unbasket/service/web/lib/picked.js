// Items picked one by one, which can be taken out again: a cart, or a basket made by hand.

import {button, h, show} from './dom.js';
import {CROSS, drawing} from './icons.js';
import {same} from './ids.js';
import {nameOf, product} from './products.js';

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
    this.entries = entries;
    show(
      this.list,
      entries.map((entry) => this.line(entry)),
    );
    this.changed();
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
