// For platform admins and auditors: what each Organization uses, and what one uses by hour or day.

import { h, named } from '../lib/dom.js';
import { size } from '../lib/format.js';
import { paged, searchForm } from '../lib/paged.js';
import { heading, table } from '../lib/ui.js';
import * as usage from './usage.js';

const number = new Intl.NumberFormat();

/** @param {import('../app.js').Page} page */
export async function render(page) {
  if (page.query.has('org')) return usage.render(page);
  const { items, pager } = await paged(page, '/api/admin/usage', ['q']);
  page.title('Usage of all organizations');
  page.show(
    heading('Usage of all organizations', 'What each organization used in the last 30 days. Choose one to see its hours and days.'),
    searchForm(page, 'Search by name'),
    table('Usage', [
      { title: 'Organization', cell: (i) => [
        h('a', { href: `${location.pathname}?org=${encodeURIComponent(i.org)}` }, named(i.orgDisplayName, 'purged')), h('span', { class: 'second' }, h('code', {}, i.org)),
      ] },
      { title: 'Reads', cell: (i) => number.format(i.requests.read) },
      { title: 'Writes', cell: (i) => number.format(i.requests.write) },
      { title: 'Watches', cell: (i) => number.format(i.requests.watch) },
      { title: 'Answers', cell: (i) => size(i.bytesOut) },
      { title: 'Objects', cell: (i) => number.format(i.objects) },
      { title: 'Stored', cell: (i) => size(i.bytes) },
      { title: 'People', cell: (i) => number.format(i.people) },
      { title: 'Bots', cell: (i) => number.format(i.bots) },
    ], items, page.query.size > 0 ? 'No organization is like this.' : 'Nothing was used in this time.'),
    pager,
  );
}
