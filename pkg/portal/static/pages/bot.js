// One bot and its tokens.

import { all, call, workspacePath } from '../lib/api.js';
import { h, named, note } from '../lib/dom.js';
import { editor } from '../lib/edit.js';
import { badge, capital, left, moment, phaseBadge, soon } from '../lib/format.js';
import { progress, rename } from '../lib/places.js';
import { assignable } from '../lib/rights.js';
import { trust } from '../lib/trust.js';
import { button, confirmDialog, copyButton, errorNote, fileName, formDialog, heading, openDialog, save, table } from '../lib/ui.js';

const day = 24 * 3600;
const lives = /** @type {Array<[string, string]>} */ ([[String(7 * day), '7 days'], [String(30 * day), '30 days'], [String(90 * day), '90 days'], [String(365 * day), '1 year'], [String(3600), '1 hour']]);

/** @param {import('../app.js').Page} page */
export async function render(page) {
  const { org, ws, bot: uuid } = page.params;
  const { signal } = page;
  const base = workspacePath(org, ws);
  const path = /** @type {const} */ (`${base}/serviceaccounts/${uuid}`);
  const [workspace, { body: bot, etag }, tokens] = await Promise.all([
    call('GET', base, { signal }).then((a) => a.body), call('GET', path, { signal }), all(`${path}/tokens`, { signal }),
  ]);
  page.name(workspace.displayName);
  page.title(bot.displayName);
  const admin = workspace.role === 'admin';
  const trusted = admin && await trust(page, path, bot);
  const problem = h('div', { 'aria-live': 'polite' });
  const role = h('select', { class: 'inline', 'aria-label': 'Role of the bot' }, assignable.map(([value, text]) => h('option', { value }, text)));
  role.value = bot.role;
  const save = editor({ path, etag, seen: bot, theirs: page.reload, signal, shown: [{ label: 'Role', of: (b) => capital(b.role) }] });
  role.addEventListener('change', async () => {
    role.disabled = true;
    problem.replaceChildren(note('', h('p', {}, 'Saving…')));
    try {
      await save('PATCH', { role: role.value });
      page.reload();
    } catch (e) {
      role.disabled = false;
      role.value = bot.role;
      if (!signal.aborted) problem.replaceChildren(errorNote(e));
    }
  });
  const issue = button('New token', () => newToken(page, path, bot, workspace), 'primary');
  issue.disabled = bot.phase !== 'Ready';
  page.show(
    heading(bot.displayName, [phaseBadge(bot.phase), ' Bot in ', named(workspace.displayName)],
      admin && button('Rename', () => rename({ page, noun: 'bot', name: bot.displayName, path })),
      admin && button('Delete', () => confirmDialog({
        title: 'Delete bot', name: bot.displayName, action: 'Delete bot', signal, text: 'Its tokens stop to work at once. This cannot be undone.',
        submit: async () => {
          await call('DELETE', path, { signal });
          page.go(`/ui/orgs/${org}/workspaces/${ws}/bots`);
        },
      }), 'danger')),
    progress(bot, 'bot'), problem,
    h('section', { class: 'card' }, h('div', { class: 'row' }, h('div', {}, h('h2', {}, 'Role'), h('p', { class: 'muted' }, 'A change counts at once, for tokens that were issued before, too.')), admin ? role : h('span', {}, bot.role))),
    h('section', {}, h('div', { class: 'head' }, h('h2', {}, 'Tokens'), h('div', { class: 'actions' },
      admin && tokens.length > 1 && button('Revoke all', () => revoke(page, `${path}/tokens`, 'Revoke all tokens', 'Every program that uses a token of this bot loses access at once.'), 'danger'),
      admin && issue)),
    tokens.some(toRotate) && note('warn', h('p', {}, admin ? 'A token ends soon. Rotate it, and give the new one to the program.' : 'A token ends soon. Tell an admin of the workspace.')),
    table('Tokens', [
      { title: 'Name', cell: (t) => named(t.name, 'without a name') },
      { title: 'Issued', cell: (t) => moment(t.createdAt) },
      { title: 'Last used', cell: (t) => (t.lastUsedAt ? moment(t.lastUsedAt) : 'Never') },
      { title: 'Expires', cell: (t) => [moment(t.expirationTimestamp), ' ', badge(toRotate(t) ? 'warn' : '', left(t.expirationTimestamp))] },
      { title: '', class: 'do', cell: (t) => admin && !t.rotatedTo && button('Rotate', () => rotate(page, path, bot, workspace, t), 'plain') },
      { title: '', class: 'do', cell: (t) => admin && button('Revoke', () => revoke(page, `${path}/tokens/${t.id}`, 'Revoke token', 'The program that uses it loses access at once.'), 'plain danger') },
    ], tokens, admin ? 'No tokens. Issue one and give it to the program.' : 'No tokens.')),
    trusted,
  );
  if (bot.phase !== 'Ready') {
    page.poll(async () => {
      if ((await call('GET', path, { signal })).body.phase !== 'Ready') return false;
      page.reload();
      return true;
    });
  }
}

