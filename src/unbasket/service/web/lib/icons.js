// Icons by category: a few strokes that match the category's name, else initials.

import {h, s} from './dom.js';

const PICTURES = [
  [/alcohol|wine|beer|spirit|liquor/i, 3, 'M8 3h8l-.6 6a3.4 3.4 0 0 1-6.8 0zM12 12.5V20M8.5 20.5h7'],
  [
    /baby|infant|diaper/i,
    10,
    'M9 7V5.5a3 3 0 0 1 6 0V7M8 7h8v3H8zM8.5 10h7v9a1.5 1.5 0 0 1-1.5 1.5h-4A1.5 1.5 0 0 1 8.5 19zM12 13.5h3M12 16.5h3',
  ],
  [
    /pet|cat food|dog/i,
    11,
    'M12 12.5c-2.6 0-5 2.7-5 5 0 1.6 1.3 2.5 2.7 2.2l2.3-.5 2.3.5c1.4.3 2.7-.6 2.7-2.2 0-2.3-2.4-5-5-5zM6 11.5v.1M9.5 6.5v.1M14.5 6.5v.1M18 11.5v.1',
  ],
  [
    /tobacco|cigar|vap(e|ing)/i,
    2,
    'M3 14.5h13v3.5H3zM12.5 14.5V18M19 14.5V18M19 11.5c0-2.5-2.5-2-2.5-5M22 14.5V18M22 11.5c0-3-2.5-3-2.5-6',
  ],
  [
    /health|medic|pharma|nutrition|vitamin|analgesic|antacid|remed|first aid|cold and flu/i,
    8,
    'M9.5 4.5h5v5h5v5h-5v5h-5v-5h-5v-5h5z',
  ],
  [
    /intimate|contracept|feminine/i,
    7,
    'M12 19.5s-7-4.3-7-9.2A3.8 3.8 0 0 1 12 8a3.8 3.8 0 0 1 7 2.3c0 4.9-7 9.2-7 9.2z',
  ],
  [
    /body|cosmetic|hair|soap|beauty|oral|deodorant|shav/i,
    4,
    'M9 10h6a2 2 0 0 1 2 2v7a1.5 1.5 0 0 1-1.5 1.5h-7A1.5 1.5 0 0 1 7 19v-7a2 2 0 0 1 2-2zM12 10V5M12 5h4M10 5h2',
  ],
  [
    /bak|bread|pastry|cake|roll|pie|cookie/i,
    2,
    'M5 10.5C5 7.5 8 6 12 6s7 1.5 7 4.5c0 1.2-.7 2-1.5 2.3V18a1 1 0 0 1-1 1h-9a1 1 0 0 1-1-1v-5.2C5.7 12.5 5 11.7 5 10.5zM10 9v3M14 9v3',
  ],
  [
    /dairy|milk|cheese|yogurt|egg|butter/i,
    6,
    'M9 3.5h6v3l2 3.5v9.5a1 1 0 0 1-1 1H8a1 1 0 0 1-1-1V10l2-3.5zM9 6.5h6M7 13.5h10',
  ],
  [
    /meat|fish|seafood|beef|pork|chicken|sausage|deli|turkey/i,
    7,
    'M4 12c2.5-4 6-5.5 9-5.5 3.2 0 5.5 2.7 7 5.5-1.5 2.8-3.8 5.5-7 5.5-3 0-6.5-1.5-9-5.5zM4 12 3 8.5M4 12l-1 3.5M15.5 11v.1',
  ],
  [
    /fruit|vegetable|produce|salad|berries|potato|tropical|citrus|tomato|onion/i,
    0,
    'M12 8c-1.2-1.2-6-1.5-6 4 0 4 2.5 8 4.5 8 .8 0 1-.5 1.5-.5s.7.5 1.5.5c2 0 4.5-4 4.5-8 0-5.5-4.8-5.2-6-4zM12 8c0-2 .8-3.5 2.5-4.5',
  ],
  [
    /sweet|snack|candy|chocolate|chips|crackers|popcorn|ice cream|dessert/i,
    9,
    'M8.5 12a3.5 3.5 0 1 0 7 0 3.5 3.5 0 0 0-7 0zM15 10l4-2.5v9L15 14M9 10 5 7.5v9L9 14',
  ],
  [
    /drink|water|juice|tea|coffee|soda|beverage/i,
    1,
    'M7 8h10l-1.2 11.6a1 1 0 0 1-1 .9H9.2a1 1 0 0 1-1-.9zM12 8l1.5-4.5H16M7.5 12.5h9',
  ],
  [/frozen/i, 6, 'M12 4v16M5 8l14 8M19 8 5 16M10 5.5l2 2 2-2M10 18.5l2-2 2 2'],
  [
    /floral|flower|garden|plant/i,
    5,
    'M12 12v8.5M12 17c-3 0-4.5-1.5-4.5-3.5M12 9.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM9 6.5a2.2 2.2 0 1 0 1 4M15 6.5a2.2 2.2 0 1 1-1 4',
  ],
  [
    /house|clean|laundry|paper|detergent|towel|kitchen|air care/i,
    8,
    'M10 9V6h4M14 6v3M9 9h6l1.5 4v6.5a1 1 0 0 1-1 1h-7a1 1 0 0 1-1-1V13zM14 6h3.5M7.5 14.5h9',
  ],
  [
    /pantry|grocery|pasta|rice|canned|sauce|cereal|soup|spice|oil/i,
    11,
    'M8 4.5h8v3H8zM8.5 7.5c-1 .8-1.5 1.6-1.5 3v8.5a1.5 1.5 0 0 0 1.5 1.5h7a1.5 1.5 0 0 0 1.5-1.5v-8.5c0-1.4-.5-2.2-1.5-3M7 12.5h10M7 16.5h10',
  ],
];

