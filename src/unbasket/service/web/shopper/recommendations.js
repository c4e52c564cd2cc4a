// A shopper's recommendations, each with its reasons: of a category, of what is new, with what is in the cart.

import * as api from '../lib/api.js';
import {strength} from '../lib/diff.js';
import {announce, button, field, fresh, h, show} from '../lib/dom.js';
import {basketName, number, percent, plural} from '../lib/format.js';
import {NEVER, PLUS, drawing} from '../lib/icons.js';
import {formatId} from '../lib/ids.js';
import {empty, into} from '../lib/notices.js';
import {Picked, categoryName, nameOf, product} from '../lib/products.js';
import {saveCart, savedCart, shopper as tokenOwner} from '../lib/session.js';
import {STORES, suppressButton} from '../lib/suppressions.js';
import {bar} from '../lib/widgets.js';

const SHOWN = 4; // baskets of an explanation
const READILY = 1.2; // the factor from which an item is one that people buy again

/** Return the categories to choose from: all of the shop's or, for shoppers, those of their own record. */
export async function categoriesFor(record) {
  if (tokenOwner() === undefined) return (await api.categories()).categories.map(({category}) => category);
  return (record?.categories() ?? []).map(([category]) => category);
}

/** Return a panel with a user's recommendations. With the user's `record`, each can be explained and suppressed. */
export function recommendations(user, categories, record) {
  const list = h('div', {'aria-live': 'polite'});
  const unbought = h('input', {type: 'checkbox'});
  const category = choice(categories);
  const heading = h('h2', {id: 'next', tabindex: '-1'}, 'For your next basket');
  let latest = 0;
  const load = () => {
    latest += 1;
    const mine = latest;
    return into(list, async () => {
      const query = {only_new: unbought.checked, category: category.value, cart: cart.items().map(formatId)};
      const answer = await api.recommendations(user, query);
      if (mine !== latest) return [...list.childNodes]; // a newer choice has superseded this one
      show(heading, answer.popular ? 'What most shoppers buy' : 'For your next basket');
      if (!answer.recommendations.length) return nothing(unbought.checked || category.value !== '');
      return ranking(user, answer, cart, record);
    });
  };
  const cart = new Picked('In my cart', () => {
    saveCart(user, cart.entries);
    box.hidden = !cart.entries.length;
    (box.hidden ? heading : box.querySelector('li:last-child button')).focus();
    load();
  });
  cart.fill(savedCart(user));
  const box = h('div', {class: 'cart', hidden: !cart.entries.length}, h('h3', {}, 'In my cart'), cart.list);
  for (const control of [unbought, category]) control.addEventListener('change', load);
  load();
  return h(
    'section',
    {class: 'panel recommendations', 'aria-labelledby': 'next'},
    h(
      'header',
      {},
      heading,
      record && h('label', {class: 'check'}, unbought, h('span', {}, 'only what I have not bought before')),
    ),
    categories.length > 0 && field('Category', category),
    box,
    list,
  );
}

function choice(categories) {
  const options = categories
    .map((category) => ({category, name: categoryName(category)}))
    .sort((one, other) => one.name.localeCompare(other.name))
    .map(({category, name}) => h('option', {value: category}, name));
  return h('select', {}, h('option', {value: ''}, 'All categories'), options);
}

function nothing(chosen) {
  const reason = chosen ? 'Nothing fits what you have chosen.' : 'There are no baskets to learn from.';
  return empty('No recommendations', reason);
}

function ranking(user, {popular, recommendations: entries}, cart, record) {
  const best = popular ? null : entries[0].score;
  return h(
    'ol',
    {class: 'ranks'},
    entries.map((entry) => {
      const line = h('li');
      const fill = () => show(line, rank(user, entry, best, cart, record, line, fill));
      return fill();
    }),
  );
}

