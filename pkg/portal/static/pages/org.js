// One Organization: its Workspaces.

import { all, call, orgPath } from '../lib/api.js';
import { billingOfNew, newCostCenter } from '../lib/billing.js';
import { h, named } from '../lib/dom.js';
import { badge, end, endOf, left, moment, origin, phaseBadge, size, used } from '../lib/format.js';
import { deletedIn, descriptionField, progress, remove, rename, undelete } from '../lib/places.js';
import { among, roleText } from '../lib/rights.js';
import { loadMemberships, orgOf } from '../lib/session.js';
import { seen } from '../lib/waiting.js';
import { button, copyButton, formDialog, heading, table } from '../lib/ui.js';

/** @param {import('../app.js').Page} page */
export async function render(page) {
  const { org: uuid } = page.params;
  const path = orgPath(uuid);
  const { signal } = page;
  const row = orgOf(uuid);
  // People who are in Workspaces only cannot read the Organization itself.
  const guest = row !== undefined && row.role === '';
  /** @returns {Promise<any>} */
  const read = async () => (guest ? { uuid, displayName: row.name, role: '', phase: 'Ready', createdAt: row.createdAt, firstAdmin: row.firstAdmin } : (await call('GET', path, { signal })).body);
  const org = await read();
  // The hub knows the creator of an Organization as its member once it is Ready.
  const list = async () => (org.phase === 'Ready' ? all(`${path}/workspaces`, { signal }) : []);
  const [workspaces, deleted] = await Promise.all([list(), org.phase === 'Ready' ? deletedIn(uuid, signal) : []]);
  if (!row) await loadMemberships().catch(() => {});
  page.title(org.displayName);
  const quota = org.workspaceQuota;
  const may = among(org.role, org.workspaceCreation);
  const full = quota && quota.used >= quota.limit;
  const create = may && button('New workspace', () => formDialog({
    title: 'New workspace', signal, action: 'Create', busy: 'Creating…',
    text: h('p', {}, 'A Kubernetes API of its own. Admins of the organization are admins in it, too.'),
    fields: [
      { name: 'displayName', label: 'Name', required: true, max: 128 },
      { name: 'expiresAt', label: 'Ends at', type: 'datetime-local', hint: 'For a workspace that is needed for a while: it is deleted then. Leave it empty for none.' },
      descriptionField(),
      newCostCenter('The account to charge. Leave it empty for that of the organization.'),
    ],
    submit: async ({ displayName, description, expiresAt, costCenter }) => {
      const body = { displayName, description, ...(expiresAt ? { expiresAt: endOf(expiresAt) } : {}), ...billingOfNew(costCenter) };
      const made = await call('POST', `${path}/workspaces`, { body, async: true });
      seen(made.body.uuid);
      page.reload();
    },
  }), 'primary');
  if (create && (full || org.phase !== 'Ready')) create.disabled = true;
  page.show(
    heading(org.displayName, [origin(org.createdAt, org.firstAdmin)], create),
    org.description && h('p', { class: 'prose' }, h('bdi', {}, org.description)),
    progress(org, 'organization'),
    h('section', { 'aria-label': 'Workspaces' },
      table('Workspaces', [
        { title: 'Workspace', cell: (w) => h('a', { href: `/ui/orgs/${uuid}/workspaces/${w.uuid}` }, named(w.displayName)) },
        { title: 'State', cell: (w) => phaseBadge(w.phase) },
        { title: 'Your role', cell: (w) => roleText(w) },
        { title: 'Created', cell: (w) => moment(w.createdAt) },
        { title: 'End', cell: (w) => end(w.expiresAt) },
        { title: '', class: 'do', cell: (w) => w.role === 'admin' && [
          button('Rename', () => rename({ page, noun: 'workspace', name: w.displayName, path: `${path}/workspaces/${w.uuid}` }), 'plain'),
          button('Delete', () => remove({
            page, noun: 'workspace', name: w.displayName, path: `${path}/workspaces/${w.uuid}`, after: page.reload,
            what: 'Everything in it stops to work at once, for people and bots.',
          }), 'plain danger'),
        ] },
      ], workspaces, [h('p', {}, 'No workspaces yet.'), may && h('p', {}, 'A workspace is a Kubernetes API of its own: create one and use kubectl in it.')]),
      quota && h('p', { class: 'muted small' }, `${quota.used} of ${quota.limit} workspaces used, deleted ones that are not purged yet included.`, full ? ' Ask a platform admin for more.' : ''),
      org.bytes && h('p', { class: 'muted small' }, `${used(org.bytes, size)} stored in all workspaces.`)),
    deleted.length > 0 && h('section', {}, h('h2', {}, 'Deleted'), table('Deleted workspaces', [
      { title: 'Workspace', cell: (w) => named(w.displayName) },
      { title: 'Deleted', cell: (w) => moment(w.deletionRequestedAt) },
      { title: 'Purged', cell: (w) => (w.purgeAt ? badge('warn', left(w.purgeAt)) : '') },
      { title: '', class: 'do', cell: (w) => w.role === 'admin' && undelete(page, `${path}/workspaces/${w.uuid}/undelete`) },
    ], deleted)),
    h('p', { class: 'muted small' }, 'UUID ', h('code', {}, uuid), ' ', copyButton(uuid)),
  );
  if (org.phase !== 'Ready' || workspaces.some((w) => w.phase !== 'Ready')) {
    const before = JSON.stringify([org.phase, workspaces.map((w) => [w.uuid, w.phase])]);
    page.poll(async () => {
      const now = await Promise.all([read(), list()]);
      if (JSON.stringify([now[0].phase, now[1].map((w) => [w.uuid, w.phase])]) === before) return false;
      await loadMemberships().catch(() => {});
      page.reload();
      return true;
    });
  }
}
