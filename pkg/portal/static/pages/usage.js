// For admins and auditors: what an Organization or a Workspace uses, by hour or day.

import { call, orgPath, workspacePath } from '../lib/api.js';
import { h, named } from '../lib/dom.js';
import { moment, size, used } from '../lib/format.js';
import { plot } from '../lib/plot.js';
import { heading, table } from '../lib/ui.js';

const hour = 3600e3;

/** The steps, with the time of one and the number that the page shows. */
const steps = { hour: { title: 'Last 24 hours', length: hour, count: 24 }, day: { title: 'Last 30 days', length: 24 * hour, count: 30 } };

const number = new Intl.NumberFormat();

/** What has a limit, by the name of its field. @type {{org: Limit[], workspace: Limit[]}} */
const limits = {
  org: [{ name: 'bytes', label: 'Stored', format: size }],
  workspace: [
    { name: 'objects', label: 'Objects', format: number.format },
    { name: 'bytes', label: 'Stored', format: size },
    { name: 'customResourceDefinitions', label: 'CustomResourceDefinitions', format: number.format },
    { name: 'apiBindings', label: 'APIBindings', format: number.format },
    { name: 'roles', label: 'Roles, ClusterRoles and Namespaces', format: number.format },
    { name: 'orgBytes', label: 'Stored in the organization', format: size },
  ],
};

/** @typedef {{name: string, label: string, format: (n: number) => string}} Limit */

/** What an Organization has, by the name of the number. @type {Array<['members'|'workspaces'|'entries', string]>} */
const counts = [['members', 'Members'], ['workspaces', 'Workspaces'], ['entries', 'Catalog entries']];

/** Says what is left of a limit. @param {{used: number, limit: number}|undefined} amount @param {(n: number) => string} format */
function remaining(amount, format) {
  return amount?.limit ? `, ${format(Math.max(amount.limit - amount.used, 0))} left` : '';
}

/** @param {import('../app.js').Page} page */
export async function render(page) {
  const { org, ws } = page.params;
  const name = page.query.get('step') === 'day' ? 'day' : 'hour';
  // Auditors come here with an Organization in the query.
  const audited = page.query.get('org') || '';
  const query = org ? '' : `org=${encodeURIComponent(audited)}&`;
  const path = ws ? workspacePath(org, ws) : orgPath(org || audited);
  /** @type {[{body: any}, Record<string, any>|undefined]} */
  const [{ body }, of] = await Promise.all([
    call('GET', org ? `${path}/usage?step=${name}` : `/api/admin/usage?org=${encodeURIComponent(audited)}&step=${name}`, { signal: page.signal }),
    org ? call('GET', path, { signal: page.signal }).then((a) => a.body) : undefined,
  ]);
  /** @type {Array<Schema<'UsageItem'> & {orgDisplayName?: string}>} */
  const items = body.items;
  const step = steps[name];
  const to = (Math.floor(Date.now() / step.length) + 1) * step.length;
  /** @param {string} title @param {(i: Schema<'UsageItem'>) => number} value @param {(n: number) => string} [format] */
  const bars = (title, value, format = number.format) => plot(title, {
    items, value, format, at: (i) => i.from, from: to - (step.count + 1) * step.length, to, step: step.length,
  });
  const behind = body.replicas.filter((/** @type {Schema<'AuditReplica'>} */ r) => r.behindSeconds > 60);
  const had = ws ? null : items.at(-1)?.size;
  page.title('Usage');
  page.show(
    heading('Usage', `What ${org ? `this ${ws ? 'workspace' : 'organization'}` : items[0]?.orgDisplayName || audited} uses, at most a minute old.`,
      Object.entries(steps).map(([each, s]) => h('a', { class: 'button', href: `${location.pathname}?${query}step=${each}`, 'aria-current': each === name ? 'true' : null }, s.title))),
    behind.length > 0 && h('p', { class: 'note warn', role: 'status' }, 'Some usage of the last time is not here yet.'),
    of && h('section', { class: 'card' }, h('h2', {}, 'Limits'), h('dl', {},
      (ws ? limits.workspace : limits.org).map((l) => [h('dt', {}, l.label), h('dd', {}, used(of[l.name], l.format), remaining(of[l.name], l.format))]),
      h('dt', {}, 'Cost center'), h('dd', {}, named(of.billing?.costCenter || '', '–')))),
    had && h('section', { class: 'card' }, h('h2', {}, 'Size'), h('dl', {},
      counts.map(([field, label]) => [h('dt', {}, label), h('dd', {}, number.format(had[field]))]))),
    items.length > 0 && h('div', { class: 'plots' },
      bars('Requests', (i) => i.requests.read + i.requests.write + i.requests.watch), bars('Bytes of answers', (i) => i.bytesOut, size),
      bars('Stored objects', (i) => i.objects), bars('Stored bytes', (i) => i.bytes, size),
      bars('People and bots', (i) => i.people + i.bots), bars('Seconds of streams', (i) => i.streamSeconds)),
    table('Usage', [
      { title: name === 'day' ? 'Day (UTC)' : 'Hour', class: 'nowrap', cell: (i) => (name === 'day' ? i.from.slice(0, 10) : moment(i.from)) },
      { title: 'Reads', cell: (i) => number.format(i.requests.read) },
      { title: 'Writes', cell: (i) => number.format(i.requests.write) },
      { title: 'Watches', cell: (i) => number.format(i.requests.watch) },
      { title: 'Answers', cell: (i) => size(i.bytesOut) },
      { title: 'Objects', cell: (i) => number.format(i.objects) },
      { title: 'Stored', cell: (i) => size(i.bytes) },
      { title: 'People', cell: (i) => number.format(i.people) },
      { title: 'Bots', cell: (i) => number.format(i.bots) },
      { title: 'Stream seconds', cell: (i) => number.format(i.streamSeconds) },
    ], [...items].reverse(), 'Nothing was used in this time.'),
  );
}
