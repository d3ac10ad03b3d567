// The jobs of CI that a bot trusts.

import { all, call } from './api.js';
import { h, named } from './dom.js';
import { moment } from './format.js';
import { caLink, filesOfHub, installCommands, loginCommand } from './getin.js';
import { button, confirmDialog, copyButton, formDialog, openDialog, table } from './ui.js';

/**
 * The trust rules of a bot, for admins of its workspace.
 * @param {import('../app.js').Page} page @param {BotPath} path @param {Schema<'Bot'>} bot
 */
export async function trust(page, path, bot) {
  const { signal } = page;
  const rules = await all(`${path}/trust`, { signal });
  const add = button('Trust a job', () => adding(page, path), 'primary');
  add.disabled = bot.phase !== 'Ready';
  return h('section', {}, h('div', { class: 'head' }, h('h2', {}, 'Trusted jobs'), h('div', { class: 'actions' }, button('Lines for a pipeline', () => lines(signal, bot)), add)),
    table('Trusted jobs', [
      { title: 'Identity provider', cell: (t) => named(t.issuer) },
      { title: 'Claims', cell: (t) => h('ul', { class: 'list' }, Object.entries(t.claims).map(([name, value]) => h('li', {}, h('code', {}, `${name}=${value}`)))) },
      { title: 'Audience', cell: (t) => named(t.audience) },
      { title: 'Added', cell: (t) => [moment(t.createdAt), ' by ', named(t.createdBy)] },
      { title: 'Last used', cell: (t) => (t.lastUsedAt ? moment(t.lastUsedAt) : 'Never') },
      { title: 'Last refused', cell: (t) => (t.lastRefusal ? [moment(t.lastRefusal.at), ' for ', h('code', {}, t.lastRefusal.claim)] : '') },
      { title: '', class: 'do', cell: (t) => button('Remove', () => confirmDialog({
        title: 'Remove rule', text: 'The tokens that jobs got by this rule end at once.', action: 'Remove', signal,
        submit: async () => {
          await call('DELETE', `${path}/trust/${t.id}`, { signal });
          page.reload();
        },
      }), 'plain danger') },
    ], rules, 'None. A job of GitHub Actions or GitLab CI that the bot trusts gets a token for its own ID token, so that the pipeline needs no secret.'));
}

/** @param {import('../app.js').Page} page @param {BotPath} path */
function adding(page, path) {
  formDialog({
    title: 'Trust a job', signal: page.signal, action: 'Add', busy: 'Adding…',
    text: h('p', {}, 'Jobs get tokens of this bot if their ID token has all the claims, with exactly these values. Name a repository or a project by its number: another can get its name later.'),
    fields: [
      { name: 'issuer', label: 'Identity provider', required: true, max: 512, hint: 'The URL of the issuer, which this hub must allow.' },
      { name: 'audience', label: 'Audience', max: 512, hint: `For whom the job's ID token is. Leave it empty for ${location.origin}, which kedge login --ci asks for.` },
      { name: 'claims', label: 'Claims', type: 'textarea', required: true, max: 4096, hint: 'One on a line, such as repository_id=812734510, project_id=42 or ref=refs/heads/main.' },
    ],
    submit: async ({ issuer, audience, claims }) => {
      const pairs = claims.split('\n').map((/** @type {string} */ line) => line.trim()).filter(Boolean);
      const body = { issuer: issuer.trim(), ...(audience.trim() ? { audience: audience.trim() } : {}), claims: Object.fromEntries(pairs.map((/** @type {string} */ pair) => [pair.split('=')[0].trim(), pair.slice(pair.indexOf('=') + 1).trim()])) };
      await call('POST', `${path}/trust`, { body, signal: page.signal });
      page.reload();
    },
  });
}

/** Shows what a pipeline says to log in, ready to paste. @param {AbortSignal} signal @param {Schema<'Bot'>} bot */
async function lines(signal, bot) {
  const files = await filesOfHub();
  const install = installCommands(files, 'linux', 'amd64');
  const run = [...install, loginCommand(files, ` --ci --bot ${bot.uuid}`), 'kedge kubeconfig > kubeconfig', 'kubectl --kubeconfig kubeconfig apply -f manifest.json'];
  const github = ['permissions: {id-token: write}', 'steps:', '- uses: actions/checkout@v4', '- run: |', ...run.map((line) => `    ${line}`)].join('\n');
  const gitlab = ['deploy:', `  id_tokens: {KEDGE_ID_TOKEN: {aud: ${location.origin}}}`, '  script:', ...run.map((line) => `  - ${line}`)].join('\n');
  const block = (/** @type {string} */ title, /** @type {string} */ text) => [
    h('h3', {}, title), h('div', { class: 'secret' }, h('pre', { tabindex: '0', role: 'region', 'aria-label': title }, text), copyButton(text)),
  ];
  if (signal.aborted) return;
  openDialog('Lines for a pipeline', (close) => [
    h('p', {}, 'They log a job in as this bot. The bot must trust the job. They hold no secret.'),
    files.ca && h('p', {}, 'Put ', caLink(), ' into the repository: this hub has a certificate of its own CA, and the lines name the file.'),
    h('p', {}, install.length > 0 ? 'The job needs kubectl. They get kedge from this hub, as long as it has this version.' : 'The job needs kedge and kubectl on its PATH.'),
    ...block('GitHub Actions', github), ...block('GitLab CI', gitlab), h('div', { class: 'actions' }, button('Close', close, 'primary')),
  ], { signal });
}
