// Everything held about a person: baskets, newest first, a page at a time, and a way to remove each part.

import {button, fresh, h, show} from './dom.js';
import {basketName, number, plural, theBasket} from './format.js';
import {forgetting} from './forgetting.js';
import {CROSS, drawing, tile} from './icons.js';
import {formatId, same} from './ids.js';
import {categoryName, isSensitive, nameOf, product, sensitiveBadge, shortCategoryName} from './products.js';

const PAGE = 8;
const CATEGORIES = 8;

/** A person's record, with controls to forget parts of it. `title` heads its summary; `done` is called after a forget. */
export class Record {
  constructor(held, title, done) {
    this.user = held.user;
    this.baskets = [...held.baskets].reverse();
    this.title = title;
    this.done = done;
  }

  purchases() {
    return this.baskets.flatMap((basket) => basket.items);
  }

  /** Return the number of baskets that hold an item. */
  holding(item) {
    return this.baskets.filter((basket) => basket.items.some((entry) => same(entry.item, item))).length;
  }

  /** Return categories with their numbers of purchases: sensitive ones first, then the largest. */
  categories() {
    const counts = new Map();
    for (const {category} of this.purchases()) if (category) counts.set(category, (counts.get(category) ?? 0) + 1);
    return [...counts].sort(
      ([one, a], [other, b]) => isSensitive(other) - isSensitive(one) || b - a || one.localeCompare(other),
    );
  }

  /** Count what a forget of this scope will erase. */
  erased({basket, item, category}) {
    const concerned = (held, entry) =>
      (basket === undefined || same(held.basket, basket)) &&
      (item === undefined || same(entry.item, item)) &&
      (category === undefined || entry.category === category);
    const gone = this.baskets.map((held) => held.items.filter((entry) => concerned(held, entry)).length);
    const baskets = this.baskets.filter((held, place) => gone[place] === held.items.length).length;
    const purchases = gone.reduce((sum, count) => sum + count, 0);
    return {purchases, baskets, users: baskets === this.baskets.length ? 1 : 0};
  }

  /** Open the dialog that forgets one of these choices, {label, scope, entry}. */
  remove(title, choices) {
    const counted = choices.map((choice) => ({...choice, erased: this.erased(choice.scope)}));
    forgetting(this.user, title, counted, this.done);
  }

  removeItem(entry, basket) {
    const times = this.holding(entry.item);
    const name = nameOf(entry);
    const choices = [];
    if (basket)
      choices.push({
        label: `${name}, only from ${theBasket(basket)}`,
        scope: {basket: basket.basket, item: entry.item},
        entry,
      });
    if (!basket || times > 1)
      choices.push({label: `${name}, from every basket (${number(times)})`, scope: {item: entry.item}, entry});
    if (entry.category) choices.push(this.categoryChoice(entry.category));
    this.remove(`Remove ${name}`, choices);
  }

  removeBasket(basket) {
    const label = `${basketName(basket)}: all of its ${plural(basket.items.length, 'item')}.`;
    this.remove('Remove a basket', [{label, scope: {basket: basket.basket}}]);
  }

  removeCategory(category) {
    this.remove(`Remove ${shortCategoryName(category)}`, [this.categoryChoice(category)]);
  }

  removeAll() {
    const baskets = plural(this.baskets.length, 'basket');
    const label = `Everything: ${baskets} with ${plural(this.purchases().length, 'purchase')}, and the id as well.`;
    this.remove('Remove everything', [{label, scope: {}}]);
  }

  categoryChoice(category) {
    const count = this.purchases().filter((entry) => entry.category === category).length;
    return {label: `Everything in ${categoryName(category)} (${plural(count, 'purchase')})`, scope: {category}};
  }
}

/** Return the record as a panel. */
export function history(record, title) {
  const heading = fresh('baskets');
  const search = h('input', {
    type: 'search',
    placeholder: 'Find a product',
    'aria-label': 'Find a product in these baskets',
  });
  const list = h('div', {class: 'baskets'});
  search.addEventListener('input', () => pages(record, list, search.value));
  pages(record, list, '');
  return h(
    'section',
    {class: 'panel history', 'aria-labelledby': heading},
    h(
      'header',
      {},
      h('h2', {id: heading}, title),
      h('span', {class: 'muted'}, 'newest first'),
      record.baskets.length > 1 && search,
    ),
    list,
  );
}

