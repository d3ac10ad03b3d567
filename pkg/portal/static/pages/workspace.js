// One Workspace: how to get in, and how it is.

import { call, workspacePath } from '../lib/api.js';
import { billingFields, billingPatch, billingShown } from '../lib/billing.js';
import { h, named, note } from '../lib/dom.js';
import { editor } from '../lib/edit.js';
import { end, endOf, local, moment, phaseBadge, size, used } from '../lib/format.js';
import { caNote, filesOfHub, loginCommand } from '../lib/getin.js';
import { conditions, describe, progress, remove, rename } from '../lib/places.js';
import { roleText } from '../lib/rights.js';
import { orgOf } from '../lib/session.js';
import { action, button, command, copyButton, fileName, formDialog, heading, save } from '../lib/ui.js';

/** @param {import('../app.js').Page} page */
export async function render(page) {
  const { org, ws } = page.params;
  const path = workspacePath(org, ws);
  const { signal } = page;
  const [{ body: workspace, etag }, files] = await Promise.all([call('GET', path, { signal }), filesOfHub()]);
  page.name(workspace.displayName);
  page.title(workspace.displayName);
  const ready = workspace.phase === 'Ready';
  const problem = h('div', { 'aria-live': 'polite' });
  const download = action('Download kubeconfig', 'Preparing…', async () => {
    const { body } = await call('GET', `${path}/kubeconfig`, { accept: 'application/yaml', signal });
    save(`${fileName(workspace.displayName)}.kubeconfig`, body);
  }, { kind: 'primary', problem });
  download.disabled = !ready;
  const admin = workspace.role === 'admin';
  page.show(
    heading(workspace.displayName, [phaseBadge(workspace.phase), ' ', roleText(workspace), ' · created ', moment(workspace.createdAt), ' by ', named(workspace.createdBy)],
      (admin || workspace.manager) && button('Rename', () => rename({ page, noun: 'workspace', name: workspace.displayName, path })),
      (admin || workspace.manager) && button('Description', () => describe({ page, path, workspace, etag })),
      (admin || workspace.manager) && button('Billing', () => editBilling(page, path, workspace, etag)),
      (admin || workspace.manager) && button('End', () => editEnd(page, path, workspace, etag)),
      (admin || workspace.manager) && button('Requests', () => editRequests(page, path, workspace, etag)),
      admin && button('Delete', () => remove({
        page, noun: 'workspace', name: workspace.displayName, path, after: () => page.go(`/ui/orgs/${org}`),
        what: 'Everything in it stops to work at once, for people and bots.',
      }), 'danger')),
    workspace.description && h('p', { class: 'prose' }, h('bdi', {}, workspace.description)),
    progress(workspace, 'workspace'),
    workspace.expiresAt && note('warn', h('p', {}, 'This workspace is deleted by itself with everything in it: ', end(workspace.expiresAt), '. ', admin || workspace.manager ? 'End gives it more time.' : 'Its admins can give it more time.')),
    workspace.role !== '' && h('section', { class: 'card' }, h('h2', {}, 'Get in with kubectl'),
      h('p', {}, 'The kubeconfig holds no token and can be shared. It runs the ', h('code', {}, 'kedge'), ' command line, which signs you in. ', h('a', { href: '/ui/first-steps' }, 'Get kedge')),
      caNote(files),
      command(loginCommand(files)),
      command(`kubectl --kubeconfig ${fileName(workspace.displayName)}.kubeconfig get namespaces`),
      h('div', { class: 'actions' }, download), problem,
      h('p', {}),
      h('p', { class: 'muted small' }, 'For a CI job, make a ', h('a', { href: `${location.pathname}/bots` }, 'bot'), ' instead: its kubeconfig has a token.')),
    h('section', { class: 'card' }, h('h2', {}, 'Details'), h('dl', {},
      h('dt', {}, 'Organization'), h('dd', {}, h('a', { href: `/ui/orgs/${org}` }, named(orgOf(org)?.name || org))),
      h('dt', {}, 'UUID'), h('dd', {}, h('code', {}, workspace.uuid), ' ', copyButton(workspace.uuid)),
      h('dt', {}, 'URL'), h('dd', {}, workspace.url ? [h('code', {}, workspace.url), ' ', copyButton(workspace.url)] : '–'),
      billingShown.map((s) => [h('dt', {}, s.label), h('dd', {}, s.of(workspace) ? named(s.of(workspace)) : '–')]),
      h('dt', {}, 'Objects'), h('dd', {}, used(workspace.objects, String)),
      h('dt', {}, 'Size'), h('dd', {}, used(workspace.bytes, size)),
      h('dt', {}, 'Size of the organization'), h('dd', {}, used(workspace.orgBytes, size)),
      h('dt', {}, 'CustomResourceDefinitions'), h('dd', {}, used(workspace.customResourceDefinitions, String)),
      h('dt', {}, 'APIBindings'), h('dd', {}, used(workspace.apiBindings, String)),
      h('dt', {}, 'Roles, ClusterRoles and Namespaces'), h('dd', {}, used(workspace.roles, String)),
      h('dt', {}, 'kcp path'), h('dd', {}, h('code', {}, workspace.workspacePath)))),
    h('section', { class: 'card' }, h('h2', {}, 'Conditions'), conditions(workspace)),
    h('p', { class: 'muted small' }, 'Admins of the organization are admins in every workspace of it.'),
  );
  if (!ready) {
    const before = JSON.stringify([workspace.phase, workspace.conditions]);
    page.poll(async () => {
      const { body } = await call('GET', path, { signal });
      if (JSON.stringify([body.phase, body.conditions]) === before) return false;
      page.reload();
      return true;
    });
  }
}

