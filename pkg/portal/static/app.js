// Starts the portal: finds the page of the URL, and keeps what is around it.

import { ApiError } from './lib/api.js';
import { onBack } from './lib/connection.js';
import { announce, h } from './lib/dom.js';
import { markWaiting } from './lib/requests.js';
import { load, orgOf, session, signOut } from './lib/session.js';
import { errorNote, heading } from './lib/ui.js';
import './lib/switcher.js';
import { mark } from './lib/waiting.js';
import * as access from './pages/access.js';
import * as activity from './pages/activity.js';
import * as admin from './pages/admin.js';
import * as adminorgs from './pages/adminorgs.js';
import * as adminperson from './pages/adminperson.js';
import * as adminaccess from './pages/adminaccess.js';
import * as adminbilling from './pages/adminbilling.js';
import * as adminusage from './pages/adminusage.js';
import * as bot from './pages/bot.js';
import * as bots from './pages/bots.js';
import * as catalog from './pages/catalog.js';
import * as deleted from './pages/deleted.js';
import * as deletions from './pages/deletions.js';
import * as entry from './pages/entry.js';
import * as firststeps from './pages/firststeps.js';
import * as invitation from './pages/invitation.js';
import * as me from './pages/me.js';
import * as members from './pages/members.js';
import * as org from './pages/org.js';
import * as orgs from './pages/orgs.js';
import * as provider from './pages/provider.js';
import * as providers from './pages/providers.js';
import * as requests from './pages/requests.js';
import * as settings from './pages/settings.js';
import * as signedin from './pages/signedin.js';
import * as signin from './pages/signin.js';
import * as usage from './pages/usage.js';
import * as workspace from './pages/workspace.js';

/**
 * @typedef {object} Page
 * @property {HTMLElement} main
 * @property {Record<string, string>} params
 * @property {URLSearchParams} query
 * @property {AbortSignal} signal ends when the page is left
 * @property {(...children: any[]) => void} show
 * @property {(name: string) => void} title
 * @property {(workspace: string) => void} name tells the switcher the name of the Workspace
 * @property {() => void} reload
 * @property {() => void} frame draws the bar at the top after an open page found who is signed in
 * @property {() => void} refresh is reload, with the bar at the top drawn anew
 * @property {(url: string) => void} go
 * @property {(again: () => Promise<boolean>) => void} poll calls again each second until it returns true
 */

const id = '([0-9a-f-]{36})';
/** Auditors see those with audit among the pages of platform admins.
 * @type {Array<{pattern: RegExp, params: string[], page: {render: (page: Page) => Promise<void>}, tab?: string, open?: boolean, audit?: boolean}>} */
