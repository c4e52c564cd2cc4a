// Builds DOM nodes. Data only ever becomes text or an attribute, so no id can become markup.

const SVG = 'http://www.w3.org/2000/svg';

/** Create an HTML element: h('button', {class: 'plain', onclick: f}, 'Text', node). */
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** Create an SVG element. */
export function s(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'value') element.value = value;
    else element.setAttribute(name, value === true ? '' : value);
  }
  append(element, children);
  return element;
}

function append(parent, children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    parent.append(child instanceof Node ? child : String(child));
  }
}

/** Replace the children of a node. */
export function show(parent, ...children) {
  parent.replaceChildren();
  append(parent, children);
  return parent;
}

let count = 0;

/** Return a new id for an element that a label or description refers to. */
export function fresh(prefix) {
  count += 1;
  return `${prefix}-${count}`;
}

/** Create a labeled field; `control` is an input, select or textarea. */
export function field(label, control, hint) {
  control.id ||= fresh('field');
  const help = hint && h('small', {id: fresh('hint')}, hint);
  if (help) control.setAttribute('aria-describedby', help.id);
  return h('div', {class: 'field'}, h('label', {for: control.id}, label), control, help);
}

/** Create a button with an action that may take a while. It ignores further clicks meanwhile. */
export function button(label, action, attributes = {}) {
  const element = h('button', {type: 'button', ...attributes}, label);
  element.addEventListener('click', () => busy(element, action));
  return element;
}

/** Run an action with a control marked busy. The control stays focusable: keyboard users keep their position. */
export async function busy(element, action) {
  if (element.getAttribute('aria-busy') === 'true') return;
  element.setAttribute('aria-busy', 'true');
  try {
    await action();
  } finally {
    element.removeAttribute('aria-busy');
  }
}

/** Announce a text to screen readers. */
export function announce(text) {
  const announcer = document.getElementById('announcer');
  if (announcer) announcer.textContent = text;
}

/** Have the browser save a text as a file. */
export function download(name, text, type = 'application/json') {
  const address = URL.createObjectURL(new Blob([text], {type}));
  const link = h('a', {href: address, download: name});
  document.body.append(link);
  link.click();
  link.remove();
  URL.revokeObjectURL(address);
}
