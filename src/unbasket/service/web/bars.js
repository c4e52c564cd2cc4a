// A share as a bar.

import {s} from './dom.js';

/** A bar that is filled up to a share of 1. `label`, if given, says it to those who can't see it. */
export function bar(share, label) {
  const width = Math.max(0, Math.min(1, share)) * 100;
  const meaning = label ? {role: 'img', 'aria-label': label} : {'aria-hidden': 'true'};
  return s(
    'svg',
    {class: 'meter', viewBox: '0 0 100 6', preserveAspectRatio: 'none', ...meaning},
    s('rect', {class: 'rest', width: 100, height: 6}),
    s('rect', {class: 'part', width, height: 6}),
  );
}
