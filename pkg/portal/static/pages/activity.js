// For admins: who changed what in an Organization or a Workspace, and who was refused. For auditors: in the whole hub. The other
// members see that a platform admin made somebody admin of the Organization.

import { call, orgPath, workspacePath } from '../lib/api.js';
import { h } from '../lib/dom.js';
import { badge, endOf, local, moment, visible } from '../lib/format.js';
import { paged } from '../lib/paged.js';
import { workspaceNames } from '../lib/places.js';
import { orgOf } from '../lib/session.js';
import { action, heading, save, table } from '../lib/ui.js';
import { inWords } from '../lib/words.js';

/** The parameters that filter, with what the field says. @type {Array<[string, string]>} */
const filters = [['actor', 'Person or bot'], ['action', 'Part of the action'], ['object', 'Name of the object'], ['code', 'Status, such as 403 or 4xx']];

/** Those of the whole hub. @type {Array<[string, string]>} */
const further = [['org', 'UUID of an organization'], ['workspace', 'UUID of a workspace']];

/** Those with a moment, which filter too. @type {Array<[string, string]>} */
const bounds = [['since', 'From'], ['until', 'Until']];

/** @param {import('../app.js').Page} page */
export async function render(page) {
  const { org, ws } = page.params;
  const all = !org;
  const whole = all || Boolean(ws) || orgOf(org)?.role === 'admin';
  const path = ws ? workspacePath(org, ws) : all ? '/api/admin' : orgPath(org);
  const fields = all ? [...filters, ...further] : filters;
  const names = [...fields, ...bounds].map(([name]) => name).concat(ws || all || !whole ? [] : 'workspace');
  const { items, body, pager } = await paged(page, `${path}/audit`, names);
  const workspaces = ws || all || !whole ? [] : [...await workspaceNames(org, page.signal)];
  const behind = body.replicas.filter((/** @type {Schema<'AuditReplica'>} */ r) => r.behindSeconds > 60);
  const csv = action('Download CSV', 'Preparing…', async () => {
    const wanted = new URLSearchParams([...page.query].filter(([name]) => names.includes(name)));
    /** @type {string} */
    const events = `${path}/audit?${wanted}`;
    const { body: text } = await call('GET', events, { accept: 'text/csv', signal: page.signal });
    save('activity.csv', text, 'text/csv');
  });
  page.title('Activity');
  page.show(
    heading('Activity', !whole ? 'When a platform admin made somebody admin of this organization.' : `Who changed what in ${all ? 'the whole hub' : ws ? 'this workspace' : 'this organization'}, and who was refused, the newest first.`, csv),
    !whole && h('p', { class: 'note' }, 'You see when a platform admin made somebody admin of this organization, and why. Its admins see everything else.'),
    form(page, fields, workspaces),
    behind.length > 0 && h('p', { class: 'note warn', role: 'status' }, 'Some events of the last time are not here yet.'),
    table('Activity', [
      { title: 'Time', class: 'nowrap', cell: (e) => moment(e.time) },
      {
        title: 'By', class: 'name',
        cell: (e) => [h('bdi', {}, e.actor.user || e.actor.bot || e.actor.kind), all && h('span', { class: 'second' }, h('bdi', {}, e.peer || ''))],
      },
      { title: 'Action', cell: (e) => [
        inWords(e.action), h('span', { class: inWords(e.action) ? 'second' : null }, visible(e.action)),
        h('span', { class: 'second' }, h('bdi', {}, visible(objectOf(e)))),
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

/** @param {import('../app.js').Page} page @param {Array<[string, string]>} fields @param {Array<[string, string]>} workspaces by UUID and name */
function form(page, fields, workspaces) {
  const held = (/** @type {string} */ name) => page.query.get(name) || '';
  const texts = fields.map(([name, label]) => h('input', { type: 'search', name, value: held(name), 'aria-label': label, placeholder: label, dir: 'auto' }));
  const times = bounds.map(([name, label]) => h('label', { class: 'nowrap' }, `${label} `,
    h('input', { type: 'datetime-local', class: 'inline', name, value: local(held(name)) })));
  // The events of a Workspace that is gone can be asked for by its UUID in the URL.
  const select = workspaces.length > 0 && h('select', { class: 'inline', name: 'workspace', 'aria-label': 'Workspace' },
    h('option', { value: '' }, 'All workspaces'), workspaces.map(([uuid, name]) => h('option', { value: uuid }, name)));
  if (select) select.value = held('workspace');
  const search = () => {
    const query = new URLSearchParams();
    for (const input of texts) if (input.value.trim()) query.set(input.name, input.value.trim());
    for (const { lastChild: input } of times) if (input.value) query.set(input.name, endOf(input.value) || '');
    if (select && select.value) query.set('workspace', select.value);
    page.go(query.size > 0 ? `${location.pathname}?${query}` : location.pathname);
  };
  return h('form', { class: 'toolbar', role: 'search', onsubmit: (/** @type {Event} */ e) => { e.preventDefault(); search(); } },
    texts, times, select, h('button', { type: 'submit' }, 'Search'));
}
