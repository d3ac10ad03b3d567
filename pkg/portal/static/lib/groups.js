// The groups of the identity provider that are let into an Organization.

import { all, call } from './api.js';
import { h, named } from './dom.js';
import { moment } from './format.js';
import { button, confirmDialog, formDialog, table } from './ui.js';

const roles = /** @type {Array<[string, string]>} */ ([['member', 'Member'], ['viewer', 'Viewer'], ['admin', 'Admin']]);

/**
 * The mappings of groups, for admins of the Organization.
 * @param {import('../app.js').Page} page @param {string} path @param {Schema<'Workspace'>[]} workspaces
 */
export async function groups(page, path, workspaces) {
  const { signal } = page;
  const mappings = await all(`${path}/groups`, { signal });
  const place = (/** @type {string | undefined} */ uuid) => (uuid ? named(workspaces.find((w) => w.uuid === uuid)?.displayName || uuid) : 'The organization');
  return h('section', {}, h('div', { class: 'head' }, h('h2', {}, 'Groups'),
    h('div', { class: 'actions' }, button('Let a group in', () => adding(page, path, workspaces), 'primary'))),
  table('Groups of the identity provider', [
    { title: 'Group', cell: (m) => h('code', {}, m.group) },
    { title: 'Place', cell: (m) => place(m.workspace) },
    { title: 'Role', cell: (m) => m.role },
    { title: 'People', cell: (m) => String(m.people) },
    { title: 'Added', cell: (m) => [moment(m.createdAt), m.createdBy ? [' by ', named(m.createdBy)] : ''] },
    { title: '', class: 'do', cell: (m) => button('Remove', () => confirmDialog({
      title: 'Remove group', text: `What people have by ${m.group} ends at once. They keep what they were given otherwise.`, action: 'Remove', signal,
      submit: async () => {
        await call('DELETE', `${path}/groups/${m.id}`, { signal });
        page.reload();
      },
    }), 'plain danger') },
  ], mappings, 'None. Members of a group of the identity provider can be let in: they come and go as the group says.'));
}

/** @param {import('../app.js').Page} page @param {string} path @param {Schema<'Workspace'>[]} workspaces */
function adding(page, path, workspaces) {
  /** @type {Array<[string, string]>} */
  const places = [['', 'The organization'], ...workspaces.map((w) => /** @type {[string, string]} */ ([w.uuid, w.displayName]))];
  formDialog({
    title: 'Let a group in', signal: page.signal, action: 'Let in', busy: 'Letting in…',
    text: h('p', {}, 'Everybody in the group has the role as long as their newest login says the group. A group never makes the last admin.'),
    fields: [
      {
        name: 'group', label: 'Group', required: true, max: 512,
        hint: 'Its name at the identity provider with the prefix of this hub, such as kedge:developers.',
      },
      { name: 'role', label: 'Role', type: 'select', options: roles, value: 'member' },
      { name: 'workspace', label: 'Place', type: 'select', options: places, value: '' },
    ],
    submit: async ({ group, role, workspace }) => {
      await call('POST', `${path}/groups`, { body: { group: group.trim(), role, ...(workspace ? { workspace } : {}) }, signal: page.signal });
      page.reload();
    },
  });
}
