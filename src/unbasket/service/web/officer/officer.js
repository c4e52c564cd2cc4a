// The privacy officer's view: customers, batches of requests, retention rules, receipts.

import {audit} from './audit.js';
import {batch} from './batch.js';
import {customer, customers} from './customers.js';
import {h, show as fill} from '../lib/dom.js';
import {into} from '../lib/notices.js';
import {retention} from './retention.js';
import {tabs} from '../lib/widgets.js';

const PARTS = [
  ['customers', 'Customers'],
  ['batch', 'Requests'],
  ['retention', 'Retention'],
  ['receipts', 'Receipts'],
];
const VIEWS = {customers, batch, retention, receipts: audit};

export async function show(place, [part = 'customers', text]) {
  const current = part in VIEWS ? part : 'customers';
  const content = h('div', {class: 'part'});
  fill(place, h('h1', {}, 'Privacy officer'), tabs('officer', PARTS, current), content);
  await into(content, () => (current === 'customers' && text ? customer(text) : VIEWS[current]()));
}