const routes = [
  { pattern: /^\/ui\/$/, params: [], page: orgs },
  { pattern: /^\/ui\/sign-in$/, params: [], page: signin, open: true },
  { pattern: /^\/ui\/signed-in$/, params: [], page: signedin, open: true },
  { pattern: new RegExp(`^/ui/invitations/${id}$`), params: ['invitation'], page: invitation, open: true },
  { pattern: /^\/ui\/first-steps$/, params: [], page: firststeps },
  { pattern: /^\/ui\/me$/, params: [], page: me },
  { pattern: /^\/ui\/deleted$/, params: [], page: deleted },
  { pattern: /^\/ui\/admin$/, params: [], page: admin, tab: 'People', audit: true },
  { pattern: /^\/ui\/admin\/people\/([^/]+)$/, params: ['name'], page: adminperson, tab: 'People', audit: true },
  { pattern: /^\/ui\/admin\/orgs$/, params: [], page: adminorgs, tab: 'Organizations', audit: true },
  { pattern: /^\/ui\/admin\/audit$/, params: [], page: activity, tab: 'Activity', audit: true },
  { pattern: /^\/ui\/admin\/usage$/, params: [], page: adminusage, tab: 'Usage', audit: true },
  { pattern: /^\/ui\/admin\/billing$/, params: [], page: adminbilling, tab: 'Billing', audit: true },
  { pattern: /^\/ui\/admin\/access$/, params: [], page: adminaccess, tab: 'Access', audit: true },
  { pattern: /^\/ui\/admin\/catalog$/, params: [], page: catalog, tab: 'Catalog' },
  { pattern: new RegExp(`^/ui/admin/catalog/${id}$`), params: ['entry'], page: entry, tab: 'Catalog' },
  { pattern: /^\/ui\/admin\/deletions$/, params: [], page: deletions, tab: 'Deletions' },
  { pattern: new RegExp(`^/ui/orgs/${id}$`), params: ['org'], page: org, tab: 'Workspaces' },
  { pattern: new RegExp(`^/ui/orgs/${id}/members$`), params: ['org'], page: members, tab: 'Members' },
  { pattern: new RegExp(`^/ui/orgs/${id}/catalog$`), params: ['org'], page: catalog, tab: 'Catalog' },
  { pattern: new RegExp(`^/ui/orgs/${id}/catalog/${id}$`), params: ['org', 'entry'], page: entry, tab: 'Catalog' },
  { pattern: new RegExp(`^/ui/orgs/${id}/requests$`), params: ['org'], page: requests, tab: 'Requests' },
  { pattern: new RegExp(`^/ui/orgs/${id}/activity$`), params: ['org'], page: activity, tab: 'Activity' },
  { pattern: new RegExp(`^/ui/orgs/${id}/access$`), params: ['org'], page: access, tab: 'Access' },
  { pattern: new RegExp(`^/ui/orgs/${id}/usage$`), params: ['org'], page: usage, tab: 'Usage' },
  { pattern: new RegExp(`^/ui/orgs/${id}/settings$`), params: ['org'], page: settings, tab: 'Settings' },
  { pattern: new RegExp(`^/ui/orgs/${id}/workspaces/${id}$`), params: ['org', 'ws'], page: workspace, tab: 'Overview' },
  { pattern: new RegExp(`^/ui/orgs/${id}/workspaces/${id}/members$`), params: ['org', 'ws'], page: members, tab: 'Members' },
  { pattern: new RegExp(`^/ui/orgs/${id}/workspaces/${id}/requests$`), params: ['org', 'ws'], page: requests, tab: 'Requests' },
  { pattern: new RegExp(`^/ui/orgs/${id}/workspaces/${id}/bots$`), params: ['org', 'ws'], page: bots, tab: 'Bots' },
  { pattern: new RegExp(`^/ui/orgs/${id}/workspaces/${id}/bots/${id}$`), params: ['org', 'ws', 'bot'], page: bot, tab: 'Bots' },
  { pattern: new RegExp(`^/ui/orgs/${id}/workspaces/${id}/providers$`), params: ['org', 'ws'], page: providers, tab: 'Providers' },
  { pattern: new RegExp(`^/ui/orgs/${id}/workspaces/${id}/providers/${id}$`), params: ['org', 'ws', 'entry'], page: provider, tab: 'Providers' },
  { pattern: new RegExp(`^/ui/orgs/${id}/workspaces/${id}/activity$`), params: ['org', 'ws'], page: activity, tab: 'Activity' },
  { pattern: new RegExp(`^/ui/orgs/${id}/workspaces/${id}/access$`), params: ['org', 'ws'], page: access, tab: 'Access' },
  { pattern: new RegExp(`^/ui/orgs/${id}/workspaces/${id}/usage$`), params: ['org', 'ws'], page: usage, tab: 'Usage' },
];

/** The pages below it are those of platform admins and auditors. */
const adminPath = '/ui/admin';

const main = /** @type {HTMLElement} */ (document.getElementById('main'));
const tabs = /** @type {HTMLElement} */ (document.getElementById('tabs'));
let leaving = new AbortController();
/** Whether the page of the URL could not be shown. */
let failed = false;

/** @param {string} path */
function match(path) {
  for (const route of routes) {
    const found = route.pattern.exec(path);
    if (found) return { route, params: Object.fromEntries(route.params.map((name, i) => [name, found[i + 1]])) };
  }
  return null;
}

