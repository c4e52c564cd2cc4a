// While the service reads its database, the page says how far it is, and goes on by itself.

import {h, show} from './dom.js';
import {number} from './format.js';

const PAUSE = 500;

/** Returns when the service is ready. */
export async function wait(place) {
  for (;;) {
    const state = await ask();
    if (state.ready) return;
    show(place, screen(state));
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
  }
}

async function ask() {
  try {
    const response = await fetch('/readyz', {cache: 'no-store'});
    if (response.ok) return {ready: true};
    return await response.json();
  } catch {
    return {};
  }
}

function screen({progress, stage}) {
  const [done, all] = progress ?? [0, 0];
  const bar = h('progress', all ? {max: all, value: done, 'aria-label': 'Loading'} : {'aria-label': 'Loading'});
  if (all) bar.value = done;
  return h(
    'div',
    {class: 'empty'},
    h('h3', {}, 'The shop is being loaded'),
    bar,
    h('p', {}, all ? `${stage}: ${number(done)} of ${number(all)}` : 'This page goes on by itself.'),
  );
}
