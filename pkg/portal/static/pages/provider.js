// One provider in a Workspace: its claims, enable and disable.

import { ApiError, call, workspacePath } from '../lib/api.js';
import { h, named, note } from '../lib/dom.js';
import { icon } from '../lib/entries.js';
import { badge, sentence, stateBadge } from '../lib/format.js';
import { conditions, progress } from '../lib/places.js';
import { action, button, errorNote, formDialog, heading, table } from '../lib/ui.js';

/** @typedef {Schema<'ProviderClaim'>} Claim */

/** @param {import('../app.js').Page} page */
export async function render(page) {
  const { org, ws, entry } = page.params;
  const { signal } = page;
  const base = workspacePath(org, ws);
  const path = /** @type {const} */ (`${base}/providers/${entry}`);
  const [workspace, provider] = await Promise.all([call('GET', base, { signal }).then((a) => a.body), call('GET', path, { signal }).then((a) => a.body)]);
  page.name(workspace.displayName);
  page.title(provider.displayName);
  const admin = workspace.role === 'admin';
  const off = provider.state === 'Disabled';
  const problem = h('div', { 'aria-live': 'polite' });
  const deleted = provider.scope === 'Deleted';
  page.show(
    heading(provider.displayName, [icon(provider), stateBadge(provider.state), ' ', provider.version && named(provider.version)],
      admin && !off && action('Disable', 'Counting what would be lost…', () => disable(page, path, provider), { kind: 'danger', problem })),
    problem,
    progress(provider, 'provider'),
    provider.message && note(provider.state === 'Failing' ? 'error' : 'warn', h('p', {}, sentence(provider.message))),
    deleted && note('warn', h('p', {}, 'This provider is not in the catalog any more. It goes on here, and once disabled it cannot be enabled again.')),
    provider.description && h('p', {}, h('bdi', {}, provider.description)),
    h('section', { class: 'card' }, h('h2', {}, 'What it gets'), provider.claims.length === 0
      ? h('p', {}, 'This provider asks for no objects of the workspace.')
      : h('p', {}, 'The provider asks for access to these objects of the workspace. What is accepted it can use at once; what is rejected it cannot.'),
    admin && !deleted ? answers(page, path, provider) : table('Claims', columns((c) => c.state || '–'), provider.claims)),
    h('section', { class: 'card' }, h('h2', {}, 'What the workspace gets'), h('ul', { class: 'list' }, provider.resources.map((r) => h('li', {}, h('code', {}, kind(r)))))),
    h('section', { class: 'card' }, h('h2', {}, 'Details'), h('dl', {},
      h('dt', {}, 'APIExport'), h('dd', {}, h('code', {}, `${provider.apiExport.path}:${provider.apiExport.name}`)),
      h('dt', {}, 'Published by'), h('dd', {}, named(provider.createdBy, 'the operator')),
      provider.backend && [h('dt', {}, 'Backend'), h('dd', {}, h('code', {}, provider.backend.url))])),
    provider.conditions.length > 0 && h('section', { class: 'card' }, h('h2', {}, 'Conditions'), conditions(provider)),
  );
  // A provider that is being disabled is so until kcp has deleted the objects of its API.
  if (provider.phase === 'Progressing' || provider.state === 'Enabling' || (off && provider.message)) {
    const before = JSON.stringify([provider.phase, provider.state, provider.message]);
    page.poll(async () => {
      const { body } = await call('GET', path, { signal });
      if (JSON.stringify([body.phase, body.state, body.message]) === before) return false;
      page.reload();
      return true;
    });
  }
}

/** @param {{group: string, resource: string}} r */
function kind(r) {
  return r.group ? `${r.resource}.${r.group}` : r.resource;
}

/** @param {(claim: Claim) => any} answer */
function columns(answer) {
  return [
    { title: 'Objects', cell: (/** @type {Claim} */ c) => [h('code', {}, kind(c)), ' ', c.dangerous && badge('bad', 'dangerous')] },
    { title: 'May', cell: (/** @type {Claim} */ c) => c.verbs.map((v) => (v === '*' ? 'everything' : v)).join(', ') },
    { title: 'Answer', cell: answer },
  ];
}

