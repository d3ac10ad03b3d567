// What pages are made of: errors, tables, dialogs, forms.

import { ApiError } from './api.js';
import { announce, h, named, note } from './dom.js';
import { Changed } from './edit.js';
import { sentence } from './format.js';

/** A button that copies a text. */
class CopyButton extends HTMLElement {
  /** @type {() => string} */ text = () => '';
  connectedCallback() {
    if (this.firstChild) return;
    const label = this.getAttribute('label') || 'Copy';
    const button = h('button', { type: 'button', onclick: async () => {
      const copied = await navigator.clipboard.writeText(this.text()).then(() => true, () => false);
      button.textContent = copied ? 'Copied' : 'Not copied';
      announce(copied ? 'Copied to the clipboard' : 'The browser did not let the page copy it');
      setTimeout(() => { button.textContent = label; }, 2000);
    } }, label);
    this.append(button);
  }
}
customElements.define('kedge-copy', CopyButton);

/** @param {string} text @param {string} [label] */
export function copyButton(text, label = 'Copy') {
  const button = /** @type {CopyButton} */ (h('kedge-copy', { label }));
  button.text = () => text;
  return button;
}

/** A command line with a button that copies it. @param {string} text */
export function command(text) {
  return h('div', { class: 'secret' }, h('code', {}, text), copyButton(text));
}

/**
 * Returns an error as a sentence, with the request id to copy.
 * @param {any} problem
 * @param {() => void} [retry]
 */
export function errorNote(problem, retry) {
  if (problem instanceof Changed) return changedNote(problem);
  const known = problem instanceof ApiError;
  if (!known) console.error(problem);
  const only = known && problem.causes.some((c) => c.reason === 'SoleAdmin');
  const causes = known && !only ? problem.causes.filter((c) => c.message && c.message !== problem.message) : [];
  return note('error',
    h('p', {}, known ? sentence(problem.message) : 'This page failed. Reload it; if that does not help, tell a platform admin.'),
    causes.length > 0 && h('ul', { class: 'list' }, causes.map((c) => h('li', {}, h('bdi', {}, c.message)))),
    only && h('p', {}, 'Somebody has to be able to manage an organization: once another member is an admin, too, this works.'),
    known && problem.status === 403 && h('p', {}, 'Your role may have changed since this page was opened. What you can enter is listed anew at the top.'),
    known && problem.status === 403 && !retry && h('div', { class: 'actions' }, h('button', { type: 'button', onclick: () => location.reload() }, 'Reload the page')),
    (retry || (known && problem.request)) && h('div', { class: 'actions' },
      retry && h('button', { type: 'button', onclick: retry }, 'Try again'),
      known && problem.request && h('span', { class: 'muted small' }, 'Request ', h('code', {}, problem.request), ' ', copyButton(problem.request, 'Copy id'))));
}

/** Shows what somebody else has made of an object, and what the person wants. @param {Changed} problem */
function changedNote({ rows, theirs }) {
  return h('div', { class: 'note warn', role: 'alert' }, h('p', {}, 'Somebody else has changed this meanwhile. Press the button again to put yours in its place.'),
    h('ul', { class: 'list' }, rows.map((r) => h('li', {}, `${r.label}: now `, h('strong', {}, named(r.now, 'nothing')), ', yours ', h('strong', {}, named(r.yours, 'nothing'))))),
    h('div', { class: 'actions' }, button('Show theirs', theirs)));
}

/**
 * @template T
 * @typedef {{title: string, cell: (item: T) => any, class?: string}} Column
 */

/**
 * @template T
 * @param {string} label
 * @param {Array<Column<NoInfer<T>>>} columns
 * @param {T[]} items
 * @param {any} [empty] is shown if there are no items
 */
export function table(label, columns, items, empty = 'Nothing here yet.') {
  if (items.length === 0) return h('div', { class: 'table' }, h('div', { class: 'empty' }, empty));
  return h('div', { class: 'table' }, h('table', { class: 'stack', 'aria-label': label },
    h('thead', {}, h('tr', {}, columns.map((c) => h('th', { scope: 'col' }, c.title || h('span', { class: 'visually-hidden' }, 'Actions'))))),
    h('tbody', {}, items.map((item) => h('tr', {}, columns.map((c) => h('td', { class: c.class || null, 'data-label': c.title || null }, h('div', {}, c.cell(item)))))))));
}

