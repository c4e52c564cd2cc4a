// Ids are numbers or texts, and 17 and "17" are two ids. A URL holds text only, so a text that looks like a number is
// written in JSON's quotes. Whole numbers go up to 2^63: those that a JavaScript number can't hold are kept as BigInt.

/** Return an id as a path segment of a URL. */
export function segment(id) {
  return encodeURIComponent(formatId(id));
}

/** Return an id as a person would type it. */
export function formatId(id) {
  if (typeof id !== 'string') return String(id);
  const ambiguous = wholeNumber(id) !== null || isQuoted(id) || id === '.' || id === '..';
  return ambiguous ? JSON.stringify(id) : id;
}

/** Return the id that a typed text means among known ids, by the service's rule. */
export function parseId(text, known) {
  if (isQuoted(text)) return JSON.parse(text);
  const number = wholeNumber(text);
  if (number === null) return text;
  const held = known.some((id) => typeof id !== 'string' && String(id) === text);
  return held || !known.some((id) => typeof id === 'string') ? number : text;
}

/** Return whether two ids are equal. */
export function same(a, b) {
  return key(a) === key(b);
}

/** Return a text that differs for different ids, as a key of maps. */
export function key(id) {
  return typeof id === 'string' ? `"${id}` : String(id);
}

function wholeNumber(text) {
  if (!/^(0|-?[1-9][0-9]{0,18})$/.test(text)) return null;
  const big = BigInt(text);
  if (BigInt.asIntN(64, big) !== big) return null;
  return Number.isSafeInteger(Number(big)) ? Number(big) : big;
}

function isQuoted(text) {
  try {
    return typeof JSON.parse(text) === 'string';
  } catch {
    return false;
  }
}

/** Parse JSON; whole numbers that a JavaScript number can't hold become BigInt. */
export function parse(text) {
  return JSON.parse(text, (_, value, context) => {
    const source = context?.source;
    const unsafe = typeof value === 'number' && !Number.isSafeInteger(value) && /^-?[0-9]+$/.test(source ?? '');
    return unsafe ? BigInt(source) : value;
  });
}

/** Write a value as JSON. */
export function stringify(value, indent) {
  return JSON.stringify(value, (_, part) => (typeof part === 'bigint' ? raw(part) : part), indent);
}

function raw(big) {
  return JSON.rawJSON ? JSON.rawJSON(String(big)) : Number(big);
}
