// For admins: who changed what in an Organization or a Workspace, and who was refused. For auditors: in the whole hub.

import { orgPath, workspacePath } from '../lib/api.js';
import { h } from '../lib/dom.js';
import { badge, moment, visible } from '../lib/format.js';
import { paged } from '../lib/paged.js';
import { heading, table } from '../lib/ui.js';

/** The parameters that filter, with what the field says. @type {Array<[string, string]>} */
const filters = [['actor', 'Person or bot'], ['action', 'Part of the action'], ['object', 'Name of the object'], ['code', 'Status, such as 403 or 4xx']];

/** Those of the whole hub. @type {Array<[string, string]>} */
const further = [['org', 'UUID of an organization'], ['workspace', 'UUID of a workspace']];

/** @param {import('../app.js').Page} page */
export async function render(page) {
  const { org, ws } = page.params;
  const all = !org;
  const path = ws ? workspacePath(org, ws) : all ? '/api/admin' : orgPath(org);
  const fields = all ? [...filters, ...further] : filters;
  const { items, body, pager } = await paged(page, `${path}/audit`, fields.map(([name]) => name));
  const behind = body.replicas.filter((/** @type {Schema<'AuditReplica'>} */ r) => r.behindSeconds > 60);
  page.title('Activity');
  page.show(
    heading('Activity', `Who changed what in ${all ? 'the whole hub' : ws ? 'this workspace' : 'this organization'}, and who was refused, the newest first.`),
    form(page, fields),
    behind.length > 0 && h('p', { class: 'note warn', role: 'status' }, 'Some events of the last time are not here yet.'),
    table('Activity', [
      { title: 'Time', class: 'nowrap', cell: (e) => moment(e.time) },
      { title: 'By', cell: (e) => [h('bdi', {}, e.actor.user || e.actor.bot || e.actor.kind), all && h('span', { class: 'second' }, h('bdi', {}, e.peer || ''))] },
      { title: 'Action', cell: (e) => [
        visible(e.action), h('span', { class: 'second' }, h('bdi', {}, visible(objectOf(e)))),
        all && e.org && h('span', { class: 'second' }, h('a', { href: `${location.pathname}?org=${encodeURIComponent(e.org)}` }, h('code', {}, e.org)), e.outsider && [' ', badge('', 'outsider')]),
      ] },
      { title: 'Decided', cell: (e) => e.facts && h('code', {}, visible(JSON.stringify(e.facts))) },
      { title: 'Answer', cell: (e) => (e.stage === 'intent' ? badge('', 'intent') : badge(e.code < 400 ? 'ok' : 'warn', String(e.code))) },
    ], items, body.continue ? 'Nothing of this kind on this page. The next one has what is older.' : 'Nothing of this kind happened.'),
    pager,
  );
}

/** Names what an event is about. @param {Schema<'AuditEvent'>} e */
function objectOf({ object, resource }) {
  if (!resource) return object || '';
  return [resource.resource, resource.subresource, resource.namespace, resource.name].filter(Boolean).join('/');
}

/** @param {import('../app.js').Page} page @param {Array<[string, string]>} fields */
function form(page, fields) {
  const inputs = fields.map(([name, label]) => h('input', { type: 'search', name, value: page.query.get(name) || '', 'aria-label': label, placeholder: label, dir: 'auto' }));
  const search = () => {
    const query = new URLSearchParams();
    for (const input of inputs) if (input.value.trim()) query.set(input.name, input.value.trim());
    page.go(query.size > 0 ? `${location.pathname}?${query}` : location.pathname);
  };
  return h('form', { class: 'toolbar', role: 'search', onsubmit: (/** @type {Event} */ e) => { e.preventDefault(); search(); } },
    inputs, h('button', { type: 'submit' }, 'Search'));
}
