// The person: name, sessions, account.

import { all, call } from '../lib/api.js';
import { h, named, note } from '../lib/dom.js';
import { editor } from '../lib/edit.js';
import { left, moment } from '../lib/format.js';
import { orgOf, session } from '../lib/session.js';
import { sessionColumns } from '../lib/sessions.js';
import { action, button, confirmDialog, copyButton, form, heading, table } from '../lib/ui.js';

/** @param {import('../app.js').Page} page */
export async function render(page) {
  const { signal } = page;
  const { body: me, etag } = await call('GET', '/api/users/me', { signal });
  session.me = me;
  page.title('Your account');
  if (me.deletionRequestedAt) return deleted(page, me);
  const sessions = (await all('/api/users/me/sessions', { signal })).sort((a, b) => Number(b.current) - Number(a.current) || b.lastUsedAt.localeCompare(a.lastUsedAt));
  const saved = h('div', { role: 'status' });
  const save = editor({ path: '/api/users/me', etag, seen: me, theirs: page.reload, signal, shown: [{ label: 'Name', of: (m) => m.displayName }] });
  const personal = orgOf(me.personalOrg);
  // As --admin-user names people.
  const identity = me.issuer === 'static' ? me.subject : `${me.issuer}#${me.subject}`;
  page.show(
    heading('Your account', [named(me.displayName || me.name)]),
    h('section', { class: 'card' }, h('h2', {}, 'About you'), saved, form({
      action: 'Save', fields: [{ name: 'displayName', label: 'Name', value: me.displayName, required: true, max: 128 }],
      submit: async (values) => {
        session.me = (await save('PATCH', values)).body;
        page.refresh();
      },
    }), h('dl', {},
      h('dt', {}, 'User name'), h('dd', {}, h('code', {}, me.name)),
      h('dt', {}, 'For the operator'), h('dd', {}, h('code', {}, identity), ' ', copyButton(identity)),
      h('dt', {}, 'Email'), h('dd', {}, me.email ? h('bdi', {}, me.email) : '–'),
      h('dt', {}, 'Personal organization'), h('dd', {}, personal ? h('a', { href: `/ui/orgs/${personal.uuid}` }, named(personal.name)) : '–'),
      h('dt', {}, 'Organizations created'), h('dd', {}, `${me.orgQuota.used} of ${me.orgQuota.limit}`))),
    h('section', {}, h('div', { class: 'head' }, h('h2', {}, 'Sessions'), button('Sign out everywhere', () => confirmDialog({
      title: 'Sign out everywhere', action: 'Sign out everywhere', signal, text: 'Every browser and every command line is signed out, this one too. Tokens that were issued until now are refused.',
      submit: async () => {
        await call('DELETE', '/api/users/me/sessions?all=true', { signal });
        location.assign('/ui/sign-in');
      },
    }), 'danger')),
    table('Sessions', [
      ...sessionColumns,
      { title: '', class: 'do', cell: (s) => !s.current && ender(page, s) },
    ], sessions, 'No sessions: you are signed in with a token.')),
    h('section', { class: 'card danger-zone' }, h('div', { class: 'row' },
      h('div', {}, h('h2', {}, 'Delete your account'), h('p', {}, 'You lose access everywhere at once, and your personal organization stops to work. You can sign in and undo it until your account is purged.')),
      button('Delete account', () => confirmDialog({
        title: 'Delete your account', name: me.name, action: 'Delete account', signal, busy: 'Deleting…',
        text: 'You lose access everywhere at once. If you are the only admin of an organization, make somebody else an admin first, or delete it.',
        submit: async () => {
          await call('DELETE', '/api/users/me', { signal });
          location.assign('/ui/sign-in?deleted=1');
        },
      }), 'danger'))),
  );
}

/** @param {import('../app.js').Page} page @param {Schema<'Session'>} s */
function ender(page, s) {
  return action('End', 'Ending…', async () => {
    await call('DELETE', `/api/users/me/sessions/${s.id}`, { signal: page.signal });
    page.reload();
  }, { kind: 'plain danger' });
}

/** @param {import('../app.js').Page} page @param {Schema<'User'>} me */
function deleted(page, me) {
  const undo = action('Bring my account back', 'Bringing it back…', async () => {
    await call('POST', '/api/users/me/undelete', { signal: page.signal });
    location.assign('/ui/');
  }, { kind: 'primary' });
  page.show(heading('Your account is deleted', [named(me.displayName || me.name)]),
    note('warn', h('p', {}, 'Deleted ', moment(me.deletionRequestedAt), '. ', me.purgeAt && ['It is purged ', moment(me.purgeAt), ' (', left(me.purgeAt), '). ']),
      h('p', {}, 'Until then nothing is lost, and you can bring it back.')),
    h('div', { class: 'actions' }, undo));
}
