// What Organizations and Workspaces have in common: names, deletion, progress.

import { all, call, orgPath } from './api.js';
import { h, named, note } from './dom.js';
import { editor } from './edit.js';
import { visible } from './format.js';
import { loadMemberships, orgOf } from './session.js';
import { action, confirmDialog, formDialog } from './ui.js';

/**
 * Returns the names of Workspaces of an Organization, by UUID: of all for its admins, who decide about those of others, too;
 * else of those that the person is in.
 * @param {string} org @param {AbortSignal} signal
 */
export async function workspaceNames(org, signal) {
  const own = orgOf(org);
  const known = own?.role === 'admin'
    ? (await all(`${orgPath(org)}/workspaces`, { signal })).map((w) => ({ uuid: w.uuid, name: w.displayName }))
    : own?.workspaces || [];
  /** @type {Map<string, string>} */
  const names = new Map(known.map((w) => [w.uuid, w.name]));
  return names;
}

/**
 * Opens a dialog that renames something.
 * @param {{page: import('../app.js').Page, noun: string, name: string, path: string, field?: string}} r
 */
export function rename({ page, noun, name, path }) {
  const { signal } = page;
  const save = editor({ path, signal, seen: { displayName: name }, theirs: page.reload, shown: [{ label: 'Name', of: (o) => o.displayName }] });
  formDialog({
    title: `Rename ${noun}`, signal, action: 'Rename',
    fields: [{ name: 'displayName', label: 'Name', value: name, required: true, max: 128 }],
    submit: async (values) => {
      await save('PATCH', values);
      await loadMemberships().catch(() => {});
      page.reload();
    },
  });
}

/** The description of a tenant, in words. */
export const descriptionShown = { label: 'Description', of: (/** @type {{description?: string}} */ o) => o.description || '' };

/** The field of a form for it. @param {string} [value] */
export function descriptionField(value = '') {
  return { name: 'description', label: 'Description', type: 'textarea', value, max: 1024, hint: 'What it is for.' };
}

/**
 * Opens a dialog that says what a Workspace is for.
 * @param {{page: import('../app.js').Page, path: WorkspacePath, workspace: Schema<'Workspace'>, etag: string}} d
 */
export function describe({ page, path, workspace, etag }) {
  const { signal } = page;
  const save = editor({ path, etag, signal, seen: workspace, theirs: page.reload, shown: [descriptionShown] });
  formDialog({
    title: 'Description of a workspace', signal, action: 'Save', text: h('p', {}, named(workspace.displayName)),
    fields: [descriptionField(workspace.description)],
    submit: async (values) => {
      await save('PATCH', values);
      page.reload();
    },
  });
}

/**
 * Opens a dialog that deletes an Organization or a Workspace, which can be undone.
 * @param {{page: import('../app.js').Page, noun: string, name: string, path: OrgPath|WorkspacePath, what: string, after: () => void}} d
 */
export function remove({ page, noun, name, path, what, after }) {
  confirmDialog({
    title: `Delete ${noun}`, name, action: `Delete ${noun}`, signal: page.signal, busy: 'Deleting…',
    text: [what, ' Until it is purged, it can be brought back on the page “Deleted items”.'],
    submit: async () => {
      await call('DELETE', path);
      await loadMemberships().catch(() => {});
      after();
    },
  });
}

/**
 * Reads the deleted Workspaces of an Organization: its admins get all of them, others those of their own Memberships.
 * @param {string} org @param {AbortSignal} signal
 */
export async function deletedIn(org, signal) {
  const found = await all(`${orgPath(org)}/workspaces?deleted=true`, { signal });
  // A replica of the version before answers with the others.
  return found.filter((w) => w.deletionRequestedAt);
}

/** Returns a button that brings something back. @param {import('../app.js').Page} page @param {`${OrgPath|WorkspacePath}/undelete`} path */
export function undelete(page, path) {
  return action('Undelete', 'Undeleting…', async () => {
    await call('POST', path);
    await loadMemberships().catch(() => {});
    page.reload();
  });
}

/** @typedef {{phase?: string, conditions?: Array<Schema<'Condition'>>}} Reconciled */

/** Says what an object that is not Ready waits for. @param {Reconciled} object @param {string} noun */
export function progress(object, noun) {
  if (object.phase === 'Ready') return null;
  const waiting = (object.conditions || []).find((c) => c.status !== 'True' && c.message);
  const text = object.phase === 'Terminating' ? `This ${noun} is being removed.` : `This ${noun} is being set up. The page goes on by itself.`;
  return h('div', { class: 'note', role: 'status' }, h('p', {}, text), waiting && h('p', { class: 'detail' }, visible(waiting.message)));
}

/** What each condition says if it is true. @type {Record<string, string>} */
const statements = {
  WorkspaceReady: 'The workspace is ready in kcp', WorkspaceBound: 'The workspace exists and its APIs are bound', FirstAdmin: 'The creator was made an admin',
  Active: 'Not deleted', Watched: 'The hub watches it', ContentReady: 'The default namespace and the roles are in place', TemplateApplied: 'The template of the operator is applied', ClaimsHandled: 'Everything that was requested is created',
  MembersChanged: 'No change of members is pending', AccessReady: 'The rights of the members are in place', PolicyEnforced: 'The rules of the workspace are enforced',
  AccountReady: 'The account is in place', TokensReady: 'The tokens are in place', RoleEnforced: 'kcp allows no more than the role',
  SlugUnique: 'No other entry has the slug', ExportFound: 'The APIExport is found', PublisherMayBind: 'Its publisher may bind the APIExport',
  GrantReady: 'Those who see the entry may bind the APIExport', BackendReachable: 'The backend answers',
};

/** @param {Reconciled} object */
export function conditions(object) {
  const all = [...(object.conditions || [])].sort((a, b) => Number(b.type === 'Ready') - Number(a.type === 'Ready'));
  if (all.length === 0) return note('', 'No conditions are reported yet.');
  return h('ul', { class: 'bare conditions' }, all.map((c) => h('li', {},
    h('span', { class: `badge ${c.status === 'True' ? 'ok' : c.status === 'False' ? 'warn' : ''}` }, c.status === 'True' ? 'Yes' : c.status === 'False' ? 'No' : 'Unknown'),
    h('span', {}, statements[c.type] || words(c.type), c.message && [': ', h('span', { class: 'muted' }, visible(c.message))]))));
}

/** Makes words of a condition type. @param {string} type */
function words(type) {
  const text = type.replace(/([a-z])([A-Z])/g, '$1 $2').toLowerCase();
  return text[0].toUpperCase() + text.slice(1);
}