/** @param {string} title @param {any} sub @param {...any} actions */
export function heading(title, sub, ...actions) {
  return h('div', { class: 'head' }, h('div', {}, h('h1', { tabindex: '-1' }, h('bdi', {}, title)), sub && h('p', { class: 'sub' }, sub)), h('div', { class: 'actions' }, actions));
}

/** @param {string} text @param {() => void} onclick @param {string} [kind] */
export function button(text, onclick, kind = '') {
  return h('button', { type: 'button', class: kind || null, onclick }, text);
}

/**
 * Returns a button that says what it is doing until that is done. What fails is shown in
 * problem, or below the button.
 * @param {string} text
 * @param {string} busy
 * @param {() => Promise<any>} act
 * @param {{kind?: string, problem?: HTMLElement}} [options]
 */
export function action(text, busy, act, options = {}) {
  const problem = options.problem || h('div', { 'aria-live': 'polite' });
  const pressed = button(text, async () => {
    pressed.disabled = true;
    pressed.textContent = busy;
    problem.replaceChildren();
    try {
      await act();
    } catch (e) {
      if (!(e instanceof DOMException && e.name === 'AbortError')) problem.replaceChildren(errorNote(e));
    } finally {
      pressed.disabled = false;
      pressed.textContent = text;
    }
  }, options.kind);
  return options.problem ? pressed : [pressed, problem];
}

let serial = 0;

/**
 * @typedef {object} Field
 * @property {string} name is the name of the field in the request
 * @property {string} label
 * @property {string} [type] an input type, "select", "textarea" or "checkbox"
 * @property {any} [value]
 * @property {Array<[string, string]>} [options]
 * @property {string} [hint]
 * @property {boolean} [required]
 * @property {number} [max]
 * @property {any} [element] an element of its own, instead of an input
 * @property {() => any} [read]
 */

/**
 * Returns a form. submit gets the values; if it rejects, what is wrong is shown beside the
 * fields that the hub names, and the form stays as it is.
 * @param {{fields: Field[], action: string, kind?: string, cancel?: () => void, busy?: string, submit: (values: any) => Promise<void>}} f
 */
export function form(f) {
  const inputs = f.fields.map((field) => ({ field, ...control(field) }));
  const problems = h('div');
  const submit = h('button', { type: 'submit', class: `primary ${f.kind || ''}` }, f.action);
  const element = h('form', { novalidate: true }, problems, inputs.map((i) => i.row),
    h('div', { class: 'actions' }, f.cancel && button('Cancel', f.cancel), submit));
  element.addEventListener('submit', async (/** @type {Event} */ e) => {
    e.preventDefault();
    if (submit.disabled) return;
    problems.replaceChildren();
    for (const i of inputs) i.complain();
    const missing = inputs.find((i) => i.field.required && !i.read());
    if (missing) {
      missing.complain('This is needed.');
      missing.focus();
      return;
    }
    submit.disabled = true;
    submit.textContent = f.busy || 'Saving…';
    try {
      await f.submit(Object.fromEntries(inputs.map((i) => [i.field.name, i.read()])));
    } catch (problem) {
      if (problem instanceof DOMException && problem.name === 'AbortError') return;
      const causes = problem instanceof ApiError ? problem.causes : [];
      const blamed = inputs.map((i) => ({ i, messages: causes.filter((c) => c.field.split('.').includes(i.field.name)).map((c) => c.message) })).filter((x) => x.messages.length > 0);
      for (const { i, messages } of blamed) i.complain(...complaint(messages));
      if (blamed.length > 0) blamed[0].i.focus();
      else problems.replaceChildren(errorNote(problem));
    } finally {
      submit.disabled = false;
      submit.textContent = f.action;
    }
  });
  return element;
}

/** Returns what is wrong with a field: a sentence, after which stands what it is about. @param {string[]} messages */
function complaint(messages) {
  const last = sentence(messages[messages.length - 1]);
  return messages.length === 1 ? [last] : [last, h('ul', { class: 'list' }, messages.slice(0, -1).map((m) => h('li', {}, h('bdi', {}, m))))];
}

