// Who is signed in, and what they are a member of.

import { call, hooks } from './api.js';
import { h } from './dom.js';

/** @typedef {{uuid: string, name: string, createdAt: string, firstAdmin: string, personal: boolean, role: string, workspaces: Array<{uuid: string, name: string, role: string, manager: boolean}>}} Org */

export const session = {
  /** @type {any} */ me: null,
  /** @type {Org[]} */ orgs: [],
  /** @type {Set<() => void>} */ listeners: new Set(),
};

const channel = new BroadcastChannel('kedge-session');

// The cookie is one for all tabs: after another person signs in elsewhere, this page would go on
// to show the first one and act as the second.
channel.addEventListener('message', ({ data }) => {
  if (data.person && session.me !== null && data.person !== session.me.name) location.assign('/ui/');
});

/** Reads the person and their memberships. It rejects with the ApiError 401 if nobody is signed in. */
export async function load() {
  session.me = (await call('GET', '/api/users/me')).body;
  channel.postMessage({ person: session.me.name });
  if (session.me.phase && !session.me.deletionRequestedAt && session.me.registration === 'Approved') await loadMemberships();
}

/** Reads the memberships again and tells the switcher. */
export async function loadMemberships() {
  const { body } = await call('GET', '/api/users/me/memberships');
  session.orgs = grouped(body.items);
  for (const listener of session.listeners) listener();
}

/** @param {Array<Schema<'MembershipRow'>>} rows @returns {Org[]} */
function grouped(rows) {
  /** @type {Map<string, Org>} */
  const orgs = new Map();
  for (const row of rows) {
    const org = orgs.get(row.orgUUID) || {
      uuid: row.orgUUID, name: row.orgDisplayName, createdAt: row.orgCreatedAt, firstAdmin: row.orgFirstAdmin || '',
      personal: Boolean(row.personal), role: '', workspaces: [],
    };
    orgs.set(row.orgUUID, org);
    if (row.workspaceUUID) org.workspaces.push({ uuid: row.workspaceUUID, name: row.workspaceDisplayName || '', role: row.role, manager: Boolean(row.manager) });
    else org.role = row.role;
  }
  const byName = (/** @type {{name: string, uuid: string}} */ a, /** @type {{name: string, uuid: string}} */ b) => a.name.localeCompare(b.name) || a.uuid.localeCompare(b.uuid);
  for (const org of orgs.values()) org.workspaces.sort(byName);
  return [...orgs.values()].sort((a, b) => Number(b.personal) - Number(a.personal) || byName(a, b));
}

/** @param {string} uuid */
export function orgOf(uuid) {
  return session.orgs.find((org) => org.uuid === uuid);
}

/** Returns where to sign in, and to come back to. @param {string} to */
export function signInURL(to) {
  return `/auth/login?return_to=${encodeURIComponent(to)}`;
}

/** Sends the browser to the page that ends the session. */
export function signOut() {
  const form = h('form', { method: 'post', action: '/auth/logout', hidden: true }, h('input', { name: 'return_to', value: '/ui/sign-in' }));
  document.body.append(form);
  form.submit();
}

/** Tells the other tabs that somebody has signed in. */
export function announceSignIn() {
  channel.postMessage('signed-in');
}

/** @type {Promise<boolean>|null} */
let asking = null;

// A session that ends in the middle: the page stays as it is, with what was typed, while the
// person signs in in another tab. Then the request is sent again.
hooks.unauthenticated = () => {
  if (session.me === null) return Promise.resolve(false);
  asking = asking || ask(session.me.name).finally(() => { asking = null; });
  return asking;
};

/** @param {string} name @returns {Promise<boolean>} */
function ask(name) {
  return new Promise((resolve) => {
    const text = h('p', {}, 'Sign in again to go on. What you typed on this page is kept.');
    const dialog = h('dialog', { 'aria-labelledby': 'ended', class: 'ended' },
      h('h2', { id: 'ended' }, 'Your session has ended'), text,
      h('div', { class: 'actions' },
        h('button', { type: 'button', onclick: () => location.assign('/ui/sign-in') }, 'Leave'),
        h('a', { class: 'button primary', href: signInURL('/ui/signed-in'), target: '_blank', rel: 'opener' }, 'Sign in')));
    const check = async () => {
      const response = await fetch('/api/users/me', { cache: 'no-store' }).catch(() => null);
      if (!response || !response.ok) return;
      const me = await response.json();
      if (me.name !== name) { location.assign('/ui/'); return; }
      channel.removeEventListener('message', check);
      removeEventListener('focus', check);
      dialog.remove();
      resolve(true);
    };
    channel.addEventListener('message', check);
    addEventListener('focus', check);
    dialog.addEventListener('cancel', (/** @type {Event} */ e) => e.preventDefault());
    document.body.append(dialog);
    dialog.showModal();
  });
}

let reloading = 0;

// A right may have ended: the switcher must not go on to show it.
hooks.forbidden = () => {
  if (session.me === null || Date.now() - reloading < 2000) return;
  reloading = Date.now();
  loadMemberships().catch(() => {});
};
