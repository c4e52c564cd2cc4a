// Figures, times and baskets as people write them.

import {formatId} from './ids.js';

const count = new Intl.NumberFormat('en');
const day = new Intl.DateTimeFormat('en', {day: 'numeric', month: 'short', year: 'numeric', timeZone: 'UTC'});
const minute = new Intl.DateTimeFormat('en', {dateStyle: 'medium', timeStyle: 'short', timeZone: 'UTC'});

/** 12345 as "12,345". */
export function number(value) {
  return count.format(value);
}

/** "1 basket", "3 baskets". */
export function plural(value, noun) {
  return `${number(value)} ${noun}${Number(value) === 1 ? '' : 's'}`;
}

/** Say how much was removed: "2 purchases, 1 whole basket". */
export function removed({purchases, baskets, users}) {
  const parts = [plural(purchases, 'purchase')];
  if (baskets) parts.push(plural(baskets, 'whole basket'));
  if (users) parts.push(users === 1 ? 'the customer record' : `${number(users)} customer records`);
  return parts.join(', ');
}

/** Say how much a forget will erase: "One purchase will be erased.", "5 purchases, 2 whole baskets will be erased." */
export function toBeErased(counts) {
  return `${removed(counts).replace(/^1 purchase/, 'One purchase')} will be erased.`;
}

/** A duration in milliseconds, with three digits that matter. */
export function milliseconds(seconds) {
  const value = seconds * 1000;
  return `${Number(value.toPrecision(3)) < 1000 ? Number(value.toPrecision(3)) : number(Math.round(value))} ms`;
}

/** A size of memory. */
export function bytes(value) {
  if (value < 2 ** 20) return `${number(Math.round(value / 2 ** 10))} KB`;
  if (value < 2 ** 30) return `${number(Math.round(value / 2 ** 20))} MB`;
  return `${(value / 2 ** 30).toFixed(2)} GB`;
}

/** A share of a whole; never a rounded nothing or everything. */
export function percent(part) {
  if (part > 0 && part < 0.01) return 'less than 1 %';
  if (part > 0.99 && part < 1) return 'more than 99 %';
  return `${Math.round(part * 100)} %`;
}

/** A score, short but never a rounded 0. */
export function score(value) {
  return value === 0 || value >= 0.0005 ? value.toFixed(3) : value.toExponential(1);
}

/** Return the title of a basket: its date, or its id if it has none. */
export function basketName({basket, time}) {
  return time === null ? `Basket ${formatId(basket)}` : date(time);
}

/** Return the same for use within a sentence. */
export function theBasket({basket, time}) {
  return time === null ? `basket ${formatId(basket)}` : `the basket of ${date(time)}`;
}

/** A basket's time. Shops state it in a unit of their own: it is a date if it can only be one. */
function date(time) {
  const value = Number(time);
  const unit = [
    [1e14, 1e-3],
    [1e11, 1],
    [3e8, 1000],
  ].find(([least]) => value >= least);
  return unit && value * unit[1] < 8e15 ? day.format(value * unit[1]) : `time ${time}`;
}

/** A receipt's moment. */
export function moment(text) {
  return minute.format(new Date(text));
}
