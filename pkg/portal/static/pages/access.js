// For admins: who has, or had at a moment, access to an Organization or a Workspace, and through what.

import { call, orgPath, workspacePath } from '../lib/api.js';
import { h, named, note } from '../lib/dom.js';
import { badge, capital, end, local, moment, sentence } from '../lib/format.js';
import { workspaceNames } from '../lib/places.js';
import { roleText } from '../lib/rights.js';
import { heading, table } from '../lib/ui.js';

/** Where access comes from, in words. @type {Record<string, string>} */
const through = {
  OrgAdmin: 'admin of the organization', Membership: 'membership', DefaultAccess: 'default access of the organization', Bot: 'bot of the workspace',
};

/** The time before the moment at which the hub at least looked. */
const lately = 60e3;

/** @param {import('../app.js').Page} page */
export async function render(page) {
  const { org, ws } = page.params;
  const path = ws ? workspacePath(org, ws) : orgPath(org);
  const wanted = page.query.get('at') || '';
  const { body } = wanted
    ? await call('GET', `${path}/access?at=${encodeURIComponent(wanted)}`, { signal: page.signal })
    : await call('GET', `${path}/access`, { signal: page.signal });
  const noun = ws ? 'workspace' : 'organization';
  const names = ws ? new Map() : await workspaceNames(org, page.signal);
  page.title('Access');
  page.show(
    heading('Access', `Who ${wanted ? 'had' : 'has'} access to this ${noun}${ws ? '' : ' and to what is in it'}, and through what.`),
    form(page, wanted),
    answer(body, { ws, noun, wanted, names }),
  );
}

/**
 * Shows an answer. wanted is the moment that it is about, or empty, and names are those of Workspaces.
 * @param {Schema<'PastAccess'>} body @param {{ws?: string, noun: string, wanted: string, names: Map<string, string>}} of
 */
export function answer(body, { ws, noun, wanted, names }) {
  /** @type {Schema<'AccessHolder'>[]} */
  const items = body.items;
  return [
    body.message && note('warn', sentence(body.message)),
    body.asOf && Date.parse(body.at) - Date.parse(body.asOf) > lately
    && note('warn', 'The hub recorded nothing from ', moment(body.asOf), ' on until after this moment. What changed in between is not known.'),
    table('Access', [
      { title: 'Who', cell: (i) => who(i) },
      ...(ws ? [] : [{ title: 'Where', cell: (/** @type {Schema<'AccessHolder'>} */ i) => where(names, i) }]),
      { title: 'Role', cell: (i) => [roleText(i), i.sudo && [' ', badge('warn', 'sudo')], i.roles && h('span', { class: 'second' }, i.roles.map(role))] },
      { title: 'Through', cell: (i) => i.through.map(source) },
      { title: 'Since', class: 'nowrap', cell: (i) => i.through.length > 0 && [moment(i.through[0].since), i.through[0].expiresAt && h('span', { class: 'second' }, wanted ? ['ends ', moment(i.through[0].expiresAt)] : end(i.through[0].expiresAt))] },
    ], items, body.active || body.message ? 'Nobody has access.' : `This ${noun} did not exist then, or was deleted: nobody had access.`),
  ];
}

/** @param {Schema<'AccessHolder'>} i */
function who(i) {
  if (!i.bot) return named(i.user);
  const tokens = (i.tokens || []).map((t) => t.name || t.id);
  return [named(i.displayName, i.bot), ' ', badge('', 'bot'),
    h('span', { class: 'second' }, tokens.length > 0 ? ['tokens: ', tokens.map((t, n) => [n > 0 && ', ', named(t)])] : 'no token')];
}

/** @param {Map<string, string>} names @param {Schema<'AccessHolder'>} i */
function where(names, i) {
  if (!i.workspace) return [h('span', {}, 'the organization'), (i.everyWorkspace || []).map((s) => h('span', { class: 'second' }, `every workspace as ${s.role}`))];
  return named(names.get(i.workspace), i.workspace);
}

/** @param {Schema<'RoleRef'>} r @param {number} n */
function role(r, n) {
  return [n > 0 && ', ', h('code', {}, named(r.name), r.namespace && ` in ${r.namespace}`)];
}

/** @param {Schema<'PastSource'>} s @param {number} n */
function source(s, n) {
  const text = `${through[s.through] || s.through}${s.role ? ` (${s.role})` : ''}`;
  return n === 0 ? capital(text) : h('span', { class: 'second' }, `also ${text}`);
}

/**
 * Asks about a moment and, with org, about an Organization.
 * @param {import('../app.js').Page} page @param {string} wanted @param {string} [org] the UUID that the page is about, or empty
 */
export function form(page, wanted, org) {
  const uuid = org !== undefined && h('input', { type: 'search', value: org, 'aria-label': 'UUID of an organization', placeholder: 'UUID of an organization' });
  const input = h('input', {
    type: 'datetime-local', step: '1', value: wanted && local(wanted), max: local(new Date().toISOString()), 'aria-label': 'Moment', class: 'inline',
  });
  const ask = () => {
    const at = input.value ? new Date(input.value).toISOString().replace(/\.\d+Z$/, 'Z') : '';
    const query = new URLSearchParams([['org', uuid ? uuid.value.trim() : ''], ['at', at]].filter(([, value]) => value));
    page.go(query.size > 0 ? `${location.pathname}?${query}` : location.pathname);
  };
  const now = org ? `${location.pathname}?org=${encodeURIComponent(org)}` : location.pathname;
  return h('form', { class: 'toolbar', onsubmit: (/** @type {Event} */ e) => { e.preventDefault(); ask(); } },
    uuid, input, h('button', { type: 'submit' }, 'Show'), wanted && h('a', { class: 'button', href: now }, 'Now'));
}
