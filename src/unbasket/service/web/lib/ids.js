// Ids of a kind are all numbers or all texts: the service knows which, and takes 17 and "17" for the same id. Whole
// numbers go up to 2^63: those that a JavaScript number can't hold are kept as BigInt. As in domain/id_text.py, a text in
// JSON's quotes is its content; a test compares the two.

/** Return an id as a path segment of a URL. */
export function segment(id) {
  return encodeURIComponent(formatId(id));
}

/** Return an id as a person would type it. */
export function formatId(id) {
  const text = String(id);
  const ambiguous = isQuoted(text) || text === '.' || text === '..'; // dots would be taken for folders of a URL
  return ambiguous ? JSON.stringify(text) : text;
}

/** Return the id that a typed text spells. */
export function parseId(text) {
  if (isQuoted(text)) return JSON.parse(text);
  const number = wholeNumber(text);
  return number === null ? text : number;
}

/** Return whether two ids are equal, whatever their types. */
export function same(a, b) {
  return String(a) === String(b);
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
