// The routes of the service. Every response but a checkpoint is JSON; every error is an ApiError with the service's own message.

import {parse, segment, stringify} from './ids.js';
import {token} from './session.js';

export class ApiError extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

async function call(method, path, {query = {}, body, key = token(), quiet = false, plain = false} = {}) {
  const headers = {Accept: 'application/json'};
  if (key) headers.Authorization = `Bearer ${key}`;
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  const options = {method, headers, body: body === undefined ? undefined : stringify(body), cache: 'no-store'};
  let response;
  try {
    response = await fetch(path + encode(query), options);
  } catch {
    throw new ApiError(0, 'unreachable', 'The service does not answer.');
  }
  return plain && response.ok ? response.text() : answer(response, quiet);
}

/** Return the value of a response. A missing key makes the page ask for one, unless the request only tries out a key. */
async function answer(response, quiet) {
  const text = await response.text();
  let value = null;
  try {
    value = text ? parse(text) : null;
  } catch {
    throw new ApiError(response.status, 'not_json', `The service answered ${response.status}, and not in JSON.`);
  }
  if (response.ok) return value;
  const {code = 'unknown', message = `The service answered ${response.status}.`} = value?.error ?? {};
  if (response.status === 401 && !quiet) document.dispatchEvent(new CustomEvent('signin-needed'));
  throw new ApiError(response.status, code, message);
}

function encode(query) {
  const each = ([name, value]) => [value].flat().map((one) => [name, one]);
  const pairs = Object.entries(query)
    .flatMap(each)
    .filter(([, value]) => value !== undefined && value !== null && value !== '');
  return pairs.length ? `?${new URLSearchParams(pairs)}` : '';
}

/** Look up the owner of a key: {key, shopper, roles}. */
export const me = (key) => call('GET', '/v1/me', {key, quiet: true});

const get = (path, query) => call('GET', path, {query});
const post = (path, body) => call('POST', path, {body});
const person = (user) => `/v1/users/${segment(user)}`;

export const recommendations = (user, query = {}) => get(`${person(user)}/recommendations`, query);
export const explanation = (user, item) => get(`${person(user)}/explanations/${segment(item)}`);
export const preview = (user, change) => post(`${person(user)}/preview`, change);
export const verify = (user) => post(`${person(user)}/verify`);
export const similar = (user, n) => get(`${person(user)}/similar`, {n});
export const addBasket = (user, items, time) =>
  post(`${person(user)}/baskets`, time === undefined ? {items} : {items, time});
export const users = (query) => get('/v1/users', query);
export const items = (query) => get('/v1/items', query);
export const categories = () => get('/v1/categories');
export const events = (list) => post('/v1/events', list);
export const receipts = (query) => get('/v1/receipts', query);
export const verifyReceipts = (receipts) => post('/v1/receipts/verify', receipts && {receipts});
export const receiptProof = (number) => get(`/v1/receipts/${number}/proof`);
export const absence = (user) => get(`${person(user)}/absence`);
export const checkpoint = () => call('GET', '/v1/checkpoint', {plain: true});
export const verifyProof = (text) => post('/v1/proofs/verify', {text});
export const retention = (rules, run) => post('/v1/retention', {rules, run});
export const stats = () => get('/v1/stats');
export const learned = () => get('/v1/learned');
export const shopperToken = (user, seconds) => post('/v1/tokens', {user, seconds});

/** Return everything held about a user, or null. It takes two requests, since a 404 would be an error in the console. */
export async function held(user) {
  const {popular} = await recommendations(user, {n: 0});
  return popular ? null : get(person(user));
}

/** Forget what a scope names: a basket, an item, an item of a basket or a category; the whole user if it is empty. */
export function forget(user, {basket, item, category} = {}) {
  const parts = [person(user)];
  if (category !== undefined) parts.push('categories', encodeURIComponent(category));
  if (basket !== undefined) parts.push('baskets', segment(basket));
  if (item !== undefined) parts.push('items', segment(item));
  return call('DELETE', parts.join('/'));
}

/** Suppress an item for a user, or allow it again. */
export const suppress = (user, item) => call('PUT', `${person(user)}/suppressed/${segment(item)}`);
export const allow = (user, item) => call('DELETE', `${person(user)}/suppressed/${segment(item)}`);

/** Return all pages of a list, up to a limit; `page(after)` returns {[name]: [...], next}. */
export async function pages(page, name, most) {
  const found = [];
  let next;
  do {
    const part = await page(next);
    found.push(...part[name]);
    next = part.next;
  } while (next !== null && next !== undefined && found.length < most);
  return found;
}
