// The bots of a Workspace.

import { all, call, workspacePath } from '../lib/api.js';
import { h, named, note } from '../lib/dom.js';
import { badge, capital, date, left, moment, phaseBadge, soon } from '../lib/format.js';
import { assignable } from '../lib/rights.js';
import { button, formDialog, heading, table } from '../lib/ui.js';

/** @param {import('../app.js').Page} page */
export async function render(page) {
  const { org, ws } = page.params;
  const { signal } = page;
  const path = workspacePath(org, ws);
  const [workspace, bots] = await Promise.all([call('GET', path, { signal }).then((a) => a.body), all(`${path}/serviceaccounts`, { signal })]);
  page.name(workspace.displayName);
  page.title(`Bots of ${workspace.displayName}`);
  const admin = workspace.role === 'admin';
  page.show(
    heading('Bots', [named(workspace.displayName)], admin && button('New bot', () => formDialog({
      title: 'New bot', signal, action: 'Create', busy: 'Creating…', text: h('p', {}, 'A bot is for a program, such as a CI job. It works in this workspace only.'),
      fields: [
        { name: 'displayName', label: 'Name', required: true, max: 128 },
        { name: 'role', label: 'Role', type: 'select', options: assignable, value: 'member' },
      ],
      submit: async (values) => {
        const { body } = await call('POST', `${path}/serviceaccounts`, { body: values, signal });
        page.go(`${location.pathname}/${body.uuid}`);
      },
    }), 'primary')),
    bots.some((b) => soon(b.nextTokenExpiresAt)) && note('warn', h('p', {}, admin ? 'A token of a bot ends soon. Open the bot to rotate it.' : 'A token of a bot ends soon. Tell an admin of the workspace.')),
    table('Bots', [
      { title: 'Bot', cell: (b) => h('a', { href: `${location.pathname}/${b.uuid}` }, named(b.displayName)) },
      { title: 'Role', cell: (b) => capital(b.role) },
      { title: 'State', cell: (b) => phaseBadge(b.phase) },
      { title: 'Created', cell: (b) => date(b.createdAt) },
      { title: 'Last token', cell: (b) => (b.lastTokenIssuedAt ? moment(b.lastTokenIssuedAt) : 'None yet') },
      { title: 'Next to end', cell: (b) => b.nextTokenExpiresAt && [moment(b.nextTokenExpiresAt), ' ', badge(soon(b.nextTokenExpiresAt) ? 'warn' : '', left(b.nextTokenExpiresAt))] },
    ], bots, [h('p', {}, 'No bots yet.'), h('p', {}, admin ? 'Create one and give its token to a program, such as a CI job.' : 'Admins of this workspace can create one.')]),
  );
  if (bots.some((b) => b.phase !== 'Ready')) {
    page.poll(async () => {
      if ((await all(`${path}/serviceaccounts`, { signal })).some((b) => b.phase !== 'Ready')) return false;
      page.reload();
      return true;
    });
  }
}
