// The members of an Organization or a Workspace.

import { ApiError, all, call, orgPath, workspacePath } from '../lib/api.js';
import { h, named, note } from '../lib/dom.js';
import { editor } from '../lib/edit.js';
import { badge, capital, date, end, endOf, local, sentence } from '../lib/format.js';
import { asked, atLeast, dropped, editRights, given, rightsOf, roleText, shown } from '../lib/rights.js';
import { invitationsOf, invite } from '../lib/invite.js';
import { loadMemberships, session } from '../lib/session.js';
import { askWhy } from '../lib/why.js';
import { button, confirmDialog, errorNote, formDialog, heading, openDialog, table } from '../lib/ui.js';

/** @param {import('../app.js').Page} page */
export async function render(page) {
  const { org, ws } = page.params;
  const { signal } = page;
  const path = ws ? workspacePath(org, ws) : orgPath(org);
  const noun = ws ? 'workspace' : 'organization';
  const [place, members] = await Promise.all([call('GET', path, { signal }).then((a) => a.body), all(`${path}/members`, { signal })]);
  if (ws) page.name(place.displayName);
  page.title(`Members of ${place.displayName}`);
  const admin = place.role === 'admin';
  const manages = admin || Boolean('manager' in place && place.manager);
  const problem = h('div', { 'aria-live': 'polite' });
  const context = { page, path, noun, problem, name: place.displayName, org, admin };
  // Managers change neither admins nor themselves.
  const may = (/** @type {Schema<'Member'>} */ m) => admin || (manages && m.role !== 'admin' && m.user !== session.me.name);
  page.show(
    heading('Members', [named(place.displayName)],
      button(`Leave ${noun}`, () => leave(context)),
      ws && button('Why?', () => askWhy({ page, path: workspacePath(org, ws), people: askable(admin, members) })),
      manages && button('Invite', () => invite(context)),
      manages && button('Add a member', () => add(context), 'primary')),
    problem,
    table('Members', [
      { title: 'Person', cell: (m) => [named(m.displayName, m.user), ' ', m.user === session.me.name && badge('', 'you'), h('span', { class: 'second' }, h('bdi', {}, m.user))] },
      { title: 'Role', cell: (m) => [may(m) && byHand(m) ? roleSelect(context, m) : roleText(m), otherParts(m)] },
      { title: 'Through', class: 'nowrap', cell: (m) => (m.scope === 'org' && ws ? 'the organization' : `this ${noun}`) },
      ...(ws ? [{ title: 'Further rights', cell: rightsOf }] : []),
      { title: 'Since', cell: (m) => date(m.since) },
      { title: 'End', cell: (m) => end(m.expiresAt) },
      { title: 'State', cell: (m) => (m.active ? badge('ok', 'Active') : badge('warn', m.phase === 'Ready' ? 'Inactive' : 'In progress')) },
      { title: '', class: 'do', cell: (m) => may(m) && !(ws && m.scope === 'org') && [
        ws && admin && byHand(m) && button('Rights', () => editRights(page, path, m), 'plain'),
        byHand(m) && button('End', () => editEnd(context, m), 'plain'),
        m.user !== session.me.name && button('Remove', () => removal(context, m), 'plain danger'),
      ] },
    ], members),
    manages && await invitationsOf(context),
    h('p', { class: 'muted small' }, ws
      ? 'Admins of the organization are admins in this workspace, too, and are not listed here unless they were added. Further rights are roles that exist in the workspace, and sudo.'
      : 'Admins are admins in every workspace of this organization. Members and viewers enter the workspaces that they are added to. Viewers create and change nothing.'),
  );
}

/** The people that the caller may ask about, the caller first. @param {boolean} admin @param {Schema<'Member'>[]} members */
function askable(admin, members) {
  const others = admin ? members.filter((m) => m.user !== session.me.name) : [];
  return [{ user: session.me.name, displayName: 'You' }, ...others];
}

/** @typedef {{page: import('../app.js').Page, path: OrgPath|WorkspacePath, noun: string, problem: HTMLElement, name: string, org: string, admin: boolean}} Context */

/** The part of a membership that an admin gave by hand, which alone can be changed. @param {Schema<'Member'>} member */
function byHand(member) {
  return member.sources.find((s) => s.source === 'hand');
}

