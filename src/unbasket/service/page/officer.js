// The privacy officer's view: people, batches of requests, retention rules, receipts.

import {audit} from './audit.js';
import {batch} from './batch.js';
import {h, show as fill} from './dom.js';
import {into} from './notices.js';
import {people, person} from './files.js';
import {retention} from './retention.js';
import {tabs} from './tabs.js';

const PARTS = [
  ['people', 'People'],
  ['batch', 'Batch'],
  ['retention', 'Retention'],
  ['receipts', 'Receipts'],
];
const VIEWS = {people, batch, retention, receipts: audit};

export async function show(place, [part = 'people', text]) {
  const current = part in VIEWS ? part : 'people';
  const content = h('div', {class: 'part'});
  fill(place, h('h1', {}, 'Privacy officer'), tabs('officer', PARTS, current), content);
  await into(content, () => (current === 'people' && text ? person(text) : VIEWS[current]()));
}
