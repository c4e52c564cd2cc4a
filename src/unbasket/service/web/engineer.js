// The engineer's view: live figures, a basket to try, similar shoppers.

import {h, show as fill} from './dom.js';
import {live} from './figures.js';
import {into} from './notices.js';
import {neighbors} from './neighbors.js';
import {tabs} from './tabs.js';
import {trial} from './trial.js';

const PARTS = [
  ['live', 'Live figures'],
  ['try', 'Try a basket'],
  ['similar', 'Similar shoppers'],
];
const VIEWS = {live, try: trial, similar: neighbors};

/** Show a part; returns what stops it. */
export async function show(place, [part = 'live', text]) {
  const current = part in VIEWS ? part : 'live';
  const content = h('div', {class: 'part'});
  const ending = new AbortController();
  fill(place, h('h1', {}, 'Engineer'), tabs('engineer', PARTS, current), content);
  await into(content, () => VIEWS[current](text, ending.signal));
  return () => ending.abort();
}