/** The other parts. @param {Schema<'Member'>} member */
function otherParts(member) {
  return member.sources.filter((s) => s.source !== 'hand').map((s) => h('span', { class: 'second' },
    `${s.sudo ? 'Sudo' : capital(s.role || '')} ${s.source.startsWith('group:') ? 'by a group' : 'on request'} `, end(s.expiresAt)));
}

/** @param {Context} c @param {Schema<'Member'>} member */
function roleSelect(c, member) {
  if (c.noun === 'workspace' && member.scope === 'org') return capital(member.role);
  const held = byHand(member)?.role || 'manager';
  const select = h('select', { 'aria-label': `Role of ${member.displayName || member.user}` }, given(c.noun === 'workspace', c.admin).map(([value, text]) => h('option', { value }, text)));
  select.value = held;
  const save = editor({ path: `${c.path}/members/${encodeURIComponent(member.user)}`, seen: member, shown, theirs: c.page.reload, signal: c.page.signal });
  const change = async () => {
    await save('PATCH', asked(select.value, held));
    if (member.user === session.me.name) await loadMemberships().catch(() => {});
    c.page.reload();
  };
  select.addEventListener('change', async () => {
    c.problem.replaceChildren();
    const lost = !atLeast(select.value, held) && dropped(member);
    if (lost) {
      confirmDialog({ title: `Make a ${select.value}`, action: `Make a ${select.value}`, signal: c.page.signal, text: [named(member.displayName, member.user), lost], submit: change })
        .addEventListener('close', () => { select.value = held; });
      return;
    }
    select.disabled = true;
    c.problem.replaceChildren(note('', h('p', {}, 'Saving…')));
    try {
      await change();
    } catch (e) {
      if (c.page.signal.aborted) return;
      select.disabled = false;
      select.value = held;
      c.problem.replaceChildren(errorNote(e));
      c.problem.scrollIntoView({ block: 'nearest' });
    }
  });
  return select;
}

const endHint = 'In your time zone. From then on the membership gives nothing, and it is removed. Leave it empty for none.';

/** @param {Context} c @param {Schema<'Member'>} member */
function editEnd(c, member) {
  const save = editor({
    path: `${c.path}/members/${encodeURIComponent(member.user)}`, seen: member, theirs: c.page.reload, signal: c.page.signal,
    shown: [{ label: 'End', of: (m) => m.expiresAt || 'none' }],
  });
  formDialog({
    title: 'End of a membership', signal: c.page.signal, action: 'Save', text: h('p', {}, named(member.displayName, member.user)),
    fields: [{ name: 'expiresAt', label: 'Ends at', type: 'datetime-local', value: local(byHand(member)?.expiresAt), hint: endHint }],
    submit: async (values) => {
      await save('PATCH', { expiresAt: endOf(values.expiresAt) });
      c.page.reload();
    },
  });
}

/** @param {ApiError} e */
function sole(e) {
  return e.causes.some((c) => c.reason === 'SoleAdmin');
}