/** Return the parts of one line. `fill` shows them again, after a suppression that was undone. */
function rank(user, entry, best, cart, record, line, fill) {
  const name = nameOf(entry);
  const put = button(drawing(PLUS), () => putInto(cart, entry), {
    class: 'cross',
    'aria-label': `Put ${name} into my cart`,
    title: 'Into my cart',
  });
  const shown = product(entry, best !== null && strength(entry, best));
  if (best === null || !record) return [shown, put];
  const never = suppressButton(user, entry, line, fill, drawing(NEVER), {
    class: 'cross',
    'aria-label': `Don’t recommend ${name} again`,
    title: `Don’t recommend this again. ${STORES}`,
  });
  const reasons = h('div', {class: 'reasons', id: fresh('why'), hidden: true});
  const wish = () => [suppressButton(user, entry, line, fill, undefined, {class: 'plain'}), h('small', {}, STORES)];
  const toggle = button('Why?', () => explain(user, entry, toggle, reasons, cart, record, wish), {
    class: 'plain',
    'aria-expanded': 'false',
    'aria-controls': reasons.id,
    'aria-label': `Why am I seeing ${name}?`,
  });
  return [shown, toggle, never, put, reasons];
}

function putInto(cart, entry) {
  cart.put(entry);
  announce(`${nameOf(entry)} is in your cart. The recommendations follow.`);
}

/** Explain a recommendation. Only what was bought can be removed; explanations cover stored baskets, not the cart. */
async function explain(user, entry, toggle, reasons, cart, record, wish) {
  const opening = reasons.hidden;
  reasons.hidden = !opening;
  toggle.setAttribute('aria-expanded', String(opening));
  if (!opening) return show(reasons);
  reasons.setAttribute('role', 'status');
  return into(
    reasons,
    async () => [
      await why(user, entry.item),
      cart.entries.length > 0 && h('p', {class: 'muted'}, 'These are the reasons without your cart.'),
      record.holding(entry.item) > 0 &&
        button('Remove it from my history …', () => record.removeItem(entry), {class: 'plain danger'}),
      h('p', {class: 'wish'}, wish()),
    ],
    'Finding out why',
  );
}

/** Return the shares of the user's own baskets and of similar shoppers in an item's score, as bars and in words. */
async function why(user, item) {
  const found = await api.explanation(user, item);
  const own = found.baskets.reduce((sum, basket) => sum + basket.share, 0);
  const whole = own + found.neighbors_share;
  if (!(whole > 0)) return h('p', {}, 'Your baskets and those of similar shoppers give no reason for it.');
  return h('div', {}, split(own / whole), h('p', {}, sentence(found, own / whole)), baskets(found.baskets, whole));
}

function split(own) {
  return h(
    'div',
    {class: 'split'},
    bar(own, `${percent(own)} from your own baskets, ${percent(1 - own)} from similar shoppers`),
    h(
      'div',
      {class: 'ends', 'aria-hidden': 'true'},
      h('span', {}, `your baskets ${percent(own)}`),
      h('span', {}, `similar shoppers ${percent(1 - own)}`),
    ),
  );
}

function sentence({baskets: mine, neighbors, neighbors_with_item: having, factor}, own) {
  const first = mine.length
    ? `You bought it in ${plural(mine.length, 'basket')}: that is ${percent(own)} of the reason. ${readiness(factor)}`
    : 'You have not bought it. ';
  const others = `the ${neighbors === null ? '' : `${number(neighbors)} `}most similar shoppers`;
  if (having === null) return `${first}Few or none of ${others} buy it.`; // the service shows no small counts
  if (!having) return `${first}None of ${others} buys it.`;
  const adds = mine.length ? `; that adds ${percent(1 - own)}` : '';
  const verb = having === 1 ? 'buys' : 'buy';
  return `${first}${number(having)} of ${others} ${verb} it${adds}.`;
}

/** Say whether an item is one that people buy again. */
function readiness(factor) {
  if (factor >= READILY) return 'People here buy this again more readily than most things. ';
  if (factor <= 1 / READILY) return 'People here buy this again less readily than most things. ';
  return '';
}

function baskets(shares, whole) {
  if (!shares.length) return null;
  const sorted = [...shares].sort((one, other) => other.share - one.share);
  const rest = sorted.slice(SHOWN).reduce((sum, basket) => sum + basket.share, 0);
  const rows = sorted.slice(0, SHOWN).map((basket) => row(basketName(basket), basket.share / whole));
  if (sorted.length > SHOWN) rows.push(row(`${sorted.length - SHOWN} more`, rest / whole));
  return h('ul', {class: 'shares'}, rows);
}

function row(label, share) {
  return h('li', {}, h('span', {}, label), bar(share), h('span', {class: 'score'}, percent(share)));
}
