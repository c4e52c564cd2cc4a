// The HTTP API, as /openapi.json describes it: calls by group, parameters, shapes, an example, and a way to try.

import {button, field, h, show} from './dom.js';
import {fault, into} from './notices.js';
import {example, shape} from './schema.js';
import {token} from './session.js';
import * as signin from './signin.js';
import {table} from './tables.js';

const METHODS = ['get', 'put', 'post', 'delete', 'patch'];

async function render() {
  const document_ = await (await fetch('/openapi.json')).json();
  const groups = grouped(document_);
  return [
    h('h1', {}, document_.info.title, ' ', h('span', {class: 'muted'}, document_.info.version)),
    prose(document_.info.description),
    h(
      'div',
      {class: 'reference'},
      h(
        'nav',
        {'aria-label': 'Groups of calls'},
        [...groups.keys()].map((name) => h('a', {href: `#${anchor(name)}`}, name)),
      ),
      h(
        'div',
        {class: 'calls'},
        [...groups].map(([name, calls]) =>
          h(
            'section',
            {class: 'group', id: anchor(name)},
            h('h2', {}, name),
            calls.map((call) => entry(call, document_)),
          ),
        ),
      ),
    ),
  ];
}

/** Paragraphs, with what stands between backquotes as code. */
function prose(text = '') {
  const words = (paragraph) => paragraph.split('`').map((part, place) => (place % 2 ? h('code', {}, part) : part));
  return (
    text.trim() &&
    text
      .trim()
      .split(/\n{2,}/)
      .map((paragraph) => h('p', {class: 'prose'}, words(paragraph)))
  );
}

const anchor = (name) => `group-${name.toLowerCase().replace(/\W+/g, '-')}`;

/** Calls by their tag, or by the first part of their path. */
function grouped(document_) {
  const groups = new Map();
  for (const [path, methods] of Object.entries(document_.paths)) {
    for (const method of METHODS.filter((name) => name in methods)) {
      const call = methods[method];
      const name = call.tags?.[0] ?? path.split('/').find((part) => part && part !== 'v1') ?? path;
      groups.set(name, [...(groups.get(name) ?? []), {path, method, ...call}]);
    }
  }
  return groups;
}

function entry(call, document_) {
  const inside = h('div', {class: 'inside'});
  const element = h(
    'details',
    {class: 'call'},
    h(
      'summary',
      {},
      h('span', {class: `method ${call.method}`}, call.method.toUpperCase()),
      h('code', {}, call.path),
      h('span', {class: 'muted'}, call.summary),
    ),
    inside,
  );
  element.addEventListener('toggle', () => inside.childNodes.length || show(inside, details(call, document_)), {
    once: true,
  });
  return element;
}

function details(call, document_) {
  const body = jsonBody(call);
  return [
    prose(call.description),
    parameters(call, document_),
    body && h('section', {}, h('h4', {}, 'Body'), h('pre', {tabindex: '0'}, shape(body, document_))),
    h('section', {}, h('h4', {}, 'Answers'), answers(call, document_)),
    trial(call, document_),
  ];
}

function jsonBody(call) {
  return call.requestBody?.content?.['application/json']?.schema;
}

function parameters(call, document_) {
  if (!call.parameters?.length) return null;
  const rows = call.parameters.map((one) => [
    h('code', {}, one.name),
    one.in,
    one.required ? 'yes' : 'no',
    h('code', {}, shape(one.schema ?? {}, document_)),
  ]);
  return h('section', {}, h('h4', {}, 'Parameters'), table(['Name', 'In', 'Required', 'Type'], rows, 'Parameters'));
}

function answers(call, document_) {
  return Object.entries(call.responses).map(([status, answer]) => {
    const schema = answer.content?.['application/json']?.schema;
    if (!schema || Number(status) >= 400)
      return h('div', {class: 'answer'}, h('code', {}, status), prose(answer.description));
    return [
      h('div', {class: 'answer'}, h('code', {}, status), prose(answer.description)),
      h('pre', {tabindex: '0'}, shape(schema, document_)),
    ];
  });
}

/** Fields for the parameters and the body, the curl line that they make, and a button that sends it. */
function trial(call, document_) {
  const inputs = (call.parameters ?? [])
    .filter((one) => one.in !== 'header')
    .map((one) => ({one, input: h('input', {type: 'text', size: 16, autocomplete: 'off'})}));
  const schema = jsonBody(call);
  const body =
    schema && h('textarea', {rows: 6, spellcheck: 'false', value: JSON.stringify(example(schema, document_), null, 2)});
  const line = h('pre', {tabindex: '0', 'aria-label': 'curl example'});
  const result = h('div', {role: 'status', 'aria-live': 'polite'});
  const write = () => show(line, curl(call, address(call, inputs), body?.value));
  for (const control of [...inputs.map(({input}) => input), ...(body ? [body] : [])])
    control.addEventListener('input', write);
  write();
  return h(
    'section',
    {class: 'group'},
    h('h4', {}, 'Try it'),
    inputs.length > 0 &&
      h(
        'div',
        {class: 'row'},
        inputs.map(({one, input}) => field(one.name, input)),
      ),
    body && field('Body', body),
    line,
    h(
      'div',
      {class: 'actions start'},
      button('Send', () => into(result, () => send(call, address(call, inputs), body?.value), 'Sending'), {
        class: 'main',
      }),
    ),
    result,
  );
}

function address(call, inputs) {
  const query = new URLSearchParams();
  let path = call.path;
  for (const {one, input} of inputs) {
    if (one.in === 'path')
      path = path.replace(`{${one.name}}`, input.value ? encodeURIComponent(input.value) : `{${one.name}}`);
    else if (input.value) query.append(one.name, input.value);
  }
  return query.size ? `${path}?${query}` : path;
}

function curl(call, path, body) {
  const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const parts = ['curl', call.method === 'get' ? '' : `-X ${call.method.toUpperCase()}`, quote(location.origin + path)];
  if (token()) parts.push('-H "Authorization: Bearer $UNBASKET_KEY"');
  if (body) parts.push("-H 'Content-Type: application/json'", `-d ${quote(body)}`);
  return parts.filter(Boolean).join(' ');
}

async function send(call, path, body) {
  const headers = token() ? {Authorization: `Bearer ${token()}`} : {};
  if (body) headers['Content-Type'] = 'application/json';
  const started = performance.now();
  const response = await fetch(path, {
    method: call.method.toUpperCase(),
    headers,
    body: body || undefined,
    cache: 'no-store',
  });
  const text = await response.text();
  return [
    h(
      'p',
      {},
      h('strong', {}, `${response.status} ${response.statusText}`),
      ` in ${Math.round(performance.now() - started)} ms`,
    ),
    text && h('pre', {tabindex: '0'}, pretty(text)),
  ];
}

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

signin.install(document.getElementById('who'));
signin.identify().catch((error) => show(document.getElementById('main'), fault(error)));
const view = h('div', {class: 'view'});
show(document.getElementById('main'), view);
await into(view, render);
