// What can be brought back.

import { call, orgPath } from '../lib/api.js';
import { h, named } from '../lib/dom.js';
import { badge, left, moment } from '../lib/format.js';
import { undelete } from '../lib/places.js';
import { heading, table } from '../lib/ui.js';

/** @param {import('../app.js').Page} page */
export async function render(page) {
  const { body } = await call('GET', '/api/users/me/memberships?deleted=true', { signal: page.signal });
  const rows = body.items.filter((r) => r.softDeletedAt);
  const gone = new Set(rows.filter((r) => !r.workspaceUUID).map((r) => r.orgUUID));
  page.title('Deleted items');
  page.show(
    heading('Deleted items', 'Organizations and workspaces that were deleted and are not purged yet.'),
    table('Deleted', [
      { title: 'Name', cell: (r) => [named(r.workspaceUUID ? r.workspaceDisplayName : r.orgDisplayName), r.workspaceUUID && h('span', { class: 'second' }, 'in ', named(r.orgDisplayName))] },
      { title: 'Kind', cell: (r) => (r.workspaceUUID ? 'Workspace' : 'Organization') },
      { title: 'Deleted', cell: (r) => moment(r.softDeletedAt) },
      { title: 'Purged', cell: (r) => r.purgeAt && [moment(r.purgeAt), ' ', badge('warn', left(r.purgeAt))] },
      { title: '', class: 'do', cell: (r) => {
        if (r.role !== 'admin') return h('span', { class: 'muted' }, 'An admin can undelete it');
        if (r.workspaceUUID && gone.has(r.orgUUID)) return h('span', { class: 'muted' }, 'Undelete the organization first');
        return undelete(page, `${orgPath(r.orgUUID)}${r.workspaceUUID ? `/workspaces/${r.workspaceUUID}` : ''}/undelete`);
      } },
    ], rows, 'Nothing is deleted.'),
  );
}
