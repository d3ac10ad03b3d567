// The settings of an Organization.

import { all, call, orgPath } from '../lib/api.js';
import { billingFields, billingPatch, billingShown } from '../lib/billing.js';
import { h, named, note } from '../lib/dom.js';
import { editor } from '../lib/edit.js';
import { origin } from '../lib/format.js';
import { groups } from '../lib/groups.js';
import { descriptionField, descriptionShown, remove } from '../lib/places.js';
import { loadMemberships } from '../lib/session.js';
import { button, copyButton, form, heading } from '../lib/ui.js';

const who = /** @type {Array<[string, string]>} */ ([['members', 'All members'], ['admin', 'Admins only']]);
const access = /** @type {Array<[string, string]>} */ ([['none', 'Nothing'], ['view', 'View']]);

/** @param {Array<[string, string]>} options @param {string} value */
function worded(options, value) {
  return (options.find(([v]) => v === value) || ['', value])[1];
}

/** @type {import('../lib/edit.js').Shown[]} */
const shown = [
  { label: 'Name', of: (o) => o.displayName },
  descriptionShown,
  { label: 'Who may create workspaces', of: (o) => worded(who, o.workspaceCreation) },
  { label: 'Who may publish catalog entries', of: (o) => worded(who, o.catalogEntryCreation) },
  { label: 'Access to other workspaces', of: (o) => worded(access, o.defaultAccess) },
  ...billingShown,
];

/** @param {import('../app.js').Page} page */
export async function render(page) {
  const path = orgPath(page.params.org);
  const { body: org, etag } = await call('GET', path, { signal: page.signal });
  page.title(`Settings of ${org.displayName}`);
  const admin = org.role === 'admin';
  const mapped = admin && await groups(page, path, await all(`${path}/workspaces`, { signal: page.signal }));
  const saved = h('div', { role: 'status' });
  const save = editor({ path, etag, seen: org, shown, theirs: page.reload, signal: page.signal });
  const settings = form({
    action: 'Save',
    fields: [
      { name: 'displayName', label: 'Name', value: org.displayName, required: true, max: 128 },
      descriptionField(org.description),
      { name: 'workspaceCreation', label: 'Who may create workspaces', type: 'select', options: who, value: org.workspaceCreation },
      { name: 'catalogEntryCreation', label: 'Who may publish catalog entries', type: 'select', options: who, value: org.catalogEntryCreation },
      { name: 'defaultAccess', label: 'What members may do in workspaces that they were not added to', type: 'select', options: access, value: org.defaultAccess },
      ...billingFields(org),
      { name: 'applyToWorkspaces', label: 'Apply billing to existing workspaces', type: 'checkbox', value: false, hint: 'Otherwise it counts for new workspaces, and each other one keeps its own.' },
    ],
    submit: async (values) => {
      saved.replaceChildren();
      const { costCenter, labels, applyToWorkspaces, ...rest } = values;
      const body = (/** @type {any} */ now) => ({ ...rest, billing: billingPatch(costCenter, labels, now.billing?.labels || {}) });
      await save('PATCH', body, applyToWorkspaces ? '?applyToWorkspaces=true' : '');
      saved.replaceChildren(note('', h('p', {}, 'Saved.')));
      await loadMemberships().catch(() => {});
    },
  });
  page.show(
    heading('Settings', [named(org.displayName)]),
    saved,
    admin ? h('section', { class: 'card' }, settings) : note('', h('p', {}, 'Only admins can change the settings of this organization.'), facts(org)),
    mapped,
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

/** @param {Schema<'Org'>} org */
function facts(org) {
  return h('dl', {}, shown.slice(2, 5).map((s) => [h('dt', {}, s.label), h('dd', {}, s.of(org))]));
}