/** @param {import('../app.js').Page} page @param {WorkspacePath} path @param {Schema<'Workspace'>} workspace @param {string} etag */
function editEnd(page, path, workspace, etag) {
  const save = editor({ path, etag, seen: workspace, theirs: page.reload, signal: page.signal, shown: [{ label: 'End', of: (w) => w.expiresAt || 'none' }] });
  formDialog({
    title: 'End of a workspace', signal: page.signal, action: 'Save', text: h('p', {}, named(workspace.displayName)),
    fields: [{ name: 'expiresAt', label: 'Ends at', type: 'datetime-local', value: local(workspace.expiresAt), hint: endHint }],
    submit: async (values) => {
      await save('PATCH', { expiresAt: endOf(values.expiresAt) });
      page.reload();
    },
  });
}

/** @param {import('../app.js').Page} page @param {WorkspacePath} path @param {Schema<'Workspace'>} workspace @param {string} etag */
function editRequests(page, path, workspace, etag) {
  const save = editor({ path, etag, seen: workspace, theirs: page.reload, signal: page.signal, shown: [{ label: 'Requests', of: (w) => w.requests || 'none' }] });
  formDialog({
    title: 'Requests in a workspace', signal: page.signal, action: 'Save', text: h('p', {}, named(workspace.displayName)),
    fields: [{
      name: 'requests', label: 'Who may ask for rights', type: 'select', value: workspace.requests || 'none',
      options: [['none', 'Who is in the workspace'], ['members', 'All members of the organization']],
    }],
    submit: async (values) => {
      await save('PATCH', { requests: values.requests });
      page.reload();
    },
  });
}

/** @param {import('../app.js').Page} page @param {WorkspacePath} path @param {Schema<'Workspace'>} workspace @param {string} etag */
function editBilling(page, path, workspace, etag) {
  const save = editor({ path, etag, seen: workspace, theirs: page.reload, signal: page.signal, shown: billingShown });
  formDialog({
    title: 'Billing of a workspace', signal: page.signal, action: 'Save', text: h('p', {}, named(workspace.displayName)),
    fields: billingFields(workspace),
    submit: async ({ costCenter, labels }) => {
      await save('PATCH', (/** @type {any} */ now) => ({ billing: billingPatch(costCenter, labels, now.billing?.labels || {}) }));
      page.reload();
    },
  });
}

const endHint = 'In your time zone. The workspace is deleted then, and can be undeleted for a day or as the operator says. Leave it empty for none.';
