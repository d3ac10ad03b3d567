// The settings of an Organization.

import { ApiError, call, orgPath } from '../lib/api.js';
import { h, named, note } from '../lib/dom.js';
import { origin } from '../lib/format.js';
import { remove } from '../lib/places.js';
import { loadMemberships } from '../lib/session.js';
import { button, copyButton, form, heading } from '../lib/ui.js';

const who = /** @type {Array<[string, string]>} */ ([['members', 'All members'], ['admin', 'Admins only']]);

/** @param {import('../app.js').Page} page */
export async function render(page) {
  const path = orgPath(page.params.org);
  const { body: org, etag } = await call('GET', path, { signal: page.signal });
  page.title(`Settings of ${org.displayName}`);
  const admin = org.role === 'admin';
  const clash = h('div', { 'aria-live': 'polite' });
  const saved = h('div', { role: 'status' });
  let tag = etag;
  const settings = form({
    action: 'Save',
    fields: [
      { name: 'displayName', label: 'Name', value: org.displayName, required: true, max: 128 },
      { name: 'workspaceCreation', label: 'Who may create workspaces', type: 'select', options: who, value: org.workspaceCreation },
      { name: 'catalogEntryCreation', label: 'Who may publish catalog entries', type: 'select', options: who, value: org.catalogEntryCreation },
      { name: 'defaultAccess', label: 'What members may do in workspaces that they were not added to', type: 'select', options: [['none', 'Nothing'], ['view', 'View']], value: org.defaultAccess },
      { name: 'costCenter', label: 'Cost center', value: org.billing?.costCenter || '', max: 128, hint: 'The account to charge.' },
      { name: 'labels', label: 'Billing labels', value: Object.entries(org.billing?.labels || {}).map(([k, v]) => `${k}=${v}`).join(', '), hint: 'Keys and values such as team=search, stage=test.' },
    ],
    submit: async (values) => {
      clash.replaceChildren();
      saved.replaceChildren();
      const { costCenter, labels, ...rest } = values;
      const wanted = { ...rest, billing: billing(costCenter, labels, org.billing?.labels || {}) };
      try {
        tag = (await call('PATCH', path, { body: wanted, etag: tag, signal: page.signal })).etag;
      } catch (e) {
        if (!(e instanceof ApiError) || e.status !== 412) throw e;
        const now = await call('GET', path, { signal: page.signal });
        tag = now.etag;
        clash.replaceChildren(changed(now.body, wanted, page.reload));
        return;
      }
      saved.replaceChildren(note('', h('p', {}, 'Saved.')));
      await loadMemberships().catch(() => {});
    },
  });
  page.show(
    heading('Settings', [named(org.displayName)]),
    clash, saved,
    admin ? h('section', { class: 'card' }, settings) : note('', h('p', {}, 'Only admins can change the settings of this organization.'), facts(org)),
    h('section', { class: 'card' }, h('h2', {}, 'About'), h('dl', {},
      h('dt', {}, 'Origin'), h('dd', {}, origin(org.createdAt, org.firstAdmin)),
      h('dt', {}, 'UUID'), h('dd', {}, h('code', {}, org.uuid), ' ', copyButton(org.uuid)),
      h('dt', {}, 'Workspaces'), h('dd', {}, `${org.workspaceQuota.used} of ${org.workspaceQuota.limit} used`))),
    admin && h('section', { class: 'card danger-zone' }, h('div', { class: 'row' },
      h('div', {}, h('h2', {}, 'Delete this organization'), h('p', {}, 'All its workspaces stop to work at once. An admin can bring it back until it is purged.')),
      button('Delete organization', () => remove({
        page, noun: 'organization', name: org.displayName, path, after: () => page.go('/ui/'),
        what: 'All its workspaces stop to work at once, for people and bots.',
      }), 'danger'))),
  );
}

/**
 * Labels that are not in the text any more are removed, as a merge patch says it.
 * @param {string} costCenter @param {string} text @param {Record<string, string>} before
 */
function billing(costCenter, text, before) {
  /** @type {Record<string, string|null>} */
  const labels = Object.fromEntries(Object.keys(before).map((key) => [key, null]));
  for (const part of text.split(',').map((p) => p.trim()).filter(Boolean)) {
    const at = part.indexOf('=');
    if (at < 1) throw new ApiError(422, { message: '', details: { causes: [{ field: 'labels', message: `“${part}” is not key=value` }] } }, '');
    labels[part.slice(0, at).trim()] = part.slice(at + 1).trim();
  }
  return { costCenter: costCenter || null, labels };
}

/** Shows both states. @param {Schema<'Org'>} now @param {Schema<'UpdateOrgRequest'>} mine @param {() => void} reload */
function changed(now, mine, reload) {
  const rows = /** @type {const} */ (['displayName', 'workspaceCreation', 'catalogEntryCreation', 'defaultAccess']).filter((key) => now[key] !== mine[key]);
  return note('warn', h('p', {}, 'Somebody else has changed these settings meanwhile. Save again to put yours in their place.'),
    h('ul', { class: 'list' }, rows.map((key) => h('li', {}, `${key}: now `, h('strong', {}, named(now[key])), ', yours ', h('strong', {}, named(mine[key]))))),
    h('div', { class: 'actions' }, button('Show theirs', reload)));
}

/** @param {Schema<'Org'>} org */
function facts(org) {
  const text = (/** @type {string} */ value) => (who.find(([v]) => v === value) || ['', value])[1];
  return h('dl', {}, h('dt', {}, 'May create workspaces'), h('dd', {}, text(org.workspaceCreation)), h('dt', {}, 'May publish catalog entries'), h('dd', {}, text(org.catalogEntryCreation)),
    h('dt', {}, 'Access to other workspaces'), h('dd', {}, org.defaultAccess === 'view' ? 'View' : 'Nothing'));
}