/** A form with an answer for each claim. @param {import('../app.js').Page} page @param {ProviderPath} path @param {Schema<'Provider'>} provider */
function answers(page, path, provider) {
  const result = h('div', { 'aria-live': 'polite' });
  /** @type {Map<Claim, HTMLSelectElement>} */
  const chosen = new Map();
  const select = (/** @type {Claim} */ c) => {
    const element = h('select', { 'aria-label': `Answer for ${kind(c)}` }, h('option', { value: '' }, 'Choose…'), h('option', { value: 'accept' }, 'Accept'), h('option', { value: 'reject' }, 'Reject'));
    element.value = { Accepted: 'accept', Rejected: 'reject', Pending: '' }[c.state || 'Pending'] || (c.dangerous || c.state ? '' : 'accept');
    chosen.set(c, element);
    return element;
  };
  const off = provider.state === 'Disabled';
  const claims = provider.claims.length > 0 && table('Claims', columns(select), provider.claims);
  const send = async (/** @type {boolean} */ dry) => {
    const open = [...chosen].find(([, element]) => !element.value);
    if (open) {
      result.replaceChildren(note('error', h('p', {}, `Accept or reject ${kind(open[0])}.`)));
      open[1].focus();
      return;
    }
    const picked = (/** @type {string} */ value) => [...chosen].filter(([, e]) => e.value === value).map(([c]) => ({ group: c.group, resource: c.resource }));
    for (const b of buttons) b.disabled = true;
    result.replaceChildren(note('', h('p', {}, dry ? 'Checking…' : 'Enabling…')));
    try {
      const { body } = await call('POST', `${path}/enable${dry ? '?dryRun=true' : ''}`, { body: { acceptClaims: picked('accept'), rejectClaims: picked('reject') }, async: !dry, signal: page.signal });
      if (dry) result.replaceChildren(note('', h('p', {}, `This would work. The state would be: ${body.state}.`)));
      else page.reload();
    } catch (e) {
      if (!page.signal.aborted) result.replaceChildren(errorNote(e));
    } finally {
      for (const b of buttons) b.disabled = false;
    }
  };
  const busy = off && provider.message;
  const buttons = [button('Check', () => send(true)), button(off ? 'Enable' : 'Save the answers', () => send(false), 'primary')];
  return h('div', {}, claims, h('p', {}), result, !busy && (off || claims) && h('div', { class: 'actions' }, buttons));
}

/** Shows what would be lost, and asks. @param {import('../app.js').Page} page @param {ProviderPath} path @param {Schema<'Provider'>} provider */
async function disable(page, path, provider) {
  /** @type {any[]} */
  let losses = [];
  try {
    await call('DELETE', `${path}/enable`, { signal: page.signal });
  } catch (e) {
    if (page.signal.aborted) return;
    if (!(e instanceof ApiError) || e.status !== 409 || !e.causes.some((c) => c.reason === 'WouldLose')) throw e;
    losses = e.causes.map((c) => h('li', {}, sentence(c.message)));
  }
  formDialog({
    title: 'Disable provider', kind: 'danger', action: 'Disable', busy: 'Disabling…', signal: page.signal,
    text: [h('p', {}, 'Its API leaves this workspace, and all its objects here are deleted. This cannot be undone:'), h('ul', { class: 'list' }, losses)],
    fields: [{ name: 'typed', label: 'Type the name to confirm', hint: provider.displayName, required: true }],
    submit: async ({ typed }) => {
      if (typed.trim() !== provider.displayName.normalize('NFC').trim()) throw new ApiError(422, { message: '', details: { causes: [{ field: 'typed', message: 'this is not the name above' }] } }, '');
      await call('DELETE', `${path}/enable?confirm=true`, { async: true, signal: page.signal });
      page.reload();
    },
  });
}