function pages(record, list, wanted) {
  const words = wanted.trim().toLowerCase();
  const hit = (entry) => `${nameOf(entry)} ${entry.category ?? ''}`.toLowerCase().includes(words);
  const found = words ? record.baskets.filter((basket) => basket.items.some(hit)) : record.baskets;
  show(list, found.length ? null : h('p', {class: 'muted'}, 'No basket contains such a product.'));
  more(record, list, found, words ? hit : () => false, 0);
}

function more(record, list, found, marked, start) {
  const added = found.slice(start, start + PAGE).map((basket) => card(record, basket, marked));
  list.append(...added);
  const left = found.length - start - added.length;
  if (left > 0) {
    const next = button(
      `Show ${Math.min(PAGE, left)} older (${number(left)} left)`,
      () => {
        next.remove();
        more(record, list, found, marked, start + PAGE);
      },
      {class: 'more'},
    );
    list.append(next);
  }
  if (start) added[0].querySelector('h3').focus();
}

function card(record, basket, marked) {
  return h(
    'article',
    {class: 'basket'},
    h(
      'header',
      {},
      h('h3', {tabindex: '-1'}, basketName(basket)),
      basket.time !== null && h('span', {class: 'muted'}, `basket ${formatId(basket.basket)}`),
      button('Remove …', () => record.removeBasket(basket), {
        class: 'plain',
        'aria-label': `Remove ${theBasket(basket)}`,
      }),
    ),
    h(
      'ul',
      {class: 'items'},
      basket.items.map((entry) => line(record, basket, entry, marked(entry))),
    ),
  );
}

function line(record, basket, entry, marked) {
  const label = `Remove ${nameOf(entry)} from ${theBasket(basket)}`;
  return h(
    'li',
    {class: marked && 'found'},
    product(entry),
    button(drawing(CROSS), () => record.removeItem(entry, basket), {
      class: 'cross',
      'aria-label': label,
      title: 'Remove …',
    }),
  );
}

/** Return the categories held, sensitive ones first, with controls to remove one or all. */
export function summary(record) {
  const categories = record.categories();
  const shown = categories.length > CATEGORIES + 1 ? CATEGORIES : categories.length; // one more is no reason to hide it
  const [first, rest] = [categories.slice(0, shown), categories.slice(shown)];
  return h(
    'section',
    {class: 'panel summary', 'aria-labelledby': 'kinds'},
    h(
      'header',
      {},
      h('h2', {id: 'kinds'}, record.title),
      button('Remove everything …', () => record.removeAll(), {class: 'plain danger'}),
    ),
    h('p', {class: 'muted'}, inventory(record, categories.length)),
    categories.length > 0 && chips(record, first, rest),
  );
}

function inventory(record, categories) {
  const size = `${plural(record.baskets.length, 'basket')} with ${plural(record.purchases().length, 'purchase')}`;
  if (!categories) return `${size}.`;
  const kinds = categories === 1 ? 'one category' : `${number(categories)} categories`;
  return `${size} in ${kinds}. Choose one to remove it: a preview comes first.`;
}

/** Return a chip for each category; those of `rest` appear on request. */
function chips(record, first, rest) {
  const entry = ([category, count]) => h('li', {}, chip(record, category, count));
  const list = h('ul', {class: 'chips'}, first.map(entry));
  const all = () => {
    const added = rest.map(entry);
    more.replaceWith(...added);
    added[0].querySelector('button').focus();
  };
  const more = h('li', {}, button(`${number(rest.length)} more …`, all, {class: 'chip more'}));
  if (rest.length) list.append(more);
  return list;
}

function chip(record, category, count) {
  const sensitive = isSensitive(category);
  const kind = sensitive ? 'sensitive category' : 'category';
  const label = `Remove ${kind} ${categoryName(category)}, ${plural(count, 'purchase')}`;
  return button(
    [
      tile(category),
      h('span', {}, shortCategoryName(category)),
      h('span', {class: 'count'}, number(count)),
      sensitive && sensitiveBadge(),
    ],
    () => record.removeCategory(category),
    {class: 'chip', 'aria-label': label, title: categoryName(category)},
  );
}