const HUES = 12;

/** Create a small colored tile for a category or, without one, for a name. The words always stand beside it. */
export function tile(category, name = '') {
  const text = category ?? '';
  const fits = (part) => PICTURES.find(([words]) => words.test(part));
  const [, hue, strokes] = fits(text.split(' / ').at(-1)) ?? fits(text) ?? [null, hueOf(text || name), null];
  return h(
    'span',
    {class: `tile hue-${hue}`, 'aria-hidden': 'true'},
    strokes ? drawing(strokes) : initials(text.split(' / ').at(-1) || name),
  );
}

/** Return the initials of two words, or the last two digits of a number: the first ones are often the same. */
export function initials(name) {
  if (/^-?\d+$/.test(name)) return name.slice(-2);
  const words = name.match(/[\p{L}\p{N}]+/gu) ?? [];
  const letters = words.slice(0, 2).map((word) => [...word][0]);
  return letters.join('').toUpperCase() || '?';
}

/** Create an icon from its strokes. */
export function drawing(strokes) {
  return s('svg', {viewBox: '0 0 24 24', class: 'icon', 'aria-hidden': 'true'}, s('path', {d: strokes}));
}

function hueOf(text) {
  let sum = 7;
  for (const letter of text) sum = (sum * 31 + letter.codePointAt(0)) % 9973;
  return sum % HUES;
}

export const CHECK = 'M5 12.5l4.5 4.5L19 7.5';
export const WARNING = 'M12 4.5 3.5 19.5h17zM12 10v4.5M12 17v.1';
export const UP = 'M12 19V5M6 11l6-6 6 6';
export const DOWN = 'M12 5v14M6 13l6 6 6-6';
export const PLUS = 'M12 5v14M5 12h14';
export const CROSS = 'M6 6l12 12M18 6 6 18';
export const EQUAL = 'M6 9.5h12M6 14.5h12';
export const DASH = 'M6 12h12';
export const NEVER = 'M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16zM6.5 6.5l11 11';
export const SHIELD = 'M12 3.5 5 6v5.5c0 4.3 2.9 7.4 7 9 4.1-1.6 7-4.7 7-9V6z';
export const SAVE = 'M12 4v11M7 11l5 5 5-5M5 20h14';
