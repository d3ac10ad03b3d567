// Requests for more rights in a Workspace, for a while.

import { all, call, orgPath, workspacePath } from '../lib/api.js';
import { h, named } from '../lib/dom.js';
import { badge, capital, end, moment } from '../lib/format.js';
import { workspaceNames } from '../lib/places.js';
import { askFor, mayDecide } from '../lib/requests.js';
import { session } from '../lib/session.js';
import { button, formDialog, heading, table } from '../lib/ui.js';

/** @param {import('../app.js').Page} page */
export async function render(page) {
  const { org, ws } = page.params;
  const path = ws ? workspacePath(org, ws) : orgPath(org);
  const { signal } = page;
  const [requests, open, own] = await Promise.all([
    all(`${path}/requests`, { signal }),
    ws ? [] : all(`${orgPath(org)}/requests/workspaces`, { signal }),
    workspaceNames(org, signal),
  ]);
  page.title('Requests');
  /** @type {Map<string, string>} */
  const names = new Map(open.map((w) => [w.uuid, w.displayName]));
  for (const [uuid, name] of own) names.set(uuid, name);
  requests.sort((a, b) => Number(b.state === 'Open') - Number(a.state === 'Open') || b.createdAt.localeCompare(a.createdAt));
  page.show(
    heading('Requests', null, button('Ask for rights', () => askFor({ page, org, ws, names }), 'primary')),
    table('Requests', [
      { title: 'Person', cell: (r) => [named(r.user), ' ', r.user === session.me.name && badge('', 'you')] },
      { title: 'Asks for', cell: (r) => [capital(r.kind), h('span', { class: 'second' }, named(names.get(r.workspace) || r.workspace), `, for ${r.for}`)] },
      { title: 'Why', cell: (r) => named(r.reason) },
      { title: 'When', cell: (r) => moment(r.createdAt) },
      { title: 'State', cell: (r) => [badge(r.state === 'Open' ? 'warn' : r.state === 'Approved' ? 'ok' : '', r.state), ' ', r.state === 'Approved' && end(r.endsAt),
        r.decidedBy && h('span', { class: 'second' }, 'by ', named(r.decidedBy), r.note && [': ', named(r.note)])] },
      { title: '', class: 'do', cell: (r) => actions(page, path, r) },
    ], requests, 'Nobody asks for anything.'),
    h('p', { class: 'muted small' }, 'What is approved ends by itself. Requests that nobody decides lapse after a day.'),
  );
}

/** @param {import('../app.js').Page} page @param {OrgPath|WorkspacePath} path @param {Schema<'AccessRequest'>} r */
function actions(page, path, r) {
  const own = r.user === session.me.name;
  const may = mayDecide(page.params.org, r.workspace, r.kind);
  /** @param {string} text @param {'approve'|'deny'|'withdraw'|'revoke'} decision @param {string} kind */
  const act = (text, decision, kind) => button(text, () => formDialog({
    title: `${text} the request`, signal: page.signal, action: text, text: h('p', {}, named(r.user), `: ${r.kind}. `, named(r.reason)),
    fields: [{ name: 'note', label: 'Note', type: 'textarea', max: 500 }],
    submit: async ({ note }) => {
      await call('POST', `${path}/requests/${r.id}/${decision}`, { body: note ? { note } : {}, signal: page.signal });
      page.refresh();
    },
  }), kind);
  if (r.state === 'Open') return own ? act('Withdraw', 'withdraw', 'plain') : may && [act('Approve', 'approve', 'plain'), act('Deny', 'deny', 'plain danger')];
  if (r.state === 'Approved') return own ? act('Withdraw', 'withdraw', 'plain') : may && act('Revoke', 'revoke', 'plain danger');
  return null;
}
