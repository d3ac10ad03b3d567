// For platform admins: people, their registration and quotas. Auditors read them.

import { all, call } from '../lib/api.js';
import { h, named } from '../lib/dom.js';
import { editor } from '../lib/edit.js';
import { badge, date, moment } from '../lib/format.js';
import { paged, searchForm } from '../lib/paged.js';
import { session } from '../lib/session.js';
import { action, button, formDialog, heading, table } from '../lib/ui.js';

const states = /** @type {Array<[string, string]>} */ ([['', 'All states'], ['Approved', 'Approved'], ['Pending', 'Pending'], ['Rejected', 'Rejected']]);

/** @param {import('../app.js').Page} page */
export async function render(page) {
  const { signal } = page;
  const manages = session.me.platformAdmin;
  const [pending, { items, pager }] = await Promise.all([
    all('/api/admin/users?registration=Pending', { signal }), paged(page, '/api/admin/users', ['q', 'registration']),
  ]);
  page.title('People');
  const problem = h('div', { 'aria-live': 'polite' });
  const approve = (/** @type {string} */ name) => call('PATCH', pathOf(name), { body: { registration: 'Approved' }, signal }).then(page.reload);
  const person = { title: 'Person', cell: (/** @type {Schema<'AdminUser'>} */ p) => [
    h('a', { href: `/ui/admin/people/${encodeURIComponent(p.name)}` }, named(p.displayName, p.name)), h('span', { class: 'second' }, h('bdi', {}, p.name), p.email && p.email !== p.name && [' · ', h('bdi', {}, p.email)]),
  ] };
  page.show(
    heading('People', 'Who may sign in, and how much they may create. It gives no way into what organizations contain.'),
    problem,
    manages && pending.length > 0 && h('section', {}, h('h2', {}, `Waiting for approval (${pending.length})`), table('Waiting for approval', [
      person, { title: 'Signed up', cell: (p) => moment(p.createdAt) },
      { title: '', class: 'do', cell: (p) => h('span', { class: 'actions' },
        button('Reject', () => reject(page, p), 'plain danger'),
        action('Approve', 'Approving…', () => approve(p.name), { kind: 'primary', problem })) },
    ], pending)),
    h('section', {}, manages && pending.length > 0 && h('h2', {}, 'Everybody'), searchForm(page, 'Search people', [{ name: 'registration', label: 'State', options: states }]), table('People', [
      person,
      { title: 'State', cell: (p) => (p.deletionRequestedAt ? badge('warn', 'Deleted') : [badge(p.registration === 'Approved' ? 'ok' : 'warn', p.registration), p.rejectionReason && h('span', { class: 'second' }, h('bdi', {}, p.rejectionReason))]) },
      { title: 'Organizations', class: 'nowrap', cell: (p) => `${p.orgQuota.used} of ${p.orgQuota.limit}` },
      { title: 'Signed up', cell: (p) => date(p.createdAt) },
      { title: '', class: 'do', cell: (p) => manages && [
        p.registration === 'Rejected' && action('Approve', 'Approving…', () => approve(p.name), { kind: 'plain', problem }),
        p.registration === 'Approved' && p.name !== session.me.name && button('Reject', () => reject(page, p), 'plain danger'),
        button('Quota', () => quota(page, p), 'plain'),
      ] },
    ], items, 'Nobody is like this.'), pager),
  );
}

/** @param {import('../app.js').Page} page @param {Schema<'AdminUser'>} person */
function reject(page, person) {
  formDialog({
    title: 'Reject a person', signal: page.signal, action: 'Reject',
    text: h('p', {}, h('bdi', {}, person.name), ' loses access everywhere at once and cannot sign in. You can approve them again.'),
    fields: [{ name: 'rejectionReason', label: 'Reason', hint: 'They are shown it. You can leave it empty.', max: 512 }],
    submit: async ({ rejectionReason }) => {
      await call('PATCH', pathOf(person.name), { body: rejectionReason ? { registration: 'Rejected', rejectionReason } : { registration: 'Rejected' }, signal: page.signal });
      page.reload();
    },
  });
}

/** @param {string} name @returns {`/api/admin/users/${string}`} */
function pathOf(name) {
  return `/api/admin/users/${encodeURIComponent(name)}`;
}

/** @param {import('../app.js').Page} page @param {any} person */
function quota(page, person) {
  const save = editor({ path: pathOf(person.name), seen: person, theirs: page.reload, signal: page.signal, shown: [{ label: 'Organizations', of: (p) => String(p.orgQuota?.limit ?? p.orgQuota ?? 'the default') }] });
  formDialog({
    title: 'Quota', signal: page.signal, action: 'Save',
    fields: [{ name: 'orgQuota', label: 'Organizations that they may create', type: 'number', value: String(person.orgQuota.limit), hint: 'Leave it empty for the default.' }],
    submit: async ({ orgQuota }) => {
      await save('PATCH', { orgQuota: orgQuota === '' ? null : Number(orgQuota) });
      page.reload();
    },
  });
}
