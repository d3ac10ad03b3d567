// All Organizations of the person.

import { call } from '../lib/api.js';
import { billingOfNew, newCostCenter } from '../lib/billing.js';
import { h, named, note } from '../lib/dom.js';
import { badge, capital, date } from '../lib/format.js';
import { offered } from '../lib/invite.js';
import { descriptionField } from '../lib/places.js';
import { loadMemberships, session } from '../lib/session.js';
import { openSteps } from '../lib/steps.js';
import { news } from '../lib/waiting.js';
import { button, formDialog, heading, table } from '../lib/ui.js';

/** @param {import('../app.js').Page} page */
export async function render(page) {
  const me = (await call('GET', '/api/users/me', { signal: page.signal })).body;
  session.me = me;
  const [offers] = await Promise.all([call('GET', '/api/users/me/invitations', { signal: page.signal }).then((a) => a.body.items), loadMemberships()]);
  const steps = await openSteps(page.signal);
  page.title('Organizations');
  const settling = me.phase !== 'Ready';
  const quota = me.orgQuota;
  const create = button('New organization', () => formDialog({
    title: 'New organization', signal: page.signal, action: 'Create', busy: 'Creating…',
    fields: [
      { name: 'displayName', label: 'Name', required: true, max: 128, hint: 'Any name, in any script. It can be changed later and need not be unique.' },
      descriptionField(),
      newCostCenter('The account to charge, if you know it. Some hubs need one.'),
    ],
    submit: async ({ displayName, description, costCenter }) => {
      const { body } = await call('POST', '/api/orgs', { body: { displayName, description, ...billingOfNew(costCenter) }, async: true });
      page.go(`/ui/orgs/${body.uuid}`);
    },
  }), 'primary');
  create.disabled = quota.used >= quota.limit;
  page.show(
    heading('Organizations', `You have created ${quota.used} of ${quota.limit}.${create.disabled ? ' Delete one, or ask a platform admin for more.' : ''}`, create),
    news(), offered(offers),
    steps.length > 0 && note('', h('p', {}, 'First steps: ', `${steps.filter((s) => s.done).length} of ${steps.length} done. `, h('a', { href: '/ui/first-steps' }, `Next: ${steps.find((s) => !s.done)?.title}`))),
    settling && h('div', { class: 'note', role: 'status' }, h('p', {}, 'Your account is being set up. Your personal organization appears here in a moment.')),
    table('Organizations', [
      { title: 'Name', cell: (o) => [h('a', { href: `/ui/orgs/${o.uuid}` }, named(o.name)), ' ', o.personal && badge('', 'personal')] },
      { title: 'Your role', cell: (o) => capital(o.role || 'member of workspaces') },
      { title: 'Your workspaces', cell: (o) => (o.workspaces.length === 0 ? '–' : o.workspaces.map((w, i) => [i > 0 && ', ', h('a', { href: `/ui/orgs/${o.uuid}/workspaces/${w.uuid}` }, named(w.name))])) },
      { title: 'Created', cell: (o) => ['created ', date(o.createdAt), ' by ', named(o.firstAdmin)] },
    ], session.orgs, settling ? 'Nothing here yet.' : 'You are not in any organization. Create one, or ask somebody to add you to theirs.'),
  );
  if (settling) {
    page.poll(async () => {
      if ((await call('GET', '/api/users/me', { signal: page.signal })).body.phase !== 'Ready') return false;
      page.reload();
      return true;
    });
  }
}
