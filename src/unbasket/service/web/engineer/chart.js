// A line chart in SVG. Lines differ by their dashes and are named in a legend, so color is not needed to read them.

import {h, s} from '../lib/dom.js';

const WIDTH = 640;
const HEIGHT = 220;
const LEFT = 52;
const RIGHT = 10;
const TOP = 12;
const BOTTOM = 26;

/** Draw series of one length, oldest value first: [{name, values: [number or null]}]. `span` says how far they go. */
export function lines(series, {label, write, span}) {
  const length = series[0].values.length;
  const top = ceiling(Math.max(0, ...series.flatMap(({values}) => values.filter((value) => value !== null))));
  const x = (place) => LEFT + (WIDTH - LEFT - RIGHT) * (place / Math.max(1, length - 1));
  const y = (value) => HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value / top);
  return h(
    'figure',
    {class: 'chart'},
    s(
      'svg',
      {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img', 'aria-label': `${label}. Now: ${spoken(series, write)}`},
      grid(top, y, write),
      s('text', {class: 'tick', x: LEFT, y: HEIGHT - 6}, span),
      s('text', {class: 'tick', x: WIDTH - RIGHT, y: HEIGHT - 6, 'text-anchor': 'end'}, 'now'),
      series.map(({values}, number) => s('path', {class: `curve curve-${number}`, d: path(values, x, y)})),
    ),
    legend(series, write),
    h('figcaption', {class: 'muted'}, label),
  );
}

/** Return the next round figure above a value. */
function ceiling(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 2.5, 5, 10].map((step) => step * power).find((step) => step >= value);
}

function grid(top, y, write) {
  return [0, 0.5, 1].map((part) =>
    s(
      'g',
      {class: 'grid'},
      s('line', {x1: LEFT, x2: WIDTH - RIGHT, y1: y(top * part), y2: y(top * part)}),
      s('text', {x: LEFT - 6, y: y(top * part) + 4, 'text-anchor': 'end'}, write(top * part)),
    ),
  );
}

/** Draw a line through the values that exist. A single value becomes a dot, a line of no length. */
function path(values, x, y) {
  const known = (place) => values[place] !== null && values[place] !== undefined;
  const point = (place) => `${x(place).toFixed(1)} ${y(values[place]).toFixed(1)}`;
  return values
    .map((_, place) => {
      if (!known(place)) return '';
      if (known(place - 1)) return `L${point(place)}`;
      return known(place + 1) ? `M${point(place)}` : `M${point(place)}h0`;
    })
    .join('');
}

function legend(series, write) {
  return h(
    'ul',
    {class: 'legend', 'aria-hidden': 'true'},
    series.map(({name, values}, number) =>
      h(
        'li',
        {},
        s('svg', {viewBox: '0 0 28 8'}, s('path', {class: `curve curve-${number}`, d: 'M1 4h26'})),
        name,
        h('strong', {}, latest(values, write)),
      ),
    ),
  );
}

function latest(values, write) {
  return values.at(-1) === null ? '–' : write(values.at(-1));
}

function spoken(series, write) {
  return series.map(({name, values}) => `${name} ${latest(values, write)}`).join(', ');
}
