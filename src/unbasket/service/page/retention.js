// Retention rules: stated in TOML, tried without effect, then run.

import * as api from './api.js';
import {button, field, h, show} from './dom.js';
import {open} from './dialog.js';
import {milliseconds, number, plural, removed} from './format.js';
import {fault, into} from './notices.js';
import {table} from './tables.js';

const EXAMPLE = `time_unit = "s"          # of the shop's times since 1970: "s", "ms", "us" or "day"

[[rule]]
name = "two years"
older_than_days = 730    # forget baskets that are older

[[rule]]
name = "no alcohol for those who opted out"
category = "Alcohol"     # forget items of this category ...
users = [1, 5]           # ... of these people; left out: everyone
`;

/** The form. */
export async function retention() {
  const rules = h('textarea', {rows: 12, spellcheck: 'false', wrap: 'off', value: EXAMPLE});
  const result = h('div', {class: 'result', role: 'status', 'aria-live': 'polite'});
  rules.addEventListener('input', () => show(result));
  return [
    h(
      'section',
      {class: 'panel'},
      h('h2', {}, 'Retention rules'),
      h(
        'p',
        {},
        'State what the shop does not keep. A purchase is forgotten if it meets all fields of a rule. ' +
          "The rules are not stored: keep them with the shop's own files.",
      ),
      field('Rules in TOML', rules),
      h(
        'div',
        {class: 'actions start'},
        button('Dry run', () => into(result, () => tried(rules.value, result), 'Counting'), {class: 'main'}),
      ),
    ),
    result,
  ];
}

async function tried(rules, place) {
  const plan = await api.retention(rules, false);
  const some = plan.forgotten.purchases > 0;
  return h(
    'section',
    {class: 'panel'},
    h('h2', {}, 'Dry run'),
    counts(plan),
    h(
      'p',
      {},
      some ? `To be forgotten: ${removed(plan.forgotten)}. Nothing was changed yet.` : 'There is nothing to forget.',
    ),
    some &&
      h(
        'div',
        {class: 'actions'},
        button('Forget these …', () => confirm(rules, plan, place), {class: 'danger'}),
      ),
  );
}

function counts(plan) {
  const rows = plan.rules.map((rule) => [rule.name, number(rule.users), number(rule.baskets), number(rule.purchases)]);
  const warnings = plan.rules.flatMap((rule) =>
    rule.warnings.map((text) => h('p', {class: 'notice'}, `${rule.name}: ${text}`)),
  );
  return [warnings, table(['Rule', '#People', '#Baskets', '#Purchases'], rows, 'What each rule forgets')];
}

function confirm(rules, plan, place) {
  const dialog = open('Run the retention rules');
  const run = async () => {
    try {
      show(place, outcome(await api.retention(rules, true)));
    } catch (error) {
      show(place, fault(error));
    }
    dialog.close();
  };
  show(
    dialog.body,
    h('p', {}, `This forgets ${removed(plan.forgotten)} for good, with a receipt for each forget.`),
    h('div', {class: 'actions'}, button('Keep them', dialog.close), button('Forget for good', run, {class: 'danger'})),
  );
}

function outcome(answer) {
  return h(
    'section',
    {class: 'panel'},
    h('h2', {}, 'Forgotten'),
    h(
      'p',
      {},
      `${removed(answer.forgotten)}, with ${plural(answer.receipts, 'receipt')}, in ${milliseconds(answer.seconds)}.`,
    ),
    h('p', {}, h('a', {href: '#/officer/receipts'}, 'See the receipts')),
  );
}
