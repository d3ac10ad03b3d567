// What can be brought back.

import { call, orgPath, workspacePath } from '../lib/api.js';
import { h, named, note } from '../lib/dom.js';
import { badge, left, moment } from '../lib/format.js';
import { deletedIn, undelete } from '../lib/places.js';
import { heading, table } from '../lib/ui.js';

/** The page asks for the deleted Workspaces of at most so many Organizations. */
const most = 20;

/** @param {import('../app.js').Page} page */
export async function render(page) {
  const { signal } = page;
  const { body } = await call('GET', '/api/users/me/memberships?deleted=true', { signal });
  const orgs = body.items.filter((r) => !r.workspaceUUID);
  const gone = new Set(orgs.filter((o) => o.softDeletedAt).map((o) => o.orgUUID));
  // Admins of an Organization bring back every Workspace in it, also those of which they have no row, or one with less.
  const admin = new Set(orgs.filter((o) => o.role === 'admin').map((o) => o.orgUUID));
  const wanted = orgs.filter((o) => admin.has(o.orgUUID) && !o.softDeletedAt);
  const answers = await Promise.allSettled(wanted.slice(0, most).map(async (o) => ({ org: o, workspaces: await deletedIn(o.orgUUID, signal) })));
  signal.throwIfAborted();
  const lists = answers.flatMap((a) => (a.status === 'fulfilled' ? [a.value] : []));
  const listed = new Set(lists.map((l) => l.org.orgUUID));
  const rows = [
    ...body.items.filter((r) => r.softDeletedAt && !(r.workspaceUUID && listed.has(r.orgUUID))),
    ...lists.flatMap(({ org, workspaces }) => workspaces.map((w) => ({
      orgUUID: org.orgUUID, orgDisplayName: org.orgDisplayName, workspaceUUID: w.uuid, workspaceDisplayName: w.displayName,
      role: w.role, softDeletedAt: w.deletionRequestedAt, purgeAt: w.purgeAt,
    }))),
  ];
  page.title('Deleted items');
  page.show(
    heading('Deleted items', 'Organizations and workspaces that were deleted and are not purged yet.'),
    lists.length < wanted.length && note('warn', h('p', {},
      'Of some organizations, only the workspaces that you are a member of are here. The page of each organization has all.')),
    table('Deleted', [
      { title: 'Name', cell: (r) => [named(r.workspaceUUID ? r.workspaceDisplayName : r.orgDisplayName), r.workspaceUUID && h('span', { class: 'second' }, 'in ', named(r.orgDisplayName))] },
      { title: 'Kind', cell: (r) => (r.workspaceUUID ? 'Workspace' : 'Organization') },
      { title: 'Deleted', cell: (r) => moment(r.softDeletedAt) },
      { title: 'Purged', cell: (r) => r.purgeAt && [moment(r.purgeAt), ' ', badge('warn', left(r.purgeAt))] },
      { title: '', class: 'do', cell: (r) => {
        if (r.role !== 'admin' && !admin.has(r.orgUUID)) return h('span', { class: 'muted' }, 'An admin can undelete it');
        if (r.workspaceUUID && gone.has(r.orgUUID)) return h('span', { class: 'muted' }, 'Undelete the organization first');
        return undelete(page, `${r.workspaceUUID ? workspacePath(r.orgUUID, r.workspaceUUID) : orgPath(r.orgUUID)}/undelete`);
      } },
    ], rows, 'Nothing is deleted.'),
  );
}