/** @param {Context} c */
function add(c) {
  let chosen = '';
  /** @type {{user: string, save: ReturnType<typeof editor>|null}} */
  let instead = { user: '', save: null };
  const results = h('ul', { class: 'results', hidden: true });
  const status = h('p', { class: 'hint', role: 'status' }, 'Type at least two characters of a name.');
  const input = h('input', { type: 'search', autocomplete: 'off', 'aria-label': 'Search people', placeholder: 'Search people by name' });
  let timer = 0;
  let latest = 0;
  input.addEventListener('input', () => {
    chosen = '';
    clearTimeout(timer);
    timer = setTimeout(search, 500);
  });
  const pick = (/** @type {Schema<'Person'>} */ person) => {
    chosen = person.name;
    input.value = person.displayName || person.name;
    results.hidden = true;
    status.textContent = `Chosen: ${person.name}`;
  };
  const search = async () => {
    const q = input.value.trim();
    const mine = ++latest;
    results.hidden = true;
    if (q.length < 2) return;
    status.textContent = 'Searching…';
    try {
      const { body } = await call('GET', `/api/users?q=${encodeURIComponent(q)}`, { signal: c.page.signal });
      if (mine !== latest) return;
      results.replaceChildren(...body.items.map((p) => h('li', {}, h('button', { type: 'button', onclick: () => pick(p) }, named(p.displayName, p.name), ' ', h('span', { class: 'muted' }, h('bdi', {}, p.name))))));
      results.hidden = body.items.length === 0;
      status.textContent = body.items.length === 0 ? 'Nobody has this name. People appear here once they have signed in; invite the others.' : 'Choose a person.';
    } catch (e) {
      if (mine === latest && e instanceof ApiError) status.textContent = sentence(e.message);
    }
  };
  formDialog({
    title: 'Add a member', signal: c.page.signal, action: 'Add', busy: 'Adding…',
    fields: [
      { name: 'user', label: 'Person', element: h('div', {}, input, results, status), read: () => chosen || input.value.trim(), required: true },
      { name: 'role', label: 'Role', type: 'select', options: given(c.noun === 'workspace', c.admin), value: 'member' },
      { name: 'expiresAt', label: 'Ends at', type: 'datetime-local', hint: endHint },
    ],
    submit: async ({ user, role, expiresAt }) => {
      const more = expiresAt ? { expiresAt: endOf(expiresAt) } : {};
      if (instead.user !== user) instead = { user, save: null };
      try {
        if (instead.save) await instead.save('PATCH', { ...asked(role), ...more });
        else await call('POST', `${c.path}/members`, { body: { userRef: { name: user }, ...(role === 'manager' ? { manager: true, sudo: false } : { role }), ...more }, signal: c.page.signal });
      } catch (e) {
        if (!(e instanceof ApiError) || e.status !== 409 || e.reason !== 'AlreadyExists') throw e;
        // Somebody else has added them, with another role.
        instead.save = editor({ path: `${c.path}/members/${encodeURIComponent(user)}`, seen: { role: '' }, shown: shown.slice(0, 1), theirs: c.page.reload, signal: c.page.signal });
        await instead.save('PATCH', { ...asked(role), ...more });
      }
      c.page.reload();
    },
  });
}

/** @param {Context} c @param {Schema<'Member'>} member */
function removal(c, member) {
  const name = member.displayName || member.user;
  ending(c, {
    title: 'Remove a member', action: 'Remove', who: h('bdi', {}, name), path: `${c.path}/members/${encodeURIComponent(member.user)}`,
    text: [h('bdi', {}, name), ` loses access to this ${c.noun} at once.`], after: c.page.reload,
  });
}

/** @param {Context} c */
function leave(c) {
  ending(c, {
    title: `Leave ${c.noun}`, action: 'Leave', who: 'You', path: `${c.path}/memberships/me`,
    text: `You lose access to this ${c.noun} at once. An admin can add you again.`,
    after: () => { loadMemberships().catch(() => {}).then(() => c.page.go(c.noun === 'organization' ? '/ui/' : `/ui/orgs/${c.org}`)); },
  });
}

/** @param {Context} c @param {{title: string, action: string, who: any, text: any, path: MemberPath, after: () => void}} e */
function ending(c, e) {
  confirmDialog({
    title: e.title, text: e.text, action: e.action, signal: c.page.signal,
    submit: async () => {
      try {
        await call('DELETE', e.path, { signal: c.page.signal });
      } catch (problem) {
        if (!(problem instanceof ApiError) || problem.status !== 409 || sole(problem) || problem.causes.length === 0 || c.noun === 'workspace') {
          throw problem;
        }
        cascade(c, e, problem);
        return;
      }
      e.after();
    },
  });
}

/** Lists the Workspaces that somebody is still in. @param {Context} c @param {{who: any, path: MemberPath, after: () => void}} e @param {ApiError} problem */
function cascade(c, e, problem) {
  openDialog('Still a member of workspaces', (close) => {
    const failed = h('div');
    const all = button('Remove from all', async () => {
      all.disabled = true;
      try {
        await call('DELETE', `${e.path}?cascade=true`, { signal: c.page.signal });
        close();
        e.after();
      } catch (again) {
        all.disabled = false;
        failed.replaceChildren(errorNote(again));
      }
    }, 'primary danger');
    return [h('p', {}, 'These memberships end together with the one in the organization:'),
      h('ul', { class: 'list' }, problem.causes.map((cause) => h('li', {}, h('bdi', {}, cause.message || cause.field)))),
      failed, h('div', { class: 'actions' }, button('Cancel', close), all)];
  }, { signal: c.page.signal });
}
