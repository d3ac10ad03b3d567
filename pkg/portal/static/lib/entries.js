// The form of a catalog entry.

import { h } from './dom.js';

/** The value of the choice of a Workspace that is none of the list. */
const elsewhere = '';

/** @typedef {import('./edit.js').Shown} Shown */

/** The image of an entry, if it has one. Its name stands beside it. @param {any} entry */
export function icon(entry) {
  return entry.ui?.iconURL ? h('img', { src: entry.ui.iconURL, alt: '', class: 'icon', width: 24, height: 24 }) : null;
}

/** What people can change of an entry. @type {Shown[]} */
export const shown = [
  { label: 'Name', of: (e) => e.displayName },
  { label: 'Description', of: (e) => e.description || '' },
  { label: 'Version', of: (e) => e.version || '' },
  { label: 'Icon', of: (e) => e.ui?.iconURL || '' },
  { label: 'What members may write', of: (e) => (e.memberResources || []).join(', ') },
];

/** The fields that can be changed. @param {any} [entry] */
export function changeable(entry = {}) {
  return [
    { name: 'displayName', label: 'Name', value: entry.displayName || '', required: true, max: 128 },
    { name: 'description', label: 'Description', type: 'textarea', value: entry.description || '', max: 4096 },
    { name: 'version', label: 'Version', value: entry.version || '', max: 64 },
    { name: 'iconURL', label: 'URL of an icon', value: entry.ui?.iconURL || '', max: 21880, hint: 'A data: URL of a PNG, a WebP or an SVG of at most 16 KiB, in base64.' },
    { name: 'memberResources', label: 'What members may write', value: (entry.memberResources || []).join(', '), hint: 'Resources such as widgets, separated by commas. Without any: all of them.' },
  ];
}

/**
 * The fields that stay as they are once an entry is published.
 * @param {Array<{displayName: string, workspacePath: string}>} workspaces may have the APIExport
 */
export function permanent(workspaces) {
  const path = h('input', { type: 'text', 'aria-label': 'kcp path of the workspace of the APIExport', autocomplete: 'off', maxlength: 512, placeholder: 'root:kedge:providers:example' });
  const choice = h('select', { 'aria-label': 'Workspace of the APIExport', onchange: () => { path.hidden = choice.value !== elsewhere; } },
    workspaces.map((w) => h('option', { value: w.workspacePath }, w.displayName)), h('option', { value: elsewhere }, 'Another one, by its kcp path'));
  path.hidden = workspaces.length > 0;
  choice.hidden = workspaces.length === 0;
  const where = h('div', { class: 'stacked' }, choice, path);
  where.focus = () => (path.hidden ? choice : path).focus();
  return [
    { name: 'path', label: 'Workspace of the APIExport', element: where, required: true, read: () => choice.value || path.value.trim() },
    { name: 'name', label: 'Name of the APIExport', required: true, max: 253, hint: 'As in “kubectl get apiexports”.' },
    { name: 'slug', label: 'Slug', required: true, max: 63, hint: 'A short name for scripts: lower-case letters, digits and hyphens. It cannot be changed later.' },
    { name: 'url', label: 'URL of the backend', max: 2048, hint: 'If the provider has a server of its own: the hub tells whether it answers. An https URL.' },
  ];
}

/**
 * Makes the body of a request of the values of a form.
 * @param {any} values
 * @param {{slug: string, apiExport: any, backend?: any}} [entry] is what is published already
 */
export function bodyOf(values, entry) {
  const resources = values.memberResources.split(',').map((/** @type {string} */ r) => r.trim()).filter(Boolean);
  return {
    slug: entry ? entry.slug : values.slug.trim(), displayName: values.displayName, description: values.description, version: values.version,
    apiExport: entry ? entry.apiExport : { path: values.path, name: values.name.trim() },
    backend: entry ? entry.backend || null : values.url.trim() ? { url: values.url.trim() } : null,
    ui: values.iconURL.trim() ? { iconURL: values.iconURL.trim() } : null,
    memberResources: resources.length > 0 ? resources : null,
  };
}
