// Two lists of recommendations side by side: items that moved, new ones, removed ones. A sign and a word mark each
// change, not color alone.

import {bar} from './widgets.js';
import {h} from './dom.js';
import {percent, score} from './format.js';
import {CROSS, DOWN, EQUAL, PLUS, UP, drawing} from './icons.js';
import {same} from './ids.js';
import {product} from './products.js';

const SIGNS = {up: UP, down: DOWN, new: PLUS, gone: CROSS, same: EQUAL};

/** Return each item's change against the other list: {kind, by}. */
export function compare(before, after) {
  const was = places(before);
  const is = places(after);
  return {
    before: before.map((entry) => (is.has(String(entry.item)) ? {kind: 'same', by: 0} : {kind: 'gone', by: 0})),
    after: after.map((entry, place) => change(was.get(String(entry.item)), place)),
  };
}

function places(entries) {
  return new Map(entries.map((entry, place) => [String(entry.item), place]));
}

function change(was, is) {
  if (was === undefined) return {kind: 'new', by: 0};
  if (was === is) return {kind: 'same', by: 0};
  return was > is ? {kind: 'up', by: was - is} : {kind: 'down', by: is - was};
}

/** Return whether two lists are equal, to the last bit of every score. */
export function identical(one, other) {
  return (
    one.length === other.length &&
    one.every((entry, place) => same(entry.item, other[place].item) && entry.score === other[place].score)
  );
}

/** Describe the change of the top ten in a sentence. */
export function inWords(before, after) {
  const kinds = compare(before, after);
  const count = (list, kind) => list.filter((entry) => entry.kind === kind).length;
  const parts = [
    [count(kinds.before, 'gone'), 'gone'],
    [count(kinds.after, 'new'), 'new'],
    [count(kinds.after, 'up'), 'moved up'],
    [count(kinds.after, 'down'), 'moved down'],
  ]
    .filter(([number]) => number)
    .map(([number, word]) => `${number} ${word}`);
  if (parts.length) return `In the top ten: ${parts.join(', ')}.`;
  return identical(before, after) ? 'The top ten stays the same.' : 'The top ten stays the same; only strengths change.';
}

/** Return the two lists as DOM. `write` shows a score: `strength` for shoppers, `figure` for engineers. */
export function sideBySide(before, after, {titles = ['Before', 'After'], popular = false, write = strength}) {
  const kinds = compare(before, after);
  const best = Math.max(...[...before, ...(popular ? [] : after)].map((entry) => entry.score));
  const shown = (entry) => write(entry, best);
  return h(
    'div',
    {class: 'sides'},
    side(titles[0], before, kinds.before, shown),
    side(titles[1], after, popular ? [] : kinds.after, shown),
  );
}

/** Return a score as a bar, full for the best item. */
export function strength(entry, best) {
  const share = best > 0 ? entry.score / best : 0;
  return h('span', {class: 'strength'}, bar(share, `Strength: ${percent(share)} of the strongest`));
}

/** Return a score as a figure. */
export function figure(entry) {
  return h('span', {class: 'score', title: 'score'}, score(entry.score));
}

/** Return one list. Popular items have no `kinds`: their scores are not personal. */
function side(title, entries, kinds, shown) {
  const list = h(
    'ol',
    {class: 'ranks'},
    entries.map((entry, place) => rank(entry, kinds[place], shown)),
  );
  return h(
    'section',
    {'aria-label': title},
    h('h4', {}, title),
    entries.length ? list : h('p', {class: 'muted'}, 'No recommendations.'),
  );
}

function rank(entry, change, shown) {
  if (!change) return h('li', {}, product(entry));
  return h('li', {class: `change-${change.kind}`}, product(entry), shown(entry), mark(change));
}

function mark({kind, by}) {
  const words = {up: `up ${by}`, down: `down ${by}`, new: 'new', gone: 'gone', same: ''}[kind];
  return h('span', {class: 'mark', title: words || 'same place'}, words && drawing(SIGNS[kind]), words);
}
