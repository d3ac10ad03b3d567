// Asking for rights, and the mark in the header that somebody waits for a decision.

import { all, call, orgPath, workspacePath } from './api.js';
import { h } from './dom.js';
import { orgOf, session } from './session.js';
import { formDialog } from './ui.js';

/**
 * Reports whether the person decides about requests of a kind in a Workspace: its managers give the role of a member.
 * @param {string} org @param {string} workspace @param {string} kind
 */
export function mayDecide(org, workspace, kind) {
  const place = orgOf(org);
  return place?.role === 'admin'
    || place?.workspaces.some((w) => w.uuid === workspace && (w.role === 'admin' || (w.manager && kind === 'member'))) || false;
}

/** @param {{page: import('../app.js').Page, org: string, ws?: string, names: Map<string, string>}} c */
export function askFor(c) {
  const places = /** @type {Array<[string, string]>} */ ([...c.names].filter(([uuid]) => !c.ws || uuid === c.ws));
  if (c.ws && places.length === 0) places.push([c.ws, 'This workspace']);
  formDialog({
    title: 'Ask for rights', signal: c.page.signal, action: 'Ask', text: h('p', {}, 'An admin of the workspace decides. It is in the audit log.'),
    fields: [
      { name: 'workspace', label: 'Workspace', type: 'select', options: places, value: c.ws || places[0]?.[0] || '' },
      { name: 'kind', label: 'Right', type: 'select', options: [['sudo', 'Sudo'], ['admin', 'Admin'], ['member', 'Member']], value: 'sudo' },
      { name: 'for', label: 'For', type: 'select', options: [['15m', '15 minutes'], ['1h', 'An hour'], ['4h', '4 hours'], ['12h', '12 hours']], value: '1h' },
      { name: 'reason', label: 'Why', type: 'textarea', max: 500, required: true },
    ],
    submit: async (values) => {
      const { workspace, ...asked } = values;
      const body = { kind: asked.kind, for: asked.for, reason: asked.reason };
      if (c.ws) await call('POST', `${orgPath(c.org)}/workspaces/${c.ws}/requests`, { body, signal: c.page.signal });
      else await call('POST', `${orgPath(c.org)}/requests`, { body: { workspace, ...body }, signal: c.page.signal });
      c.page.reload();
    },
  });
}

/** A page asks about at most so many places. */
const most = 20;

/**
 * Draws a link for each place in which somebody waits for a decision of the person: their organizations, and the
 * workspaces of others in which they decide.
 * @param {HTMLElement} mark
 */
export async function markWaiting(mark) {
  const places = session.orgs.flatMap((o) => (o.role !== ''
    ? [{ org: o.uuid, name: o.name, path: orgPath(o.uuid), page: `/ui/orgs/${o.uuid}` }]
    : o.workspaces.filter((w) => mayDecide(o.uuid, w.uuid, 'member')).map((w) => (
        { org: o.uuid, name: w.name, path: workspacePath(o.uuid, w.uuid), page: `/ui/orgs/${o.uuid}/workspaces/${w.uuid}` })))).slice(0, most);
  const links = await Promise.all(places.map(async (p) => {
    const open = (await all(`${p.path}/requests`, {})).filter((r) => r.state === 'Open' && r.user !== session.me.name && mayDecide(p.org, r.workspace, r.kind));
    const text = `${open.length} ${open.length === 1 ? 'request' : 'requests'}`;
    return open.length > 0 && h('a', { href: `${p.page}/requests`, title: `Requests in ${p.name}` }, text);
  }));
  mark.replaceChildren(...links.filter((l) => l !== false));
}
