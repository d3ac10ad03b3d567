// What waits for the person, as marks in the bar at the top, and where they were let in since the last look.

import { all, call } from './api.js';
import { announce, h, named, note } from './dom.js';
import { session } from './session.js';

/** Something is asked again at most so often. */
const every = 30e3;

let last = 0;
/** @type {AbortController|null} */
let asking = null;

/** Draws the marks. @param {Element} top is the bar */
export async function mark(top) {
  if (session.me === null || session.me.deletionRequestedAt || session.me.registration !== 'Approved') return;
  if (Date.now() - last < every && !location.pathname.startsWith('/ui/admin') && location.pathname !== '/ui/') return;
  last = Date.now();
  asking?.abort();
  asking = new AbortController();
  const { signal } = asking;
  const people = session.me.platformAdmin ? all('/api/admin/users?registration=Pending', { signal }).then((p) => p.length) : 0;
  const offers = call('GET', '/api/users/me/invitations', { signal }).then((a) => a.body.items.length);
  const [waiting, invited] = await Promise.all([people, offers]).catch(() => [0, 0]);
  if (signal.aborted) return;
  set(top, '/ui/admin', waiting, count(waiting, 'person waits for approval', 'people wait for approval'));
  const fresh = freshPlaces().length;
  set(top, '/ui/', invited + fresh, [count(invited, 'invitation for you', 'invitations for you'), count(fresh, 'new place', 'new places')].filter(Boolean).join(', '));
}

/** @param {number} n @param {string} one @param {string} many */
function count(n, one, many) {
  return n === 0 ? '' : `${n} ${n === 1 ? one : many}`;
}

/** Sets or takes away the mark beside a link. @param {Element} top @param {string} href @param {number} n @param {string} text */
function set(top, href, n, text) {
  const old = top.querySelector(`.mark[href="${href}"]`);
  if (old?.getAttribute('title') === text) return;
  old?.remove();
  const link = top.querySelector(`a[href="${href}"]`);
  if (!link || n === 0) return;
  link.after(h('a', { class: 'mark', href, title: text }, h('span', { 'aria-hidden': 'true' }, String(n)), h('span', { class: 'visually-hidden' }, text)));
  announce(text);
}

/** The key in this browser of the places that the person has seen. */
function key() {
  return `kedge-places ${session.me.name}`;
}

/** Returns the places that somebody let the person in to since the last look at them. */
function freshPlaces() {
  const before = localStorage.getItem(key());
  // Nothing is news at the first look.
  if (before === null) return [];
  const seen = new Set(before.split(' '));
  // Admins are in every workspace of their organization, and people made those of which they are the first admin.
  return session.orgs.flatMap((o) => [
    ...(o.role && o.firstAdmin !== session.me.name && !o.personal ? [{ id: o.uuid, name: o.name, href: `/ui/orgs/${o.uuid}` }] : []),
    ...(o.role === 'admin' ? [] : o.workspaces.map((w) => ({ id: w.uuid, name: w.name, href: `/ui/orgs/${o.uuid}/workspaces/${w.uuid}` }))),
  ]).filter((p) => !seen.has(p.id));
}

/** Keeps that the person has seen a place that they made. @param {string} uuid */
export function seen(uuid) {
  localStorage.setItem(key(), `${localStorage.getItem(key()) || ''} ${uuid}`.trim());
}

/** Says where somebody let the person in since the last look, which this is. */
export function news() {
  const fresh = freshPlaces();
  localStorage.setItem(key(), session.orgs.flatMap((o) => [o.uuid, ...o.workspaces.map((w) => w.uuid)]).join(' '));
  return fresh.length > 0 && note('', h('p', {}, 'New for you: ', fresh.map((p, i) => [i > 0 && ', ', h('a', { href: p.href }, named(p.name))])));
}
