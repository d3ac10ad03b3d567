// What Organizations and Workspaces have in common: names, deletion, progress.

import { call } from './api.js';
import { h, note } from './dom.js';
import { loadMemberships } from './session.js';
import { button, confirmDialog, errorNote, formDialog } from './ui.js';

/**
 * Opens a dialog that renames something.
 * @param {{page: import('../app.js').Page, noun: string, name: string, path: string, field?: string}} r
 */
export function rename({ page, noun, name, path }) {
  formDialog({
    title: `Rename ${noun}`, signal: page.signal, action: 'Rename',
    fields: [{ name: 'displayName', label: 'Name', value: name, required: true, max: 128 }],
    submit: async (values) => {
      await call('PATCH', path, { body: values, signal: page.signal });
      await loadMemberships().catch(() => {});
      page.reload();
    },
  });
}

/**
 * Opens a dialog that deletes an Organization or a Workspace, which can be undone.
 * @param {{page: import('../app.js').Page, noun: string, name: string, path: string, what: string, after: () => void}} d
 */
export function remove({ page, noun, name, path, what, after }) {
  confirmDialog({
    title: `Delete ${noun}`, name, action: `Delete ${noun}`, signal: page.signal, busy: 'Deleting…',
    text: [what, ' Until it is purged, it can be brought back on the page “Deleted”.'],
    submit: async () => {
      await call('DELETE', path);
      await loadMemberships().catch(() => {});
      after();
    },
  });
}

/** Returns a button that brings something back. @param {import('../app.js').Page} page @param {string} path */
export function undelete(page, path) {
  const undo = button('Undelete', async () => {
    undo.disabled = true;
    try {
      await call('POST', path);
      await loadMemberships().catch(() => {});
      page.reload();
    } catch (problem) {
      undo.disabled = false;
      if (!page.signal.aborted) undo.after(errorNote(problem));
    }
  });
  return undo;
}

/** @typedef {{phase?: string, conditions?: Array<Schema<'Condition'>>}} Reconciled */

/** Says what an object that is not Ready waits for. @param {Reconciled} object @param {string} noun */
export function progress(object, noun) {
  if (object.phase === 'Ready') return null;
  const waiting = (object.conditions || []).find((c) => c.status !== 'True' && c.message);
  const text = object.phase === 'Terminating' ? `This ${noun} is being removed.` : `This ${noun} is being set up. The page goes on by itself.`;
  return h('div', { class: 'note', role: 'status' }, h('p', {}, text), waiting && h('p', { class: 'detail' }, waiting.message));
}

/** @param {Reconciled} object */
export function conditions(object) {
  const all = object.conditions || [];
  if (all.length === 0) return note('', 'No conditions are reported yet.');
  return h('ul', { class: 'bare' }, all.map((c) => h('li', {},
    h('span', { class: `badge ${c.status === 'True' ? 'ok' : c.status === 'False' ? 'warn' : ''}` }, c.status === 'True' ? 'Yes' : c.status === 'False' ? 'No' : 'Unknown'),
    ' ', words(c.type), c.message && [': ', h('span', { class: 'muted' }, c.message)])));
}

/** Makes words of a condition type. @param {string} type */
function words(type) {
  const text = type.replace(/([a-z])([A-Z])/g, '$1 $2').toLowerCase();
  return text[0].toUpperCase() + text.slice(1);
}
