// For platform admins: what is deleted and not purged yet.

import { call } from '../lib/api.js';
import { h, named } from '../lib/dom.js';
import { badge, left, moment } from '../lib/format.js';
import { paged, searchForm } from '../lib/paged.js';
import { button, confirmDialog, heading, table } from '../lib/ui.js';

/** @param {import('../app.js').Page} page */
export async function render(page) {
  const { items, pager } = await paged(page, '/api/admin/deletions', ['q']);
  page.title('Deletions');
  page.show(
    heading('Deletions', 'People, organizations and workspaces that are deleted and not purged yet.'),
    searchForm(page, 'Search by name'),
    table('Deletions', [
      { title: 'Name', cell: (d) => [named(d.displayName, d.name), h('span', { class: 'second' }, h('code', {}, d.name))] },
      { title: 'Kind', cell: (d) => (d.kind === 'User' ? 'Person' : d.kind) },
      { title: 'Deleted', cell: (d) => moment(d.deletionRequestedAt) },
      { title: 'Purged', cell: (d) => (d.purging ? badge('bad', 'being purged') : d.purgeAt ? [moment(d.purgeAt), ' ', badge('warn', left(d.purgeAt))] : '') },
      { title: '', class: 'do', cell: (d) => d.kind === 'User' && !d.purging && button('Undelete', () => confirmDialog({
        title: 'Undelete a person', action: 'Undelete', signal: page.signal, text: [named(d.displayName, d.name), ' can sign in again and has the rights from before.'],
        submit: async () => {
          await call('POST', `/api/users/${encodeURIComponent(d.name)}/undelete`, { signal: page.signal });
          page.reload();
        },
      })) },
    ], items, page.query.has('q') ? 'Nothing that is deleted has this name.' : 'Nothing waits to be purged.'),
    pager,
    h('p', { class: 'muted small' }, 'Former admins of an organization or a workspace bring it back on the page “Deleted items”. You can undelete an organization under ', h('a', { href: '/ui/admin/orgs' }, 'Organizations'), '.'),
  );
}
