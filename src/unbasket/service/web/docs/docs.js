// The HTTP API, from /openapi.json: routes by group, parameters, schemas, an example, and a form to try each.

import {button, field, h, show} from '../lib/dom.js';
import {fault, into} from '../lib/notices.js';
import {token} from '../lib/session.js';
import * as signin from '../lib/signin.js';
import {table} from '../lib/widgets.js';

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
        {'aria-label': 'Groups of routes'},
        [...groups.keys()].map((name) => h('a', {href: `#${anchor(name)}`}, name)),
      ),
      h(
        'div',
        {class: 'routes'},
        [...groups].map(([name, routes]) =>
          h(
            'section',
            {class: 'group', id: anchor(name)},
            h('h2', {}, name),
            routes.map((route) => entry(route, document_)),
          ),
        ),
      ),
    ),
  ];
}

/** Return paragraphs, with text between backquotes as code. */
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

/** Group routes by tag, or by the first part of their path. */
function grouped(document_) {
  const groups = new Map();
  for (const [path, methods] of Object.entries(document_.paths)) {
    for (const method of METHODS.filter((name) => name in methods)) {
      const route = methods[method];
      const name = route.tags?.[0] ?? path.split('/').find((part) => part && part !== 'v1') ?? path;
      groups.set(name, [...(groups.get(name) ?? []), {path, method, ...route}]);
    }
  }
  return groups;
}

function entry(route, document_) {
  const inside = h('div', {class: 'inside'});
  const element = h(
    'details',
    {class: 'route'},
    h(
      'summary',
      {},
      h('span', {class: `method ${route.method}`}, route.method.toUpperCase()),
      h('code', {}, route.path),
      h('span', {class: 'muted'}, route.summary),
    ),
    inside,
  );
  element.addEventListener('toggle', () => inside.childNodes.length || show(inside, details(route, document_)), {
    once: true,
  });
  return element;
}

function details(route, document_) {
  const body = jsonBody(route);
  return [
    prose(route.description),
    parameters(route, document_),
    body &&
      h(
        'section',
        {},
        h('h4', {}, 'Body'),
        h('pre', {tabindex: '0'}, schemaText(body.schema, document_)),
        fields(body.schema, document_),
      ),
    h('section', {}, h('h4', {}, 'Answers'), answers(route, document_)),
    trial(route),
  ];
}

function jsonBody(route) {
  return route.requestBody?.content?.['application/json'];
}

/** Return the descriptions of the fields of an object, or of the objects in a list. */
function fields(schema, document_) {
  const found = resolve(schema, document_);
  const parts = found.anyOf ?? (found.type === 'array' ? [found.items] : null);
  if (parts) return parts.map((part) => fields(part, document_));
  const rows = Object.entries(found.properties ?? {})
    .filter(([, part]) => part.description)
    .map(([name, part]) => [h('code', {}, name), prose(part.description)]);
  return rows.length > 0 && table(['Field', 'Meaning'], rows, `Fields of ${found.title}`);
}

function parameters(route, document_) {
  if (!route.parameters?.length) return null;
  const rows = route.parameters.map((one) => [
    h('code', {}, one.name),
    one.in,
    one.required ? 'yes' : 'no',
    h('code', {}, schemaText(one.schema ?? {}, document_)),
    prose(one.description),
  ]);
  const head = ['Name', 'In', 'Required', 'Type', 'Meaning'];
  return h('section', {}, h('h4', {}, 'Parameters'), table(head, rows, 'Parameters'));
}

function answers(route, document_) {
  return Object.entries(route.responses).map(([status, answer]) => {
    const {schema, example} = answer.content?.['application/json'] ?? {};
    if (!schema || Number(status) >= 400)
      return h('div', {class: 'answer'}, h('code', {}, status), prose(answer.description));
    return [
      h('div', {class: 'answer'}, h('code', {}, status), prose(answer.description)),
      h('pre', {tabindex: '0'}, schemaText(schema, document_)),
      fields(schema, document_),
      h('h4', {}, 'Example'),
      h('pre', {tabindex: '0'}, JSON.stringify(example, null, 2)),
    ];
  });
}

