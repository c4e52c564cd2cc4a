// Progress while the service loads its database; the page continues by itself.

import {h, show} from './dom.js';
import {number} from './format.js';
import {empty} from './notices.js';

const PAUSE = 500;

const STAGES = {
  opening: 'Reading the baskets',
  preparing: 'Almost there',
};

/** Return when the service is ready. */
export async function wait(place) {
  for (;;) {
    const state = await ask();
    if (state?.ready) return;
    show(place, state ? loading(state) : lost());
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
  }
}

async function ask() {
  try {
    const response = await fetch('/readyz', {cache: 'no-store'});
    return await response.json();
  } catch {
    return null;
  }
}

function loading({progress: [done, all], stage}) {
  const bar = h('progress', {max: all || 1, 'aria-label': 'Loading'});
  if (all) bar.value = done;
  const words = STAGES[stage] ?? 'This page goes on by itself';
  const count = all && done < all ? `: ${number(done)} of ${number(all)}` : '';
  return h('div', {class: 'empty'}, h('h3', {}, 'The shop is loading'), bar, h('p', {}, `${words}${count}.`));
}

function lost() {
  return empty('The service does not answer', 'This page tries again by itself.');
}
