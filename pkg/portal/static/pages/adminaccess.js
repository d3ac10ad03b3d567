// For platform admins and auditors: who has, or had at a moment, access to an Organization.

import { call } from '../lib/api.js';
import { h } from '../lib/dom.js';
import { workspaceNames } from '../lib/places.js';
import { heading } from '../lib/ui.js';
import { answer, form } from './access.js';

/** @param {import('../app.js').Page} page */
export async function render(page) {
  const org = (page.query.get('org') || '').trim();
  const at = page.query.get('at') || '';
  page.title('Access to an organization');
  const title = heading('Access', 'Who has, or had at a moment, access to an organization and to what is in it, and through what. It may be purged.');
  const asked = form(page, at, org);
  if (!org) {
    page.show(title, asked, h('p', {}, 'Give the UUID of an organization. ', h('a', { href: '/ui/admin/orgs' }, 'All organizations')));
    return;
  }
  const query = `org=${encodeURIComponent(org)}${at && `&at=${encodeURIComponent(at)}`}`;
  const { body } = await call('GET', `/api/admin/access?${query}`, { signal: page.signal });
  page.show(title, asked, answer(body, { noun: 'organization', wanted: at, names: await workspaceNames(org, page.signal) }));
}
