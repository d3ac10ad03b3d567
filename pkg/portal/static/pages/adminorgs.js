// For platform admins: all Organizations. Auditors read them.

import { call } from '../lib/api.js';
import { h, named } from '../lib/dom.js';
import { badge, date, left, phaseBadge } from '../lib/format.js';
import { paged, searchForm } from '../lib/paged.js';
import { session } from '../lib/session.js';
import { action, button, confirmDialog, formDialog, heading, table } from '../lib/ui.js';

/** @param {import('../app.js').Page} page */
export async function render(page) {
  const { items, pager } = await paged(page, '/api/admin/orgs', ['q', 'personal']);
  page.title('All organizations');
  const problem = h('div', { 'aria-live': 'polite' });
  page.show(
    heading('All organizations', 'You see that they exist, and nothing of what they contain.'),
    problem,
    searchForm(page, 'Search by name', [{ name: 'personal', label: 'Kind', options: [['', 'All kinds'], ['false', 'Shared'], ['true', 'Personal']] }]),
    table('Organizations', [
      { title: 'Organization', cell: (o) => [named(o.displayName), ' ', o.personal && badge('', 'personal'),
        h('span', { class: 'second' }, h('code', {}, o.uuid), ' ', h('a', { href: `/ui/admin/access?org=${o.uuid}` }, 'Who has access'))] },
      { title: 'Workspaces', class: 'nowrap', cell: (o) => `${o.workspaceQuota.used} of ${o.workspaceQuota.limit}` },
      { title: 'Cost center', cell: (o) => named(o.billing?.costCenter || '', '–') },
      { title: 'Created', cell: (o) => [date(o.createdAt), h('span', { class: 'second' }, 'by ', named(o.createdBy))] },
      { title: 'State', cell: (o) => (o.deletionRequestedAt ? badge('warn', o.purgeAt ? `Deleted, ${left(o.purgeAt)}` : 'Deleted') : phaseBadge(o.phase)) },
      { title: '', class: 'do', cell: (o) => session.me.platformAdmin && (o.deletionRequestedAt
        ? action('Undelete', 'Undeleting…', () => call('POST', `/api/admin/orgs/${o.uuid}/undelete`, { signal: page.signal }).then(page.reload), { kind: 'plain', problem })
        : [
            button('Quota', () => quota(page, o), 'plain'),
            button('Storage', () => storage(page, o), 'plain'),
            !o.personal && button('Add admin', () => addAdmin(page, o), 'plain'),
            button('Delete', () => remove(page, o), 'plain danger'),
          ]) },
    ], items, page.query.size > 0 ? 'No organization is like this.' : 'There are no organizations yet.'),
    pager,
  );
}

/** @param {import('../app.js').Page} page @param {any} org */
function quota(page, org) {
  formDialog({
    title: 'Quota', signal: page.signal, action: 'Save', text: h('p', {}, 'Deleted workspaces that are not purged yet count, too.'),
    fields: [{ name: 'workspaceQuota', label: 'Workspaces', type: 'number', value: String(org.workspaceQuota.limit), hint: 'Leave it empty for the default.' }],
    submit: async ({ workspaceQuota }) => {
      await call('PATCH', `/api/admin/orgs/${org.uuid}`, { body: { workspaceQuota: workspaceQuota === '' ? null : Number(workspaceQuota) }, signal: page.signal });
      page.reload();
    },
  });
}

/** @param {import('../app.js').Page} page @param {any} org */
function storage(page, org) {
  formDialog({
    title: 'Storage', signal: page.signal, action: 'Save', text: h('p', {}, 'What the organization, and each of its workspaces, can store. Leave a field empty for the default.'),
    fields: storageLimits.map((l) => ({ name: l.name, label: l.label, type: l.size ? 'text' : 'number', value: String(org.storage[l.name]), hint: l.size ? 'Such as 10Gi.' : '' })),
    submit: async (values) => {
      // What nobody changed stays the default if it is.
      const changed = storageLimits.filter((l) => values[l.name] !== String(org.storage[l.name]));
      const limits = Object.fromEntries(changed.map((l) => [l.name, values[l.name] === '' ? null : l.size ? values[l.name] : Number(values[l.name])]));
      await call('PATCH', `/api/admin/orgs/${org.uuid}`, { body: { storage: limits }, signal: page.signal });
      page.reload();
    },
  });
}

/** @param {import('../app.js').Page} page @param {any} org */
function addAdmin(page, org) {
  formDialog({
    title: 'Add an admin', signal: page.signal, action: 'Make admin', busy: 'Adding…',
    text: h('p', {}, 'For an organization in which no admin can act any more. Its members see who was made admin, by whom, and why. You cannot name yourself.'),
    fields: [
      { name: 'user', label: 'Name of the person', required: true, max: 253 },
      { name: 'reason', label: 'Reason', type: 'textarea', required: true, max: 500 },
    ],
    submit: async ({ user, reason }) => {
      await call('POST', `/api/admin/orgs/${org.uuid}/admins`, { body: { userRef: { name: user.trim() }, reason }, signal: page.signal });
      page.reload();
    },
  });
}

const storageLimits = [
  { name: 'bytes', label: 'Size of the organization', size: true },
  { name: 'workspaceBytes', label: 'Size of a workspace', size: true },
  { name: 'workspaceObjects', label: 'Objects of a workspace', size: false },
  { name: 'workspaceCRDs', label: 'CustomResourceDefinitions of a workspace', size: false },
  { name: 'workspaceAPIBindings', label: 'APIBindings of a workspace', size: false },
  { name: 'workspaceRoles', label: 'Roles, ClusterRoles and Namespaces of a workspace', size: false },
];

/** @param {import('../app.js').Page} page @param {any} org */
function remove(page, org) {
  confirmDialog({
    title: 'Delete organization', name: org.displayName, action: 'Delete organization', signal: page.signal, busy: 'Deleting…',
    text: 'All its workspaces stop to work at once, for people and bots. Until it is purged, its admins and you can bring it back.',
    submit: async () => {
      await call('DELETE', `/api/admin/orgs/${org.uuid}`, { signal: page.signal });
      page.reload();
    },
  });
}
