// Roles, and what members of a Workspace have beside theirs: sudo and further roles.

import { h, named } from './dom.js';
import { editor } from './edit.js';
import { badge, capital, visible } from './format.js';
import { button, formDialog } from './ui.js';

const ranks = ['viewer', 'member', 'admin'];

/** Reports whether a role has all rights of another. An unknown role has none. @param {string | undefined} role @param {string} least */
export function atLeast(role, least) {
  return ranks.indexOf(role || '') >= ranks.indexOf(least);
}

/** Reports whether a role is among the members, or the admins, that a setting of an Organization selects. @param {string | undefined} role @param {string | undefined} who */
export function among(role, who) {
  return atLeast(role, who === 'members' ? 'member' : 'admin');
}

/** The roles that can be given, with their labels. */
export const assignable = /** @type {Array<[string, string]>} */ ([['viewer', 'Viewer'], ['member', 'Member'], ['admin', 'Admin']]);

/** The roles that somebody can give at a place. @param {boolean} inWorkspace @param {boolean} admin */
export function given(inWorkspace, admin) {
  const all = inWorkspace ? [...assignable, /** @type {[string, string]} */ (['manager', 'Manager'])] : assignable;
  return admin ? all : all.filter(([value]) => value !== 'admin');
}

/** The part of a request that gives one of these roles in place of another. @param {string} value @param {string} [before] */
export function asked(value, before) {
  if (value === 'manager') return { role: null, manager: true };
  return before === 'manager' ? { role: value, manager: false } : { role: value };
}

/** What a member, or the caller at a place, has. @param {{role?: string, manager?: boolean}} m */
export function roleText(m) {
  return [m.role && capital(m.role), m.manager && (m.role ? 'manager' : 'Manager')].filter(Boolean).join(' and ');
}

/** @typedef {{name: string, namespace?: string}} RoleRef */

/** @param {RoleRef} role */
function worded(role) {
  return role.namespace ? `${role.name} in ${role.namespace}` : role.name;
}

/** @type {import('./edit.js').Shown[]} */
export const shown = [
  { label: 'Role', of: (m) => roleText(m) },
  { label: 'Sudo', of: (m) => (m.sudo ? 'yes' : 'no') },
  { label: 'Further roles', of: (m) => (m.roles || []).map(worded).join(', ') },
];

/** Isolates the name, which can have another direction. @param {RoleRef} role */
function isolated(role) {
  return h('code', {}, named(role.name), role.namespace && ` in ${role.namespace}`);
}

/** Says what a member loses together with a higher role; nothing if there is nothing. @param {any} member */
export function dropped(member) {
  const lost = [member.sudo && 'sudo', ...(member.roles || []).map(isolated)].filter(Boolean);
  return lost.length > 0 && [' loses these rights together with the present role: ', lost.map((right, i) => [i > 0 && ', ', right]), '.'];
}

/** The cell of a table. @param {any} member */
export function rightsOf(member) {
  const unbound = (member.conditions || []).find((/** @type {any} */ c) => c.type === 'RolesApplied' && c.status !== 'True' && c.message);
  return [
    member.manager && member.role && [badge('', 'manager'), ' '],
    member.sudo && [badge('warn', 'sudo'), ' '],
    (member.roles || []).map((/** @type {RoleRef} */ r, /** @type {number} */ i) => [i > 0 && ', ', isolated(r)]),
    unbound && h('span', { class: 'second problem' }, 'Not all are given: ', h('bdi', {}, visible(unbound.message))),
  ];
}

/** Opens a dialog that changes them. @param {import('../app.js').Page} page @param {string} path is that of the place @param {any} member */
export function editRights(page, path, member) {
  const save = editor({
    path: `${path}/members/${encodeURIComponent(member.user)}`, seen: member, shown: shown.slice(1), theirs: page.reload, signal: page.signal,
  });
  /** @type {RoleRef[]} */
  let roles = member.roles || [];
  const list = h('ul', { class: 'bare' });
  const name = h('input', { type: 'text', 'aria-label': 'Name of the role', placeholder: 'Role', autocomplete: 'off', maxlength: 200, dir: 'auto' });
  const namespace = h('input', { type: 'text', 'aria-label': 'Namespace, if it is for one only', placeholder: 'Namespace, or empty', autocomplete: 'off', maxlength: 63 });
  const draw = () => list.replaceChildren(...roles.map((r) => h('li', { class: 'row' }, isolated(r),
    h('button', { type: 'button', class: 'plain danger', 'aria-label': `Remove ${worded(r)}`, onclick: () => { roles = roles.filter((other) => other !== r); draw(); name.focus(); } }, 'Remove'))));
  const typed = () => {
    const role = { name: name.value.trim(), ...(namespace.value.trim() ? { namespace: namespace.value.trim() } : {}) };
    return role.name && !roles.some((r) => worded(r) === worded(role)) ? [...roles, role] : roles;
  };
  const add = () => {
    roles = typed();
    name.value = '';
    namespace.value = '';
    draw();
    name.focus();
  };
  draw();
  const element = h('div', { class: 'stacked' }, list, h('div', { class: 'toolbar' }, name, namespace, button('Add', add)));
  element.focus = () => name.focus();
  formDialog({
    title: 'Further rights', signal: page.signal, action: 'Save', text: h('p', {}, named(member.displayName, member.user)),
    fields: [
      { name: 'sudo', label: 'Sudo', type: 'checkbox', value: member.sudo, hint: 'They may act as an admin of this workspace for one request at a time, with “kubectl --as-group”. It is in the audit log.' },
      { name: 'roles', label: 'Further roles', element, read: typed, hint: 'A ClusterRole of this workspace; with a namespace, it or the Role of that name, there only. What admins of the workspace may not do is not given.' },
    ],
    submit: async (values) => {
      await save('PATCH', { sudo: values.sudo, roles: values.roles });
      page.reload();
    },
  });
}