/** Shows the page of the URL. @param {boolean} [focus] */
async function show(focus = true) {
  leaving.abort();
  leaving = new AbortController();
  failed = false;
  const { signal } = leaving;
  const found = match(location.pathname);
  // What has the focus is about to go: the heading gets it, so that the keyboard goes on from there.
  const held = main.contains(document.activeElement) || document.querySelector('dialog[open]') !== null;
  main.replaceChildren(h('p', { class: 'loading', role: 'status' }, 'Loading…'));
  frame(found?.params || {}, found?.route.tab);
  try {
    if (!found) throw new ApiError(404, { message: 'there is no such page; choose one above' }, '');
    if (session.me === null && !found.route.open && !(await enter(signal))) return;
    signal.throwIfAborted();
    if (session.me?.deletionRequestedAt && !found.route.open && location.pathname !== '/ui/me') {
      history.replaceState(null, '', '/ui/me');
      return void show(focus);
    }
    frame(found.params, found.route.tab);
    if (location.pathname.startsWith(adminPath) && !(session.me.platformAdmin || (session.me.auditor && found.route.audit))) {
      throw new ApiError(404, { message: 'only platform admins can use this page' }, '');
    }
    await found.route.page.render(pageOf(found.params, signal));
  } catch (problem) {
    if (signal.aborted) return;
    failed = true;
    document.title = 'Not shown - kedge';
    announce('This page cannot be shown');
    main.replaceChildren(heading('This page cannot be shown', null), errorNote(problem, () => show()));
  }
  if (signal.aborted) return;
  if (focus || (held && document.activeElement === document.body)) (main.querySelector('h1') || main).focus({ preventScroll: true });
  if (focus) scrollTo(0, 0);
}

/** Reads who is signed in; nobody leads to the sign-in. @param {AbortSignal} signal */
async function enter(signal) {
  try {
    await load();
    return true;
  } catch (problem) {
    if (!(problem instanceof ApiError) || (problem.status !== 401 && problem.status !== 403)) throw problem;
    if (problem.status === 403) throw problem;
    if (!signal.aborted) go(`/ui/sign-in?to=${encodeURIComponent(location.pathname + location.search)}`, true);
    return false;
  }
}

/** @param {Record<string, string>} params @param {AbortSignal} signal @returns {Page} */
function pageOf(params, signal) {
  return {
    main, params, signal, query: new URLSearchParams(location.search),
    go: (url) => { if (!signal.aborted) go(url); },
    show: (...children) => { if (!signal.aborted) main.replaceChildren(...children.flat().filter(Boolean)); },
    title: (name) => {
      if (signal.aborted) return;
      document.title = `${name} - kedge`;
      announce(name);
    },
    name: (workspace) => { if (!signal.aborted) switcher()?.at({ org: params.org, workspace: params.ws }, workspace); },
    frame: () => { if (!signal.aborted) frame(params); },
    reload: () => { if (!signal.aborted) show(false); },
    refresh: () => {
      if (signal.aborted) return;
      document.querySelector('kedge-switcher')?.remove();
      show(false);
    },
    poll: (again) => poll(again, signal),
  };
}

/** @param {() => Promise<boolean>} again @param {AbortSignal} signal */
function poll(again, signal) {
  const next = () => setTimeout(async () => {
    if (signal.aborted) return;
    // A dialog that is open belongs to the page as it is.
    const idle = !document.hidden && navigator.onLine && !document.querySelector('dialog[open]');
    if (idle && (await again().catch(() => false))) return;
    next();
  }, 1000);
  next();
}

/** @param {string} url @param {boolean} [replace] */
function go(url, replace = false) {
  if (replace) history.replaceState(null, '', url);
  else history.pushState(null, '', url);
  show();
}

/** @returns {any} */
function switcher() {
  return document.querySelector('kedge-switcher');
}

