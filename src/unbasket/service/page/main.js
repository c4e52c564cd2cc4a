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
  if (location.hash === '#main') return document.getElementById('main').focus();
  const {view, rest} = route();
  leave();
  leave = () => {};
  document.title = `${TITLES[view]} · Unbasket`;
  for (const link of document.querySelectorAll('nav [data-view]')) {
    link.toggleAttribute('aria-current', link.dataset.view === view);
    if (link.dataset.view === view) link.setAttribute('aria-current', 'page');
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

window.addEventListener('hashchange', render);
document.addEventListener('signed-in', render);
document.addEventListener('signed-out', render);
signin.install(document.getElementById('who'));
await readiness.wait(document.getElementById('main'));
await render();
