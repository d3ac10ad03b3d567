// Asking for rights, and the mark in the header that somebody waits for a decision.

import { all, call, orgPath } from './api.js';
import { h } from './dom.js';
import { orgOf, session } from './session.js';
import { formDialog } from './ui.js';

/** Reports whether the person is an admin of a Workspace. @param {string} org @param {string} workspace */
export function mayDecide(org, workspace) {
  const place = orgOf(org);
  return place?.role === 'admin' || place?.workspaces.some((w) => w.uuid === workspace && w.role === 'admin') || false;
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

/** Draws a link for each Organization in which somebody waits for a decision of the person. @param {HTMLElement} mark */
export async function markWaiting(mark) {
  const links = await Promise.all(session.orgs.filter((o) => o.role !== '').map(async (o) => {
    const open = (await all(`${orgPath(o.uuid)}/requests`, {})).filter((r) => r.state === 'Open' && r.user !== session.me.name && mayDecide(o.uuid, r.workspace));
    return open.length > 0 && h('a', { href: `/ui/orgs/${o.uuid}/requests`, title: `Requests in ${o.name}` }, `${open.length} ${open.length === 1 ? 'request' : 'requests'}`);
  }));
  mark.replaceChildren(...links.filter((l) => l !== false));
}