/** Draws the bar at the top and the tabs. @param {Record<string, string>} params @param {string} [tab] */
function frame(params, tab) {
  const top = /** @type {HTMLElement} */ (document.getElementById('top'));
  const signedIn = session.me !== null;
  if (signedIn && !top.querySelector('kedge-switcher')) {
    const requested = h('span', {});
    markWaiting(requested).catch(() => {});
    top.replaceChildren(h('a', { class: 'brand', href: '/ui/' }, 'kedge'), h('kedge-switcher'), h('span', { class: 'grow' }),
      h('nav', { 'aria-label': 'Account' },
        requested,
        (session.me.platformAdmin || session.me.auditor) && h('a', { href: '/ui/admin' }, session.me.platformAdmin ? 'Admin' : 'Audit'),
        h('a', { href: '/ui/deleted' }, 'Deleted items'),
        h('a', { href: '/ui/me' }, h('bdi', {}, session.me.displayName || session.me.name)),
        h('button', { type: 'button', class: 'plain', onclick: signOut }, 'Sign out')));
  }
  switcher()?.at({ org: params.org, workspace: params.ws });
  for (const link of top.querySelectorAll('nav a')) {
    if (location.pathname.startsWith(link.getAttribute('href') || '-')) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  if (signedIn) void mark(top);
  const links = signedIn ? tabsOf(params) : [];
  tabs.hidden = links.length === 0;
  tabs.replaceChildren(...links.map(([text, href]) => h('a', { href, 'aria-current': text === tab ? 'page' : null }, text)));
}

/** @param {Record<string, string>} params @returns {Array<[string, string]>} */
function tabsOf({ org, ws }) {
  if (location.pathname.startsWith(adminPath)) {
    if (!session.me.platformAdmin && !session.me.auditor) return [];
    /** @type {Array<[string, string]>} */
    const managed = session.me.platformAdmin ? [['Catalog', `${adminPath}/catalog`], ['Deletions', `${adminPath}/deletions`]] : [];
    return [
      ['People', adminPath], ['Organizations', `${adminPath}/orgs`], ...managed, ['Activity', `${adminPath}/audit`],
      ['Usage', `${adminPath}/usage`], ['Billing', `${adminPath}/billing`], ['Access', `${adminPath}/access`],
    ];
  }
  if (ws) {
    const base = `/ui/orgs/${org}/workspaces/${ws}`;
    const own = orgOf(org)?.workspaces.find((w) => w.uuid === ws);
    // A manager without a role sees nothing of what is in the Workspace.
    if (own?.manager && own.role === '' && !orgOf(org)?.role) return [['Overview', base], ['Members', `${base}/members`], ['Requests', `${base}/requests`]];
    /** @type {Array<[string, string]>} */
    const audited = orgOf(org)?.role === 'admin' || own?.role === 'admin' ? [['Activity', `${base}/activity`], ['Access', `${base}/access`], ['Usage', `${base}/usage`]] : [];
    return [['Overview', base], ['Members', `${base}/members`], ['Requests', `${base}/requests`], ['Bots', `${base}/bots`], ['Providers', `${base}/providers`], ...audited];
  }
  if (!org) return [];
  const base = `/ui/orgs/${org}`;
  // People who are in Workspaces only see nothing else of an Organization.
  if (orgOf(org)?.role === '') return [['Workspaces', base]];
  /** @type {Array<[string, string]>} */
  const audited = orgOf(org)?.role === 'admin' ? [['Access', `${base}/access`], ['Usage', `${base}/usage`]] : [];
  return [
    ['Workspaces', base], ['Members', `${base}/members`], ['Requests', `${base}/requests`], ['Catalog', `${base}/catalog`],
    ['Activity', `${base}/activity`], ...audited, ['Settings', `${base}/settings`],
  ];
}

document.addEventListener('click', (e) => {
  const link = e.target instanceof Element ? e.target.closest('a') : null;
  if (!link || e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
  if (link.target || link.hasAttribute('download') || link.origin !== location.origin || !link.pathname.startsWith('/ui/')) return;
  if (link.hash && link.pathname === location.pathname) return;
  e.preventDefault();
  go(link.pathname + link.search);
});
addEventListener('popstate', () => show());
// A page that comes back from the browser's memory may be that of somebody who has signed out.
addEventListener('pageshow', (e) => { if (e.persisted) location.reload(); });
onBack(() => { if (failed) show(false); });
show(false);
