// For platform admins: one person, their sessions and memberships, and the end of their account. Auditors read what they may.

import { all, call } from '../lib/api.js';
import { h, named } from '../lib/dom.js';
import { badge, moment } from '../lib/format.js';
import { session } from '../lib/session.js';
import { sessionColumns } from '../lib/sessions.js';
import { action, button, confirmDialog, heading, table } from '../lib/ui.js';

/** @param {import('../app.js').Page} page */
export async function render(page) {
  const { signal } = page;
  const name = decodeURIComponent(page.params.name);
  const path = /** @type {const} */ (`/api/admin/users/${encodeURIComponent(name)}`);
  const manages = session.me.platformAdmin;
  const [{ body: person }, memberships, sessions] = await Promise.all([
    call('GET', path, { signal }), all(`${path}/memberships`, { signal }), manages ? all(`${path}/sessions`, { signal }) : [],
  ]);
  const own = name === session.me.name;
  page.title(person.displayName || name);
  page.show(
    heading(person.displayName || name, [person.deletionRequestedAt ? badge('warn', 'Deleted') : badge(person.registration === 'Approved' ? 'ok' : 'warn', person.registration)]),
    h('section', { class: 'card' }, h('h2', {}, 'About'), h('dl', {},
      h('dt', {}, 'User name'), h('dd', {}, h('code', {}, name)),
      h('dt', {}, 'Email'), h('dd', {}, person.email ? h('bdi', {}, person.email) : '–'),
      h('dt', {}, 'Signed up'), h('dd', {}, moment(person.createdAt)),
      person.rejectionReason && [h('dt', {}, 'Rejected because'), h('dd', {}, h('bdi', {}, person.rejectionReason))],
      h('dt', {}, 'Organizations created'), h('dd', {}, `${person.orgQuota.used} of ${person.orgQuota.limit}`))),
    manages && h('section', {}, h('div', { class: 'head' }, h('h2', {}, 'Sessions'), sessions.length > 0 && button('End all sessions', () => endAll(page, path, name), 'danger')),
      table('Sessions', [
        ...sessionColumns, { title: '', class: 'do', cell: (s) => !s.current && action('End', 'Ending…', async () => {
          await call('DELETE', `${path}/sessions/${s.id}`, { signal });
          page.reload();
        }, { kind: 'plain danger' }) },
      ], sessions, 'This person is signed in nowhere.')),
    h('section', {}, h('h2', {}, 'Memberships'), table('Memberships', [
      { title: 'Organization', cell: (m) => named(m.orgDisplayName, m.orgUUID) },
      { title: 'Workspace', cell: (m) => (m.workspaceUUID ? named(m.workspaceDisplayName, m.workspaceUUID) : '–') },
      { title: 'Role', cell: (m) => m.role || 'manager' },
    ], memberships, 'This person is in no organization.')),
    manages && !own && !person.deletionRequestedAt && h('section', { class: 'card danger-zone' }, h('div', { class: 'row' },
      h('div', {}, h('h2', {}, 'Delete this account'), h('p', {}, 'The person loses access everywhere at once, and their personal organization stops working. They and you can undo it until the account is purged.')),
      button('Delete account', () => confirmDialog({
        title: 'Delete an account', name, action: 'Delete account', signal, busy: 'Deleting…', text: [named(person.displayName, name), ' loses access everywhere at once.'],
        submit: async () => {
          await call('DELETE', `/api/users/${encodeURIComponent(name)}`, { signal });
          page.reload();
        },
      }), 'danger'))),
  );
}

/** @param {import('../app.js').Page} page @param {`/api/admin/users/${string}`} path @param {string} name */
function endAll(page, path, name) {
  confirmDialog({
    title: 'End all sessions', action: 'End all sessions', signal: page.signal,
    text: [h('bdi', {}, name), ' is signed out of every browser and command line. Tokens that were issued until now are refused.'],
    submit: async () => {
      await call('DELETE', `${path}/sessions?all=true`, { signal: page.signal });
      page.reload();
    },
  });
}
