// One entry of a catalog.

import { call, orgPath } from '../lib/api.js';
import { h, named } from '../lib/dom.js';
import { editor } from '../lib/edit.js';
import { bodyOf, changeable, icon, shown } from '../lib/entries.js';
import { badge, moment, phaseBadge } from '../lib/format.js';
import { conditions, progress } from '../lib/places.js';
import { among } from '../lib/rights.js';
import { session } from '../lib/session.js';
import { button, confirmDialog, formDialog, heading, table } from '../lib/ui.js';

/** @param {import('../app.js').Page} page */
export async function render(page) {
  const { org: uuid, entry: name } = page.params;
  const { signal } = page;
  /** @type {CatalogPath} */
  const base = uuid ? `${orgPath(uuid)}/catalog` : '/api/admin/catalog';
  const path = /** @type {const} */ (`${base}/${name}`);
  const [org, { body: entry, etag }] = await Promise.all([
    uuid ? call('GET', orgPath(uuid), { signal }).then((a) => a.body) : null, call('GET', path, { signal }),
  ]);
  page.title(entry.displayName);
  // Platform admins read and delete the entries of organizations. They do not change them.
  const foreign = !uuid && entry.org;
  const may = !org || org.role === 'admin' || (among(org.role, org.catalogEntryCreation) && entry.createdBy === session.me.name);
  const save = editor({ path, etag, seen: entry, shown, theirs: page.reload, signal });
  page.show(
    heading(entry.displayName, [phaseBadge(entry.phase), ' ', { Global: 'For everybody', Org: foreign ? 'For an organization' : 'For this organization', Personal: foreign ? 'For a person' : 'For you' }[/** @type {string} */ (entry.scope)],
      foreign && [': ', named(entry.orgDisplayName)], ' · published ', moment(entry.createdAt), ' by ', named(entry.createdBy, 'the operator')],
    may && !foreign && button('Edit', () => formDialog({
      title: 'Edit entry', signal, action: 'Save', fields: changeable(entry),
      submit: async (values) => {
        await save('PUT', bodyOf(values, entry));
        page.reload();
      },
    })),
    may && button('Delete', () => confirmDialog({
      title: 'Delete entry', name: entry.slug, what: 'slug', action: 'Delete entry', signal, busy: 'Deleting…',
      text: 'Nobody can enable it any more. Where it is enabled it goes on, and can be disabled.',
      submit: async () => {
        await save('DELETE');
        page.go(uuid ? `/ui/orgs/${uuid}/catalog` : foreign ? '/ui/admin/catalog?scope=org' : '/ui/admin/catalog');
      },
    }), 'danger')),
    progress(entry, 'entry'),
    entry.description && h('p', { class: 'prose' }, h('bdi', {}, entry.description)),
    h('section', { class: 'card' }, h('h2', {}, 'Conditions'), conditions(entry)),
    h('section', { class: 'card' }, h('h2', {}, 'Details'), h('dl', {},
      h('dt', {}, 'Slug'), h('dd', {}, h('code', {}, entry.slug)),
      h('dt', {}, 'Version'), h('dd', {}, entry.version ? h('bdi', {}, entry.version) : '–'),
      h('dt', {}, 'APIExport'), h('dd', {}, h('code', {}, `${entry.apiExport.path}:${entry.apiExport.name}`)),
      h('dt', {}, 'Backend'), h('dd', {}, entry.backend ? h('code', {}, entry.backend.url) : 'none'),
      h('dt', {}, 'Icon'), h('dd', {}, icon(entry) || 'none'),
      h('dt', {}, 'Members may write'), h('dd', {}, entry.memberResources ? entry.memberResources.join(', ') : 'all its resources'))),
    h('section', {}, h('h2', {}, 'What workspaces get'), table('Resources', [
      { title: 'Resource', cell: (r) => h('code', {}, r.group ? `${r.resource}.${r.group}` : r.resource) },
    ], entry.resources, 'Known once the APIExport is found.')),
    h('section', {}, h('h2', {}, 'What the provider asks for'), table('Claims', [
      { title: 'Objects', cell: (c) => [h('code', {}, c.group ? `${c.resource}.${c.group}` : c.resource), ' ', c.dangerous && badge('bad', 'dangerous')] },
      { title: 'May', cell: (c) => c.verbs.map((/** @type {string} */ v) => (v === '*' ? 'everything' : v)).join(', ') },
    ], entry.claims, 'It asks for no objects of the workspaces.')),
  );
  if (entry.phase !== 'Ready') {
    const before = JSON.stringify([entry.phase, entry.conditions]);
    page.poll(async () => {
      const { body } = await call('GET', path, { signal });
      if (JSON.stringify([body.phase, body.conditions]) === before) return false;
      page.reload();
      return true;
    });
  }
}
