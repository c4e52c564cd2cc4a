// Retention rules: stated in TOML, tried without effect, then run.

import * as api from '../lib/api.js';
import {button, field, h, show} from '../lib/dom.js';
import {openDialog, table} from '../lib/widgets.js';
import {milliseconds, number, percent, plural, removed} from '../lib/format.js';
import {fault, into} from '../lib/notices.js';
import {isSensitive} from '../lib/products.js';

const EXAMPLE = `time_unit = "s"          # of the shop's times since 1970: "s", "ms", "us" or "day"

[[rule]]
name = "a hundred years"
older_than_days = 36500  # forget baskets that are older; two years are 730
`;
const LARGE = 0.1; // share of the shop above which a click is not enough

/** Return the form. */
export async function retention() {
  const {categories} = await api.categories();
  const rules = h('textarea', {rows: 9, spellcheck: 'false', wrap: 'off', value: EXAMPLE});
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
        'Say what the shop does not keep. A purchase is forgotten if it meets every condition of a rule. ' +
          "The rules are not stored here: keep them with the shop's own files.",
      ),
      categories.length > 0 && picker(categories, rules),
      field('Rules in TOML', rules),
      h(
        'div',
        {class: 'actions start'},
        button('Dry run', () => dryRun(rules.value, result), {class: 'main'}),
      ),
    ),
    result,
  ];
}

/** Return a list of all categories, by the names that rules need, with a button that writes a rule for one. */
function picker(categories, rules) {
  const option = ({category}) =>
    h('option', {value: category}, category + (isSensitive(category) ? ' (sensitive)' : ''));
  const select = h('select', {}, categories.map(option));
  const add = () => {
    const name = JSON.stringify(select.value);
    rules.value +=
      `\n[[rule]]\ncategory = ${name}\nolder_than_days = 730\n` +
      '# users = [17, 18]  # to forget it for these customers only\n';
    rules.dispatchEvent(new Event('input'));
    rules.scrollTop = rules.scrollHeight;
    rules.focus();
  };
  return h(
    'div',
    {class: 'row'},
    field('Category, by the name that rules use', select),
    button('Add a rule for it', add),
  );
}

async function dryRun(rules, place) {
  await into(place, () => tried(rules, place), 'Counting');
  place.scrollIntoView({block: 'nearest'});
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
      some
        ? [
            'To be forgotten: ',
            removed(plan.forgotten),
            '. ',
            h('strong', {}, `This is ${percent(plan.share)} of your data.`),
          ]
        : 'There is nothing to forget.',
      ' Nothing has been changed yet.',
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
  return [warnings, table(['Rule', '#Customers', '#Baskets', '#Purchases'], rows, 'What each rule forgets')];
}

function confirm(rules, plan, place) {
  const dialog = openDialog('Run the retention rules');
  const run = async () => {
    try {
      show(place, outcome(await api.retention(rules, true)));
    } catch (error) {
      show(place, fault(error));
    }
    dialog.close();
  };
  const large = plan.share > LARGE;
  const go = button('Forget for good', run, {class: 'danger', disabled: large});
  show(
    dialog.body,
    h('p', {}, `This forgets ${removed(plan.forgotten)} for good, with a signed receipt for each step.`),
    large && typed(percent(plan.share), go),
    h('div', {class: 'actions'}, button('Keep them', dialog.close), go),
  );
}

/** Require typing a large share before the button works, against mistakes. */
function typed(share, go) {
  const plain = (text) => text.replaceAll(/[\s%]/g, '');
  const input = h('input', {type: 'text', autocomplete: 'off', size: 8});
  input.addEventListener('input', () => (go.disabled = plain(input.value) !== plain(share)));
  return [
    h('p', {class: 'notice bad'}, h('strong', {}, `This is ${share} of your data.`), ' It cannot be brought back.'),
    field(`Type ${share} to confirm`, input),
  ];
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
