// Invitations on the pages of members: the dialog that makes one, and those that are open.

import { all, call } from './api.js';
import { h, named } from './dom.js';
import { badge, capital, moment } from './format.js';
import { given } from './rights.js';
import { button, confirmDialog, copyButton, formDialog, openDialog, table } from './ui.js';

/** @typedef {{page: import('../app.js').Page, path: OrgPath|WorkspacePath, noun: string, name: string, admin: boolean}} Place */

/** @type {Array<[string, string]>} */
const lives = [['1', 'A day'], ['7', 'A week'], ['30', 'A month']];

/** @param {Place} c */
export function invite(c) {
  formDialog({
    title: 'Invite somebody', signal: c.page.signal, action: 'Make a link', busy: 'Making…',
    text: h('p', {}, 'For people who have not signed in here yet, too. The link works once.'),
    fields: [
      { name: 'role', label: 'Role', type: 'select', options: given(false, c.admin), value: 'member' },
      { name: 'email', label: 'E-mail address', type: 'email', max: 254, hint: 'If you give one, the link works for this person only. The hub sends no mail.' },
      { name: 'note', label: 'Note', type: 'textarea', max: 500 },
      { name: 'membershipExpiresAt', label: 'Membership ends at', type: 'datetime-local', hint: 'In your time zone. Leave it empty for none.' },
      { name: 'days', label: 'Open for', type: 'select', options: lives, value: '7' },
    ],
    submit: async ({ role, email, note, days, membershipExpiresAt }) => {
      const expiresAt = new Date(Date.now() + Number(days) * 864e5 - 60e3).toISOString();
      const { body } = await call('POST', `${c.path}/invitations`, {
        body: { role, expiresAt, ...(membershipExpiresAt && { membershipExpiresAt: new Date(membershipExpiresAt).toISOString() }), ...(email.trim() && { email: email.trim() }), ...(note && { note }) }, signal: c.page.signal,
      });
      showLink(c, body);
    },
  });
}

/** @param {Place} c @param {Schema<'CreatedInvitation'>} made */
function showLink(c, made) {
  const subject = `Invitation to ${c.name}`;
  const draft = `${made.note ? `${made.note}\n\n` : ''}You are invited to ${c.name}. Open this link to accept; it works once:\n\n${made.url}\n`;
  const mail = `mailto:${encodeURIComponent(made.email || '')}?subject=${encodeURIComponent(subject)}&body=${encodeURIComponent(draft)}`;
  const dialog = openDialog('Send this link', (close) => [
    h('p', {}, 'Nobody can read it again, you neither. It works once, until ', moment(made.expiresAt), '.'),
    h('div', { class: 'secret' }, h('code', { id: 'invitation-link', tabindex: '0', role: 'region', 'aria-label': 'Link' }, made.url), copyButton(made.url, 'Copy the link')),
    h('div', { class: 'actions' }, h('a', { class: 'button', href: mail }, 'Write a mail'), button('Done', close, 'primary')),
  ], { signal: c.page.signal, keep: true });
  dialog.addEventListener('close', c.page.reload);
}

/** Returns the invitations that can be accepted or were not accepted in time. @param {Place} c @param {Array<Schema<'Invitation'>>} invitations */
function listed(c, invitations) {
  /** @type {Record<string, [string, string]>} */
  const states = { Open: ['ok', 'Open'], Void: ['bad', 'Void'] };
  return table('Invitations', [
    { title: 'For', cell: (i) => (i.email ? named(i.email) : 'anybody with the link') },
    { title: 'Role', cell: (i) => capital(i.role) },
    { title: 'Invited by', cell: (i) => named(i.invitedBy) },
    { title: 'Membership ends', cell: (i) => (i.membershipExpiresAt ? moment(i.membershipExpiresAt) : '') },
    { title: 'Open until', cell: (i) => moment(i.expiresAt) },
    { title: 'State', cell: (i) => badge(...(states[i.state] || ['', i.state])) },
    { title: '', class: 'do', cell: (i) => button('Revoke', () => confirmDialog({
      title: 'Revoke the invitation', text: 'Nobody can accept it then.', action: 'Revoke', signal: c.page.signal,
      submit: async () => {
        await call('DELETE', `${c.path}/invitations/${i.id}`, { signal: c.page.signal });
        c.page.reload();
      },
    }), 'plain danger') },
  ], invitations);
}

/** Returns the section of the page of members, or nothing if nobody is invited. @param {Place} c */
export async function invitationsOf(c) {
  const invitations = (await all(`${c.path}/invitations`, { signal: c.page.signal })).filter((i) => i.state === 'Open' || i.state === 'Void');
  return invitations.length > 0 && [h('h2', {}, 'Invitations'), listed(c, invitations)];
}

/** Returns the invitations for the person's own address, or nothing. @param {Array<Schema<'OfferedInvitation'>>} offers */
export function offered(offers) {
  return offers.length > 0 && h('section', { class: 'card' }, h('h2', {}, 'You are invited'), h('ul', { class: 'list' },
    offers.map((o) => h('li', {}, h('a', { href: `/ui/invitations/${o.id}` }, named(o.workspaceDisplayName || o.orgDisplayName)), ', by ', named(o.invitedBy)))));
}