/** Reports whether somebody is to rotate a token. @param {Schema<'BotToken'>} t */
function toRotate(t) {
  return !t.trust && !t.rotatedTo && soon(t.expirationTimestamp);
}

/** @param {import('../app.js').Page} page @param {BotPath} path @param {Schema<'Bot'>} bot @param {Schema<'Workspace'>} workspace @param {Schema<'BotToken'>} t */
function rotate(page, path, bot, workspace, t) {
  formDialog({
    title: 'Rotate token', signal: page.signal, action: 'Rotate', busy: 'Rotating…', text: h('p', {}, 'A new token takes the place of ', named(t.name, 'this one'), ', with as long a life.'),
    fields: [{ name: 'gracePeriodSeconds', label: 'The old one works for', type: 'select', options: [['600', '10 minutes'], ['3600', '1 hour'], [String(day), '1 day']], value: '600' }],
    submit: async ({ gracePeriodSeconds }) => {
      const issued = await call('POST', `${path}/tokens/${t.id}/rotate`, { body: { gracePeriodSeconds: Number(gracePeriodSeconds) }, accept: 'application/yaml', signal: page.signal });
      once(page, issued.body, bot, workspace);
    },
  });
}

/** @param {import('../app.js').Page} page @param {`${BotPath}/tokens`|`${BotPath}/tokens/${string}`} path @param {string} title @param {string} text */
function revoke(page, path, title, text) {
  confirmDialog({ title, text, action: 'Revoke', signal: page.signal, submit: async () => {
    await call('DELETE', path, { signal: page.signal });
    page.reload();
  } });
}

/** @param {import('../app.js').Page} page @param {BotPath} path @param {Schema<'Bot'>} bot @param {Schema<'Workspace'>} workspace */
function newToken(page, path, bot, workspace) {
  formDialog({
    title: 'New token', signal: page.signal, action: 'Issue', busy: 'Issuing…',
    fields: [
      { name: 'name', label: 'Name', max: 128, hint: 'What it is for, such as the name of the CI job.' },
      { name: 'expirationSeconds', label: 'Expires after', type: 'select', options: lives, value: String(90 * day) },
    ],
    submit: async ({ name, expirationSeconds }) => {
      const body = { ...(name ? { name } : {}), expirationSeconds: Number(expirationSeconds) };
      const issued = await call('POST', `${path}/tokens`, { body, accept: 'application/yaml', signal: page.signal });
      once(page, issued.body, bot, workspace);
    },
  });
}

/**
 * Shows a token, once. The answer is a kubeconfig that has it.
 * @param {import('../app.js').Page} page @param {string} kubeconfig @param {Schema<'Bot'>} bot @param {Schema<'Workspace'>} workspace
 */
function once(page, kubeconfig, bot, workspace) {
  const token = (/^\s+token: "?([^"\s]+)"?$/m.exec(kubeconfig) || ['', ''])[1];
  const dialog = openDialog('Token issued', (close) => [
    note('warn', h('p', {}, 'This is the only time that the token is shown. Copy it, or download a kubeconfig that has it, and keep it as a secret.')),
    h('div', { class: 'secret' }, h('code', { id: 'token', tabindex: '0', role: 'region', 'aria-label': 'Token' }, token), copyButton(token)),
    h('p', { class: 'muted' }, 'It works in the workspace ', named(workspace.displayName), ' only.'),
    h('div', { class: 'actions' }, button('Download kubeconfig', () => save(`${fileName(bot.displayName)}.kubeconfig`, kubeconfig)), button('I have saved it', close, 'primary')),
  ], { keep: true, signal: page.signal });
  dialog.addEventListener('close', page.reload);
}
