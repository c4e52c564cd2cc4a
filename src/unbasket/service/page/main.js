// The frame around the views: routes in the address behind #, sign-in, readiness.

import {h, show} from './dom.js';
import * as engineer from './engineer.js';
import {fault} from './notices.js';
import * as officer from './officer.js';
import * as readiness from './readiness.js';
import {shopper as tokenOwner} from './session.js';
import * as shopper from './shopper.js';
import * as signin from './signin.js';

const VIEWS = {shopper, officer, engineer};
const TITLES = {shopper: 'Shopper', officer: 'Privacy officer', engineer: 'Engineer'};

let leave = () => {};

/** #/officer/people/ann is the view `officer` with ['people', 'ann']. */
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

async function render() {
  const {view, rest} = route();
  leave();
  leave = () => {};
  document.title = `${TITLES[view]} · Unbasket`;
  for (const link of document.querySelectorAll('nav [data-view]')) {
    link.setAttribute('aria-current', link.dataset.view === view ? 'page' : 'false');
    link.hidden = tokenOwner() !== undefined && link.dataset.view !== 'shopper';
  }
  const place = h('div', {class: `view ${view}`});
  show(document.getElementById('main'), place);
  try {
    leave = (await VIEWS[view].show(place, rest)) ?? (() => {});
  } catch (error) {
    show(place, fault(error));
  }
}

async function navigate() {
  const main = document.getElementById('main');
  await render();
  if (!main.contains(document.activeElement)) main.focus({preventScroll: true});
}

document.querySelector('.skip').addEventListener('click', (event) => {
  event.preventDefault();
  document.getElementById('main').focus();
});
window.addEventListener('hashchange', navigate);
document.addEventListener('signed-in', render);
document.addEventListener('signed-out', render);
signin.install(document.getElementById('who'));
await readiness.wait(document.getElementById('main'));
await render();
