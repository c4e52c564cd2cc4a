// A line chart in SVG. Lines differ by their dashes and are named at their ends, so colour is not needed to read them.

import {h, s} from './dom.js';

const WIDTH = 640;
const HEIGHT = 220;
const LEFT = 46;
const RIGHT = 84;
const TOP = 12;
const BOTTOM = 26;
const GAP = 20;

/** Draw series of points, oldest first: [{name, values: [number or null]}]. `length` is how many points fit. */
export function lines(series, {length, label, unit, write, span}) {
  const top = ceiling(Math.max(0, ...series.flatMap(({values}) => values.filter((value) => value !== null))));
  const x = (place) => LEFT + (WIDTH - LEFT - RIGHT) * (place / Math.max(1, length - 1));
  const y = (value) => HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value / top);
  return h(
    'figure',
    {class: 'chart'},
    s(
      'svg',
      {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img', 'aria-label': `${label}: ${spoken(series, write)}`},
      grid(top, y, write),
      axis(x, length, span),
      curves(series, length, x, y),
    ),
    h('figcaption', {}, label, unit && h('span', {class: 'muted'}, ` in ${unit}`)),
  );
}

/** The next round figure above a value. */
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

function axis(x, length, span) {
  return [
    s('text', {class: 'tick', x: LEFT, y: HEIGHT - 6}, span),
    s('text', {class: 'tick', x: x(length - 1), y: HEIGHT - 6, 'text-anchor': 'end'}, 'now'),
  ];
}

function curves(series, length, x, y) {
  const drawn = series.map(({name, values}, number) => {
    const start = length - values.length;
    const points = values.map((value, place) => value !== null && [x(start + place), y(value)]);
    return {name, number, points, end: points.findLast(Boolean)};
  });
  const visible = drawn.filter(({end}) => end);
  spread(visible);
  return visible.map(({name, number, points, end, label}) =>
    s(
      'g',
      {class: `curve curve-${number}`},
      s('path', {d: path(points)}),
      s('circle', {cx: end[0], cy: end[1], r: 3}),
      s('text', {x: end[0] + 8, y: label + 5}, name),
    ),
  );
}

/** Give each curve's name a height of its own, in the order of the curves, at the foot of the chart at most. */
function spread(curves) {
  let floor = HEIGHT - BOTTOM;
  for (const curve of curves.toSorted((one, other) => other.end[1] - one.end[1])) {
    curve.label = Math.min(curve.end[1], floor);
    floor = curve.label - GAP;
  }
}

function path(points) {
  return points
    .map((point, place) => point && `${points[place - 1] ? 'L' : 'M'}${point[0].toFixed(1)} ${point[1].toFixed(1)}`)
    .filter(Boolean)
    .join('');
}

function spoken(series, write) {
  return series
    .map(({name, values}) => `${name} ${values.at(-1) === null || !values.length ? 'none' : write(values.at(-1))}`)
    .join(', ');
}
