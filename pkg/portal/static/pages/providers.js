// The providers that a Workspace can enable.

import { all, call, workspacePath } from '../lib/api.js';
import { h, named } from '../lib/dom.js';
import { icon } from '../lib/entries.js';
import { stateBadge, visible } from '../lib/format.js';
import { heading, table } from '../lib/ui.js';

/** @param {import('../app.js').Page} page */
export async function render(page) {
  const { org, ws } = page.params;
  const { signal } = page;
  const [workspace, providers] = await Promise.all([
    call('GET', workspacePath(org, ws), { signal }).then((a) => a.body), all('/api/providers', { place: { org, workspace: ws }, signal }),
  ]);
  page.name(workspace.displayName);
  page.title(`Providers of ${workspace.displayName}`);
  page.show(
    heading('Providers', [named(workspace.displayName)]),
    h('p', { class: 'muted' }, 'APIs that others publish. Nothing is bound into this workspace before an admin of it enables it.'),
    table('Providers', [
      { title: 'Provider', cell: (p) => [icon(p), h('a', { href: `${location.pathname}/${p.uuid}` }, named(p.displayName, p.slug)), p.description && h('span', { class: 'second' }, h('bdi', {}, p.description))] },
      { title: 'Version', cell: (p) => (p.version ? h('bdi', {}, p.version) : '–') },
      { title: 'From', cell: (p) => ({ Global: 'everywhere', Org: 'this organization', Personal: 'you' }[/** @type {string} */ (p.scope)] || 'not in the catalog any more') },
      { title: 'State', cell: (p) => [stateBadge(p.state), p.message && h('span', { class: 'second' }, visible(p.message))] },
    ], providers, 'Nobody has published an API for this workspace.'),
  );
}
