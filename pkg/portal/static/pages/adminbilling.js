// For platform admins and auditors: what bills for Workspaces depend on.

import { call } from '../lib/api.js';
import { h, named } from '../lib/dom.js';
import { moment } from '../lib/format.js';
import { paged } from '../lib/paged.js';
import { action, heading, save, table } from '../lib/ui.js';

/** The parameters of the list, with their labels. */
const filters = [['costCenter', 'Cost center'], ['org', 'UUID of an organization'], ['workspace', 'UUID of a workspace']];

/** @param {import('../app.js').Page} page */
export async function render(page) {
  const { items, pager } = await paged(page, '/api/admin/billing', filters.map(([name]) => name));
  page.title('Billing of all workspaces');
  const problem = h('div', { 'aria-live': 'polite' });
  const wanted = new URLSearchParams(filters.map(([name]) => [name, page.query.get(name) || '']).filter(([, value]) => value));
  const download = action('Save as CSV', 'Saving…', async () => {
    const { body } = await call('GET', `/api/admin/billing?${wanted}`, { accept: 'text/csv', signal: page.signal });
    save('billing.csv', String(body), 'text/csv');
  }, { problem });
  page.show(
    heading('Billing of all workspaces',
      'A workspace has a row for each time in which its name, cost center, labels and phase were the same, the newest first.', [download]),
    problem,
    filterForm(page),
    table('Billing', [
      { title: 'Workspace', cell: (i) => [named(i.workspaceDisplayName), h('span', { class: 'second' }, h('code', {}, i.workspace))] },
      { title: 'Organization', cell: (i) => [named(i.orgDisplayName), h('span', { class: 'second' }, h('code', {}, i.org))] },
      { title: 'Cost center', cell: (i) => named(i.costCenter, '–') },
      { title: 'Labels', cell: (i) => h('ul', { class: 'list' },
        Object.entries(i.labels || {}).map(([key, value]) => h('li', {}, h('code', {}, `${key}=${value}`)))) },
      { title: 'Phase', cell: (i) => i.phase },
      { title: 'From', class: 'nowrap', cell: (i) => moment(i.from) },
      { title: 'To', class: 'nowrap', cell: (i) => (i.to ? moment(i.to) : 'now') },
    ], items, page.query.size > 0 ? 'No workspace is like this.' : 'No workspace was billed yet.'),
    pager,
  );
}

/** @param {import('../app.js').Page} page */
function filterForm(page) {
  const inputs = filters.map(([name, label]) => h('input', {
    type: 'search', name, value: page.query.get(name) || '', 'aria-label': label, placeholder: label, dir: 'auto',
  }));
  const search = () => {
    const query = new URLSearchParams(inputs.map((i) => [i.name, i.value.trim()]).filter(([, value]) => value));
    page.go(query.size > 0 ? `${location.pathname}?${query}` : location.pathname);
  };
  return h('form', { class: 'toolbar', role: 'search', onsubmit: (/** @type {Event} */ e) => { e.preventDefault(); search(); } },
    inputs, h('button', { type: 'submit' }, 'Search'));
}
