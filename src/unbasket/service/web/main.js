// The frame around the views: routes in the URL's fragment, sign-in, readiness.

import {ApiError} from './lib/api.js';
import {h, show} from './lib/dom.js';
import * as engineer from './engineer/engineer.js';
import {number} from './lib/format.js';
import {empty, fault} from './lib/notices.js';
import * as officer from './officer/officer.js';
import {may, shopper as signedInShopper, who} from './lib/session.js';
import * as shopper from './shopper/shopper.js';
import * as signin from './lib/signin.js';

const VIEWS = {shopper, officer, engineer};
const TITLES = {shopper: 'Shopper', officer: 'Privacy officer', engineer: 'Engineer'};
const NEEDS = {shopper: 'privacy', officer: 'privacy', engineer: 'admin'};
const STAGES = {
  opening: 'Reading the baskets',
  preparing: 'Almost there',
};
const PAUSE = 500; // milliseconds between two requests for readiness

const uncaught = h('div', {});

let leave = () => {};

/** Parse the fragment: #/officer/customers/ann is the view `officer` with ['customers', 'ann']. */
function route() {
  const [view = '', ...rest] = location.hash.replace(/^#\/?/, '').split('/').map(decode);
  return view in VIEWS ? {view, rest} : {view: 'shopper', rest: []};
}

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Return whether the caller may open a view. */
function isOpen(view) {
  return may(NEEDS[view]) || (view === 'shopper' && signedInShopper() !== undefined);
}

async function render() {
  const {view, rest} = route();
  leave();
  leave = () => {};
  document.title = `${TITLES[view]} · Unbasket`;
  for (const link of document.querySelectorAll('nav [data-view]')) {
    link.setAttribute('aria-current', link.dataset.view === view ? 'page' : 'false');
    link.hidden = who() !== null && !isOpen(link.dataset.view);
  }
  const place = h('div', {class: `view ${view}`});
  show(uncaught);
  show(document.getElementById('main'), uncaught, place);
  try {
    if (who() === null) show(place, signin.signedOut());
    else if (!isOpen(view)) show(place, closed(view));
    else leave = (await VIEWS[view].show(place, rest)) ?? (() => {});
  } catch (error) {
    show(place, fault(error, render));
  }
}

function closed(view) {
  return h(
    'div',
    {class: 'notice'},
    h('strong', {}, `Your key does not open the view “${TITLES[view]}”`),
    h('p', {}, `It needs a key with the role “${NEEDS[view]}”. Sign out, and sign in with such a key.`),
  );
}

/** Identify the caller, which decides what is shown. */
async function start() {
  try {
    if (!(await signin.identify())) signin.ask();
  } catch (error) {
    show(document.getElementById('main'), fault(error, start));
  }
}

/** Render the view of the new address, and close open dialogs. */
async function navigate() {
  const main = document.getElementById('main');
  for (const dialog of document.querySelectorAll('dialog[open]')) dialog.close();
  await render();
  if (!main.contains(document.activeElement)) main.focus({preventScroll: true});
}

/** Show progress while the service loads its database, and return when it is ready. */
async function untilReady(place) {
  for (;;) {
    const state = await readiness();
    if (state?.ready) return;
    show(place, state ? loading(state) : lost());
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
  }
}

async function readiness() {
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

document.querySelector('.skip').addEventListener('click', (event) => {
  event.preventDefault();
  document.getElementById('main').focus();
});
window.addEventListener('hashchange', navigate);
window.addEventListener('unhandledrejection', (event) => {
  if (!(event.reason instanceof ApiError)) return;
  event.preventDefault(); // a fault that no view has caught is shown above it
  if (event.reason.status !== 401) show(uncaught, fault(event.reason, render));
});
document.addEventListener('signed-in', render);
document.addEventListener('signed-out', render);
signin.install(document.getElementById('who'));
await untilReady(document.getElementById('main'));
await start();