/** Return fields for the parameters and the body, the curl line they make, and a button that sends it. */
function trial(route) {
  const inputs = (route.parameters ?? [])
    .filter((one) => one.in !== 'header')
    .map((one) => {
      const placeholder = one.example ?? '';
      return {one, input: h('input', {type: 'text', size: 16, autocomplete: 'off', placeholder})};
    });
  const content = jsonBody(route);
  const value = content?.example ? JSON.stringify(content.example, null, 2) : '';
  const body = content && h('textarea', {rows: 6, spellcheck: 'false', value});
  const line = h('pre', {tabindex: '0', 'aria-label': 'curl example'});
  const result = h('div', {role: 'status', 'aria-live': 'polite'});
  const write = () => show(line, curl(route, address(route, inputs), body?.value));
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
      button('Send', () => into(result, () => send(route, address(route, inputs), body?.value), 'Sending'), {
        class: 'main',
      }),
    ),
    result,
  );
}

function address(route, inputs) {
  const query = new URLSearchParams();
  let path = route.path;
  for (const {one, input} of inputs) {
    if (one.in === 'path')
      path = path.replace(`{${one.name}}`, input.value ? encodeURIComponent(input.value) : `{${one.name}}`);
    else if (input.value) query.append(one.name, input.value);
  }
  return query.size ? `${path}?${query}` : path;
}

function curl(route, path, body) {
  const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const parts = ['curl', route.method === 'get' ? '' : `-X ${route.method.toUpperCase()}`, quote(location.origin + path)];
  if (token()) parts.push('-H "Authorization: Bearer $UNBASKET_KEY"');
  if (body) parts.push("-H 'Content-Type: application/json'", `-d ${quote(body)}`);
  return parts.filter(Boolean).join(' ');
}

async function send(route, path, body) {
  const headers = token() ? {Authorization: `Bearer ${token()}`} : {};
  if (body) headers['Content-Type'] = 'application/json';
  const started = performance.now();
  const response = await fetch(path, {
    method: route.method.toUpperCase(),
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

/** Resolve a reference to its schema. */
function resolve(schema, document_) {
  if (!schema.$ref) return schema;
  return schema.$ref
    .replace(/^#\//, '')
    .split('/')
    .reduce((part, name) => part[name], document_);
}

/** Write a schema as text: {"items": [text | whole number], "time"?: whole number}. */
function schemaText(schema, document_, indent = '', seen = []) {
  const name = schema.$ref;
  if (name && seen.includes(name)) return name.split('/').at(-1);
  const found = resolve(schema, document_);
  const deeper = name ? [...seen, name] : seen;
  const inner = (part, space = indent) => schemaText(part, document_, space, deeper);
  const options = found.anyOf ?? found.oneOf;
  if (options) return [...new Set(options.map((option) => inner(option)))].join(' | ');
  if (found.enum) return found.enum.map((value) => JSON.stringify(value)).join(' | ');
  if ('const' in found) return JSON.stringify(found.const);
  if (found.type === 'array' && found.prefixItems)
    return `[${found.prefixItems.map((part) => inner(part)).join(', ')}]`;
  if (found.type === 'array') return `[${inner(found.items ?? {})}, …]`;
  if (found.properties) return record(found, indent, inner);
  if (found.type === 'object')
    return found.additionalProperties ? `{name: ${inner(found.additionalProperties)}, …}` : '{}';
  return limits(found);
}

function record(found, indent, inner) {
  const space = `${indent}  `;
  const lines = Object.entries(found.properties).map(
    ([name, part]) => `${space}"${name}"${(found.required ?? []).includes(name) ? '' : '?'}: ${inner(part, space)}`,
  );
  return lines.length ? `{\n${lines.join(',\n')}\n${indent}}` : '{}';
}

function limits(found) {
  const names = {string: 'text', integer: 'whole number', number: 'number', boolean: 'true | false', null: 'null'};
  const text = [found.type ?? 'anything']
    .flat()
    .map((type) => names[type] ?? type)
    .join(' | ');
  const {minimum: low, maximum: high} = found;
  const small = (value) => value !== undefined && Math.abs(value) < 1e9;
  if (small(low) && small(high)) return `${text} from ${low} to ${high}`;
  return small(low) ? `${text} from ${low}` : text;
}

signin.install(document.getElementById('who'));
signin.identify().catch((error) => show(document.getElementById('main'), fault(error)));
const view = h('div', {class: 'view'});
show(document.getElementById('main'), view);
await into(view, render);
