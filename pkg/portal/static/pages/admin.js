// For platform admins: people, quotas, deletions.

import { all, call } from '../lib/api.js';
import { h, named, note } from '../lib/dom.js';
import { badge, date, left, moment } from '../lib/format.js';
import { session } from '../lib/session.js';
import { button, confirmDialog, errorNote, formDialog, heading, table } from '../lib/ui.js';

/** @param {import('../app.js').Page} page */
export async function render(page) {
  page.title('Administration');
  if (!session.me.platformAdmin) {
    page.show(heading('Administration', null), note('', h('p', {}, 'Only platform admins can use this page.')));
    return;
  }
  const q = page.query.get('q') || '';
  const { signal } = page;
  const [people, deletions] = await Promise.all([all(q ? `/api/admin/users?q=${encodeURIComponent(q)}` : '/api/admin/users', { signal }), all('/api/admin/deletions', { signal })]);
  const problem = h('div', { 'aria-live': 'polite' });
  const decide = async (/** @type {string} */ name, /** @type {'Approved'|'Rejected'} */ registration) => {
    problem.replaceChildren();
    try {
      await call('PATCH', `/api/admin/users/${encodeURIComponent(name)}`, { body: { registration }, signal });
      page.reload();
    } catch (e) {
      if (!signal.aborted) problem.replaceChildren(errorNote(e));
    }
  };
  const pending = people.filter((p) => p.registration === 'Pending');
  const person = { title: 'Person', cell: (/** @type {Schema<'AdminUser'>} */ p) => [named(p.displayName, p.name), h('span', { class: 'second' }, h('bdi', {}, p.name), p.email && p.email !== p.name && [' · ', h('bdi', {}, p.email)])] };
  const search = h('form', { class: 'toolbar', role: 'search', onsubmit: (/** @type {Event} */ e) => { e.preventDefault(); page.go(`/ui/admin${input.value && `?q=${encodeURIComponent(input.value)}`}`); } });
  const input = h('input', { type: 'search', value: q, 'aria-label': 'Search people', placeholder: 'Search people' });
  search.append(input, h('button', { type: 'submit' }, 'Search'));
  page.show(
    heading('Administration', 'People, quotas and deletions. It gives no way into what organizations contain.'),
    problem,
    pending.length > 0 && h('section', {}, h('h2', {}, `Waiting for approval (${pending.length})`), table('Waiting for approval', [
      person, { title: 'Signed up', cell: (p) => moment(p.createdAt) },
      { title: '', class: 'do', cell: (p) => h('span', { class: 'actions' }, button('Reject', () => decide(p.name, 'Rejected'), 'plain danger'), button('Approve', () => decide(p.name, 'Approved'), 'primary')) },
    ], pending)),
    h('section', {}, h('h2', {}, 'People'), search, table('People', [
      person,
      { title: 'State', cell: (p) => (p.deletionRequestedAt ? badge('warn', 'Deleted') : badge(p.registration === 'Approved' ? 'ok' : 'warn', p.registration)) },
      { title: 'Organizations', cell: (p) => `${p.orgQuota.used} of ${p.orgQuota.limit}` },
      { title: 'Signed up', cell: (p) => date(p.createdAt) },
      { title: '', class: 'do', cell: (p) => [
        p.registration === 'Rejected' && button('Approve', () => decide(p.name, 'Approved'), 'plain'),
        p.registration === 'Approved' && p.name !== session.me.name && button('Reject', () => confirmDialog({
          title: 'Reject a person', name: p.name, action: 'Reject', signal, text: 'They lose access everywhere at once and cannot sign in. You can approve them again.', submit: () => decide(p.name, 'Rejected'),
        }), 'plain danger'),
        button('Quota', () => quota(page, `/api/admin/users/${encodeURIComponent(p.name)}`, 'orgQuota', 'Organizations that they may create', p.orgQuota.limit), 'plain'),
      ] },
    ], people, 'Nobody has this name.')),
    h('section', { class: 'card' }, h('div', { class: 'row' }, h('div', {}, h('h2', {}, 'Quota of an organization'), h('p', {}, 'The number of workspaces that it may have. Its members find its UUID in its settings.')),
      button('Set a quota', () => orgQuota(page)))),
    h('section', {}, h('h2', {}, 'Deletions'), table('Deletions', [
      { title: 'Name', cell: (d) => [named(d.displayName, d.name), h('span', { class: 'second' }, h('code', {}, d.name))] },
      { title: 'Kind', cell: (d) => (d.kind === 'User' ? 'Person' : d.kind) },
      { title: 'Deleted', cell: (d) => moment(d.deletionRequestedAt) },
      { title: 'Purged', cell: (d) => (d.purging ? badge('bad', 'being purged') : d.purgeAt ? [moment(d.purgeAt), ' ', badge('warn', left(d.purgeAt))] : '') },
      { title: '', class: 'do', cell: (d) => d.kind === 'User' && !d.purging && button('Undelete', async () => {
        problem.replaceChildren();
        try {
          await call('POST', `/api/users/${encodeURIComponent(d.name)}/undelete`, { signal });
          page.reload();
        } catch (e) {
          if (!signal.aborted) problem.replaceChildren(errorNote(e));
        }
      }) },
    ], deletions, 'Nothing waits to be purged.')),
  );
}

/** @param {import('../app.js').Page} page @param {string} path @param {string} field @param {string} label @param {number} now */
function quota(page, path, field, label, now) {
  formDialog({
    title: 'Quota', signal: page.signal, action: 'Save',
    fields: [{ name: field, label, type: 'number', value: String(now), hint: 'Leave it empty for the default.' }],
    submit: async (values) => {
      await call('PATCH', path, { body: { [field]: values[field] === '' ? null : Number(values[field]) }, signal: page.signal });
      page.reload();
    },
  });
}

/** @param {import('../app.js').Page} page */
function orgQuota(page) {
  formDialog({
    title: 'Quota of an organization', signal: page.signal, action: 'Save',
    fields: [
      { name: 'org', label: 'UUID of the organization', required: true },
      { name: 'workspaceQuota', label: 'Workspaces', type: 'number', hint: 'Leave it empty for the default.' },
    ],
    submit: async ({ org, workspaceQuota }) => {
      await call('PATCH', `/api/admin/orgs/${encodeURIComponent(org.trim())}`, { body: { workspaceQuota: workspaceQuota === '' ? null : Number(workspaceQuota) }, signal: page.signal });
    },
  });
}
