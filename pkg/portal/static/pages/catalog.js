// The entries of a catalog: that of an Organization, or the Global one.

import { all, call, orgPath } from '../lib/api.js';
import { h, named } from '../lib/dom.js';
import { bodyOf, changeable, icon, permanent } from '../lib/entries.js';
import { date, phaseBadge } from '../lib/format.js';
import { paged, searchForm } from '../lib/paged.js';
import { among } from '../lib/rights.js';
import { button, formDialog, heading, table } from '../lib/ui.js';

/** @param {import('../app.js').Page} page */
export async function render(page) {
  const { org: uuid } = page.params;
  const { signal } = page;
  /** @type {CatalogPath} */
  const path = uuid ? `${orgPath(uuid)}/catalog` : '/api/admin/catalog';
  const ofOrgs = !uuid && page.query.get('scope') === 'org';
  const [org, { items, pager }, workspaces] = await Promise.all([
    uuid ? call('GET', orgPath(uuid), { signal }).then((a) => a.body) : null, paged(page, path, uuid ? ['q'] : ['q', 'scope']),
    uuid ? all(`${orgPath(uuid)}/workspaces`, { signal }) : [],
  ]);
  page.title(org ? `Catalog of ${org.displayName}` : 'Global catalog');
  const may = !org || among(org.role, org.catalogEntryCreation);
  page.show(
    heading('Catalog', org && named(org.displayName), may && !ofOrgs && button('Publish an API', () => publish(page, path, workspaces), 'primary')),
    h('p', { class: 'muted' }, ofOrgs ? 'APIs that organizations publish for their own workspaces.' : about(org), !may && ' Only admins of this organization can publish.'),
    searchForm(page, 'Search entries', uuid ? [] : [{ name: 'scope', label: 'Entries', options: [['', 'For everybody'], ['org', 'Of organizations']] }]),
    table('Catalog entries', [
      { title: 'Entry', cell: (e) => [icon(e), h('a', { href: `${location.pathname}/${e.uuid}` }, named(e.displayName)), e.description && h('span', { class: 'second' }, h('bdi', {}, e.description))] },
      ...(ofOrgs ? [{ title: 'Organization', cell: (/** @type {any} */ e) => named(e.orgDisplayName) }] : []),
      { title: 'Slug', cell: (e) => h('code', {}, e.slug) },
      { title: 'Version', cell: (e) => (e.version ? h('bdi', {}, e.version) : '–') },
      { title: 'State', cell: (e) => phaseBadge(e.phase) },
      { title: 'Enabled in', class: 'nowrap', cell: (e) => (e.workspaces === 1 ? '1 workspace' : `${e.workspaces} workspaces`) },
      { title: 'Published', cell: (e) => [date(e.createdAt), h('span', { class: 'second' }, 'by ', named(e.createdBy, 'the operator'))] },
    ], items, page.query.has('q') ? 'No entry has this name.' : ofOrgs ? 'No organization has published anything yet.' : [h('p', {}, 'Nothing is published yet.'), may && h('p', {}, 'Make an APIExport with kubectl, then publish it here.')]),
    pager,
  );
}

/** @param {Schema<'Org'>|null} org */
function about(org) {
  if (!org) return 'APIs that every workspace of every organization can enable.';
  const whose = org.personal ? 'APIs that you publish for your own workspaces.' : 'APIs that this organization publishes for its own workspaces.';
  return `${whose} What is here can be enabled in them on their page “Providers”.`;
}

/** @param {import('../app.js').Page} page @param {CatalogPath} path @param {any[]} workspaces */
function publish(page, path, workspaces) {
  const { signal } = page;
  const own = workspaces.filter((w) => w.role === 'admin' && w.phase === 'Ready');
  const [name, ...rest] = changeable();
  const everywhere = path === '/api/admin/catalog';
  const force = { name: 'force', label: 'Take the slug from organizations that have it', type: 'checkbox', hint: 'Their entries go on where they are enabled. Nobody can enable them any more.' };
  formDialog({
    title: 'Publish an API', signal, action: 'Publish', busy: 'Publishing…', fields: [name, ...permanent(own), ...rest, ...(everywhere ? [force] : [])],
    submit: async (values) => {
      const { body } = await call('POST', everywhere && values.force ? '/api/admin/catalog?force=true' : path, { body: bodyOf(values), async: true, signal });
      page.go(`${location.pathname}/${body.uuid}`);
    },
  });
}