/** @param {Field} field */
function control(field) {
  const id = `f${++serial}`;
  let input = field.element;
  if (!input && field.type === 'select') {
    input = h('select', { id }, (field.options || []).map(([value, text]) => h('option', { value }, text)));
  } else if (!input && field.type === 'textarea') {
    input = h('textarea', { id, rows: 3, maxlength: field.max, required: field.required, dir: 'auto' });
  } else if (!input) {
    input = h('input', { id, type: field.type || 'text', maxlength: field.max, autocomplete: 'off', required: field.required, dir: field.type ? null : 'auto' });
  }
  const check = field.type === 'checkbox';
  if (!field.element) {
    if (check) input.checked = Boolean(field.value);
    else if (field.value !== undefined) input.value = field.value;
  }
  const problem = h('div', { class: 'problem', id: `${id}p`, hidden: true });
  const hint = field.hint && h('p', { class: 'hint', id: `${id}h` }, field.hint);
  if (hint) input.setAttribute('aria-describedby', `${id}h`);
  const row = check
    ? h('div', { class: 'field' }, h('label', { class: 'check', for: id }, input, h('span', {}, field.label)), hint, problem)
    : h('div', { class: 'field' }, field.element ? h('span', { class: 'label' }, field.label) : h('label', { for: id }, field.label), input, hint, problem);
  const complain = (/** @type {any[]} */ ...about) => {
    problem.hidden = about.length === 0;
    problem.replaceChildren(...about);
    input.setAttribute('aria-invalid', String(!problem.hidden));
    input.setAttribute('aria-describedby', [about.length > 0 ? `${id}p` : '', hint ? `${id}h` : ''].join(' ').trim());
  };
  row.addEventListener('input', () => complain());
  return {
    row,
    complain,
    read: field.read || (() => (check ? input.checked : typeof input.value === 'string' ? input.value.normalize('NFC') : input.value)),
    focus: () => input.focus(),
  };
}

/**
 * Opens a dialog. It ends when the page is left.
 * @param {string} title
 * @param {(close: () => void) => any} content
 * @param {{signal?: AbortSignal, keep?: boolean}} [options] keep: Escape does not close it
 */
export function openDialog(title, content, options = {}) {
  const id = `d${++serial}`;
  const dialog = h('dialog', { 'aria-labelledby': id });
  const close = () => { dialog.close(); };
  dialog.addEventListener('close', () => dialog.remove());
  if (options.keep) dialog.addEventListener('cancel', (/** @type {Event} */ e) => e.preventDefault());
  options.signal?.addEventListener('abort', close);
  dialog.append(h('h2', { id }, title), h('div', {}, content(close)));
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/**
 * Opens a dialog with a form.
 * @param {{title: string, text?: any, fields: Field[], action: string, kind?: string, busy?: string, signal?: AbortSignal, submit: (values: any) => Promise<void>}} f
 */
export function formDialog(f) {
  return openDialog(f.title, (close) => [f.text && h('div', {}, f.text), form({ ...f, cancel: close, submit: async (values) => { await f.submit(values); close(); } })], f);
}

/**
 * Asks before something is done. If name is given, it has to be typed; what says what it is.
 * @param {{title: string, text: any, action: string, name?: string, what?: string, signal?: AbortSignal, busy?: string, submit: () => Promise<void>}} c
 */
export function confirmDialog(c) {
  return formDialog({
    ...c, text: h('p', {}, c.text), kind: 'danger', busy: c.busy || 'Working…',
    fields: c.name === undefined ? [] : [{ name: 'typed', label: `Type the ${c.what || 'name'} to confirm`, hint: c.name, required: true }],
    submit: async (values) => {
      if (c.name !== undefined && values.typed.trim() !== c.name.normalize('NFC').trim()) {
        throw new ApiError(422, { message: '', details: { causes: [{ field: 'typed', message: `this is not the ${c.what || 'name'} above` }] } }, '');
      }
      await c.submit();
    },
  });
}

/** Has the browser save a text as a file. @param {string} name @param {string} text @param {string} [type] */
export function save(name, text, type = 'application/yaml') {
  const url = URL.createObjectURL(new Blob([text], { type }));
  h('a', { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10e3);
}

/** Makes a display name a file name. @param {string} name */
export function fileName(name) {
  return name.normalize('NFKD').replace(/[^A-Za-z0-9]+/g, '-').replace(/^-+|-+$/g, '').toLowerCase() || 'kedge';
}
